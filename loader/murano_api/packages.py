# SPDX-License-Identifier: Apache-2.0

"""Answer requests for Murano's application catalogue, with the packages in Glare or Glance.

Murano's own policies apply. Glare or Glance also gets the caller's token, and applies its own
policies.
"""

import datetime
import itertools
import urllib.parse
import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import jsonschema
import webob
from murano.api.v1 import catalog, validation_schemas
from murano.common import policy
from murano.db.catalog import api as murano_categories
from oslo_config import cfg
from webob import exc

from glare_murano import fields
from glare_murano.package.errors import quoted
from glare_murano.selection import Selection
from loader import errors
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.murano_api import package_changes, package_json
from loader.murano_api.http_statuses import reported
from loader.murano_api.package_lists import PackageList, find, range_of
from loader.murano_api.request_bodies import archive_and_metadata
from loader.murano_api.request_repository import RequestRepositories

CONF = cfg.CONF

# The namespace of ids for categories that are missing in Murano's database. Such an id is computed
# from the category's name.
_CATEGORIES = uuid.UUID("7e2b2f53-9a3f-4c0e-8f5a-6c1d5f0c9a41")

# The largest limit that every database accepts in a statement.
_MAX_LIMIT = 2**31 - 1

_NO_CATEGORY = "there is no category with the id {}"


