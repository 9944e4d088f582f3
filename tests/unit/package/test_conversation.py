# SPDX-License-Identifier: Apache-2.0

"""Functions in child processes that ask questions."""

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
)
from tests import processes
from tests.unit.package import sandboxed


@pytest.fixture(autouse=True)
def emptied(temporary):
    """Wait until nothing is left: the supervisor of a child that was killed removes its files."""
    yield
    processes.wait_until(lambda: not list(temporary.iterdir()), "an empty directory", 10)


ASKS = "from glare_murano.package.sandbox import Questions\nask = Questions(file).ask\n"
RAW = "import os, time\n"


def converse(does, answer=lambda question: question, preparation=None, **settings):
    function = Function(sandboxed.PREPARED if preparation else sandboxed.NAME, preparation)
    return sandbox.converse(function, {"does": does}, answer, ChildSettings(**settings)).content


def test_each_question_gets_its_answer():
    asked = []

    def answer(question):
        asked.append(question)
        return {"to": question, "long": "x" * 300_000}

    does = f"{ASKS}result = [ask([n, 'a\\nb'])['to'] for n in range(3)]"
    assert converse(does, answer) == [[n, "a\nb"] for n in range(3)] == asked


def test_a_function_may_ask_nothing():
    assert converse("result = 1") == 1


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("os.write(0, b'x' * 70_000); time.sleep(60)", "more than 65536 bytes is too long"),
        ("os.write(0, b'{\\n'); time.sleep(60)", "is not JSON"),
        ("os.write(0, b'\\xff\\n'); time.sleep(60)", "is not JSON"),
        ("os.write(0, b'[' * 60_000 + b'\\n'); time.sleep(60)", "is not JSON"),
        (
            "os.write(0, b'[1, \"' + b'x' * 70_000 + b'\"]\\n'); time.sleep(60)",
            "more than 65536 bytes is too long",
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


def test_a_child_that_ends_while_it_asks_has_failed():
    with pytest.raises(ChildFailed, match="exit status was 5"):
        converse(RAW + "os.write(0, b'[1, 2]\\n'); os._exit(5)", lambda _: "x" * 1_000_000)


def test_an_interrupted_question_does_not_shift_the_answers():
    does = (
        "import signal, time\n"
        "def interrupt(*_): raise KeyError\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "try: ask(1)\n"
        "except KeyError: result = ask(2)"
    )

    def answer(question):
        time.sleep(1 if question == 1 else 0)
        return question

    assert converse(f"{ASKS}{does}", answer) == 2


def test_a_child_that_closes_the_socket_has_its_result():
    assert converse(RAW + "os.close(0); result = 3") == 3


def test_a_child_has_its_limit_of_time_while_it_asks():
    with pytest.raises(LimitReached):
        converse(f"{ASKS}while True: ask(1)", seconds=1)


def test_an_error_in_an_answer_ends_the_child():
    def refuse(question):
        raise KeyError(question)

    with pytest.raises(KeyError, match="secret"):
        converse(f"{ASKS}ask('secret')", refuse)


def test_the_caller_does_something_meanwhile():
    calls = []
    function = Function(sandboxed.NAME)
    does = {"does": "import time; time.sleep(2.5)"}
    sandbox.converse(function, does, str, ChildSettings(), lambda: calls.append(1))
    assert len(calls) == 2


def test_a_function_is_prepared_once_in_the_warm_process():
    does = "result = [prepared, process]"
    found = [converse(does, preparation={"a": 1}) for _ in range(2)]
    former = children._processes[sandboxed.PREPARED]
    assert found == [[{"a": 1}, former._process.pid]] * 2
    # Another preparation needs another warm process.
    assert converse(does, preparation={"a": 2})[0] == {"a": 2}
    assert children._processes[sandboxed.PREPARED] is not former


def test_a_warm_process_can_be_started_before_its_first_child():
    sandbox.start(Function(sandboxed.PREPARED, "early"))
    started = children._processes[sandboxed.PREPARED]
    assert converse("result = prepared", preparation="early") == "early"
    assert children._processes[sandboxed.PREPARED] is started


def test_later_children_have_what_the_warm_process_keeps():
    sandbox.keep(sandboxed.PREPARED, "before the start")
    assert converse("result = kept", preparation="keeping") == []
    for value in ("a", "b", "a"):
        sandbox.keep(sandboxed.PREPARED, value)
    # A child that waits for the next request was forked before.
    converse("result = kept", preparation="keeping")
    processes.wait_until(
        lambda: converse("result = kept", preparation="keeping") == ["a", "b"], "the values"
    )


def test_a_child_that_stops_its_supervisor_while_it_asks_ends(monkeypatch):
    monkeypatch.setattr(children, "_HAS_WALLS", False)
    monkeypatch.setattr(children, "_GRACE", 1)
    does = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: ask(1)"

    def answer(question):
        time.sleep(0.1)

    with pytest.raises(ChildFailed, match="has not reported for 4 seconds"):
        converse(f"{ASKS}{does}", answer, seconds=1)


def test_a_function_is_never_called_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(children, "_HAS_WALLS", False)
    called = tmp_path / "called"
    does = (
        f"import os, signal, time\n"
        f"open({str(called)!r}, 'a').write('x')\n"
        f"os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    )
    with pytest.raises(ChildFailed, match="its supervisor has ended"):
        converse(does)
    assert called.read_text() == "x"
