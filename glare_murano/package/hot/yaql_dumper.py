# SPDX-License-Identifier: Apache-2.0

"""Write YAML that contains YAQL expressions. YAQL is the expression language of MuranoPL.

MuranoPL reads an unquoted string as an expression if the string is valid YAQL. In generated YAML,
expressions have a tag, and strings have quotes, so that MuranoPL does not have to guess.
"""

import dataclasses
import decimal
from typing import Any

import yaml

from glare_murano.package.safe_yaml import STR, YAQL


@dataclasses.dataclass(frozen=True)
class Yaql:
    """A YAQL expression in a document. ``dump`` writes it with a tag, unlike a plain string."""

    text: str


def literal(value: str | float | bool) -> str:
    """Return a string, a truth value or a finite number as a YAQL literal."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    # YAQL does not support exponents, and recognizes a float by its decimal point.
    text = format(decimal.Decimal(repr(value)), "f")
    return text if isinstance(value, int) or "." in text else f"{text}.0"


def dump(document: Any) -> str:
    """Return a document of plain values and ``Yaql`` expressions as YAML."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """A YAML writer that quotes strings, adds tags to expressions, and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(STR, text, style='"'))
_Dumper.add_representer(
    Yaql, lambda dumper, yaql: dumper.represent_scalar(YAQL, yaql.text, style='"')
)
