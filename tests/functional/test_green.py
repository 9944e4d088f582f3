# SPDX-License-Identifier: Apache-2.0

"""The loader in a program of green threads, as an engine is, without an engine."""

import json
import pathlib
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from tests import packages, processes
from tests.functional import proxy as proxies
from tests.functional.client import Client
from tests.functional.conftest import CORE, CORE_VERSION

pytestmark = pytest.mark.programs

THREADS = 12

# Half of the deployments want the one application, half the other; each green thread
# has what one deployment of an engine has.
_PROGRAM = """
    import eventlet
    eventlet.monkey_patch()
    import json, sys, time
    from keystoneauth1 import session, token_endpoint
    import loader
    from loader.catalogs.glare import GlareCatalog

    url, token, project, folder, threads, *roots = sys.argv[1:]
    ticks = 0

    def tick():
        global ticks
        while True:
            eventlet.sleep(0.005)
            ticks += 1

    def deploy(root):
        auth = session.Session(token_endpoint.Token(url, token))
        catalog = GlareCatalog(auth, project_id=project, endpoint=url)
        start = time.monotonic()
        with loader.PackageLoader([catalog], loader.Cache(folder)) as package_loader:
            found = package_loader.load_all(root, "1")
            counters = package_loader.counters
            return {
                "packages": [
                    [f"{p.full_name} {p.version}", p.get_class(f"{p.full_name}.Thing")[0].decode()]
                    for p in found
                ],
                "downloads": counters.downloads,
                "bytes": counters.bytes,
                "seconds": counters.seconds,
                "lasted": time.monotonic() - start,
            }

    began, used = time.monotonic(), time.process_time()
    eventlet.spawn(tick)
    pool = eventlet.GreenPool(int(threads))
    wanted = [roots[number % len(roots)] for number in range(int(threads))]
    deployments = list(pool.imap(deploy, wanted))
    print(json.dumps([deployments, time.monotonic() - began, ticks / (time.process_time() - used)]))
"""


def _closures(glare: Client, name: str) -> tuple[dict[str, list[str]], list[bytes]]:
    """Publish two applications; return the closure of each, and all archives."""
    some = {
        f"{name}.base": ("1.4.0", {}),
        f"{name}.db": ("1.0.0", {f"{name}.base": "1"}),
        f"{name}.web": ("1.1.0", {f"{name}.base": ">=1.2"}),
        f"{name}.wiki": ("1.0.0", {f"{name}.db": "1", f"{name}.web": "1"}),
        f"{name}.shop": ("1.3.0", {f"{name}.db": "1"}),
    }
    archives = []
    for fqn, (version, required) in some.items():
        archives.append(packages.package(fqn, version, Require=required))
        glare.publish(fqn, version, archives[-1])
    loaded = {"wiki": ["wiki", "db", "web", "base"], "shop": ["shop", "db", "base"]}
    closures = {
        f"{name}.{root}": [f"{name}.{part} {some[f'{name}.{part}'][0]}" for part in parts]
        for root, parts in loaded.items()
    }
    for closure in closures.values():
        closure.insert(1, f"{CORE} {CORE_VERSION}")
    return closures, archives


def _run(program: str, *arguments: object) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=processes.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_green_threads_load_closures_at_once_and_fetch_each_archive_once(
    glare: Client, project: str, name: str, tmp_path: pathlib.Path
) -> None:
    closures, archives = _closures(glare, name)

    deployments, lasted, frequency = _run(
        _PROGRAM, glare.url, glare.token, project, tmp_path / "cache", THREADS, *closures
    )

    for number, deployment in enumerate(deployments):
        expected = closures[list(closures)[number % 2]]
        assert [title for title, _ in deployment["packages"]] == expected
        for title, text in deployment["packages"]:
            fqn, version = title.split()
            assert text == packages.CLASS.format(name=f"{fqn}.Thing", version=version)
    # With the core library, which every package requires.
    archives.append(packages.package(CORE, CORE_VERSION))
    assert sum(deployment["downloads"] for deployment in deployments) == len(archives)
    assert sum(deployment["bytes"] for deployment in deployments) == sum(map(len, archives))
    # It ticks every 5 ms, and may be kept waiting for a package, not for a closure. What
    # counts is the processor's time, since other processes keep it waiting as well.
    assert frequency > 10
    # Each counts what it took itself, waits included, so that all together take longer.
    assert all(0 < each["seconds"] <= each["lasted"] <= lasted for each in deployments)
    assert sum(deployment["seconds"] for deployment in deployments) > 2 * lasted


