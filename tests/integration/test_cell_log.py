# SPDX-License-Identifier: Apache-2.0

"""What cells log in the engine's log."""

import logging

import pytest

from loader.engine.cells import cell_log


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> cell_log.CellLog:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(cell_log, "_MAX_LINES", 3)
    return cell_log.CellLog("static action", 2)


def test_a_line_is_logged_in_the_name_of_the_cell(
    log: cell_log.CellLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.write("murano.dsl", logging.INFO, "one\n2026-01-01 ERROR forged\x1b[1m")
    log.write("applications.wiki", 99, "two")
    log.write("a\nb", -5, "x" * 6000)

    first, second, third = caplog.records
    name = "loader.engine.cells.cell_log"
    assert (first.name, first.levelno) == (name, logging.INFO)
    forged = "one\n| 2026-01-01 ERROR forged\\x1b[1m"
    assert first.getMessage() == f"A static action, murano.dsl: {forged}"
    assert (second.name, second.levelno) == ("applications", logging.ERROR)
    assert second.getMessage() == "A static action, wiki: two"
    assert third.levelno == logging.DEBUG
    assert third.getMessage() == "A static action, 'a\\nb': " + "x" * 5000


def test_further_lines_are_dropped(log: cell_log.CellLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(10):
        log.write("applications.wiki", logging.INFO, str(number))
    assert [record.getMessage()[-1] for record in caplog.records] == ["0", "1", "2", "3", "4"]


def test_a_line_fits_into_a_query() -> None:
    sent = []
    handler = cell_log.QueryHandler(sent.append)
    record = logging.LogRecord("a", logging.INFO, "", 1, "\N{GRINNING FACE}" * 9000, None, None)
    handler.emit(record)
    (line,) = sent
    assert (line["query"], line["logger"], len(line["text"])) == ("log", "a", 5000)


def test_a_line_that_cannot_be_sent_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError

    handler = cell_log.QueryHandler(fail)
    handled: list[logging.LogRecord] = []
    monkeypatch.setattr(handler, "handleError", handled.append)
    record = logging.LogRecord("a", logging.INFO, "", 1, "text", None, None)
    handler.emit(record)
    assert handled == [record]
