# SPDX-License-Identifier: Apache-2.0

"""Functions in child processes that send queries."""

import itertools
import threading
import time

import pytest

from glare_murano.package import sandbox
from glare_murano.package.sandbox import (
    ChildFailed,
    ChildSettings,
    Function,
    LimitReached,
    children,
    conversation,
    warm_processes,
)
from tests import processes
from tests.unit.package import sandboxed

pytestmark = pytest.mark.programs


@pytest.fixture(autouse=True)
def emptied(temporary):
    """Wait until nothing is left: the supervisor of a child that was killed removes its files."""
    yield
    processes.wait_until(lambda: not list(temporary.iterdir()), "an empty directory", 10)


SENDS = (
    "from glare_murano.package.sandbox import Queries\n"
    "queries = Queries(file)\n"
    "send, cast = queries.send, queries.cast\n"
)
RAW = "import os, time\n"


def converse(does, answer=lambda query: query, preparation=None, **settings):
    function = Function(sandboxed.PREPARED if preparation else sandboxed.NAME, preparation)
    return sandbox.converse(function, {"does": does}, answer, ChildSettings(**settings)).content


def test_each_query_gets_its_answer():
    sent = []

    def answer(query):
        sent.append(query)
        return {"to": query, "long": "x" * 300_000}

    does = f"{SENDS}result = [send([n, 'a\\nb'])['to'] for n in range(3)]"
    assert converse(does, answer) == [[n, "a\nb"] for n in range(3)] == sent


def test_a_function_may_ask_nothing():
    assert converse("result = 1") == 1


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("os.write(0, b'x' * 270_000); time.sleep(60)", "more than 262144 bytes is too long"),
        ("os.write(0, b'{\\n'); time.sleep(60)", "is not JSON"),
        ("os.write(0, b'\\xff\\n'); time.sleep(60)", "is not JSON"),
        ("os.write(0, b'[' * 60_000 + b'\\n'); time.sleep(60)", "is not JSON"),
        (
            "os.write(0, b'[1, \"' + b'x' * 270_000 + b'\"]\\n'); time.sleep(60)",
            "more than 262144 bytes is too long",
        ),
        ("os.write(0, b'1\\n'); time.sleep(60)", "has no number"),
        ("os.write(0, b'[1, 2]\\n' * 10); time.sleep(60)", "has not read an answer for 1 seconds"),
    ],
)
def test_a_child_that_asks_wrongly_is_ended(monkeypatch, does, reason):
    monkeypatch.setattr(conversation, "_SECONDS_TO_READ", 1)
    start = time.monotonic()
    with pytest.raises(ChildFailed, match=reason):
        converse(RAW + does, lambda _: "x" * 1_000_000)
    assert time.monotonic() - start < 30


class Clock:
    """The time while queries are read.

    :ivar readings: the processor time in seconds, before and after each query is parsed.
    :ivar pauses: the seconds of each pause.
    """

    def __init__(self):
        self.readings = itertools.repeat(0)
        self.pauses = []

    def thread_time(self):
        return next(self.readings)

    def sleep(self, seconds):
        self.pauses.append(seconds)
        time.sleep(seconds)


@pytest.fixture
def clock(monkeypatch):
    replaced = Clock()
    monkeypatch.setattr(conversation, "time", replaced)
    return replaced


def test_queries_that_take_long_to_parse_leave_time_to_others(clock):
    clock.readings = iter([1, 1.01, 1.01, 1.01, 1.0105, 1.0105])
    converse(f"{SENDS}send(1), send(2)")
    assert clock.pauses == [pytest.approx(0.09), 0]


def test_a_child_that_ends_while_it_asks_has_failed():
    with pytest.raises(ChildFailed, match="exit status was 5"):
        converse(RAW + "os.write(0, b'[1, 2]\\n'); os._exit(5)", lambda _: "x" * 1_000_000)


def test_an_interrupted_query_does_not_shift_the_answers():
    does = (
        "import signal, time\n"
        "def interrupt(*_): raise KeyError\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "try: send(1)\n"
        "except KeyError: result = send(2)"
    )

    def answer(query):
        time.sleep(1 if query == 1 else 0)
        return query

    assert converse(f"{SENDS}{does}", answer) == 2


def test_a_child_does_not_wait_for_the_answer_to_a_cast():
    sent = []

    def answer(query):
        time.sleep(0.05)
        sent.append(query)
        return query

    does = (
        f"{SENDS}import time\n"
        "start = time.monotonic()\n"
        "for n in range(40): cast(n)\n"
        "result = time.monotonic() - start"
    )
    assert converse(does, answer) < 1
    # The child has ended before these answers.
    assert sent == list(range(40))
    assert converse(f"{SENDS}cast(1); result = send(2)", answer) == 2


