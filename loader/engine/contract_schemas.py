# SPDX-License-Identifier: Apache-2.0

"""JSON schemas of contracts, as the specification "MuranoPL forms" describes.

A schema accepts a value if the contract takes the value as it is. Values that a contract
converts, such as the string ``"5"`` of ``$.int()``, are not in the schema: a form sends the
right type.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from murano.dsl import dsl_types
from murano.dsl.contracts import contracts


def translate(contract: Any, context: Any, runtime_version: Any) -> dict[str, Any]:
    """Translate a contract into a JSON schema.

    :param contract: the contract of a property or an argument, or a part of it.
    :param context: the YAQL context, with the names of the declaring class.
    :param runtime_version: the format of the package.
    :raises InvalidClass: if an expression of the contract is not valid.
    """
    if isinstance(contract, dsl_types.YaqlExpression):
        schema = contracts.Contract.generate_expression_schema(contract, context, runtime_version)
        return schema if isinstance(schema, dict) else {}
    if isinstance(contract, Mapping):
        return _dictionary(contract, context, runtime_version)
    if isinstance(contract, Sequence) and not isinstance(contract, str):
        return _array(contract, context, runtime_version)
    return {"enum": [contract]} if is_json(contract) else {}


def accepts_missing(contract: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value can be left out: null for an expression, else an empty value.

    :param schema: the translated contract.
    """
    if isinstance(contract, dsl_types.YaqlExpression):
        types = schema.get("type", "null")
        is_typed = "null" in ([types] if isinstance(types, str) else types)
        return is_typed and None in schema.get("enum", [None]) and "not" not in schema
    if isinstance(contract, Mapping):
        return "required" not in schema
    if isinstance(contract, Sequence) and not isinstance(contract, str):
        return not schema.get("minItems")
    return contract is None


def is_json(value: Any) -> bool:
    """Return whether a value can be sent as JSON; an expression cannot."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_json, value))
    return value is None or isinstance(value, str | bool | int | float)


def _dictionary(contract: Mapping[Any, Any], *rest: Any) -> dict[str, Any]:
    if not contract:
        return {"type": "object"}
    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    required = []
    for key, value in contract.items():
        translated = translate(value, *rest)
        if not isinstance(key, dsl_types.YaqlExpression):
            schema["properties"][str(key)] = translated
            if not accepts_missing(value, translated):
                required.append(str(key))
        elif pattern := translate(key, *rest).get("pattern"):
            schema["patternProperties"] = {pattern: translated}
        else:
            schema["additionalProperties"] = translated
    # An empty list is not valid in JSON Schema draft 4.
    return schema | ({"required": sorted(required)} if required else {})


def _array(contract: Sequence[Any], *rest: Any) -> dict[str, Any]:
    """Translate an array; one or two integers at its end are the bounds of its length."""
    bounds = 0
    while bounds < min(2, len(contract)) and isinstance(contract[-1 - bounds], int):
        bounds += 1
    items = [translate(item, *rest) for item in contract[: len(contract) - bounds]]
    schema: dict[str, Any] = {"type": "array"}
    if len(items) == 1:
        schema["items"] = items[0]
    elif items:
        schema |= {"items": items, "additionalItems": items[-1]}
    return schema | dict(
        zip(("minItems", "maxItems"), contract[len(contract) - bounds :], strict=False)
    )
