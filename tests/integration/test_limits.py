# SPDX-License-Identifier: Apache-2.0

"""What a package may use: values, calls, loops, green threads, resources and messages.

Each package here exceeds one limit in the real engine. Its task ends with an error that has the
package, the class, the line and the limit.
"""

import functools
import json
import logging
import math
import pathlib
import re
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from eventlet import hubs
from murano.dsl import helpers
from yaql.language import utils

from loader.engine import task_usage, yaql_quota
from loader.engine.patches import yaql_limits
from tests import packages
from tests.integration import tasks

Run = Callable[..., Any]

_CLASS = """\
Namespaces:
  =: {name}
  std: io.murano
  sys: io.murano.system
Name: {name}.Thing
Methods:
  go:
    Usage: Static
    Scope: Public
    Body:
{body}
  same:
    Usage: Static
    Arguments:
      - value: {{Contract: $}}
    Body:
      - Return: $value
  recurse:
    Usage: Static
    Arguments:
      - count: {{Contract: $.int()}}
    Body:
      - If: $count > 0
        Then:
          - Return: :Thing.recurse($count - 1)
      - Return: done
"""
# The line of the first statement.
_LINE = 11


@pytest.fixture
def run(conf: Any, name: str, tmp_path: pathlib.Path) -> Run:
    """Run statements of MuranoPL as a static action, and return the result."""
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")

    def run_statements(*statements: str, **resources: bytes) -> Any:
        content = packages.content(name, "1.2.0")
        body = "\n".join(f"      - {statement}" for statement in statements)
        content["Classes/Thing.yaml"] = _CLASS.format(name=name, body=body).encode()
        content |= {f"Resources/{key}.txt": value for key, value in resources.items()}
        packages.write(tmp_path / name, content)
        return tasks.call_static(f"{name}.Thing", "go")

    return run_statements