def test_a_child_waits_after_many_casts():
    def answer(query):
        time.sleep(1 if query == 0 else 0)

    does = (
        f"{SENDS}import time\n"
        "start, result = time.monotonic(), []\n"
        "for n in range(150):\n"
        "    cast(n)\n"
        "    result.append(time.monotonic() - start)"
    )
    times = converse(does, answer)
    assert times[49] < 0.8
    assert times[50] > 0.8


def test_a_child_that_closes_the_socket_has_its_result():
    assert converse(RAW + "os.close(0); result = 3") == 3


def test_a_child_has_its_limit_of_time_while_it_asks():
    with pytest.raises(LimitReached):
        converse(f"{SENDS}while True: send(1)", seconds=1)


def test_an_error_in_an_answer_ends_the_child():
    def refuse(query):
        raise KeyError(query)

    with pytest.raises(KeyError, match="secret"):
        converse(f"{SENDS}send('secret')", refuse)


def test_the_caller_interrupts_a_child():
    does = (
        f"{SENDS}import signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "send('ready')\n"
        "try: time.sleep(60)\n"
        "except KeyboardInterrupt: result = 'interrupted'"
    )
    started = []

    def interrupt(query):
        threading.Timer(0.5, started[0].interrupt).start()

    found = sandbox.converse(
        Function(sandboxed.NAME), {"does": does}, interrupt, ChildSettings(), started.append
    )
    assert found.content == "interrupted"


def test_a_child_has_its_own_limit_of_wall_clock_time():
    with pytest.raises(LimitReached, match=r"more than 1\.5 seconds in all"):
        converse("import time; time.sleep(60)", wall_seconds=1.5)


def test_a_function_is_prepared_once_in_the_warm_process():
    does = "result = [prepared, process]"
    found = [converse(does, preparation={"a": 1}) for _ in range(2)]
    former = warm_processes._processes[sandboxed.PREPARED]
    assert found == [[{"a": 1}, former._process.pid]] * 2
    # Another preparation needs another warm process.
    assert converse(does, preparation={"a": 2})[0] == {"a": 2}
    assert warm_processes._processes[sandboxed.PREPARED] is not former


def test_a_warm_process_can_be_started_before_its_first_child():
    sandbox.start(Function(sandboxed.PREPARED, "early"))
    started = warm_processes._processes[sandboxed.PREPARED]
    assert converse("result = prepared", preparation="early") == "early"
    assert warm_processes._processes[sandboxed.PREPARED] is started


def test_later_children_have_what_the_warm_process_keeps():
    sandbox.preload(sandboxed.PREPARED, "before the start")
    assert converse("result = kept", preparation="keeping") == []
    for value in ("a", "b", "a"):
        sandbox.preload(sandboxed.PREPARED, value)
    # A child that waits for the next request was forked before.
    converse("result = kept", preparation="keeping")
    processes.wait_until(
        lambda: converse("result = kept", preparation="keeping") == ["a", "b"], "the values"
    )


def test_a_child_that_stops_its_supervisor_while_it_asks_ends(monkeypatch):
    monkeypatch.setattr(children, "_WALLS", ())
    monkeypatch.setattr(children, "_GRACE", 1)
    does = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: send(1)"

    def answer(query):
        time.sleep(0.1)

    with pytest.raises(ChildFailed, match="has not reported for 4 seconds"):
        converse(f"{SENDS}{does}", answer, seconds=1)


def test_a_child_that_sends_many_queries_is_answered_with_pauses(clock, monkeypatch):
    monkeypatch.setattr(conversation, "_MAX_PROMPT", 3)
    converse(f"{SENDS}for number in range(5): send(number)")
    assert clock.pauses == [0, 0, 0, 0, conversation._LATER_PAUSE, 0, conversation._LATER_PAUSE]


def test_later_queries_that_take_long_to_answer_leave_time_to_others(clock, monkeypatch):
    monkeypatch.setattr(conversation, "_MAX_PROMPT", 1)
    clock.readings = iter([1, 1, 1, 1.5, 1.5, 1.5, 1.52])
    converse(f"{SENDS}send(1), send(2)")
    assert clock.pauses == [0, 0, pytest.approx(0.18)]


def test_a_query_that_comes_in_pieces_is_read_with_pauses(clock):
    does = "os.write(0, b'[1, '); time.sleep(0.5); os.write(0, b'2]\\n'); result = 3"
    assert converse(RAW + does) == 3
    assert clock.pauses == [conversation._PAUSE, 0]


def test_a_function_is_never_called_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(children, "_WALLS", ())
    called = tmp_path / "called"
    does = (
        f"import os, signal, time\n"
        f"open({str(called)!r}, 'a').write('x')\n"
        f"os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    )
    with pytest.raises(ChildFailed, match="its supervisor has ended"):
        converse(does)
    assert called.read_text() == "x"
    # The next supervisor removes the directory.
    converse("pass")
