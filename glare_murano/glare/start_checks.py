# SPDX-License-Identifier: Apache-2.0

"""Check Glare's configuration for packages.

If an option of packages is not valid, Glare does not start. The command ``glare-murano-status
upgrade check`` also checks the pipelines, the policy file, the indexes of the database, and the
installed libraries.
"""

import configparser
import functools
import pathlib
from collections.abc import Iterator, Mapping

import sqlalchemy as sa
import yaml
from glare.common import config as glare_config
from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.objects.meta import registry
from oslo_config import cfg

from glare_murano import fields
from glare_murano.glare.options import SETTINGS
from glare_murano.upgrade_checks import (
    Check,
    Finding,
    find_missing_walls,
    find_unmet_requirements,
    reads_database,
)

_ETC = pathlib.Path(__file__).with_name("etc")
# The filters that packages need, in their order in a pipeline.
_FILTERS = (
    "glare_murano.glare.api.validation_filter:ValidationFilter.factory",
    "glare.api.middleware.context:ContextMiddleware.factory",
    "glare_murano.glare.api.middleware:MuranoFilter.factory",
)
_TABLE = "glare_artifact_properties"
_INDEXES = {"ix_murano_classes", "ix_murano_keys"}


def check() -> None:
    """Check the options of packages. The filter ``murano`` calls this when it is created.

    :raises RuntimeError: if an option is not valid. Then Glare does not start.
    """
    problems = [finding.message for find in START_CHECKS.values() for finding in find()]
    if problems:
        raise RuntimeError("\n".join(problems))


def _find_disabled_type() -> Iterator[Finding]:
    if fields.TYPE_NAME not in cfg.CONF.enabled_artifact_types:
        yield Finding(
            f"[DEFAULT] enabled_artifact_types = {', '.join(cfg.CONF.enabled_artifact_types)}: add "
            f"{fields.TYPE_NAME}"
        )


def _find_unknown_types() -> Iterator[Finding]:
    """Register the artifact types as a running Glare does, and find types that cannot be used."""
    try:
        registry.ArtifactRegistry.register_all_artifacts()
    except (exception.GlareException, ImportError) as error:
        yield Finding(f"[DEFAULT] enabled_artifact_types, custom_artifact_types_modules: {error}")
    yield from _find_disabled_type()


def _find_invalid_options() -> Iterator[Finding]:
    if SETTINGS.group not in cfg.CONF:
        # The options are missing if Glare has not registered the artifact type.
        return
    try:
        SETTINGS.check()
    except RuntimeError as error:
        yield Finding(str(error))


def _find_incomplete_pipelines() -> Iterator[Finding]:
    """Find pipelines that lack a filter of ``_FILTERS``, or have these filters in another order."""
    try:
        path = glare_config._get_deployment_config_file()
    except RuntimeError as error:
        yield Finding(f"[paste_deploy] config_file: {error}", is_error=False)
        return
    paste = configparser.RawConfigParser(strict=False)
    paste.read(path)
    for section in paste.sections():
        names = paste.get(section, "pipeline", fallback="").split()
        if not names or names[-1] != "glarev1api":
            continue
        factories = [
            paste.get(f"filter:{name}", "paste.filter_factory", fallback="") for name in names
        ]
        if [factory for factory in factories if factory in _FILTERS] != [*_FILTERS]:
            yield Finding(
                f"{path}: [{section}] pipeline: expected filters with the factories "
                f"{', '.join(_FILTERS)}, in this order; compare it with {_ETC / 'glare-paste.ini'}",
                is_error=False,
            )


def _find_missing_rules() -> Iterator[Finding]:
    shipped = _ETC / "policy.yaml"
    name = cfg.CONF.oslo_policy.policy_file
    path = cfg.CONF.find_file(name)
    try:
        rules = (yaml.safe_load(pathlib.Path(path).read_text()) or {}) if path else {}
    except (OSError, yaml.YAMLError) as error:
        yield Finding(f"[oslo_policy] policy_file = {name}: {error}", is_error=False)
        return
    missing = sorted(set(yaml.safe_load(shipped.read_text())) - {*rules})
    if missing:
        yield Finding(
            f"[oslo_policy] policy_file = {name}: the rules {', '.join(missing)} are missing, so "
            f"that Glare's own apply, by which callers may do more; copy them from {shipped}",
            is_error=False,
        )


@reads_database
def _find_missing_indexes() -> Iterator[Finding]:
    engine = database.get_engine()
    found = {index["name"] for index in sa.inspect(engine).get_indexes(_TABLE)}
    file = {"mysql": "mariadb.sql", "postgresql": "postgresql.sql"}.get(engine.dialect.name)
    if file and (missing := sorted(_INDEXES - found)):
        yield Finding(
            f"the table {_TABLE} has no index {' and no index '.join(missing)}, so that queries of "
            f"classes read all rows; run {_ETC / file} in the database",
            is_error=False,
        )


# If one of these checks finds an error, Glare does not start.
START_CHECKS: Mapping[str, Check] = {
    "Artifact type": _find_disabled_type,
    "Options": _find_invalid_options,
}
UPGRADE_CHECKS: Mapping[str, Check] = {
    **START_CHECKS,
    "Artifact type": _find_unknown_types,
    "Pipelines": _find_incomplete_pipelines,
    "Policy": _find_missing_rules,
    "Indexes": _find_missing_indexes,
    "Landlock": find_missing_walls,
    "Libraries": functools.partial(find_unmet_requirements, "glare"),
}