def _peak() -> int:
    """Return the most memory that this process had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def returning(expression: str) -> str:
    """Return a statement; the expression is quoted for YAML."""
    return f"Return: !yaql {json.dumps(expression, ensure_ascii=False)}"


# Each operation doubles the value.
_COPY = "{op => copy, from => '', path => '/' + str($)}"
QUOTA = re.escape("YAQL's memory quota allows 524,288 bytes")
WHOLE = re.escape("YAQL's memory quota allows 4,194,304 bytes")
DIGITS = "YAQL's memory quota allows 4,300"


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        ("list(1) * 10000000000", QUOTA),
        ("10000000000 * list(1)", QUOTA),
        ("list() * 5 + list(1) * 70000", QUOTA),
        ("'a' * 100000000", QUOTA),
        ("10000 * ('a' * 100)", QUOTA),
        ("shiftBitsLeft(1, 40000000000)", DIGITS),
        ("pow(10, 300000000)", DIGITS),
        ("pow(-2, 20000)", DIGITS),
        ("pow(10, 4000) * pow(10, 4000)", DIGITS),
        ("round(5, -1000000000)", DIGITS),
        ("(shiftBitsLeft(1, 14283) - 1 + shiftBitsLeft(1, 14283)) + 1", DIGITS),
        ("format('{0}{0}', 'x' * 300000)", QUOTA),
        ("concat('x' * 300000, 'x' * 300000)", QUOTA),
        ("'x' * 300000 + 'x' * 300000", QUOTA),
        ("range(2000).select('x' * 260000).join('')", QUOTA),
        ("'x'.join(range(5).select('x' * 260000))", QUOTA),
        ("list('x', 'x', 'x').join('x' * 300000)", QUOTA),
        ("('a' * 10000).replace('', 'x' * 100000)", QUOTA),
        ("('a' * 10000).replace(dict(a => 'x' * 100000))", QUOTA),
        ("regex('').replace('a' * 10000, 'x' * 100000)", QUOTA),
        (r"regex('(a+)').replace('a' * 10000, '\\1' * 1000)", QUOTA),
        ("('a' * 10000).replace(regex('a'), 'x' * 100000)", QUOTA),
        ("regex('').replaceBy('a' * 10000, 'x' * 100000)", QUOTA),
        ("('a' * 10000).replaceBy(regex(''), 'x' * 100000)", QUOTA),
        ("regex('()' * 100).split('a' * 100000)", QUOTA),
        ("('a' * 100000).split(regex('()' * 100))", QUOTA),
        ("base64encode('x' * 500000)", QUOTA),
        ("('$' + '{a}' * 1000).bind({a => 'x' * 1000})", QUOTA),
        ("range(2000).select('x' * 260000 + str($)).toList()", WHOLE),
        ("range(2000).select(['x' * 260000 + str($)]).orderBy(1)", WHOLE),
        ("let(x => [1]) -> " + "let(x => [$x, $x]) -> " * 30 + "$x", WHOLE),
        ("let(x => [1]) -> " + "let(x => $x.zip($x).toList()) -> " * 30 + "hash($x)", WHOLE),
        ("let(x => {a => 1}) -> " + "let(x => {a => $x, b => $x}) -> " * 25 + "$x.len()", WHOLE),
        ("let(x => [1]) -> " + "let(x => [$x]) -> " * 120 + "$x", "100 levels"),
        (f"{{a => 1}}.patch(range(30).select({_COPY}).toList())", WHOLE),
        ("range(2001).toList()", r"2000 elements, the limit of \[murano\] dsl_iterators_limit"),
        ("sequence().select($).toList()", "2000 elements"),
        ("generate(1, true, $ + 1).toList()", "2000 elements"),
        ("range(0, 1000000000)", "2000 elements"),
        ("def(f, f()) -> f()", "calls or expressions are nested too deep"),
        ("int('9' * 5000)", "4300 digits"),
    ],
)
def test_a_value_keeps_to_the_quota(run: Run, name: str, expression: str, limit: str) -> None:
    started, before = time.process_time(), _peak()
    with pytest.raises(Exception, match=limit) as caught:
        run(returning(expression))

    assert time.process_time() - started < 10
    # The value was not made before it was refused.
    assert _peak() - before < 200 * 1024
    assert str(caught.value).startswith(f"{name} 1.2.0: Classes/Thing.yaml:{_LINE}: ")


def test_a_doubled_value_is_refused_in_statements(run: Run) -> None:
    with pytest.raises(Exception, match=WHOLE):
        run("$x: [1]", *["$x: [$x, $x]"] * 25)
    with pytest.raises(Exception, match=WHOLE):
        run("$x: list(1) * 1000", f"$y: [{', '.join(['$x'] * 2500)}]")
    with pytest.raises(Exception, match="100 levels"):
        run("$x: 1", "Repeat: 120\n        Do:\n          - $x: [$x]")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(list(1) * 65000).len()", 65000),
        ("pow(10, 4299)", 10**4299),
        ("pow(7, 2, 10)", 9),
        ("pow(2, -1)", 0.5),
        ("('x' * 524000).len()", 524_000),
        (r"'a-b-c'.replace(regex('-(.)'), '+\\1')", "a+b+c"),
        ("'a-b'.split(regex('(-)'))", ["a", "-", "b"]),
        ("'a-b-c'.split(regex('-'), 1)", ["a", "b-c"]),
        ("'a-b-c'.split(regex('-'), -1)", ["a-b-c"]),
        ("'abab'.replace(a, c, 1)", "cbab"),
        ("'ab'.replaceBy(regex(a), 'x')", "xb"),
        ("round(15, -1)", 20),
        ("'ab'.replace({a => b, b => c})", "cc"),
        ("list('$a', '$x{a}').bind({a => 1})", [1, "x1"]),
        ("{a => 1}.patch({op => copy, from => '/a', path => '/b'})", {"a": 1, "b": 1}),
        ("{a => 1}.patch({op => remove, path => '/b/c'})", {"a": 1}),
        ("list(1, null, true).join('-')", "1-null-true"),
        ("'-'.join(list(1, 2))", "1-2"),
        ("str(list(1, a))", "(1, 'a')"),
        ("generateMany(1, [$ * 2, $ * 2 + 1].where($ < 8))", [1, 2, 3, 4, 5, 6, 7]),
        ("generateMany(1, [$ * 2, $ * 2 + 1].where($ < 8), depthFirst => true).len()", 7),
        ("list('aB'.matches('^ab$'), 'ab' =~ 'b', 'ab' !~ '^b')", [False, True, True]),
        ("'A\nB'.replace(regex('^a|b$', true, true), c)", "c\nc"),
        ("regex('a.b', dotAll => true).matches('a\nb')", True),
        ("let(range(3).memorize()) -> list($.sum(), $.len(), $.sum())", [3, 3, 3]),
        ("let(range(3).memorize()) -> list($.first(), $.first(), $.last())", [0, 0, 2]),
        ("range(2).join(range(2), true, $1 * 2 + $2)", [0, 1, 2, 3]),
        ("range(1, 3).defaultIfEmpty([0])", [1, 2]),
        ("range(3).assert($.len() = 3).sum()", 3),
    ],
)
def test_what_fits_is_allowed(run: Run, expression: str, expected: Any) -> None:
    assert run(returning(expression)) == expected


def test_iterators_and_values_are_limited_without_an_engine() -> None:
    shared = (1,)
    for _ in range(40):
        shared = (shared, shared)  # type: ignore[assignment]
    with pytest.raises(yaql_quota.QuotaExceeded):
        yaql_quota.whole_size(shared)
    with pytest.raises(yaql_quota.QuotaExceeded):
        yaql_quota.whole_size({"a": {1: shared}})
    assert helpers.evaluate({1: [2, (3,)]}, None) == {1: (2, (3,))}
    assert helpers.evaluate((1, {2}), None, freeze=False) == [1, {2}]


@pytest.mark.parametrize(
    "values",
    [
        [(1, "x" * yaql_quota.QUOTA)],
        [(1, b"x" * yaql_quota.QUOTA)],
        [(1, 10**yaql_quota.MAX_DIGITS)],
        # The size of a frozen dictionary is that of the dictionary in it.
        [(1, utils.FrozenDict((n, n) for n in range(50_000)))],
        # The values in a collection count.
        [(1, ("x" * yaql_quota.QUOTA,) * 9)],
        [(1, (None,) * (yaql_quota.QUOTA // 8))],
        # It would take minutes to visit all elements.
        [(1, (utils.FrozenDict({(n,): () for n in range(4_000)}),) * 60_000)],
        [(1, "x"), (yaql_quota.QUOTA, "x")],
        [(2, "x" * (yaql_quota.QUOTA // 3)), (1, "x" * (yaql_quota.QUOTA // 3))],
    ],
    ids=["text", "bytes", "integer", "mapping", "elements", "list", "mappings", "repeated", "sum"],
)
def test_values_larger_than_the_quota_are_refused(values: list[tuple[int, Any]]) -> None:
    with pytest.raises(yaql_quota.QuotaExceeded):
        yaql_quota.limit_memory_usage(None, *values)


@pytest.mark.parametrize(
    "values",
    [
        [(1, "x" * (yaql_quota.QUOTA - 100))],
        [(1, 10 ** (yaql_quota.MAX_DIGITS - 1))],
        [(1, (None,) * (yaql_quota.QUOTA // 8 - 100))],
        [(1, object())],
        [(1, "x" * (yaql_quota.QUOTA // 3)), (1, "x" * (yaql_quota.QUOTA // 3))],
    ],
    ids=["text", "integer", "list", "object", "sum"],
)
def test_values_within_the_quota_are_allowed(values: list[tuple[int, Any]]) -> None:
    yaql_quota.limit_memory_usage(None, *values)


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        ("generateMany(0, sequence()).len()", "more than 2000 elements"),
        ("generateMany(0, [0].repeat()).len()", "more than 2000 elements"),
        ("generateMany(0, range(2000).select('x' * 10000), $ * 0).len()", WHOLE),
        ("'a'.matches('a' * 4001)", "has 4,001 characters; at most 4,000"),
        ("'a' =~ ('a' * 4001)", "has 4,001 characters; at most 4,000"),
        ("'a' !~ ('a' * 4001)", "has 4,001 characters; at most 4,000"),
        ("regex('()' * 101)", "has 101 groups; at most 100"),
        ("regex('[' + '\U0001f600' * 17 + ']*b')", "has 17 characters beyond U\\+FFFF; at most 16"),
        ("regex('[' + '\\\\U0001F600' * 17 + ']*b')", "has 17 characters beyond U"),
    ],
)
def test_what_python_computes_without_an_interruption_is_refused(
    run: Run, expression: str, limit: str
) -> None:
    with pytest.raises(Exception, match=limit):
        run(returning(expression))


@pytest.mark.parametrize(
    "statement",
    [
        "For: '?type'\n        In: [typeinfo(std:Environment)]\n        Do: [$x: 1]",
        "For: $?type\n        In: [typeinfo(std:Environment)]\n        Do: [$x: 1]",
        "Try: [Throw: A]\n        Catch: [{As: '?type', Do: [Return: 1]}]",
    ],
)
def test_a_package_sets_no_variable_of_the_engine(run: Run, statement: str) -> None:
    with pytest.raises(Exception, match=r"variable \$?\?type belongs to the engine"):
        run(statement)


def test_an_argument_is_no_variable_of_the_engine(
    conf: Any, name: str, tmp_path: pathlib.Path
) -> None:
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")
    content = packages.content(name, "1.2.0")
    code = _CLASS.format(name=name, body="      - Return: 1")
    method = "  other:\n    Arguments:\n      - '?type': {Contract: $}\n    Body: []\n"
    content["Classes/Thing.yaml"] = (code + method).encode()
    packages.write(tmp_path / name, content)

    with pytest.raises(Exception, match=r"variable \?type belongs to the engine"):
        tasks.call_static(f"{name}.Thing", "go")


def test_warnings_about_what_a_package_writes_are_not_kept(run: Run, conf: Any) -> None:
    # A cell ends with its request.
    conf.set_override("request_cells", False, "engine")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yaql_limits.ignore_warnings()
        assert run(returning("'[a'.matches('[[a]+')")) is True
        assert run(returning("datetime('2020-01-01 10:00 QQX').year")) == 2020

    assert [each for each in caught if "yaql" in each.filename or "dateutil" in each.filename] == []


def test_what_an_iterator_remembers_is_limited(run: Run) -> None:
    expression = "let(range(1000).select('x' * 10000).memorize()) -> $.where($.len() > 0).len()"
    with pytest.raises(Exception, match="a value would take 4,"):
        run(returning(expression))


def test_what_an_iterator_remembers_is_not_kept(run: Run, conf: Any) -> None:
    # A cell ends with its request.
    conf.set_override("request_cells", False, "engine")
    caches = [
        value
        for value in vars(yaql_quota).values()
        if isinstance(value, functools._lru_cache_wrapper)
    ]
    sizes = []
    for _ in range(3):
        assert run(returning("let(range(3).memorize()) -> $.sum() + $.len()")) == 6
        sizes.append([cache.cache_info().currsize for cache in caches])

    assert len(caches) == 4
    assert sizes[1] == sizes[2]


def test_nested_calls_are_bounded(run: Run, name: str) -> None:
    assert run("Return: :Thing.recurse(25)") == "done"

    with pytest.raises(Exception, match="calls or expressions are nested too deep: 1700") as caught:
        run("Return: :Thing.recurse(100000)")

    assert str(caught.value).startswith(f"{name} 1.2.0: Classes/Thing.yaml:")
    assert run("Return: 1") == 1


@pytest.mark.parametrize("loop", ["While: !yaql true", "Repeat: 1000000000000"])
def test_loops_are_bounded(run: Run, conf: Any, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    # A cell does not see changes of this process.
    conf.set_override("request_cells", False, "engine")
    monkeypatch.setattr(task_usage, "MAX_ITERATIONS", 500)

    assert run("$x: 0", "While: $x < 500\n        Do:\n          - $x: $x + 1", "Return: $x") == 500
    with pytest.raises(Exception, match="a loop has more than 500 iterations"):
        run(f"{loop}\n        Do:\n          - $x: 1")


def test_loops_still_break_and_continue(run: Run) -> None:
    body = "Do:\n          - $x: $x + 1\n          - If: $x > 5\n            Then: [{Break: }]"
    for loop in ("While: !yaql true", "Repeat: 100"):
        assert run("$x: 0", f"{loop}\n        {body}\n          - Continue:", "Return: $x") == 6


def test_parallel_sleeps_are_bounded(run: Run, conf: Any) -> None:
    started = time.monotonic()

    with pytest.raises(Exception, match=r"2000 green threads at a time.*\[engine\] max_green_thr"):
        run("Return: range(100).pselect(range(1000).pselect(sleep(60)))")

    assert time.monotonic() - started < 30
    assert run("Return: range(3).pselect(range(3).pselect($ + 1))") == [[1, 2, 3]] * 3


def test_a_wait_is_a_number_of_seconds(run: Run) -> None:
    with pytest.raises(Exception, match="nan is not a number of seconds to wait for"):
        run("sleep(float(nan))")

    # The waits of all green threads of this process.
    hub = hubs.get_hub()
    assert not any(math.isnan(when) for when, _ in (*hub.timers, *hub.next_timers))


def test_an_endless_wait_is_shortened() -> None:
    # The kernel refuses it, which ends the loop of all green threads.
    assert task_usage.seconds_to_wait(math.inf) == task_usage.MAX_WAIT


def test_a_parallel_block_needs_a_thread(run: Run) -> None:
    assert run("Return: list().pselect($)") == []
    assert run("Parallel:\n          - $x: 1\n          - $y: 2", "Return: 1") == 1
    with pytest.raises(Exception, match="Limit = -1: at least one green thread"):
        run("Limit: -1\n        Parallel:\n          - $x: 1")


_BOMB = b"a: &a [1,1,1,1,1,1,1,1,1,1]\n" + b"".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n".encode()
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
_READ = "$r: new(sys:Resources)"


@pytest.mark.parametrize(
    ("method", "content", "limit"),
    [
        ("yaml", _BOMB, "more than 100000 values after aliases are expanded"),
        ("yaml", b"[" * 65 + b"]" * 65, "nested deeper than 64 levels"),
        ("yaml", b"a: !!python/object/apply:os.getcwd []", "tag|constructor"),
        ("yaml", b"a: " + b"x" * 2**20, "at most 1,048,576 can be read"),
        ("yaml", b"a: " + b"9" * 5000, "4300 digits"),
        ("json", b"[" * 100_000, "nested too deep"),
        ("json", b"[" * 101 + b"]" * 101, "100 levels"),
        ("json", b"9" * 5000, "4300 digits"),
        ("json", b'["' + b"x" * 2**20 + b'"]', "at most 1,048,576 can be read"),
        ("json", b"[" + b"[]," * 80_000 + b"[]]", "memory quota"),
        ("string", b"x" * 600_000, QUOTA),
        ("string", b"x" * 2**21, "at most 1,048,576 can be read"),
    ],
)
def test_resources_are_bounded(run: Run, method: str, content: bytes, limit: str) -> None:
    with pytest.raises(Exception, match=limit):
        run(_READ, f"Return: $r.{method}('bad.txt')", bad=content)


def test_resources_are_read_as_before(run: Run) -> None:
    content = b"a: &a {b: 2015-01-02, c: [1, 1.5, yes, null]}\nd: {<<: *a, b: 2}\n"
    inner = {"b": "2015-01-02", "c": [1, 1.5, True, None]}

    assert run(_READ, "Return: $r.yaml('a.txt')", a=content) == {"a": inner, "d": {**inner, "b": 2}}
    assert run(_READ, "Return: $r.json('a.txt')", a=b'{"a": [1, null]}') == {"a": [1, None]}
    assert run(_READ, "Return: $r.string('a.txt')", a=b"text") == "text"


@pytest.mark.parametrize("path", ["../manifest.yaml", "/etc/passwd", "a/../../manifest.yaml"])
def test_a_resource_is_in_its_package(run: Run, path: str) -> None:
    with pytest.raises(Exception, match=r"(?i)not exist|no such|invalid|outside|resource|missing"):
        run(_READ, f"Return: $r.string('{path}')")


_REFUSED = r"\[yaql|\[(Value|Runtime|Attribute)Error|Lexical|Parse"


@pytest.mark.parametrize(
    "expression",
    [
        "$.__class__",
        "typeinfo(:Thing).__class__",
        "typeinfo(:Thing).package.loader",
        "typeinfo(:Thing).version.__class__",
        "typeinfo(:Thing).version.next_major()",
        "typeinfo(:Thing).version._cmp_precedence_key",
        "__import__(os)",
        "call(__import__, [os], {})",
        "call('#get_context_data', ['$?type'], {})",
        "call('#call', [1], {})",
        "lambda(1)",
        "'a'.__class__",
        "config(rabbitmq, password)",
        "list(1).unpack('?type') -> 1",
        "list(1).unpack('$?type') -> 1",
        "call(let, [], {'?type' => 1})",
        "let('?type' => 1)",
        "regex('a').pattern",
        "exec('1')",
        "$?type",
    ],
)
def test_nothing_of_python_or_of_the_engine_is_reached(run: Run, expression: str) -> None:
    with pytest.raises(Exception, match=_REFUSED) as caught:
        run(returning(expression))

    assert "object at 0x" not in str(caught.value)


def test_an_error_writes_objects_as_their_classes(run: Run) -> None:
    with pytest.raises(
        Exception, match=r'Unknown method "x" for receiver io\.murano\.Environment$'
    ):
        run("Return: new(std:Environment, name => one).x()")
    with pytest.raises(Exception, match=r"Unknown method .* of the type Pattern$"):
        run("Return: regex('a').x()")
    with pytest.raises(Exception, match=r"receiver x{200}\.\.\.$"):
        run("Return: ('x' * 1000).y()")


@pytest.fixture
def limit_messages(conf: Any) -> Any:
    conf.set_override("max_messages", 20, "engine")
    yield
    conf.clear_override("max_messages", "engine")


@pytest.mark.usefixtures("limit_messages")
def test_log_lines_are_bounded(run: Run, conf: Any, caplog: pytest.LogCaptureFixture) -> None:
    # The lines of a cell are logged by another logger.
    conf.set_override("request_cells", False, "engine")
    caplog.set_level(logging.INFO)
    long = task_usage.MAX_MESSAGE + 7

    with pytest.raises(
        Exception, match=r"20 lines of the log and reports.*\[engine\] max_messages"
    ):
        run(
            "$l: logger('a')",
            r'$l.info("one\n{0} %s", 1)',
            f"$l.info('x' * {long})",
            "Repeat: 30\n        Do:\n          - $l.info('again')",
        )

    written = [r.getMessage() for r in caplog.records if r.name == "applications.a"]
    assert written[0] == "one\n| 1 %s"
    assert written[1].endswith("x... (7 more characters)")
    assert len(written) == 20


def test_loggers_are_bounded(run: Run) -> None:
    with pytest.raises(Exception, match="the task has more than 100 loggers"):
        run("Return: range(101).select(logger(str($)))")
    with pytest.raises(Exception, match=r"the name of a logger has .* at most 255"):
        run("Return: logger('x' * 300)")


@pytest.mark.usefixtures("limit_messages")
def test_reports_are_bounded(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from murano.common import rpc
    from murano.engine.system import status_reporter

    sent: list[str] = []

    class Notifier:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def info(self, context: Any, event: str, body: dict[str, Any]) -> None:
            sent.append(body["text"])

    # No broker is there to be reported to.
    monkeypatch.setattr(rpc, "NOTIFICATION_TRANSPORT", object())
    monkeypatch.setattr(rpc, "initialized", lambda: True)
    monkeypatch.setattr(status_reporter.messaging, "Notifier", Notifier)

    run(
        "$e: new(std:Environment, name => one)",
        "$r: new(sys:StatusReporter, environment => $e)",
        f"$r.report($e, 'x' * {task_usage.MAX_MESSAGE + 7})",
        "Repeat: 30\n        Do:\n          - $r.report($e, again)",
    )
    assert sent == [], "a static action has no environment to report to"
    action = tasks.action("object", "go")
    result = tasks.run({"type": f"{name}.Thing", "classVersion": "*"}, action=action)

    assert "max_messages" in result["action"]["result"]["message"]

    assert sent[0].endswith("x... (7 more characters)")
    # The last one is the engine's own, about the failure.
    assert sent[1:-1] == ["again"] * 19


_KEEPER = """\
Namespaces:
  =: {name}
Name: Thing
Properties:
  kept:
    Usage: Out
    Contract:
      - $
  content:
    Contract: $
Methods:
  keep:
    Scope: Public
    Arguments:
      - count: {{Contract: $.int()}}
    Body:
      - $.kept: range($count).select(new(:Thing, content => format('{{0:03}}', $) * 160000))
"""


def test_models_are_bounded(conf: Any, name: str, tmp_path: pathlib.Path) -> None:
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")
    packages.write(tmp_path / name, packages.content(name, code=_KEEPER.format(name=name)))

    def keep(count: int) -> Any:
        header = {"type": f"{name}.Thing"}
        return tasks.run(header, action=tasks.action("object", "keep", count=count))

    result = keep(2)
    assert not result["action"]["isException"]
    assert len(result["model"]["Objects"]["kept"]) == 2

    result = keep(150)
    assert result["action"]["isException"]
    assert "the model of the environment has more than 67,108,864 bytes" in str(result["action"])
    assert "kept" not in result["model"]["Objects"]
