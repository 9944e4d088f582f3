# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package diff``: the files of two packages."""

import pathlib

from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


def test_a_published_package_and_a_directory_are_compared(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    files = packages.content(name, "1.0.0")
    files |= {"Resources/old.txt": b"old\n", "Resources/data": b"\0\1"}
    glare.publish(name, "1.0.0", packages.zipped(files))
    del files["Resources/old.txt"]
    files |= {"Resources/new.txt": b"\x1b[2Jnew\n", "Resources/data": b"\0\2"}
    new = packages.write(tmp_path / "new", files)
    shown = openstack.ok("package", "diff", name, new).out
    assert shown.splitlines() == [
        f"Binary files {name}/Resources/data and {new}/Resources/data differ",
        "--- /dev/null",
        f"+++ {new}/Resources/new.txt",
        "@@ -0,0 +1 @@",
        r"+\x1b[2Jnew",
        f"--- {name}/Resources/old.txt",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-old",
    ]
    assert openstack.ok("package", "diff", new, new).out == ""


def test_a_path_that_is_missing_is_reported(openstack: OpenStack) -> None:
    result = openstack.fails("package", "diff", "./missing", "./missing")
    assert "missing" in result.err
    assert "Traceback" not in result.err
