# SPDX-License-Identifier: Apache-2.0

"""YAQL expressions in generated YAML.

MuranoPL reads unquoted strings as expressions if they can be parsed. Generated
YAML avoids this guess: expressions have a tag, and strings have quotes.
"""

import dataclasses
import decimal
from typing import Any

import yaml


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
    # YAQL has no exponents, and recognizes a float by its point.
    text = format(decimal.Decimal(repr(value)), "f")
    return text if isinstance(value, int) or "." in text else f"{text}.0"


def dump(document: Any) -> str:
    """Write plain values and expressions as YAML."""
    return yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )


class _Dumper(yaml.SafeDumper):
    """Quotes strings, tags expressions, and repeats values instead of using aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_string(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


def _represent_yaql(dumper: _Dumper, expression: Yaql) -> yaml.Node:
    return dumper.represent_scalar("!yaql", expression.text, style='"')


_Dumper.add_representer(str, _represent_string)
_Dumper.add_representer(Yaql, _represent_yaql)
