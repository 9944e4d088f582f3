# SPDX-License-Identifier: Apache-2.0

"""Explain errors in the classes of packages: name their places and their reasons."""

import types
from typing import Any

from murano.common import engine
from murano.dsl import expressions, meta, murano_method, murano_property, murano_type, typespec
from murano.dsl.contracts import contracts
from murano.dsl.principal_objects import stack_trace

from loader.engine import adapter, class_faults, error_places


def explain_class_errors() -> None:
    """Record which part of a class is wrong, and refuse contracts that cannot be parsed.

    Murano 16 reports an error in a class without the file and the line, and some errors without a
    reason. So an author cannot find the mistake. Here, Murano's functions that make the parts of a
    class add a trace to the error, see ``class_faults``. The adapter then raises ``InvalidClass``
    with the file, the line and the reason.
    """
    traced = class_faults.traced
    init = typespec.Spec.__init__

    def checked(spec: Any, declaration: Any, container_type: Any) -> None:
        init(spec, declaration, container_type)
        if isinstance(container_type.package, adapter.EnginePackage):
            class_faults.check_contract(spec.contract.spec)

    typespec.Spec.__init__ = checked
    murano_type.create = traced(
        murano_type.create, lambda trace, data, _, __, names: trace.enter_class(data, names)
    )
    murano_type.MuranoClass.add_method = traced(
        murano_type.MuranoClass.add_method,
        lambda trace, _, name, *rest: trace.enter("Methods", name),
    )
    for kind, position, key in (
        (murano_property.MuranoProperty, 2, "Properties"),
        (murano_method.MuranoMethodArgument, 3, "Arguments"),
    ):
        kind.__init__ = traced(
            kind.__init__,
            lambda trace, *args, position=position, key=key: trace.enter(key, args[position]),
        )
    meta.MetaData.__init__ = traced(meta.MetaData.__init__, lambda trace, *_: trace.enter("Meta"))
    expressions.parse_expression = traced(
        expressions.parse_expression, lambda trace, statement: trace.statements.append(statement)
    )


def name_places_of_errors() -> None:
    """Name the package, its version, the file and the line in errors at run time.

    Murano 16 shows a path in the package cache, and only in the details of the error, which its API
    does not report. For frames without source code, it fails. Here, a place is put in front of the
    messages of errors in actions, contracts and defaults. In stack traces, the names of class files
    are shown as they are, and frames without source code are included. For this, small objects
    replace the modules ``os`` and ``inspect`` that Murano's ``stack_trace`` uses.
    """
    stack_trace.inspect = types.SimpleNamespace(trace=error_places.native_frames)
    stack_trace.os = types.SimpleNamespace(
        path=types.SimpleNamespace(abspath=error_places.path_in_trace)
    )
    contract = contracts.Contract
    contract._map = error_places.place_in_contract(contract._map, 2)
    # Murano evaluates defaults with this function.
    contract.transform = error_places.place_in_contract(contract.transform, 0)
    contract.generate_expression_schema = staticmethod(
        error_places.place_in_contract(contract.generate_expression_schema, 0)
    )
    exception_result = engine.TaskExecutor.exception_result
    invoke = engine.StaticActionExecutor._invoke

    def report(executor: Any, error: Exception, root: Any, method: str) -> Any:
        error_places.name_place(error)
        return exception_result(executor, error, root, method)

    def invoke_static(executor: Any, mpl_executor: Any) -> Any:
        try:
            return invoke(executor, mpl_executor)
        except Exception as error:
            error_places.name_place(error)
            raise

    engine.TaskExecutor.exception_result = report
    engine.StaticActionExecutor._invoke = invoke_static
