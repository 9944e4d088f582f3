# SPDX-License-Identifier: Apache-2.0

"""Why a package is required: by whom, with which range, all the way from the roots.

Here is how messages tell it, however much of it there is: who requires what is
written by others. Which requirements there are is the resolution's affair.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Self

from glare_murano import resolver
from glare_murano.package.errors import quoted

# How much one message tells; a deployment that people write has less.
_MOST = 10
_MOST_STEPS = 10
_MOST_LENGTH = 100

Chain = tuple[resolver.Demand, ...]


@dataclasses.dataclass(frozen=True)
class Chains:
    """Requirements upon a package, each as the demands that lead to it from a root.

    :param told: the first ones.
    :param others: how many more there are.
    """

    told: tuple[Chain, ...] = ()
    others: int = 0

    @classmethod
    def of(
        cls,
        demands: Sequence[resolver.Demand],
        reached_by: Callable[[resolver.PackageVersion], resolver.Demand | None],
    ) -> Self:
        """The chains of demands, as many as a message tells.

        :param reached_by: see ``closure.chain_of``.
        """
        told = tuple(resolver.chain_of(demand, reached_by) for demand in demands[:_MOST])
        return cls(told, len(demands) - len(told))

    @property
    def tell_more(self) -> bool:
        """Whether there is more than one requirement of the root itself."""
        return len(self.told) > 1 or any(len(chain) > 1 for chain in self.told)

    def __str__(self) -> str:
        told = [_told(chain) for chain in self.told]
        return "; ".join([*told, f"and {self.others} more"] if self.others else told)


def brief(text: str) -> str:
    """A text that others wrote as it stands in a list: as it is, unless it is long or odd."""
    return text if text.isprintable() and len(text) <= _MOST_LENGTH else quoted(text)


def _told(chain: Chain) -> str:
    """``org.wiki 1 (1.2.0) -> org.db >=3``: in brackets is the version that was taken."""
    steps = [
        f"{_demanded(demand)} ({brief(str(following.requirer.version))})"
        for demand, following in itertools.pairwise(chain)
        if following.requirer is not None
    ]
    if len(steps) > _MOST_STEPS:
        half = _MOST_STEPS // 2
        steps[half:-half] = [f"{len(steps) - 2 * half} more"]
    return " -> ".join([*steps, _demanded(chain[-1])])


def _demanded(demand: resolver.Demand) -> str:
    return f"{brief(demand.fqn)} {brief(str(demand.spec))}"
