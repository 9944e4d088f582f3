# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""YAML that nobody vouches for, read without executing or exhausting anything.

libyaml does the parsing; this module bounds what it is given. It returns
nodes, not values, since the text as written counts in a manifest and a node
knows its line.
"""

from typing import Any

import yaml

from glare_murano.package import errors

# libyaml's binding composes recursively, in C, and ends the process where
# nesting outgrows the stack.
MAX_DEPTH = 64
MAX_SIZE = 1024 * 1024

NULL = "tag:yaml.org,2002:null"

_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def compose(data: bytes, name: str, max_size: int = MAX_SIZE) -> yaml.Node | None:
    """Parse one YAML document.

    :param data: the document's bytes, UTF-8 or UTF-16 as YAML has it.
    :param name: the file's name, for messages.
    :param max_size: the limit upon its size, in bytes.
    :returns: the root node, or None if the document is empty.
    :raises InvalidManifest: if it is too big, nested too deep, or no YAML.
    """
    if len(data) > max_size:
        raise _refusal("yaml-size", name, f"{len(data)} bytes, at most {max_size} are allowed")
    try:
        _check_depth(data, name)
        node: yaml.Node | None = yaml.compose(data, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        raise _refusal(
            "yaml-syntax", name, f"no YAML: {error.problem}", line_of(error.problem_mark)
        ) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise _refusal("yaml-syntax", name, f"no YAML: {reason}") from error
    return node


def kind(node: yaml.Node | None) -> str:
    """What a node is, in words: ``nothing``, ``a mapping``, ``a sequence``, ``a text``."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a sequence"
    return "nothing" if node is None or node.tag == NULL else "a text"


def line_of(mark: Any) -> int:
    """The line of a place in a document, counted from 1; 0 if it has no place."""
    return int(mark.line) + 1 if mark is not None else 0


def _check_depth(data: bytes, name: str) -> None:
    depth = 0
    for event in yaml.parse(data, Loader=yaml.CSafeLoader):
        if isinstance(event, _OPENING):
            depth += 1
            if depth > MAX_DEPTH:
                raise _refusal(
                    "yaml-depth",
                    name,
                    f"nested deeper than {MAX_DEPTH} levels",
                    line_of(event.start_mark),
                )
        elif isinstance(event, _CLOSING):
            depth -= 1


def _refusal(rule: str, name: str, message: str, line: int = 0) -> errors.InvalidManifest:
    return errors.InvalidManifest([errors.Problem(rule, name, message, line)])
