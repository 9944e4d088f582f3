# SPDX-License-Identifier: Apache-2.0

"""Parse YAQL expressions in contracts and forms, and write them in a normal form.

In the normal form, class names are fully qualified, so equal strings mean equal expressions.
``contracts`` interprets the expressions of contracts. The library yaql is imported when the first
expression is parsed, since it takes 0.2 seconds to build its parser.
"""

import functools
import threading

# yaql 3.2.0 uses collections.abc, but does not import it.
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from glare_murano.package.classes import resolve
from glare_murano.package.errors import GlareMuranoError

# Longer expressions are not parsed. The longest contract in Murano's packages has 200 characters.
MAX_LENGTH = 4000

# The functions of MuranoPL whose first argument is a class.
_CLASS_FUNCTIONS = ("class", "new", "template")

# All threads share the parser and its state.
_LOCK = threading.Lock()


class YaqlMissing(GlareMuranoError, ImportError):
    """The library yaql is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "expressions cannot be read without the library yaql; install glare-murano[cli]"
        )


@functools.lru_cache(maxsize=1024)
def parse(text: str, of_form: bool = False) -> Any:
    """Parse an expression as the engine does.

    :param of_form: whether the expression is in a form. Murano's dashboard does not know MuranoPL's
        operators.
    :returns: an object of ``yaql.language.expressions``.
    :raises ValueError: if the expression is not valid YAQL, nested too deep or too long.
    :raises YaqlMissing: if yaql is not installed.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{len(text)} characters, at most {MAX_LENGTH} are compared")
    parser = _parser(of_form)
    from yaql.language import exceptions

    try:
        with _LOCK:
            return parser(text).expression
    except exceptions.YaqlParsingException as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("the expression is nested too deep") from error


def is_form_expression(text: str) -> bool:
    """Return whether Murano's dashboard reads a string in a form as an expression.

    A string that is too long to be parsed counts as an expression.

    :raises YaqlMissing: if yaql is not installed.
    """
    try:
        parse(text, of_form=True)
    except ValueError:
        return len(text) > MAX_LENGTH
    return True


@functools.cache
def _parser(of_form: bool) -> Callable[[str], Any]:
    """Build a YAQL parser for the expressions in classes, or in forms.

    A parser for classes has MuranoPL's operators ``is``, ``ns:Name`` and ``:Name``. A parser for
    forms lacks them.
    """
    try:
        from yaql.language.factory import OperatorType, YaqlFactory
    except ImportError as error:
        raise YaqlMissing from error
    factory = YaqlFactory()
    if not of_form:
        left = OperatorType.BINARY_LEFT_ASSOCIATIVE
        factory.insert_operator(">", True, "is", left, False)
        factory.insert_operator(None, True, ":", left, True)
        factory.insert_operator(":", True, ":", OperatorType.PREFIX_UNARY, False)
        # The two operators ":" are a group of their own, which binds more tightly than all other
        # operators. The empty entry keeps "=>" out of this group.
        factory.operators.insert(0, ())
    parser: Callable[[str], Any] = factory.create()
    return parser


def write(expression: Any, namespaces: Mapping[str, str]) -> str:
    """Write an expression in normal form: without grouping brackets, and with full class names."""
    from yaql.language import expressions

    expression = unwrapped(expression)
    match expression:
        case expressions.MappingRuleExpression():
            source, destination = expression.source, expression.destination
            return f"{write(source, namespaces)} => {write(destination, namespaces)}"
        case expressions.BinaryOperator(operator="is", args=(left, right)):
            return f"is({write(left, namespaces)}, {class_name(right, namespaces)})"
        case expressions.Function():
            name = class_name(expression, namespaces)
            if name is not None:
                return f"type {name}"
            arguments = ", ".join(write(each, namespaces) for each in expression.args)
            return f"{expression.name}({arguments})"
    # A constant; ``repr`` distinguishes the number 1 from the string '1'.
    return repr(expression.value)


def unwrapped(expression: Any) -> Any:
    """Remove the brackets around a whole expression, if there are any."""
    from yaql.language import expressions

    while isinstance(expression, expressions.Wrap):
        expression = expression.expr
    return expression


def class_name(expression: Any, namespaces: Mapping[str, str]) -> str | None:
    """Return the full name of the class that an expression names.

    The expression is ``Name``, ``ns:Name``, ``:Name`` or a string. The caller has to know that it
    names a class, since any other word or string looks the same.

    :returns: None if the expression is anything else, or the name is not valid.
    """
    from yaql.language import expressions

    match expression:
        case expressions.BinaryOperator(operator=":", args=(left, right)):
            prefix, name = _word(left), _word(right)
            text = None if prefix is None or name is None else f"{prefix}:{name}"
        case expressions.UnaryOperator(operator=":", args=(right,)):
            name = _word(right)
            text = None if name is None else f":{name}"
        case _:
            text = _dotted(expression)
    try:
        return None if text is None else resolve(text, namespaces)
    except ValueError:
        return None


def used_classes(expression: Any, namespaces: Mapping[str, str]) -> Iterator[str]:
    """Yield the full names of the classes that an expression uses.

    These are the names with a colon, and the first arguments of ``class``, ``template`` and
    ``new``.
    """
    from yaql.language import expressions

    expression = unwrapped(expression)
    match expression:
        case expressions.MappingRuleExpression():
            yield from used_classes(expression.source, namespaces)
            yield from used_classes(expression.destination, namespaces)
        case expressions.BinaryOperator(operator=":") | expressions.UnaryOperator(operator=":"):
            yield from filter(None, [class_name(expression, namespaces)])
        case expressions.Function(name=name, args=args):
            for number, argument in enumerate(args):
                is_class = number == 0 and name in _CLASS_FUNCTIONS
                fqn = class_name(argument, namespaces) if is_class else None
                yield from [fqn] if fqn else used_classes(argument, namespaces)


def _dotted(expression: Any) -> str | None:
    from yaql.language import expressions

    if isinstance(expression, expressions.BinaryOperator) and expression.operator == ".":
        parts = [_dotted(each) for each in expression.args]
        return None if None in parts else ".".join(map(str, parts))
    return _word(expression)


def _word(expression: Any) -> str | None:
    value = getattr(expression, "value", None)
    return value if isinstance(value, str) else None