_TRICKLE = """
    import sys
    if sys.argv[1] == "green":
        import eventlet
        eventlet.monkey_patch()
    import json, time
    from keystoneauth1 import session, token_endpoint
    import loader
    from loader.catalogs.glare import GlareCatalog

    url, token, certificate = sys.argv[2:]
    auth = token_endpoint.Token(url, token)
    session = session.Session(auth, verify=certificate, timeout=20)
    catalog = GlareCatalog(session, project_id="p", endpoint=url, request_timeout=0.5)
    start = time.monotonic()
    try:
        list(catalog.releases_of(["io.murano"]))
    except loader.CatalogUnavailable as error:
        print(json.dumps([str(error), time.monotonic() - start]))
"""


@pytest.mark.parametrize("threads", ["green", "native"])
# The handshake takes about 1,500 bytes.
@pytest.mark.parametrize("beginning", [0, 1600], ids=["handshake", "answer"])
def test_a_connection_that_trickles_within_tls_ends_at_the_deadline(
    glare: Client, threads: str, beginning: int, tmp_path: pathlib.Path
) -> None:
    certificate, key = proxies.certificate(tmp_path)
    glare_port = int(glare.url.rpartition(":")[2])
    with (
        proxies.secured(glare_port, certificate, key) as port,
        proxies.trickling(port, beginning) as slow,
    ):
        message, seconds = _run(
            _TRICKLE, threads, f"https://127.0.0.1:{slow}", glare.token, certificate
        )

    assert message.endswith("not complete within 0.5 seconds")
    # Without the deadline, it would end after the 20 seconds of the session.
    assert seconds < 10


_READ = """
    import eventlet
    eventlet.monkey_patch()
    import json, sys
    from glare_murano import archive_reading, archive_settings

    options = {option.name: option.default for option in archive_settings.OPTIONS}
    ticks = 0

    def tick():
        global ticks
        while True:
            eventlet.sleep(0.01)
            ticks += 1

    def read(number):
        with open(sys.argv[1], "rb") as archive:
            return archive_reading.read(options, archive, str(number % 3), "label").class_names

    eventlet.spawn(tick)
    # More than run at once.
    found = list(eventlet.GreenPool(12).imap(read, range(12)))
    print(json.dumps([found, ticks]))
"""


def test_green_threads_run_while_archives_are_read(tmp_path: pathlib.Path) -> None:
    content = packages.manifest("org.hot", Format="Heat.HOT/1", Type="Application", Classes=None)
    files = {**packages.files(content), "template.yaml": b"resources: {}\n"}
    (tmp_path / "hot.zip").write_bytes(packages.zipped(files))

    found, ticks = _run(_READ, tmp_path / "hot.zip")

    assert found == [["org.hot"]] * 12
    assert ticks > 10


_WAIT = """
    import eventlet
    eventlet.monkey_patch()
    import json, os
    from glare_murano.package import sandbox
    from tests import processes

    function = sandbox.Function("tests.unit.package.sandboxed:act")
    sandbox.start(function)

    def children():
        return sorted(processes.descendants(os.getpid()))

    # The warm process, a supervisor and a child.
    processes.wait_until(lambda: len(children()) == 3, "the first child")
    found = [children()]
    for _ in range(20):
        eventlet.sleep(0.05)
        found.append(children())
    print(json.dumps(found))
"""


def test_a_child_waits_for_its_request_without_being_forked_again() -> None:
    found = _run(_WAIT)

    assert found == found[:1] * 21
