# SPDX-License-Identifier: Apache-2.0

"""Call a function for several items at once, in threads."""

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

WORKERS = 4


def results(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Yield the results of a function for items, in the order of the items.

    After the first exception no further call begins, and the running calls are waited for.
    Ctrl-C ends the program at once: the threads are daemons, so a service without an answer
    cannot delay the end.

    :param function: waits for a service; Python computes in one thread at a time.
    """
    calls: list[tuple[_Item, concurrent.futures.Future[_Result]]] = [
        (item, concurrent.futures.Future()) for item in items
    ]
    waiting = iter(calls)
    is_stopped = threading.Event()

    def work() -> None:
        for item, future in waiting:
            if is_stopped.is_set():
                return
            try:
                future.set_result(function(item))
            except BaseException as error:
                future.set_exception(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        for _, future in calls:
            yield future.result()
    except Exception:
        is_stopped.set()
        for thread in threads:
            thread.join()
        raise
    finally:
        is_stopped.set()
