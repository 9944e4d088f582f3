# SPDX-License-Identifier: Apache-2.0

"""The check of forms agrees with Murano's dashboard."""

from collections.abc import Callable

import pytest

from glare_murano.package.ui_form import check_form
from loader.compatibility.expressions import is_form_expression
from tests.unit.package import dashboard_answers as answers

FILE = "UI/ui.yaml"


def _of_field(attributes: str) -> str:
    return f"@\nForms:\n- p:\n    fields:\n    - {{{attributes}}}\n"


def _problems(form: str, is_yaql: Callable[[str], bool] | None = None) -> list[str]:
    text = form.replace("@", answers.APPLICATION)
    return [str(problem) for problem in check_form(text.encode(), FILE, is_yaql)[0]]


SHOWN = (*map(_of_field, answers.FIELDS_SHOWN), *answers.FORMS_SHOWN)
FAILED = (*map(_of_field, answers.FIELDS_FAILED), *answers.FORMS_FAILED)


@pytest.mark.parametrize("form", SHOWN)
def test_a_form_that_the_dashboard_shows_is_accepted(form: str) -> None:
    assert _problems(form) == []


@pytest.mark.parametrize("form", FAILED)
def test_a_form_that_fails_in_the_dashboard_is_refused(form: str) -> None:
    assert all(problem.startswith(FILE) for problem in _problems(form))
    assert _problems(form)


@pytest.mark.parametrize("form", answers.FAILED_BY_SYNTAX)
def test_expressions_are_read_with_a_parser_only(form: str) -> None:
    assert _problems(form) == []
    assert _problems(form, is_form_expression)


@pytest.mark.parametrize("form", answers.FAILED_BY_VALUE)
def test_expressions_are_not_evaluated(form: str) -> None:
    assert _problems(form, is_form_expression) == []


@pytest.mark.parametrize("form", [*SHOWN, *FAILED])
def test_a_parser_changes_no_other_answer(form: str) -> None:
    assert bool(_problems(form, is_form_expression)) == (form in FAILED)
