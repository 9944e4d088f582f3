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

# In the sample, some that need no options of their own; tests/hostile reads them all.
_USUAL = [case for case in CASES if case.limits == Limits() and case not in cases.FORMS]
SENT = CASES if effort.FULL else list({case.rule: case for case in _USUAL}.values())[::6]

_LIMITS = {
    "archive_size": "max_archive_size",
    "unpacked_size": "max_unpacked_size",
    "entries": "max_archive_entries",
    "ratio": "max_archive_ratio",
}


@pytest.fixture(scope="module")
def limited(
    tmp_path_factory: pytest.TempPathFactory, glance: service.Glance
) -> Iterator[Callable[[str], service.Glance]]:
    """A Glance with the options of a case, started again for other options."""
    running = {"": glance}
    started = []

    def start(options: str) -> service.Glance:
        if options not in running:
            context = service.running(
                tmp_path_factory.mktemp("limited"), change=lambda etc: _write(etc, options)
            )
            running[options] = context.__enter__()
            started.append(context)
        return running[options]

    yield start
    for context in started:
        context.__exit__(None, None, None)


def _options(case: Case) -> str:
    """Return the options with which a package is refused; empty for the defaults."""
    limits = [f"{name} = {getattr(case.limits, limit)}\n" for limit, name in _LIMITS.items()]
    return "".join(
        [*limits * (case.limits != Limits()), "check_forms = enforce\n" * (case in cases.FORMS)]
    )


def _write(etc: pathlib.Path, options: str) -> None:
    with (etc / "glance-image-import.conf").open("a") as conf:
        conf.write(f"\n[murano_packages]\n{options}")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in SENT])
def test_is_refused(
    limited: Callable[[str], service.Glance], images: ImageClient, case: Case
) -> None:
    glance = limited(_options(case))
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

    if not _options(case):
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
