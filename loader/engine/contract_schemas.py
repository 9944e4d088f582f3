# SPDX-License-Identifier: Apache-2.0

"""Translate contracts into JSON schemas, as the specification "MuranoPL forms" describes.

A schema accepts exactly the values that the contract accepts without a conversion. For example,
the schema of ``$.int()`` refuses the string ``"5"``. A schema also refuses a value that equals an
accepted value only in Python, such as true for 1. A form has to send the right type.
"""

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from murano.dsl import dsl_types, exceptions
from murano.dsl.contracts import contracts

from loader.engine import error_places


def translate(contract: Any, context: Any, runtime_version: Any) -> dict[str, Any]:
    """Translate a contract into a JSON schema.

    :param contract: the contract of a property or an argument, or a part of such a contract.
    :param context: the YAQL context, which resolves names as the declaring class does.
    :param runtime_version: the version of MuranoPL in which the package is written.
    :returns: the schema; it is empty if the contract accepts everything, or cannot be translated.
    :raises InvalidClass: if an expression of the contract is not valid.
    """
    if isinstance(contract, dsl_types.YaqlExpression):
        schema = contracts.Contract.generate_expression_schema(contract, context, runtime_version)
        return schema if isinstance(schema, dict) else {}
    if isinstance(contract, Mapping):
        found: dict[str, Any] = _dictionary(contract, context, runtime_version)
        return found
    if isinstance(contract, Sequence) and not isinstance(contract, str):
        return _array(contract, context, runtime_version)
    return {"enum": [contract]} if is_json(contract) else {}


def accepts_missing(contract: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a contract accepts a missing value.

    A missing value counts as null for a contract that is an expression or a constant. It counts as
    empty for an array or a dictionary.

    :param schema: the translated contract.
    """
    if isinstance(contract, dsl_types.YaqlExpression):
        return _accepts_null(schema)
    if isinstance(contract, Mapping):
        return "required" not in schema
    if isinstance(contract, Sequence) and not isinstance(contract, str):
        return not schema.get("minItems")
    return contract is None


def _accepts_null(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type", "null")
    is_typed = "null" in ([types] if isinstance(types, str) else types)
    is_accepted = is_typed and None in schema.get("enum", [None])
    refused = schema.get("not")
    is_refused = refused is not None and _accepts_null(refused)
    return is_accepted and not is_refused and all(map(_accepts_null, schema.get("allOf", ())))


def is_json(value: Any) -> bool:
    """Return whether a value can be sent as JSON; an expression or infinity cannot."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | bool | int)


@functools.partial(error_places.place_in_contract, position=0)
def _dictionary(contract: Mapping[Any, Any], *rest: Any) -> dict[str, Any]:
    if not contract:
        return {"type": "object"}
    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    required = []
    # The other keys are expressions, or for example numbers, which cannot be keys in JSON.
    names = [key for key in contract if isinstance(key, str)]
    if sum(isinstance(key, dsl_types.YaqlExpression) for key in contract) > 1:
        raise exceptions.DslContractSyntaxError("only one key can be an expression")
    for key, value in contract.items():
        translated = translate(value, *rest)
        if isinstance(key, str):
            schema["properties"][key] = translated
            if not accepts_missing(value, translated):
                required.append(key)
        elif not isinstance(key, dsl_types.YaqlExpression):
            continue
        elif pattern := _key_pattern(translate(key, *rest), names):
            schema["patternProperties"] = {pattern: translated}
        else:
            schema["additionalProperties"] = translated
    # An empty list is not valid in JSON Schema draft 4.
    return schema | ({"required": sorted(required)} if required else {})


def _key_pattern(key: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return a regular expression for the keys that a dictionary accepts; None if it accepts all.

    :param key: the schema of the keys.
    :param names: the keys that have contracts of their own; the expression does not match them.
    """
    patterns = list(_patterns(key))
    if not patterns:
        return None
    named = [re.escape(name) for name in names if all(re.search(each, name) for each in patterns)]
    if len(patterns) == 1 and not named:
        return patterns[0]
    others = f"(?!(?:{'|'.join(named)})$)" if named else ""
    return f"^{others}" + "".join(f"(?=[\\s\\S]*(?:{each}))" for each in patterns)


def _patterns(key: Mapping[str, Any]) -> Iterator[str]:
    """Yield the regular expressions that a key has to match; a key has to match all of them.

    :param key: the schema of the key.
    """
    if "integer" in key.get("type", ()):
        yield "^-?[0-9]+$"
    if "pattern" in key:
        yield key["pattern"]
    if "enum" in key:
        yield f"^(?:{'|'.join(re.escape(each) for each in key['enum'] if isinstance(each, str))})$"
    if "minLength" in key or "maxLength" in key:
        yield f"^[\\s\\S]{{{key.get('minLength', 0)},{key.get('maxLength', '')}}}$"
    for condition in key.get("allOf", ()):
        yield from _patterns(condition)


def _array(contract: Sequence[Any], *rest: Any) -> dict[str, Any]:
    """Translate the contract of an array.

    The contract may end with one or two integers: the smallest and the largest length.
    """
    bounds = 0
    while bounds < min(2, len(contract)) and isinstance(contract[-1 - bounds], int):
        bounds += 1
    items = [translate(item, *rest) for item in contract[: len(contract) - bounds]]
    schema: dict[str, Any] = {"type": "array"}
    if len(items) == 1:
        schema["items"] = items[0]
    elif items:
        schema |= {"items": items, "additionalItems": items[-1]}
    lengths = zip(("minItems", "maxItems"), contract[len(contract) - bounds :], strict=False)
    # A negative bound has no effect.
    return schema | {keyword: int(length) for keyword, length in lengths if length >= 0}
