# SPDX-License-Identifier: Apache-2.0

"""Odd requests to the real Glare, thousands of them: none is answered with 500."""

import json
import pathlib
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glare_murano import fields as table
from tests import effort, packages
from tests.functional.client import (
    ARCHIVES,
    ARTIFACTS,
    DEPENDENCIES,
    SUBCLASSES,
    Answer,
    Client,
    Wire,
)

pytestmark = pytest.mark.programs

NAME = "org.odd"

fuzz = settings(max_examples=effort.REQUESTS)


@pytest.fixture(scope="module")
def client(glare_url: str) -> Client:
    """A member of a project with a few packages."""
    client = Client(glare_url, "user:odd:member")
    for version in ("1.0.0", "1.2.0-rc.1", "1.2.0"):
        data = packages.package(NAME, version, Tags=["odd", "even"])
        client.publish(NAME, version, data)
    return client


@pytest.fixture(scope="module")
def wire(client: Client) -> Iterator[Wire]:
    wire = Wire(client)
    yield wire
    wire.close()


@pytest.fixture(scope="module")
def marker(client: Client) -> str:
    """The id of an artifact that is listed."""
    (found,) = client.request("GET", f"?name={NAME}&version=1.0.0").json()["artifacts"]
    artifact_id: str = found["id"]
    return artifact_id


@pytest.fixture(autouse=True)
def _quiet_log(state_dir: pathlib.Path) -> Iterator[None]:
    """No request makes the server write a traceback."""
    log = state_dir / "glare.log"
    start = log.stat().st_size if log.exists() else 0
    yield
    with log.open("rb") as stream:
        stream.seek(start)
        assert [line for line in stream if b"Traceback" in line] == []


def _check(answer: Answer) -> None:
    assert answer.status_code < 500, answer.content
    assert b"Traceback" not in answer.content
    if answer.status_code >= 400:
        assert answer.headers["Content-Type"].startswith("application/json")
        error = answer.json()
        assert error["code"] == answer.status_code
        assert isinstance(error["error"]["message"], str)
        assert error["error"]["message"]


# What is likely to be wrong somewhere. Surrogates are left in.
CHARACTERS = st.one_of(
    st.characters(exclude_categories=[]),
    st.sampled_from("\0\x01\n\r\x1b\x7f\x85\u2028\u202e\ud800\udfff\uffff\U00010000\U0010ffff"),
    st.sampled_from("%\"'\\,:;&=+-.~/*?#<>^[]{}()_ 019azAZ"),
)
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=20),
    st.sampled_from([NAME, "io.murano", f"{NAME}.Thing", "org.nobody", "", "a" * 300, "A" * 5000]),
)
RANGES = st.one_of(
    TEXTS,
    st.sampled_from(
        ["0", "1", "1.2", "*", ">=1,<2", "!=1.0.0", "~1.2", "^1", "~=1.2", "==1.2.0-rc.1", "<0"]
    ),
    st.sampled_from(["99999999999.0.0", "1.0.0-" + "9" * 50, ",".join([">0"] * 100), "1.*", ">>1"]),
    st.text("0123456789.,<>=!~^*-+ arc", max_size=12),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([2**31, 2**63, -(2**64), 10**400, 1e308]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=8,
)
DEEP = st.integers(1, 3000).flatmap(
    lambda depth: st.sampled_from([b"[" * depth + b"]" * depth, b'{"a":' * depth, b"[" * depth])
)


def _or_odd(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly of the right form."""
    return st.integers(0, 9).flatmap(lambda n: VALUES if n == 0 else strategy)


def _encoded(value: Any, ascii_only: bool) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")


def _bodies(right: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Bodies of requests: nearly right, any JSON, and no JSON at all."""
    written = st.builds(_encoded, _or_odd(right), st.booleans())
    return st.one_of(
        written,
        written,
        written,
        written.flatmap(lambda data: st.integers(0, len(data)).map(lambda end: data[:end])),
        st.sampled_from(["utf-16", "utf-32", "utf-8-sig"]).flatmap(
            lambda encoding: right.map(lambda value: json.dumps(value).encode(encoding))
        ),
        st.binary(max_size=50),
        DEEP,
    )


CONTENT_TYPES = st.sampled_from(
    [
        "application/json",
        "application/json-patch+json",
        "application/json; charset=utf-16",
        "application/json; charset=nonsense",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "text/plain",
        "APPLICATION/JSON",
        "/",
        ";",
        "",
    ]
)


def _headers(usual: str) -> st.SearchStrategy[dict[str, str]]:
    return st.one_of(
        st.just({"Content-Type": usual}),
        st.just({"Content-Type": usual}),
        st.builds(lambda value: {"Content-Type": value}, CONTENT_TYPES),
        st.just({"Content-Type": usual, "Content-Encoding": "gzip"}),
        st.just({"Content-Type": usual, "Accept": "text/html"}),
        st.just({}),
    )


QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "requirements": _or_odd(st.dictionaries(TEXTS, _or_odd(RANGES), max_size=4)),
        "objects": _or_odd(
            st.lists(
                st.fixed_dictionaries(
                    {"class": _or_odd(TEXTS)}, optional={"version": _or_odd(RANGES)}
                ),
                max_size=4,
            )
        ),
        "pins": _or_odd(
            st.dictionaries(TEXTS, _or_odd(st.lists(_or_odd(RANGES), max_size=3)), max_size=3)
        ),
        "prereleases": _or_odd(st.booleans()),
        "project_id": _or_odd(TEXTS),
        "nonsense": VALUES,
    },
)


