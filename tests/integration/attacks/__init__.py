# SPDX-License-Identifier: Apache-2.0

"""The corpus of attacks: packages that try what no package may do, as data.

Each YAML file here has the attacks of a subject. An attack has these keys; the first three and
``stopped`` are required:

``name``
    what it is, in a few words; no other attack has it.
``tries``
    what a success would be, in a sentence.
``by``
    how the package is used: ``deploy``, ``action``, ``static action``, ``schema``, ``destroy`` or
    ``load`` (of its object in a model).
``stopped``
    ``upload`` (the services refuse the package, and so does the engine if it comes from a
    directory), ``task`` (which ends in an error) or ``without effect``.
``message``
    what the refusal or the error says; ``...`` stands for anything. It may be a list of messages,
    where the speed of the host decides which comes first.
``module``
    the module that stops it; by default, that of the file.
``body``
    MuranoPL, the statements of the method that is called.
``extends``, ``properties``, ``methods``
    MuranoPL, more of the class.
``classes``, ``files``
    more files below ``Classes`` and of the package: by path the text, or a list of texts and of
    pairs ``[text, times]``.
``manifest``
    keys of the manifest beside the usual ones; ``FullName`` changes the name of the package.
``version``
    the first two parts of the package's version; 1.0 is usual.
``model``
    values of the properties of the object in the model.
``holds``
    how often it blocks the engine until the watchdog interrupts it.
``past_upload``
    how the package comes to the engine past the service that refuses it: from a ``directory`` of
    the engine, as most, or published ``earlier``, before the operator reserved the name.
``past_message``
    what the engine reports then, by default that the package ``was not found``, since such packages
    are not considered; nothing if the task gets what it would without the package.

In MuranoPL, manifests and models, ``@package@`` stands for the name of the package, ``@victim@``
for the id of the environment of another tenant, and ``@trap@`` for a port of this host at which
something listens.
"""

import dataclasses
import pathlib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tests import packages

FOLDER = pathlib.Path(__file__).parent

_CLASS = """\
Namespaces:
  =: @package@
  std: io.murano
  sys: io.murano.system
Name: Application
Extends: {extends}
Properties:
  name:
    Contract: $.string()
  out:
    Usage: Out
    Contract: $
{properties}
Methods:
{methods}
"""

# The method that is called, by the way in which a package is used.
_METHODS = {
    "deploy": "deploy:\n  Body:\n",
    "action": "attack:\n  Scope: Public\n  Body:\n",
    "static action": "attack:\n  Usage: Static\n  Scope: Public\n  Body:\n",
    "destroy": ".destroy:\n  Body:\n",
    "load": ".init:\n  Body:\n",
    # Not called.
    "schema": "deploy:\n  Body:\n",
}


@dataclasses.dataclass(frozen=True)
class Attack:
    """One hostile package, and its outcome.

    The module's docstring has the attributes.
    """

    name: str
    tries: str
    by: str
    stopped: str
    subject: str
    module: str
    message: str | Sequence[str] = ()
    past_message: str = "was not found"
    body: str = "- $.out: null"
    extends: str = "std:Application"
    properties: str = ""
    methods: str = ""
    classes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    files: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    version: str = "1.0"
    manifest: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    model: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    holds: int = 0
    waits: bool = False
    is_named: bool = True
    past_upload: str = "directory"

    @property
    def past(self) -> str:
        """How the package comes past a service that refuses it; empty if it need not."""
        return self.past_upload if self.stopped == "upload" else ""

    @property
    def slug(self) -> str:
        """The name as a part of names of packages and files."""
        return re.sub(r"\W+", "_", self.name).strip("_").lower()

    @property
    def package(self) -> str:
        """The full name of the package."""
        return str(self.manifest.get("FullName") or f"org.attack.{self.slug}")

    @property
    def class_name(self) -> str:
        """The full name of the class that is used."""
        return self.package if self.is_template else f"{self.package}.Application"

    @property
    def is_template(self) -> bool:
        """Whether the package is a HOT template, without classes of its own."""
        return str(self.manifest.get("Format", "")).startswith("Heat.HOT")

    @property
    def messages(self) -> Sequence[str]:
        """What the refusal or the error says, one of these."""
        return [self.message] if isinstance(self.message, str) else self.message

    def is_refusal(self, text: str) -> bool:
        """Return whether a text has the message of the refusal or of the error."""
        return any(_has(text, message) for message in self.messages)

    def is_refusal_past_upload(self, text: str) -> bool:
        """Return whether the engine says this of a package that came past the service."""
        return _has(text, self.past_message) if self.past_message else not text

    def build(self, places: Mapping[str, str], patch: int = 0) -> dict[str, bytes]:
        """Return the files of the package.

        :param places: what stands for the places, without their ``@``.
        :param patch: the last part of the version.
        """
        classes = {"Application.yaml": self._class(), **self.classes}
        if self.is_template:
            classes = {}
        names = {f"{self.package}.{pathlib.Path(path).stem}": path for path in classes}
        manifest = {
            key: value
            for key, value in packages.manifest(
                self.package, f"{self.version}.{patch}", **{"Classes": names, **self.manifest}
            ).items()
            if value is not None
        }
        content = {"manifest.yaml": yaml.safe_dump(manifest)}
        content |= {f"Classes/{path}": _text(text) for path, text in classes.items()}
        content |= {path: _text(text) for path, text in self.files.items()}
        places = {**places, "package": self.package}
        return {path: _replaced(text, places).encode() for path, text in content.items()}

    def properties_in_model(self, places: Mapping[str, str]) -> Any:
        """Return the values of the properties of the object in the model."""
        text = yaml.safe_dump(dict(self.model))
        return yaml.safe_load(_replaced(text, {**places, "package": self.package}))

    def _class(self) -> str:
        method = _METHODS[self.by] + textwrap.indent(self.body, "    ")
        methods = "\n".join(filter(None, [method, self.methods]))
        return _CLASS.format(
            extends=self.extends,
            properties=textwrap.indent(self.properties, "  "),
            methods=textwrap.indent(methods, "  "),
        )


def reserved_names(*others: str) -> str:
    """Return the operator's file of reserved names.

    :param others: the ids of projects that own all the names as well.
    """
    return yaml.safe_dump({"io.murano": ["admin", *others], "org.owned": ["owners", *others]})


def attacks() -> Iterator[Attack]:
    """Yield all attacks, by subject and name.

    :raises TypeError: for an unknown or a missing key.
    """
    for path in sorted(FOLDER.glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        for attack in content["attacks"]:
            yield Attack(**{"subject": path.stem, "module": content["module"], **attack})


def _text(text: str | Sequence[Any]) -> str:
    if isinstance(text, str):
        return text
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in text)


def _has(text: str, message: str) -> bool:
    """Return whether a text has all parts of a message, in this order."""
    position = 0
    for part in message.split("..."):
        position = text.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for place, value in places.items():
        text = text.replace(f"@{place}@", value)
    return text
