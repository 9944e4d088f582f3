# SPDX-License-Identifier: Apache-2.0

"""YAQL expressions, and YAML that tells them from text.

MuranoPL takes an unquoted text for an expression if it parses as one. What is
generated leaves nothing to such guesses: expressions are tagged, and every
other text is quoted.
"""

import dataclasses
import decimal
from typing import Any

import yaml


@dataclasses.dataclass(frozen=True)
class Yaql:
    """An expression, to stand among plain values."""

    text: str


def literal(value: str | float | bool) -> str:
    """Write a value as YAQL reads it.

    :param value: a text, a truth value or a finite number.
    """
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    # YAQL knows no exponents, and a float by its point.
    text = format(decimal.Decimal(repr(value)), "f")
    return text if isinstance(value, int) or "." in text else f"{text}.0"


def dump(document: Any) -> str:
    """Write plain values and expressions as YAML."""
    return yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )


class _Dumper(yaml.SafeDumper):
    """Quotes texts, tags expressions, and repeats values rather than refer to them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


def _represent_yaql(dumper: _Dumper, expression: Yaql) -> yaml.Node:
    return dumper.represent_scalar("!yaql", expression.text, style='"')


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(Yaql, _represent_yaql)