@fuzz
@given(body=_bodies(QUERIES), headers=_headers("application/json"))
@example(body=b'{"requirements": {"%s": "*"}}' % (b"a" * 2**20), headers={})
@example(body=_encoded({"requirements": {f"a{n}": "*" for n in range(1000)}}, True), headers={})
@example(body=_encoded({"objects": [{"class": f"a{n}"} for n in range(1000)]}, True), headers={})
@example(body=_encoded({"pins": {"a": ["1"] * 100_000}}, True), headers={})
def test_dependency_queries(wire: Wire, body: bytes, headers: dict[str, str]) -> None:
    _check(wire.send("POST", DEPENDENCIES, body, headers))


IDS = st.one_of(
    TEXTS, st.uuids().map(str), st.just("ID"), st.uuids().map(lambda found: f"{found}\n")
)


@fuzz
@given(ids=st.one_of(VALUES, st.lists(IDS, max_size=20)), more=st.dictionaries(TEXTS, VALUES))
def test_batches(wire: Wire, marker: str, ids: Any, more: dict[str, Any]) -> None:
    body = json.dumps({**more, "artifacts": ids}).replace('"ID"', f'"{marker}"').encode()

    _check(wire.send("POST", ARCHIVES, body, {"Content-Type": "application/json"}))


FIELDS = st.sampled_from(
    [
        *("id", "name", "version", "owner", "status", "visibility", "description", "metadata"),
        *("created_at", "updated_at", "activated_at", "type_name", "display_type_name"),
        *(field.name for field in table.FIELDS),
        *("archive", "logo", "tags", "tags-any", "metadata.a", "supplier.Name", "inherits.a.b"),
        *("requirements.", ".name", ".", "nonsense"),
    ]
)
OPERATORS = st.sampled_from(
    ["", "eq:", "neq:", "in:", "gt:", "gte:", "lt:", "lte:", "like:", "or:", "and:", "or:in:", ":"]
)
FILTER_VALUES = st.one_of(
    TEXTS,
    RANGES,
    st.sampled_from(
        [
            "latest",
            "stable",
            "active",
            "public",
            "odd",
            '"a,b",c',
            '"',
            '\\"',
            "%",
            "%%%",
            "a,b",
            ",",
            "abc",
        ]
    ),
    st.sampled_from(["2020-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2020-13-01", "0"]),
)


def _quoted(text: str) -> str:
    return urllib.parse.quote(text.encode(errors="surrogatepass"), safe=":,")


FILTERS = st.builds(
    lambda field, operator, value: f"{field}={operator}{_quoted(value)}",
    st.one_of(FIELDS, TEXTS.map(_quoted)),
    OPERATORS,
    FILTER_VALUES,
)
SORTS = st.lists(
    st.builds(
        lambda key, direction: f"{_quoted(key)}{direction}",
        st.one_of(FIELDS, TEXTS),
        st.sampled_from(["", ":asc", ":desc", ":up", ":", "::"]),
    ),
    max_size=3,
).map(lambda keys: "sort=" + ",".join(keys))
PAGES = st.one_of(
    st.one_of(st.integers(), NUMBERS, TEXTS).map(lambda limit: f"limit={_quoted(str(limit))}"),
    TEXTS.map(lambda marker: f"marker={_quoted(marker)}"),
    # Replaced by the id of an artifact.
    st.just("marker=ID"),
)
RAW = st.text("%0123456789abcdefABCDEF&=;+:,.-_nametgsor", max_size=20)


@fuzz
@given(
    query=st.lists(st.one_of(FILTERS, FILTERS, SORTS, PAGES, RAW), max_size=6).map("&".join),
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "DELETE", "PUT"]),
    path=st.sampled_from([ARTIFACTS, ARTIFACTS, "/artifacts/all"]),
)
@example(query="&".join(["keywords=neq:a"] * 30), method="GET", path=ARTIFACTS)
@example(query="sort=activated_at&marker=ID", method="GET", path=ARTIFACTS)
@example(query="version=gte:abc", method="GET", path=ARTIFACTS)
@example(query="version=or:in:", method="GET", path=ARTIFACTS)
@example(query="metadata.a=b", method="GET", path="/artifacts/all")
def test_filters(wire: Wire, marker: str, query: str, method: str, path: str) -> None:
    answer = wire.send(method, f"{path}?{query.replace('marker=ID', f'marker={marker}')}")

    if method == "HEAD":
        assert answer.status_code < 500
    else:
        _check(answer)


