# SPDX-License-Identifier: Apache-2.0

"""YAQL expressions in generated YAML.

MuranoPL reads an unquoted string as an expression if it is valid YAQL. Generated
YAML leaves nothing to guess: expressions have a tag, and strings have quotes.
"""

import dataclasses
import decimal
from typing import Any

import yaml

from glare_murano.package.safe_yaml import STR, YAQL


@dataclasses.dataclass(frozen=True)
class Yaql:
    """An expression within a document of plain values."""

    text: str


def literal(value: str | float | bool) -> str:
    """Write a string, a truth value or a finite number as a YAQL literal."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    # YAQL has no exponents, and recognizes a float by its decimal point.
    text = format(decimal.Decimal(repr(value)), "f")
    return text if isinstance(value, int) or "." in text else f"{text}.0"


def dump(document: Any) -> str:
    """Write plain values and expressions as YAML."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Quotes strings, tags expressions, and repeats values instead of using aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(STR, text, style='"'))
_Dumper.add_representer(
    Yaql, lambda dumper, yaql: dumper.represent_scalar(YAQL, yaql.text, style='"')
)
