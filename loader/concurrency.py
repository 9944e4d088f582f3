# SPDX-License-Identifier: Apache-2.0

"""Call a function for several items at the same time, in threads."""

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

WORKERS = 4

# The longest wait of the main thread, in seconds. The system may deliver Ctrl-C to any thread. Then
# the main thread raises KeyboardInterrupt only when its wait ends.
_PAUSE = 0.1


def results(
    function: Callable[[_Item], _Result], items: Iterable[_Item], workers: int = WORKERS
) -> Iterator[_Result]:
    """Call a function for several items, and yield the results in the order of the items.

    After the first exception, no further call begins. When the running calls have ended, the
    exception is raised. Ctrl-C ends the program at once: the threads are daemons, so a service that
    does not answer cannot delay the end.

    :param function: a function that waits for a service. A function that only computes would not
        become faster, since Python computes in one thread at a time.
    :param workers: how many calls run at the same time.
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

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(calls)))]
    try:
        for thread in threads:
            thread.start()
        for _, future in calls:
            yield _result(future)
    except Exception:
        is_stopped.set()
        for thread in threads:
            while thread.is_alive():
                thread.join(_PAUSE)
        raise
    finally:
        is_stopped.set()


def _result(future: concurrent.futures.Future[_Result]) -> _Result:
    while not future.done():
        concurrent.futures.wait([future], _PAUSE)
    return future.result()