@fuzz
@given(
    query=st.lists(
        st.one_of(
            st.builds(
                lambda name, value: f"{name}={_quoted(value)}",
                st.sampled_from(["class", "class", "package", "version", "limit", "marker"]),
                st.one_of(TEXTS, RANGES, NUMBERS.map(str)),
            ),
            FILTERS,
            RAW,
        ),
        max_size=4,
    ).map("&".join)
)
@example(query="class=io.murano.Thing&package=io.murano&version=*&limit=1&marker=a")
def test_queries_for_subclasses(wire: Wire, query: str) -> None:
    _check(wire.send("GET", f"{SUBCLASSES}?{query}"))


@fuzz
@given(path=st.text(CHARACTERS, max_size=20), method=st.sampled_from(["GET", "DELETE", "PUT"]))
def test_paths(wire: Wire, path: str, method: str) -> None:
    quoted = urllib.parse.quote(path.encode(errors="surrogatepass"))
    _check(wire.send(method, f"{ARTIFACTS}/{quoted}", b"" if method == "PUT" else None))


FIELD_VALUES = st.one_of(
    VALUES,
    st.lists(TEXTS, max_size=4),
    st.dictionaries(TEXTS, TEXTS, max_size=3),
    st.just("x" * 30_000),
    st.just(["x"] * 5000),
)
NEW = st.builds(
    lambda name, version, others: {**others, **name, **version},
    st.fixed_dictionaries({"name": _or_odd(TEXTS)}),
    st.fixed_dictionaries({}, optional={"version": _or_odd(RANGES)}),
    st.dictionaries(st.one_of(FIELDS, TEXTS), FIELD_VALUES, max_size=3),
)


@fuzz
@given(body=_bodies(NEW), headers=_headers("application/json"))
def test_new_artifacts(wire: Wire, body: bytes, headers: dict[str, str]) -> None:
    answer = wire.send("POST", ARTIFACTS, body, headers)

    _check(answer)
    if answer.status_code == 201:
        path = f"{ARTIFACTS}/{answer.json()['id']}"
        assert wire.send("GET", path).json() == answer.json()
        assert wire.send("DELETE", path).status_code == 204


POINTERS = st.one_of(
    st.builds(
        lambda field, rest: f"/{field}{rest}",
        FIELDS,
        st.sampled_from(["", "", "", "/", "/-", "/0", "/-1", "/99", "/a", "/a/b", "/~1", "/~2"]),
    ),
    TEXTS,
    TEXTS.map(lambda text: f"/{text}"),
    st.just(""),
)
OPERATIONS = st.fixed_dictionaries(
    {
        "op": _or_odd(st.sampled_from(["add", "replace", "remove", "test", "copy", "move"])),
        "path": _or_odd(POINTERS),
    },
    optional={"value": FIELD_VALUES, "from": _or_odd(POINTERS), "nonsense": VALUES},
)
STATUSES = st.builds(
    lambda field, value: {"op": "replace", "path": f"/{field}", "value": value},
    st.sampled_from(["status", "visibility"]),
    st.one_of(
        st.sampled_from(["drafted", "active", "deactivated", "deleted", "public", "private"]),
        VALUES,
    ),
)


class _Draft:
    """A package that can be changed; a new one after it was activated."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._make()

    def renew(self) -> None:
        assert self._client.request("DELETE", self.path.removeprefix(ARTIFACTS)).status_code == 204
        self._make()

    def _make(self) -> None:
        artifact_id = self._client.create("org.changed").json()["id"]
        data = packages.package("org.changed")
        assert self._client.upload(artifact_id, data).status_code == 200
        self.path = f"{ARTIFACTS}/{artifact_id}"


@pytest.fixture(scope="module")
def draft(client: Client) -> _Draft:
    return _Draft(client)


@fuzz
@given(
    body=_bodies(st.lists(st.one_of(OPERATIONS, OPERATIONS, STATUSES), max_size=4)),
    headers=_headers("application/json-patch+json"),
)
@example(
    body=b"""[{"op": "replace", "path": "/status", "value": "active"},
              {"op": "replace", "path": "/status", "value": "active"}]""",
    headers={"Content-Type": "application/json-patch+json"},
)
def test_changes(wire: Wire, draft: _Draft, body: bytes, headers: dict[str, str]) -> None:
    answer = wire.send("PATCH", draft.path, body, headers)

    _check(answer)
    now = wire.send("GET", draft.path)
    assert now.status_code == 200
    if answer.status_code == 200:
        assert {**now.json(), "tags": None} == {**answer.json(), "tags": None}
    if now.json()["status"] != "drafted":
        draft.renew()