class CatalogController(catalog.Controller):  # type: ignore[misc]
    """Answers the requests below ``/v1/catalog``."""

    def __init__(self, repositories: RequestRepositories, settings: Mapping[str, Any]) -> None:
        """Make a controller; no request is sent.

        :param settings: how archives are read; see ``uploaded_package.configure``.
        """
        self._repositories = repositories
        self._settings = settings

    def search(self, req: webob.Request) -> dict[str, Any]:
        """Return one page of the packages that the parameters of a request select.

        ``package_lists`` describes the parameters.
        """
        policy.check("get_package", req.context)
        with reported():
            # ``version`` is left out and read below: Murano would log that it ignores it.
            filters = catalog._get_filters(
                (name, value) for name, value in req.GET.items() if name != "version"
            )
            if filters.get("sort_dir", "asc") not in ("asc", "desc"):
                raise exc.HTTPBadRequest(explanation="sort_dir is either asc or desc")
            limit = self._validate_limit(filters.get("limit")) or CONF.murano.limit_param_default
            limit = min(CONF.murano.api_limit_max, limit)
            version = req.GET.get("version")
            wanted = PackageList(
                filters,
                req.context.project_id,
                is_admin=req.context.is_admin,
                is_catalog=req.GET.get("catalog", "").lower() == "true",
                is_public_shown=_is_allowed(req, "manage_public_package"),
                version=range_of(version) if version else None,
            )
            found = wanted.page(self._repository(req), limit)
        answer: dict[str, Any] = {"packages": [package_json.to_json(each) for each in found]}
        if len(found) == limit:
            answer["next_marker"] = found[-1].id
        return answer

    def get(self, req: webob.Request, package_id: str) -> dict[str, Any]:
        """Show the package with an id, even if a newer version of the package exists."""
        policy.check("get_package", req.context, {"package_id": package_id})
        with reported():
            return package_json.to_json(find(self._repository(req), package_id))

    def get_ui(self, req: webob.Request, package_id: str) -> webob.Response:
        """Return the form of a package; without a form, answer with an empty body."""
        return self._file(req, package_id, "ui_definition", "text/plain")

    def get_logo(self, req: webob.Request, package_id: str) -> webob.Response:
        """Return the logo of a package; without a logo, answer with an empty body."""
        return self._file(req, package_id, "logo")

    def get_supplier_logo(self, req: webob.Request, package_id: str) -> webob.Response:
        """Return the logo of a package's supplier; without a logo, answer with an empty body."""
        return self._file(req, package_id, "supplier_logo")

    def download(self, req: webob.Request, package_id: str) -> webob.Response:
        """Return the archive of a package."""
        policy.check("download_package", req.context, {"package_id": package_id})
        with reported():
            repository = self._repository(req)
            package = find(repository, package_id)
            return _streamed(repository.download(package), "application/octet-stream", package.size)

    def upload(self, req: webob.Request, body: Any = None) -> dict[str, Any]:
        """Publish a package with the caller's token."""
        policy.check("upload_package", req.context)
        catalog._check_content_type(req, "multipart/form-data")
        archive, metadata = archive_and_metadata(body)
        try:
            jsonschema.validate(metadata, validation_schemas.PKG_UPLOAD_SCHEMA)
        except jsonschema.ValidationError as error:
            raise exc.HTTPBadRequest(
                explanation=f"the metadata of the upload is not valid: {error.message}"
            ) from error
        if metadata.get("is_public"):
            policy.check("publicize_package", req.context)
        self._check_categories(req, metadata.get("categories") or [])
        with reported():
            repository, project_id = self._repository(req), req.context.project_id
            published = package_changes.upload(
                repository, archive, metadata, self._settings, project_id
            )
            return package_json.to_json(published)

    def update(self, req: webob.Request, body: Any, package_id: str) -> dict[str, Any]:
        """Change a package with the caller's token."""
        policy.check("modify_package", req.context, {"package_id": package_id})
        catalog._check_content_type(req, "application/murano-packages-json-patch")
        with reported():
            repository = self._repository(req)
            package = find(repository, package_id)
            if package.visibility == "public":
                policy.check("manage_public_package", req.context)
            changes = package_changes.read(package, body)
            if changes.is_published:
                policy.check("publicize_package", req.context)
            added = set(changes.values.get("categories") or ())
            self._check_categories(req, added.difference(package_json.categories(package)))
            return package_json.to_json(changes.apply(repository, package))

    def delete(self, req: webob.Request, package_id: str) -> None:
        """Delete a version of a package with the caller's token."""
        target = {"package_id": package_id}
        policy.check("delete_package", req.context, target)
        with reported():
            repository = self._repository(req)
            package = find(repository, package_id)
            if package.visibility == "public":
                policy.check("manage_public_package", req.context, target)
            repository.delete(package)

    def _check_categories(self, req: webob.Request, names: Collection[str]) -> None:
        """Check that categories exist, as Murano does.

        A category exists if it is in Murano's database, or if a package has it.

        :raises HTTPBadRequest: if a category is missing.
        """
        if not set(names) - set(murano_categories.category_get_names()):
            return
        known = {row["name"] for row in self._categories(req)}
        if missing := sorted(set(names) - known):
            raise exc.HTTPBadRequest(
                explanation=f"there is no category {quoted(missing[0])}; an administrator "
                f"creates categories"
            )

    def _validate_limit(self, value: str | None) -> int | None:
        limit: int | None = super()._validate_limit(value)
        return limit and min(limit, _MAX_LIMIT)

    def add_category(self, req: webob.Request, body: Any = None) -> dict[str, Any]:
        """Create a category in Murano's database."""
        # Murano's controller checks the policy as well, but only after the name.
        policy.check("add_category", req.context)
        name = body.get("name", "") if isinstance(body, dict) else None
        if not isinstance(name, str):
            raise exc.HTTPBadRequest(explanation="Send a JSON object with the name of a category")
        if unstorable := fields.UNSTORABLE.search(name):
            raise exc.HTTPBadRequest(
                explanation=f"the name has a character that cannot be stored: {unstorable[0]!a}"
            )
        found: dict[str, Any] = super().add_category(req, body)
        return found

    def list_categories(self, req: webob.Request) -> dict[str, Any]:
        """Return one page of the categories.

        These are the categories in Murano's database, and others that packages have.
        """
        # Murano's controller checks the policy and the parameters. It does not know categories that
        # only packages have, so it must not look for one at which a page ends.
        first = req.copy_get()
        others = [(name, value) for name, value in req.GET.items() if name != "marker"]
        first.query_string = urllib.parse.urlencode(others)
        super().list_categories(first)
        rows = list(self._categories(req))
        return _category_page(rows, req.GET, self._validate_limit(req.GET.get("limit")))

    def get_category(self, req: webob.Request, category_id: str) -> dict[str, Any]:
        """Show a category with its packages."""
        policy.check("get_category", req.context)
        for row in self._categories(req):
            if row["id"] == category_id:
                packages = [
                    {
                        "id": package.id,
                        "name": package_json.display_name(package),
                        "fully_qualified_name": package.fqn,
                    }
                    for package in self._of_category(req, row["name"])
                ]
                return {**row, "packages": packages}
        raise exc.HTTPNotFound(explanation=_NO_CATEGORY.format(quoted(category_id)))

    def delete_category(self, req: webob.Request, category_id: str) -> None:
        """Delete a category, unless a package has it.

        :raises HTTPForbidden: if a package has the category.
        """
        policy.check("delete_category", req.context, {"category_id": category_id})
        if packages := self.get_category(req, category_id)["packages"]:
            names = errors.listed(package["fully_qualified_name"] for package in packages)
            raise exc.HTTPForbidden(
                explanation=f"packages have the category: {names}; remove it from them first"
            )
        murano_categories.category_delete(category_id)

    def _categories(self, req: webob.Request) -> Iterator[dict[str, Any]]:
        """Yield each category, with the number of its packages that the caller can see."""
        with reported():
            others = dict(self._repository(req).categories(package_json.SHOWN))
        for category in murano_categories.categories_list({}):
            row = category.to_dict()
            found = others.pop(row["name"], None)
            yield {**row, "package_count": found.packages if found else 0}
        for name, found in others.items():
            yield {
                "id": str(uuid.uuid5(_CATEGORIES, name)),
                "name": name,
                "created": found.created_at[: package_json.TIME_LENGTH],
                "updated": found.updated_at[: package_json.TIME_LENGTH],
                "package_count": found.packages,
            }

    def _of_category(self, req: webob.Request, name: str) -> list[StoredPackage]:
        """Return the newest version of each package that has a category."""
        values = {"categories": [name], "status": package_json.SHOWN}
        with reported():
            return list(self._repository(req).packages(Selection(values, distinct="name")))

    def _repository(self, req: webob.Request) -> Repository:
        return self._repositories.of_request(req.context)

    def _file(
        self,
        req: webob.Request,
        package_id: str,
        name: str,
        content_type: str = "application/octet-stream",
    ) -> webob.Response:
        policy.check("get_package", req.context, {"package_id": package_id})
        with reported():
            repository = self._repository(req)
            package = find(repository, package_id)
            try:
                return _streamed(repository.file(package, name), content_type)
            except errors.NotFound:
                # Murano answers with an empty body, and its clients raise an error for 404.
                return _streamed(iter(()), content_type, 0)


