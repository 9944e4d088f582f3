# SPDX-License-Identifier: Apache-2.0

"""Encode large responses in JSON, within the time limit of a request."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import webob

from glare_murano.budget import Budget
from glare_murano.service.request_reading import JSON

_encode = json.JSONEncoder(separators=(",", ":")).encode


def respond(body: Mapping[str, Any], budget: Budget) -> webob.Response:
    """Return a response with a JSON object.

    The lists in the object are encoded item by item. The time limit is checked before each item.

    :param body: the JSON object.
    :param budget: the time limit of the request.
    :raises Unplannable: if the time of the request is over.
    """
    members = ",".join(f"{_encode(key)}:{_encoded(body[key], budget)}" for key in body)
    return webob.Response(f"{{{members}}}".encode(), content_type=JSON, charset="UTF-8")


def _encoded(value: Any, budget: Budget) -> str:
    if not isinstance(value, list):
        return _encode(value)
    return f"[{','.join(_items(value, budget))}]"


def _items(items: list[Any], budget: Budget) -> Iterator[str]:
    return map(_encode, budget.watch(items, "building the answer"))
