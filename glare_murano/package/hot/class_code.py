# SPDX-License-Identifier: Apache-2.0

"""Generate the MuranoPL class that deploys a HOT template.

Murano itself also generates a class from a template. The class of Murano and the class of this
module use the same names for properties, and for the attribute that stores the name of the Heat
stack. So an environment that was deployed with one class can be deployed with the other class.
"""

from collections.abc import Iterable
from typing import Any

from glare_murano.package.hot.parameter import Parameter, ParameterType
from glare_murano.package.hot.template import Template
from glare_murano.package.hot.yaql_dumper import Yaql, literal

BASE = "io.murano.Application"
FILES = "HotFiles"
ENVIRONMENTS = "HotEnvironments"

_CONVERSIONS = {ParameterType.NUMBER: "$.int()", ParameterType.BOOLEAN: "$.bool()"}

# The value of an output can be a list or a mapping, which string() would refuse.
_OUTPUT = "(isString($) or isInteger($) or isBoolean($)) and $.string() or $"

_STACK_NAME = "$.getAttr(generatedHeatStackName)"
_ENVIRONMENT = {Yaql("$environment"): Yaql("$.find('io.murano.Environment').require()")}
_STACK = {
    Yaql("$stack"): Yaql(f"new('io.murano.system.HeatStack', $environment, name => {_STACK_NAME})")
}
_SET_STACK_NAME = Yaql("$.setAttr(generatedHeatStackName, randomName() + '_' + id($environment))")
_DESTROY = {
    "If": Yaql(f"{_STACK_NAME} != null"),
    "Then": [_ENVIRONMENT, _STACK, Yaql("$stack.delete()")],
}


def make_class(
    name: str, template: Template, files: Iterable[str], has_environments: bool
) -> dict[str, Any]:
    """Make the class that deploys a template.

    :param name: the FQN of the package. The class, and the resource that contains the template,
        have the same name.
    :param files: the paths of the package's files, relative to ``Resources/HotFiles``.
    :param has_environments: whether the package has Heat environments, which may set parameters.
        If it has, the class has no contracts for parameters. Contracts would convert the values of
        parameters, and Heat would use the converted values instead of the values in the
        environment.
    :returns: the class as a mapping, for ``yaql_dumper.dump``.
    """
    parameters = {} if has_environments else template.parameters
    contracts = {key: Yaql(_contract(parameter)) for key, parameter in parameters.items()}
    outputs = {output: Yaql(_OUTPUT) for output in template.outputs}
    return {
        "Name": name,
        "Extends": BASE,
        "Properties": {
            "name": _property("In", Yaql("$.string().notNull()")),
            "hotEnvironment": _property("In", Yaql("$.string()")),
            "templateParameters": {**_property("In", contracts), "Default": {}},
            "templateOutputs": {**_property("Out", outputs), "Default": {}},
            "generatedHeatStackName": _property("Out", Yaql("$.string()")),
        },
        "Methods": {"deploy": {"Body": _deploy(name, files)}, "destroy": {"Body": [_DESTROY]}},
    }


def _property(usage: str, contract: Any) -> dict[str, Any]:
    return {"Usage": usage, "Contract": contract}


def _contract(parameter: Parameter) -> str:
    # An omitted parameter is null. If it has a default in Heat, "?." skips the checks.
    step = "?." if parameter.has_default else "."
    checks = [f"check({c.predicate})" for c in parameter.constraints if c.predicate]
    return step.join([_CONVERSIONS.get(parameter.kind, "$.string()"), *checks])


def _deploy(name: str, files: Iterable[str]) -> list[Any]:
    contents = {file: Yaql(_resource(literal(f"{FILES}/{file}"))) for file in files}
    environment = _resource(f"'{ENVIRONMENTS}/' + $.hotEnvironment")
    report = Yaql("$reporter.report_error($this, $error.message)")
    reporter = "new('io.murano.system.StatusReporter', environment => $environment)"
    return [
        _ENVIRONMENT,
        {"If": Yaql(f"{_STACK_NAME} = null"), "Then": _SET_STACK_NAME},
        _STACK,
        {Yaql("$reporter"): Yaql(reporter)},
        {Yaql("$resources"): Yaql("new('io.murano.system.Resources')")},
        {Yaql("$files"): contents},
        Yaql(f"$stack.setTemplate($resources.yaml({literal(name)}))"),
        Yaql("$stack.setParameters($.templateParameters)"),
        Yaql("$stack.setFiles($files)"),
        {"If": Yaql("$.hotEnvironment"), "Then": Yaql(f"$stack.setHotEnvironment({environment})")},
        Yaql("$reporter.report($this, 'Heat is working on the stack')"),
        {"Try": Yaql("$stack.push()"), "Catch": {"As": "error", "Do": [report, {"Rethrow": None}]}},
        {Yaql("$.templateOutputs"): Yaql("$stack.output()")},
        Yaql("$reporter.report($this, 'The stack is complete')"),
    ]


def _resource(path: str) -> str:
    return f"$resources.string({path})"