def _is_allowed(req: webob.Request, rule: str) -> bool:
    try:
        policy.check(rule, req.context)
    except exc.HTTPForbidden:
        return False
    return True


def _streamed(
    pieces: Iterator[bytes], content_type: str, size: int | None = None
) -> webob.Response:
    """Return a response that sends a file piece by piece; wait only for the first piece."""
    first = next(pieces, b"")
    response = webob.Response(content_type=content_type)
    response.app_iter = itertools.chain([first], pieces)
    if size is not None:
        response.content_length = size
    return response


def _category_page(
    rows: list[dict[str, Any]], parameters: Mapping[str, str], limit: int | None
) -> dict[str, Any]:
    """Return one page of categories, sorted as the parameters say."""
    keys = [key.strip() for key in parameters.get("sort_keys", "name").split(",")]
    is_descending = parameters.get("sort_dir") == "desc"
    rows.sort(key=lambda row: [_sortable(row[key]) for key in keys], reverse=is_descending)
    ids = [row["id"] for row in rows]
    marker = parameters.get("marker")
    if marker is not None and marker not in ids:
        raise exc.HTTPNotFound(explanation=_NO_CATEGORY.format(quoted(marker)))
    rows = rows[ids.index(marker) + 1 :] if marker is not None else rows
    answer: dict[str, Any] = {"categories": rows[:limit]}
    if limit is not None and len(rows) > limit:
        answer["next_marker"] = rows[limit - 1]["id"]
    return answer


def _sortable(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.datetime) else value
