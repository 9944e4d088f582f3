# SPDX-License-Identifier: Apache-2.0

"""Packages that compute or wait without an end, in ``murano-glare-engine``.

Each class of the package tries one way. An honest deployment runs beside each.
"""

import contextlib
import pathlib
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from examples import demo
from tests.integration import services
from tests.processes import wait_until

pytestmark = pytest.mark.services

NAME = "org.test.greedy"
BLOCKING = "[engine] blocking_seconds"
TIME = "[engine] task_seconds"
REQUEST = "[engine] request_seconds"
_LIMITS = {
    "agent_timeout": 3,
    "blocking_seconds": 1,
    "request_seconds": 4,
    "task_seconds": 12,
}
# Of a busy host; the engine's limits are in processor time or shorter.
_BUSY = 3
# With no time for running tasks.
_STOP_SECONDS = 24
# Each number is within the quota.
_POWER = "pow(3, pow(10, 4290), pow(10, 4290) - 1)"
_CATASTROPHE = "regex('^(a+)+$').search('" + "a" * 40 + "b')"


def _deploying(body: str) -> str:
    indented = body.replace("\n", "\n      ")
    return f"Methods:\n  deploy:\n    Body:\n      {indented}\n"


_LOOP = "{While: 1 = 1, Do: [$x: 1]}"
# Bodies of ``deploy``, by the class.
_BODIES = {
    "Loop": f"- {_LOOP}",
    "Search": f"- $x: {_CATASTROPHE}",
    "Match": f"- $x: (\"{'a' * 40}b\" =~ '^(a+)+$')",
    "Power": f"- $x: {_POWER}",
    "Caught": f"""\
- While: 1 = 1
  Do:
    - Try:
        - {_LOOP}
      Catch:
        Do: [$x: 1]""",
    "Finally": f"""\
- $.stage: begun
- Try:
    - {_LOOP}
  Finally:
    - Try:
        - {_LOOP}
      Finally:
        - {_LOOP}""",
    "Parallel": f"""\
- Parallel:
    - sleep(600)
    - {_LOOP}
    - Try: [sleep(600)]
      Finally: [sleep(600)]""",
    "Temporary": "- new(Destroyed)",
}
_WAITS = {
    "Sleep": "- $.stage: begun\n- sleep(600)",
    "Sleeps": "- For: i\n  In: range(1000)\n  Do: [sleep(1)]",
    "ParallelSleeps": "- range(1000).pselect(sleep(600))",
    "Yields": "- {While: 1 = 1, Do: [sleep(0)]}",
    "CaughtSleep": """\
- While: 1 = 1
  Do:
    - Try: [sleep(600)]
      Catch:
        Do: [$x: 1]
      Finally: [sleep(600)]""",
}
_OTHERS = {
    "Honest": "Methods:\n  deploy:\n    Body:\n      - sleep(0.1)\n      - $.stage: done\n",
    "Destroyed": f"Methods:\n  .destroy:\n    Body:\n      - {_LOOP}\n",
    "Contract": f"  value:\n    Contract: $.string().check({_CATASTROPHE})\n    Default: a\n",
    "Default": f"  value:\n    Contract: $\n    Default: {_CATASTROPHE}\n",
    "Static": f"""\
Methods:
  compute:
    Usage: Static
    Scope: Public
    Body:
      - {_LOOP}
  wait:
    Usage: Static
    Scope: Public
    Body:
      - sleep(600)
""",
    "Marked": _deploying(f"- logger(slow).info('it begins')\n- {_LOOP}"),
    "Node": "  next:\n    Contract: $.class(Node)\n",
    "Deep": (
        "  next:\n    Contract: $.class(Node)\n    Usage: Out\n"
        + _deploying(
            "- $.stage: deep\n- For: i\n  In: range(400)\n  Do:\n"
            "    - $.next: new(Node, next => $.next)\n    - sleep(0)"
        )
    ),
    "Schema": f"  value:\n    Contract: let(x => {_POWER}) -> $.string()\n",
}


