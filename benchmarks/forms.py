# SPDX-License-Identifier: Apache-2.0

"""The processor time for the JSON schema of a class with ten subclasses."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import server
from benchmarks.measure import Figure, scratch
from benchmarks.package import CORE_LIBRARY, core_library
from glare_murano import fields
from loader import config
from tests import packages
from tests.functional.client import Client

NAME = "org.bench.forms"
CLASS = f"{NAME}.Base"
_SUBCLASSES = 10
_ROUNDS = 15

# The development server trusts any token of the form user:project:roles.
_PUBLISHER_TOKEN = "admin:admin:admin"
_PROJECT = "demo"

_CONF = """\
[DEFAULT]
log_file = {work}/murano-engine.log
transport_url = fake://
use_stderr = false

[engine]
package_loader = {loader}
packages_cache = {work}/packages-cache
load_packages_from = {directories}
use_trusts = false

{options}
"""

# A property of each kind that forms have, and a model builder.
_BASE = """\
Namespaces:
  =: org.bench.forms
  std: io.murano
  meta: io.murano.metadata
  forms: io.murano.metadata.forms
Name: Base
Extends: std:Application
Meta:
  - forms:Section: {name: general, title: General, index: 1}
Properties:
  address:
    Contract: $.string().notNull().check(len($) > 2 and $.matches('^[a-z.]+$'))
    Meta:
      - meta:Title: {text: Address}
      - forms:Position: {section: general, index: 1}
  port:
    Contract: $.int().notNull().check($ > 0 and $ <= 65535)
    Default: 80
  kind:
    Contract: $.string().notNull().check($ in [static, dynamic])
  aliases:
    Contract: [$.string().notNull(), 0, 5]
  labels:
    Contract: {$.string().notNull(): $.string()}
  next:
    Contract: $.class(Base)
Methods:
  build:
    Usage: Static
    Scope: Public
    Meta: {meta:ModelBuilder: {}}
    Arguments:
      - model:
          Contract: {}
      - address:
          Contract: $.string().notNull()
    Body:
      Return: $model
"""
_SUBCLASS = """\
Namespaces:
  =: org.bench.forms
Name: Sub{0}
Extends: Base
Properties:
  extra{0}:
    Contract: $.string()
"""


def schemas() -> Iterator[Figure]:
    """Compare schemas from Glare and from directories with Murano's, from directories."""
    classes = {CLASS: _BASE}
    classes |= {f"{NAME}.Sub{n}": _SUBCLASS.format(n) for n in range(_SUBCLASSES)}
    written = {name: f"{name}.yaml" for name in classes}
    content = packages.content(NAME, "0.1.0", Classes=written)
    content |= {f"Classes/{written[name]}": code.encode() for name, code in classes.items()}
    folder = packages.write(scratch() / NAME, content)
    directories = f"{CORE_LIBRARY.absolute()},{folder}"
    with server.running(fields.TYPE_NAME) as running, contextlib.ExitStack() as stack:
        publisher = Client(running.url, _PUBLISHER_TOKEN)
        publisher.publish("io.murano", "0.0.0", core_library(), public=True)
        publisher.publish(NAME, "0.1.0", packages.zipped(content), public=True)
        from_glare = f"[glare]\nurl = {running.url}"
        theirs = stack.enter_context(_generator(config.MURANO, directories, ""))
        glare = stack.enter_context(_generator(config.CATALOGS, "", from_glare))
        from_directories = stack.enter_context(_generator(config.CATALOGS, directories, from_glare))
        for title, made, more, goal in (
            ("a schema from Glare", glare, "", 0.95),
            ("a schema with subclasses, Glare", glare, " subclasses", 1.3),
            ("a schema from directories", from_directories, "", 1.3),
        ):
            value = statistics.median(_time(made, more) / _time(theirs) for _ in range(_ROUNDS))
            yield Figure(f"{title} / Murano's from directories", value, "times", goal)


@contextlib.contextmanager
def _generator(loader: str, directories: str, options: str) -> Iterator["subprocess.Popen[str]"]:
    """Run an engine that generates schemas, see ``forms_process``."""
    work = scratch()
    configuration = work / "murano.conf"
    text = _CONF.format(work=work, loader=loader, directories=directories, options=options)
    configuration.write_text(text)
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.forms_process"]
    with subprocess.Popen(
        [*command, str(configuration), f"user:{_PROJECT}:member", _PROJECT],
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        # The first schema fills the caches. Leaving the context closes the input, which ends it.
        _time(process)
        yield process


def _time(process: "subprocess.Popen[str]", more: str = "") -> float:
    """Generate the schemas of the class once, and return the processor time in seconds.

    :param more: what follows the name of the class in the input.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    print(CLASS + more, file=process.stdin, flush=True)
    return float(json.loads(process.stdout.readline()))


BENCHMARKS = (schemas,)
