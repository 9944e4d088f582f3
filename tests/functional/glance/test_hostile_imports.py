# SPDX-License-Identifier: Apache-2.0

"""The hostile packages, imported into the real Glance: refused by the same rules as in Glare."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from glare_murano import images as form
from glare_murano.package import Limits
from tests import effort
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient
from tests.hostile import cases
from tests.hostile.cases import CASES, HARMLESS, Case
from tests.hostile.test_refused import LONGEST_TEXT

# In the sample, some that need no limits of their own; tests/hostile reads them all.
_USUAL = [case for case in CASES if case.limits == Limits()]
SENT = CASES if effort.FULL else list({case.rule: case for case in _USUAL}.values())[::6]

_OPTIONS = {
    "archive_size": "max_archive_size",
    "unpacked_size": "max_unpacked_size",
    "entries": "max_archive_entries",
    "ratio": "max_archive_ratio",
}


@pytest.fixture(scope="module")
def limited(
    tmp_path_factory: pytest.TempPathFactory, glance: service.Glance
) -> Iterator[Callable[[Limits], service.Glance]]:
    """A Glance with the limits of a case, started anew for other limits."""
    running: dict[Limits, service.Glance] = {Limits(): glance}
    started = []

    def start(limits: Limits) -> service.Glance:
        if limits not in running:
            context = service.running(
                tmp_path_factory.mktemp("limited"), change=lambda etc: _limit(etc, limits)
            )
            running[limits] = context.__enter__()
            started.append(context)
        return running[limits]

    yield start
    for context in started:
        context.__exit__(None, None, None)


def _limit(etc: pathlib.Path, limits: Limits) -> None:
    options = (f"{name} = {getattr(limits, limit)}\n" for limit, name in _OPTIONS.items())
    with (etc / "glance-image-import.conf").open("a") as conf:
        conf.write("\n[murano_packages]\n" + "".join(options))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in SENT])
def test_is_refused(
    limited: Callable[[Limits], service.Glance], images: ImageClient, case: Case
) -> None:
    glance = limited(case.limits)
    owner = ImageClient(glance.url, images.token)
    created = owner.create(cases.NAME, cases.VERSION).json()

    refused = owner.imported(created["id"], case.build())

    assert refused["status"] == "queued"
    assert f"[{case.rule}]" in refused[form.REFUSAL]
    assert len(refused[form.REFUSAL]) <= LONGEST_TEXT
    assert refused[form.REFUSAL].isprintable()
    assert [name for name in refused if name.startswith(form.PREFIX)] == [form.REFUSAL]
    assert list(glance.staging.iterdir()) == []
    assert not (glance.folder / "images" / created["id"]).exists()

    if case.limits == Limits():
        assert owner.imported(created["id"], cases.good())["status"] == "active"


@pytest.mark.parametrize(
    "build", [pytest.param(build, id=name) for name, build in HARMLESS[:: effort.choose(5, 1)]]
)
def test_what_only_looks_hostile_is_accepted(
    images: ImageClient, build: Callable[[], bytes]
) -> None:
    data = build()

    found = images.publish_draft(cases.NAME, cases.VERSION, data)

    assert found["status"] == "active"
    assert images.request("GET", f"/v2/images/{found['id']}/file").content == data
