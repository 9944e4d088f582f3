# SPDX-License-Identifier: Apache-2.0

"""A plug-in of pytest: every test runs with the ``format`` that Murano 16 had from YAQL 2.

YAQL 3 has no ``format``. Without one, the tests that need it would fail without the patches, and
so would not be compared.
"""

from typing import Any

# First of all: other modules of Murano read its options when they are imported.
from murano.common import config  # noqa: F401
from murano.dsl import yaql_integration
from yaql.language import specs, yaqltypes


@specs.parameter("__template", yaqltypes.String())  # type: ignore[untyped-decorator]
@specs.extension_method  # type: ignore[untyped-decorator]
def _format(__template: str, /, *args: Any, **kwargs: Any) -> str:
    return __template.format(*args, **kwargs)


for _root in (yaql_integration.ROOT_CONTEXT_10, yaql_integration.ROOT_CONTEXT_12):
    _root.register_function(_format, name="format")
