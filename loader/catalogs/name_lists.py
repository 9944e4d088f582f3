# SPDX-License-Identifier: Apache-2.0

"""Split the names of packages into lists that fit into the URL of a request."""

from collections.abc import Collection, Iterator

from glare_murano.package import InvalidName
from glare_murano.package.manifest import check_required_name

# The characters that all names in one URL may have; servers accept 8190 in a whole URL.
_NAMES_LENGTH = 4000


def name_lists(fqns: Collection[str], max_length: int, separator: str) -> Iterator[list[str]]:
    """Split names into lists that fit into a URL; leave out names that are too long.

    :param max_length: the most characters that a name can have in the service.
    """
    names: list[str] = []
    length = 0
    for fqn in dict.fromkeys(fqns):
        if len(fqn) > max_length or not _is_name(fqn):
            continue
        if names and length + len(fqn) > _NAMES_LENGTH:
            yield names
            names, length = [], 0
        names.append(fqn)
        length += len(fqn) + len(separator)
    if names:
        yield names


def _is_name(fqn: str) -> bool:
    try:
        check_required_name(fqn)
    except InvalidName:
        return False
    return True
