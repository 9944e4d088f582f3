# SPDX-License-Identifier: Apache-2.0

"""Run unit tests of Glance in its own environment, and print those that pass.

    python -m tests.glance_with_packages [--packages] MODULE...

With ``--packages``, Glance has all that this project adds to it, as an operator installs it:
the plug-in, the filters, the container format, the policy and the property protections.
"""

import io
import pathlib
import sys
import unittest
from typing import Any

from oslo_config import cfg
from oslo_db import options

_ETC = pathlib.Path(__file__).parents[1] / "glare_murano" / "glance" / "etc"
_FILTERS = """
[filter:murano-images]
paste.filter_factory = glare_murano.glance.api.image_requests:ImageRequestFilter.factory
"""


class _Passed(unittest.TextTestResult):
    """Keeps the names of the tests that pass."""

    names: list[str] = []  # noqa: RUF012 - the runner makes the only instance

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - of unittest
        super().addSuccess(test)
        self.names.append(test.id())


def add_packages() -> None:
    """Change the defaults of Glance's options and policies, and its tests' paste file."""
    from glance.async_.flows import api_image_import
    from glance.common import config, property_utils
    from glance.tests import functional

    from glare_murano.glance import start_checks

    cfg.set_defaults(api_image_import.api_import_opts, image_import_plugins=["murano_package"])
    protections = str(_ETC / "property-protections.conf")
    cfg.set_defaults(property_utils.property_opts, property_protection_file=protections)
    # Its tests of policies and protections set others.
    start_checks.check = lambda: None
    formats = next(o for o in config.image_format_opts if o.name == "container_formats").default
    cfg.set_defaults(config.image_format_opts, container_formats=[*formats, "murano"])
    _add_policies()
    set_up = functional.SynchronousAPIBase.setup_simple_paste

    def set_up_with_filters(case: Any) -> None:
        set_up(case)
        paste = pathlib.Path(case.paste_config)
        text = paste.read_text()
        for name in ("context cache ", "context gzip ", "context rootapp"):
            first, _, rest = name.partition(" ")
            text = text.replace(f" {name}", f" {first} murano-images {rest}")
        paste.write_text(text + _FILTERS)

    functional.SynchronousAPIBase.setup_simple_paste = set_up_with_filters


def _add_policies() -> None:
    """Give the rules of the shipped policy to all tests, which have no policy file."""
    import yaml
    from glance.policies import image
    from oslo_policy import policy

    shipped = yaml.safe_load((_ETC / "glance-policy.yaml").read_text())
    image.image_policies[:] = [
        policy.RuleDefault(rule.name, shipped[rule.name]) if rule.name in shipped else rule
        for rule in image.image_policies
    ]


def main(arguments: list[str]) -> int:
    """Run the tests of modules."""
    cfg.CONF.register_opts(options.database_opts, "database")
    if arguments[0] == "--packages":
        arguments = arguments[1:]
        add_packages()
    tests = unittest.defaultTestLoader.loadTestsFromNames(arguments)
    unittest.TextTestRunner(io.StringIO(), resultclass=_Passed).run(tests)
    print("\n".join(_Passed.names))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