def _class(name: str, rest: str) -> str:
    head = (
        f"Namespaces:\n  =: {NAME}\n  std: io.murano\nName: {name}\nExtends: std:Application\n"
        f"Properties:\n  name:\n    Contract: $.string()\n"
        f"  stage:\n    Contract: $.string()\n    Usage: Out\n"
    )
    return head + rest


@pytest.fixture(scope="module")
def glare_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("glare")
    classes = {name: _deploying(body) for name, body in (_BODIES | _WAITS).items()} | _OTHERS
    code = {name: _class(name, rest) for name, rest in classes.items()}
    with services.glare_with(folder, NAME, code) as url:
        yield url


@pytest.fixture(scope="module")
def engine(glare_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("engine")
    with (
        services.message_queue() as queue,
        services.murano_engine(folder, queue, glare_url, **_LIMITS) as engine,
        services.MuranoApi(queue, engine) as api,
    ):
        # The first deployment parses the core library.
        api.run(*_deployment("Honest"))
        yield engine, api


@pytest.fixture
def api(engine: tuple[services.Engine, services.MuranoApi]) -> services.MuranoApi:
    return engine[1]


def _environment(*classes: str) -> dict[str, Any]:
    applications = (services.application(f"{NAME}.{each}", f"app-{each}") for each in classes)
    return services.environment(*applications)


def _deployment(*classes: str) -> tuple[dict[str, Any], str, str]:
    model = _environment(*classes)
    return model, services.environment_id(model), "deploy"


def _is_place(message: str, name: str) -> bool:
    """Return whether a message begins with the package, the class and a line."""
    place = rf"{NAME} 1\.0\.0: Classes/{name}\.yaml:\d+: class {NAME}\.{name}: "
    return re.match(place, message) is not None


def _fails_beside_an_honest_one(api: services.MuranoApi, model: Any) -> Any:
    """Run a deployment, and one beside it; return the result of the first."""
    honest = _environment("Honest")
    for each in (model, honest):
        api.start(each, services.environment_id(each), "deploy")
    begun = time.monotonic()
    results = api.results(2)
    assert time.monotonic() - begun < _BUSY * 12
    beside = results[services.environment_id(honest)]
    assert not beside["action"]["isException"], beside
    assert beside["model"]["Objects"]["applications"][0]["stage"] == "done"
    result = results[services.environment_id(model)]
    assert result["action"]["isException"]
    return result


def _is_interrupted(api: services.MuranoApi, model: Any, name: str, reason: str = "") -> Any:
    """Check the place and the reason of the error of a deployment, and return the result."""
    result = _fails_beside_an_honest_one(api, model)
    message = result["action"]["result"]["message"]
    assert _is_place(message, name), message
    assert reason in message
    return result


@pytest.mark.parametrize("name", sorted(_BODIES.keys() - {"Temporary"}))
def test_a_package_that_holds_the_process_is_interrupted(
    api: services.MuranoApi, name: str
) -> None:
    result = _is_interrupted(api, _environment(name), name, BLOCKING)

    # The model is saved as after any error.
    app = result["model"]["Objects"]["applications"][0]
    assert app.get("stage") == ("begun" if name == "Finally" else None)
    assert result["model"]["SystemData"]["Packages"][NAME] == ["1.0.0"]


@pytest.mark.parametrize("name", _WAITS)
def test_a_package_that_waits_without_an_end_is_interrupted(
    api: services.MuranoApi, name: str
) -> None:
    result = _is_interrupted(api, _environment(name), name, TIME)

    app = result["model"]["Objects"]["applications"][0]
    assert app.get("stage") == ("begun" if name == "Sleep" else None)


@pytest.mark.parametrize("name", ["Contract", "Default"])
def test_a_package_that_computes_while_a_model_is_loaded_is_interrupted(
    api: services.MuranoApi, name: str
) -> None:
    model = _environment(name)
    result = _is_interrupted(api, model, name, BLOCKING)

    assert result["model"]["Objects"]["applications"] == model["Objects"]["applications"]


def test_an_object_that_computes_in_its_destruction_is_interrupted(
    api: services.MuranoApi,
) -> None:
    model = _environment("Honest")
    copied = _environment("Honest", "Destroyed")["Objects"]["applications"]
    model["ObjectsCopy"] = {**model["Objects"], "applications": copied}
    before = model["Objects"]["applications"]
    result = _is_interrupted(api, model, "Destroyed", BLOCKING)

    assert result["model"]["Objects"]["applications"] == before
    assert result["model"]["ObjectsCopy"]["applications"] == copied


def test_a_model_is_saved_although_an_unused_object_computes_in_its_destruction(
    api: services.MuranoApi,
) -> None:
    result = _is_interrupted(api, _environment("Temporary", "Honest"), "Destroyed")

    applications = result["model"]["Objects"]["applications"]
    assert [app.get("stage") for app in applications] == [None, "done"]


def test_a_model_that_cannot_be_saved_is_the_one_that_the_task_came_with(
    api: services.MuranoApi,
) -> None:
    model = _environment("Deep")
    result = _fails_beside_an_honest_one(api, model)

    # Which comes first depends on the host.
    message = result["action"]["result"]["message"]
    ends = (BLOCKING, TIME, "keeps the model that the task began with")
    assert any(end in message for end in ends), message
    assert result["model"]["Objects"]["applications"] == model["Objects"]["applications"]
    assert result["model"]["project_id"] == demo.PROJECT


@pytest.mark.parametrize(("method", "limit"), [("compute", BLOCKING), ("wait", REQUEST)])
def test_a_static_action_is_interrupted_before_murano_api_gives_up(
    api: services.MuranoApi, method: str, limit: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(Exception, match=re.escape(limit)) as failure:
        api.call_static_action(f"{NAME}.Static", "1", method)

    assert time.monotonic() - begun < 15
    assert _is_place(failure.value.value, "Static"), failure.value.value


def test_a_request_for_a_schema_is_interrupted_and_answered(api: services.MuranoApi) -> None:
    # murano-api answers 400.
    with pytest.raises(ValueError, match=re.escape(BLOCKING)) as failure:
        api.schema(f"{NAME}.Schema")

    assert _is_place(str(failure.value), "Schema"), failure.value


def test_nothing_of_interrupted_tasks_stays(
    engine: tuple[services.Engine, services.MuranoApi],
) -> None:
    found, api = engine
    for _ in range(3):
        _fails_beside_an_honest_one(api, _environment("Parallel"))

    assert "do not end" not in found.log
    assert found.terminate(_STOP_SECONDS) == 0
    assert not found.has_processes()


@contextlib.contextmanager
def _looping(
    glare_url: str, queue: str, folder: pathlib.Path, workers: int, blocking_seconds: int
) -> Iterator[tuple[services.Engine, services.MuranoApi, dict[str, Any]]]:
    """Run an engine whose package computes without an end; give the model, too."""
    options = {"graceful_stop_seconds": 0, "blocking_seconds": blocking_seconds}
    with (
        services.murano_engine(folder, queue, glare_url, workers=workers, **options) as engine,
        services.MuranoApi(queue, engine) as api,
    ):
        model = _environment("Marked")
        api.start(model, services.environment_id(model), "deploy")
        wait_until(lambda: "it begins" in engine.log, "the start of the task")
        yield engine, api, model


@pytest.mark.parametrize("workers", [1, 2])
def test_a_looping_package_is_reported_before_a_stop_ends(
    glare_url: str, queue: str, tmp_path: pathlib.Path, workers: int
) -> None:
    with _looping(glare_url, queue, tmp_path, workers, 2) as (engine, api, model):
        engine.send(signal.SIGTERM)

        assert api.result(model)["action"]["isException"]
        assert engine.wait(_STOP_SECONDS) == 0
        assert not engine.has_processes()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_ends_in_its_time_whatever_a_package_does(
    glare_url: str, queue: str, tmp_path: pathlib.Path, workers: int
) -> None:
    with _looping(glare_url, queue, tmp_path, workers, 600) as (engine, _, _):
        engine.send(signal.SIGTERM)
        time.sleep(1)
        # A second signal does not move the end.
        engine.send(signal.SIGTERM)

        engine.wait(_STOP_SECONDS)
        wait_until(lambda: not engine.has_processes(), "the end of the workers", 2)
