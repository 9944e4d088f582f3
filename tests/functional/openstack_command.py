# SPDX-License-Identifier: Apache-2.0

"""The command ``openstack``, run in the test process as one user of the tests' Glare."""

import dataclasses
import io
import json
import logging
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self, TextIO

import pytest
import yaml
from openstackclient import shell


@dataclasses.dataclass(frozen=True)
class Result:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class OpenStack:
    """The command with the ``clouds.yaml`` of one user."""

    def __init__(self, folder: pathlib.Path, url: str, token: str) -> None:
        self._file = folder / "clouds.yaml"
        self._clouds: dict[str, Any] = {}
        self.add_cloud("test", url, token)

    @classmethod
    def of_user(cls, folder: pathlib.Path, credentials: Mapping[str, str]) -> Self:
        """The command as a user of Keystone, whose catalogue has all services."""
        made = cls(folder, "", "::")
        made._add("test", {"auth_type": "password", "auth": dict(credentials)})
        return made

    def add_cloud(self, name: str, url: str, token: str, **keys: str) -> None:
        """Add an entry, which no command uses unless it is named."""
        self._add_service("artifact", name, url, token, keys)

    def add_glance(self, name: str, url: str, token: str, **keys: str) -> None:
        """Add an entry for a cloud that has Glance, and no Glare."""
        self._add_service("image", name, url, token, keys)

    def _add_service(
        self, service: str, name: str, url: str, token: str, keys: Mapping[str, str]
    ) -> None:
        cloud = {
            "auth_type": "admin_token",
            "auth": {"endpoint": url, "token": token},
            f"{service}_endpoint_override": url,
            f"{service}_project_id": token.split(":")[1],
            **keys,
        }
        self._add(name, cloud)

    def _add(self, name: str, cloud: dict[str, Any]) -> None:
        self._clouds[name] = cloud
        self._file.write_text(yaml.safe_dump({"clouds": self._clouds}))

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to run the command."""
        return {"OS_CLIENT_CONFIG_FILE": str(self._file), "OS_CLOUD": "test"}

    def run(
        self,
        *arguments: object,
        stdin: str = "",
        options: Sequence[str] = (),
        terminal: TextIO | None = None,
        cloud: str = "test",
    ) -> Result:
        """Run ``openstack OPTIONS murano ARGUMENTS``.

        :param terminal: replaces the standard input and the standard error.
        """
        out, err = io.StringIO(), io.StringIO()
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OS_CLIENT_CONFIG_FILE", str(self._file))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", terminal or err)
            patch.setattr(sys, "stdin", terminal or io.StringIO(stdin))
            command = shell.OpenStackShell()
            try:
                code = command.run([*options, "--os-cloud", cloud, "murano", *map(str, arguments)])
            except SystemExit as exit:
                code = exit.code if isinstance(exit.code, int) else 1
            finally:
                root.handlers[:] = handlers
                root.setLevel(level)
        return Result(code, out.getvalue(), err.getvalue())

    def ok(self, *arguments: object, **more: Any) -> Result:
        """Run a command that succeeds; ``more`` as for :meth:`run`."""
        result = self.run(*arguments, **more)
        assert result.code == 0, (arguments, result)
        return result

    def fails(self, *arguments: object, code: int = 1, **more: Any) -> Result:
        """Run a command that ends with this exit code; ``more`` as for :meth:`run`."""
        result = self.run(*arguments, **more)
        assert result.code == code, (arguments, result)
        return result

    def json(self, *arguments: object) -> Any:
        """Run a command that succeeds, and return its JSON."""
        return self.ok(*arguments, "-f", "json").json()
