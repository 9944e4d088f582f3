# SPDX-License-Identifier: Apache-2.0

"""The job of ``.zuul.yaml``, on a host whose local.conf DevStack's own role has written."""

import dataclasses
import importlib.util
import pathlib
import types

import pytest
import yaml

from tests import prerequisites, processes
from tests.functional.devstack.host import GLANCE, PREPARED, new_host

pytestmark = pytest.mark.devstack

ROLE = "roles/write-devstack-local-conf/library/devstack_local_conf.py"


def test_the_job_configures_glance(tmp_path: pathlib.Path, service_port: str) -> None:
    items = yaml.safe_load((processes.ROOT / ".zuul.yaml").read_text())
    (variables,) = (item["job"]["vars"] for item in items if "job" in item)
    host = new_host(tmp_path, services=GLANCE, GLANCE_SERVICE_HOST=f"127.0.0.1:{service_port}")
    # Zuul adds those of a job to those of its parents.
    localrc = {**host.settings, **variables["devstack_localrc"]}
    conf = _role().LocalConf(
        localrc=localrc,
        localconf=None,
        base_services=GLANCE.split(","),
        services=dict(variables["devstack_services"]),
        plugins=variables["devstack_plugins"],
        base_dir=str(tmp_path),
        projects={},
        project={"short_name": "glare-murano"},
        tempest_plugins=None,
    )
    local_conf = "\n".join(["[[local|localrc]]", *conf.localrc, host.sections])
    dataclasses.replace(host, local_conf=local_conf).run(*PREPARED)

    assert host.conf("glance/glance-image-import.conf")["image_import_opts"] == {
        "image_import_plugins": "['murano_package']"
    }
    (pip,) = (call for call in host.calls if call.startswith("pip"))
    assert pip.endswith("[glance,cli]")


def _role() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("role", prerequisites.devstack() / ROLE)
    assert spec is not None
    assert spec.loader is not None
    role = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(role)
    return role
