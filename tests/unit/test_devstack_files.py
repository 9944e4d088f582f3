# SPDX-License-Identifier: Apache-2.0

"""What can be said of the DevStack plug-in and its Zuul job without DevStack.

``make devstack`` runs the tests of ``tests/functional/devstack`` with DevStack's own functions.
"""

import pathlib
import re
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
PLUGIN = ROOT / "devstack"

# Of Zuul's documentation. Zuul refuses a whole file for an unknown attribute.
_JOB = {"name", "parent", "description", "timeout", "irrelevant-files", "vars"}
# Of the jobs of DevStack and Tempest.
_VARIABLES = {
    "devstack_localrc",
    "devstack_plugins",
    "devstack_services",
    "tempest_test_regex",
    "tox_envlist",
}


@pytest.mark.parametrize("name", ["settings", "plugin.sh", "local.conf.sample", "README.rst"])
def test_a_file_reads_well_in_a_terminal(name: str) -> None:
    lines = (PLUGIN / name).read_text().splitlines()
    assert [line for line in lines if len(line) > 79 or "\t" in line or line != line.rstrip()] == []


def _settings() -> set[str]:
    """Return the names of all settings."""
    return set(re.findall(r"^([A-Z_]+)=", (PLUGIN / "settings").read_text(), re.M))


def test_the_sample_names_only_settings_that_exist() -> None:
    sample = (PLUGIN / "local.conf.sample").read_text()
    named = set(re.findall(r"^# ((?:GLARE_MURANO|MURANO_CATALOG)\w*)=", sample, re.M))
    assert named
    assert named <= _settings()


def test_the_page_names_only_settings_that_exist() -> None:
    page = (PLUGIN / "README.rst").read_text()
    named = set(re.findall(r"GLARE_MURANO_[A-Z_]+|MURANO_CATALOG", page))
    assert named
    assert named <= _settings()


def _zuul(kind: str) -> list[dict[str, Any]]:
    items = yaml.safe_load((ROOT / ".zuul.yaml").read_text())
    return [item[kind] for item in items if kind in item]


def test_the_job_has_only_attributes_that_zuul_knows() -> None:
    for job in _zuul("job"):
        assert job["parent"] == "devstack-tempest"
        assert set(job) <= _JOB
        assert set(job["vars"]) <= _VARIABLES


def test_the_job_enables_the_plug_in_by_its_name() -> None:
    names = re.findall(r"^define_plugin (\S+)$", (PLUGIN / "settings").read_text(), re.M)
    assert (PLUGIN / "plugin.sh").is_file()
    for job in _zuul("job"):
        assert list(job["vars"]["devstack_plugins"]) == names


def test_the_job_sets_only_what_exists() -> None:
    for job in _zuul("job"):
        # The last one is DevStack's own.
        assert set(job["vars"]["devstack_localrc"]) <= _settings() | {"ERROR_ON_CLONE"}


def test_each_pipeline_runs_the_jobs_of_this_file() -> None:
    jobs = [job["name"] for job in _zuul("job")]
    (project,) = _zuul("project")
    assert set(project) == {"check", "gate"}
    for pipeline in project.values():
        assert pipeline["jobs"] == jobs


def test_an_irrelevant_file_is_not_of_the_plug_in() -> None:
    for job in _zuul("job"):
        patterns = [re.compile(pattern) for pattern in job["irrelevant-files"]]
        assert any(pattern.match("devstack/README.rst") for pattern in patterns)
        for file in ("devstack/plugin.sh", "devstack/settings", "setup.cfg", ".zuul.yaml"):
            assert not any(pattern.match(file) for pattern in patterns)
