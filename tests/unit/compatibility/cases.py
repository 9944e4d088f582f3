# SPDX-License-Identifier: Apache-2.0

"""Pairs of class files for each rule: a change that it finds, and the nearest that it does not."""

from typing import NamedTuple

from loader.compatibility import Rule


class Case(NamedTuple):
    """A class file, a version with the change, and one without it.

    :param near_rules: the rules for the change from ``old`` to ``near``.
    """

    rule: Rule
    old: str
    new: str
    near: str
    near_rules: tuple[Rule, ...] = ()


def _property(contract: str, *lines: str) -> str:
    return "\n    ".join(["Properties:\n  p:", f"Contract: {contract}", *lines])


def _method(*lines: str) -> str:
    return "\n    ".join(["Methods:\n  m:", *lines])


def _argument(contract: str, *lines: str) -> str:
    return "\n          ".join([_method("Arguments:", "  - a:"), f"Contract: {contract}", *lines])


def _arguments(*names: str) -> str:
    return _method(f"Arguments: [{', '.join(f'{name}: {{Contract: $}}' for name in names)}]")


CASES = [
    Case(Rule.CLASS_REMOVED, "---\nName: Other", "", "---\nName: Other"),
    Case(Rule.CLASS_ADDED, "", "---\nName: Other", ""),
    Case(
        Rule.CLASS_USAGE,
        "Usage: Meta",
        "Usage: Class",
        "Usage: Meta\nApplies: All",
    ),
    Case(
        Rule.BASE_REMOVED,
        "Extends: Base\n---\nName: Base",
        "---\nName: Base",
        "Extends: Between\n---\nName: Base\n---\nName: Between\nExtends: Base",
        (Rule.CLASS_ADDED, Rule.EXTENDS_CHANGED),
    ),
    Case(
        Rule.EXTENDS_CHANGED,
        "---\nName: Base",
        "Extends: Base\n---\nName: Base",
        "Extends: io.murano.Object\n---\nName: Base",
    ),
    Case(
        Rule.METACLASS_NARROWED,
        "Usage: Meta\nApplies: [Type, Method]",
        "Usage: Meta\nApplies: Type",
        "Usage: Meta\nApplies: [Method, Type]",
    ),
    Case(
        Rule.METACLASS_NARROWED,
        "Usage: Meta\nCardinality: Many",
        "Usage: Meta\nCardinality: One",
        "Usage: Meta\nCardinality: Many\nApplies: All",
    ),
    Case(
        Rule.METACLASS_NARROWED,
        "Usage: Meta\nInherited: true",
        "Usage: Meta",
        "Usage: Meta\nInherited: yes",
    ),
    Case(
        Rule.METACLASS_WIDENED,
        "Usage: Meta\nApplies: Type",
        "Usage: Meta\nApplies: [Type, Method]",
        "Usage: Meta\nApplies: [Type]",
    ),
    Case(
        Rule.METADATA_CHANGED,
        "Meta: {Label: {text: a, size: 1}}\n---\nName: Label\nUsage: Meta",
        "Meta: {Label: {text: b, size: 1}}\n---\nName: Label\nUsage: Meta",
        "Meta: [':Label': {size: 1, text: 'a'}]\n---\nName: Label\nUsage: Meta",
    ),
    Case(
        Rule.METADATA_CHANGED,
        _property("$", "Meta: [A, B]"),
        _property("$", "Meta: A"),
        _property("$", "Meta: [B, {A: }]"),
    ),
    Case(
        Rule.METADATA_CHANGED,
        _method("Meta: A"),
        _method("Meta: B"),
        _method("Meta: [A]", "Body: []"),
    ),
    Case(
        Rule.METADATA_CHANGED,
        _argument("$", "Meta: A"),
        _argument("$"),
        _argument("$", "Meta: org.a.A"),
    ),
    Case(
        Rule.INTERNAL_CHANGED,
        "Methods: {_m: {}, m: {}}",
        "Methods: {m: {}}",
        "Methods: {_m: {Scope: Public}, m: {}}",
    ),
    Case(
        Rule.INTERNAL_CHANGED,
        "Properties: {_p: {Contract: $.string()}}",
        "Properties: {_p: {Contract: $.int()}}",
        "Properties: {_p: {Contract: $}}",
    ),
    Case(
        Rule.METHOD_REMOVED,
        "Extends: Base\nMethods: {m: {}}\n---\nName: Base",
        "Extends: Base\n---\nName: Base",
        "Extends: Base\n---\nName: Base\nMethods: {m: {}}",
        (Rule.METHOD_ADDED,),
    ),
    Case(Rule.METHOD_USAGE, _method("Usage: Static"), _method(), _method("Usage: Static", "Body:")),
    Case(
        Rule.METHOD_USAGE,
        _method("Scope: Public"),
        _method("Scope: Public", "Usage: Static"),
        _method("Usage: Action"),
    ),
    Case(
        Rule.METHOD_USAGE,
        _method("Usage: Static", "Arguments: [a: {Contract: $}]"),
        _method("Usage: Extension", "Arguments: [a: {Contract: $}]"),
        _method("Usage: Static", "Arguments: {a: {Contract: $}}"),
    ),
    Case(Rule.METHOD_STATIC, _method(), _method("Usage: Static"), _method("Usage: Runtime")),
    Case(
        Rule.METHOD_NOT_PUBLIC,
        _method("Usage: Action"),
        _method("Scope: Session"),
        _method("Scope: Public"),
    ),
    Case(Rule.METHOD_PUBLIC, _method(), _method("Scope: Public"), _method("Scope: Session")),
    Case(Rule.METHOD_ADDED, "", _method(), "Methods: {destroy: {}}"),
    Case(
        Rule.ARGUMENT_REMOVED,
        _arguments("a", "b"),
        _arguments("a"),
        _arguments("a", "b").replace("Methods", "Workflow"),
    ),
    Case(
        Rule.ARGUMENT_REMOVED,
        "Methods: {initialize: {Arguments: [a: {Contract: $}]}}",
        "Methods: {initialize: {Body: []}}",
        "Properties: {a: {Contract: $}}",
        (Rule.PROPERTY_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_RENAMED,
        _arguments("a", "b"),
        _arguments("a", "c"),
        _method("Arguments: [a: {Contract: $}, b: {Contract: $, Default: null}]"),
    ),
    Case(
        Rule.ARGUMENT_REQUIRED,
        _method(),
        _argument("$.int().notNull()"),
        _argument("$.int().notNull()", "Default: 1"),
        (Rule.ARGUMENT_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_REQUIRED,
        _argument("$.int().notNull()", "Default: 1"),
        _argument("$.int().notNull()"),
        _argument("$.int().notNull()", "Default: 2"),
        (Rule.DEFAULT_CHANGED,),
    ),
    Case(
        Rule.ARGUMENT_REQUIRED,
        "Methods: {initialize: {}}",
        "Methods: {initialize: {Arguments: [a: {Contract: $.notNull()}]}}",
        "Methods: {initialize: {Arguments: [a: {Contract: $}]}}",
        (Rule.ARGUMENT_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_REQUIRED,
        "",
        "Methods: {.init: {Arguments: [a: {Contract: $.notNull()}]}}",
        "Methods: {.init: {Arguments: [a: {Contract: $}]}, .destroy: {}}",
        (Rule.ARGUMENT_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_REMOVED,
        "Methods: {initialize: {Arguments: [a: {Contract: $}]}, destroy: {}}",
        "Methods: {.init: {}, .destroy: {}}",
        "Methods: {.init: {Arguments: [a: {Contract: $}]}}",
    ),
    Case(
        Rule.ARGUMENT_MOVED,
        _arguments("a", "b"),
        _arguments("b", "a"),
        _method("Arguments: {a: {Contract: $}, b: {Contract: $}}"),
    ),
    Case(
        Rule.ARGUMENT_MOVED,
        _arguments("a"),
        _arguments("b", "a"),
        _arguments("a", "b"),
        (Rule.ARGUMENT_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_MOVED,
        _method("Arguments: [rest: {Contract: $, Usage: VarArgs}]"),
        _method("Arguments: [a: {Contract: $}, rest: {Contract: $, Usage: VarArgs}]"),
        _method("Arguments: [others: {Contract: $, Usage: VarArgs}]"),
    ),
    Case(
        Rule.ARGUMENT_MOVED,
        _arguments("a"),
        _arguments("b", "a"),
        _arguments("a") + "\n  initialize: {Arguments: [b: {Contract: $}]}",
        (Rule.ARGUMENT_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_MOVED,
        _arguments("a", "b", "c"),
        _arguments("c", "a", "b"),
        _arguments("a", "b", "c", "d"),
        (Rule.ARGUMENT_ADDED,),
    ),
    Case(
        Rule.ARGUMENT_USAGE,
        _argument("$", "Usage: Standard"),
        _argument("$", "Usage: VarArgs"),
        _argument("$"),
    ),
    Case(
        Rule.ARGUMENT_NARROWED,
        _argument("$.int()"),
        _argument("$.int().notNull()"),
        _argument("($).int()"),
    ),
    Case(
        Rule.ARGUMENT_NARROWED,
        _argument("$.string().check($ in list(a, b))"),
        _argument("$.string().check($ in list(a))"),
        _argument("$.string().check($ in [b, a])"),
    ),
    Case(Rule.ARGUMENT_ADDED, _method(), _argument("$.int()"), _method("Arguments: []")),
    Case(
        Rule.ARGUMENT_ADDED,
        _arguments("a"),
        _method(
            "Arguments: [a: {Contract: $}, rest: {Contract: $.int().notNull(), Usage: KwArgs}]"
        ),
        _arguments("a"),
    ),
    Case(
        Rule.ARGUMENT_ADDED,
        _method("Arguments: [rest: {Contract: $, Usage: KwArgs}]"),
        _method("Arguments: [a: {Contract: $}, rest: {Contract: $, Usage: KwArgs}]"),
        _method("Arguments: [others: {Contract: $, Usage: KwArgs}]"),
    ),
    Case(
        Rule.ARGUMENT_WIDENED,
        _argument("$.string()"),
        _argument("$"),
        _argument("$.string()", "Usage: Standard"),
    ),
    Case(
        Rule.PROPERTY_REMOVED,
        "Extends: Base\nProperties: {p: {Contract: $}}\n---\nName: Base",
        "Extends: Base\n---\nName: Base",
        "Extends: Base\n---\nName: Base\nProperties: {p: {Contract: $}}",
        (Rule.PROPERTY_ADDED,),
    ),
    Case(
        Rule.PROPERTY_REMOVED,
        _property("{a: $.int(), b: $}", "Usage: Out"),
        _property("{a: $.int()}", "Usage: Out"),
        _property("{b: $, a: $.int()}", "Usage: Out"),
    ),
    Case(
        Rule.PROPERTY_REQUIRED,
        "",
        _property("$.int().notNull()"),
        _property("$.int().notNull()", "Usage: Runtime"),
        (Rule.PROPERTY_ADDED,),
    ),
    Case(
        Rule.PROPERTY_REQUIRED,
        "",
        _property("$.int().check($ > 0)"),
        _property("$.int().check($ < 0)"),
        (Rule.PROPERTY_ADDED,),
    ),
    Case(
        Rule.PROPERTY_REQUIRED,
        "",
        _property("['$', 1]").replace("'", ""),
        _property("['$', 0]").replace("'", ""),
        (Rule.PROPERTY_ADDED,),
    ),
    Case(
        Rule.PROPERTY_USAGE,
        _property("$.int()"),
        _property("$.int()", "Usage: Out"),
        _property("$.int()", "Usage: In"),
    ),
    Case(
        Rule.PROPERTY_USAGE,
        _property("$.int()", "Usage: In"),
        _property("$.int()", "Usage: Const"),
        _property("$.int()", "Usage: InOut"),
        (Rule.PROPERTY_USAGE_EXTENDED,),
    ),
    Case(
        Rule.PROPERTY_USAGE,
        _property("$.int()", "Usage: Static"),
        _property("$.int()", "Usage: Runtime"),
        _property("$.int( )", "Usage: Static", "Meta: []"),
    ),
    Case(
        Rule.PROPERTY_USAGE_EXTENDED,
        _property("$.int()", "Usage: Runtime"),
        _property("$.int()", "Usage: Static"),
        _property("$.int()", "Usage: Runtime", "Default: null"),
    ),
    Case(
        Rule.PROPERTY_NARROWED,
        _property("$.class(Base)") + "\n---\nName: Base\n---\nName: Sub\nExtends: Base",
        _property("$.class(Sub)") + "\n---\nName: Base\n---\nName: Sub\nExtends: Base",
        _property("$.class(org.a.Base)") + "\n---\nName: Base\n---\nName: Sub\nExtends: Base",
    ),
    Case(
        Rule.PROPERTY_NARROWED,
        _property("{a: $.int(), b: $}"),
        _property("{a: $.int()}"),
        _property("{b: $, a: $.int()}"),
    ),
    Case(
        Rule.PROPERTY_NARROWED,
        _property("$.int()", "Usage: InOut"),
        _property("$.int().check($ > 0)", "Usage: InOut"),
        _property("$.int()", "Usage: InOut", "Default: null"),
    ),
    Case(
        Rule.PROPERTY_WIDENED,
        _property("$.class(Sub)") + "\n---\nName: Base\n---\nName: Sub\nExtends: Base",
        _property("$.class(Base)") + "\n---\nName: Base\n---\nName: Sub\nExtends: Base",
        _property("$.class(:Sub)") + "\n---\nName: Base\n---\nName: Sub\nExtends: Base",
    ),
    Case(
        Rule.PROPERTY_WIDENED,
        _property("[$.int()]"),
        _property("$"),
        _property("[$.int( )]"),
    ),
    Case(
        Rule.PROPERTY_WIDENED,
        _property("$.int().notNull()"),
        _property("$.int()"),
        _property("$.int().notNull()", "Default: 1"),
        (Rule.DEFAULT_CHANGED,),
    ),
    Case(
        Rule.OUTPUT_WIDENED,
        _property("$.string()", "Usage: Out"),
        _property("$", "Usage: Out"),
        _property("$.string()", "Usage: Out", "Default: null"),
    ),
    Case(
        Rule.OUTPUT_WIDENED,
        _property("$.string()", "Usage: InOut"),
        _property("$", "Usage: InOut"),
        _property("$.string()", "Usage: InOut", "Meta:"),
    ),
    Case(
        Rule.OUTPUT_CHANGED,
        _property("$.int()", "Usage: Runtime"),
        _property("$.int().check($ > 0)", "Usage: Runtime"),
        _property("$.int()", "Usage: Runtime", "Default:"),
    ),
    Case(
        Rule.OUTPUT_CHANGED,
        _property("{a: $.int()}", "Usage: Out"),
        _property("{a: $.int(), b: $}", "Usage: Out"),
        _property("{a: $.int( )}", "Usage: Out"),
    ),
    Case(
        Rule.PROPERTY_ADDED,
        "",
        _property("$.int()"),
        "Properties: {}",
    ),
    Case(
        Rule.DEFAULT_REMOVED,
        _property("$.int()", "Default: 1"),
        _property("$.int()"),
        _property("$.int()", "Default: 01"),
    ),
    Case(
        Rule.DEFAULT_REMOVED,
        _argument("$.int()", "Default: 1"),
        _argument("$.int()", "Default: null"),
        _argument("$.int()", "Default: 1", "Usage: Standard"),
    ),
    Case(
        Rule.DEFAULT_CHANGED,
        _property("[$.int()]", "Default: []"),
        _property("[$.int()]", "Default: [1]"),
        _property("[$.int()]"),
    ),
    Case(
        Rule.DEFAULT_CHANGED,
        _property("{}", "Default: {a: 1, b: 2}"),
        _property("{}", "Default: {a: 1, b: 3}"),
        _property("{}", "Default: {b: 2, a: 1}"),
    ),
    Case(
        Rule.CONTRACT_INVALID,
        _property("$.int()"),
        _property("$.int("),
        _property("$.int( )"),
    ),
    Case(
        Rule.CONTRACT_UNKNOWN,
        _property("$.string().check($this.isName($))"),
        _property("$.string().check($this.isTitle($))"),
        _property("$.string()"),
        (Rule.PROPERTY_WIDENED,),
    ),
    Case(
        Rule.CONTRACT_UNKNOWN,
        _property("$.upper()"),
        _property("$.upper().notNull()"),
        _property("$.upper( )"),
    ),
    Case(
        Rule.CONTRACT_UNKNOWN,
        _property("$.class(other:Sub)"),
        _property("$.class(other:Base)"),
        _property("$.class(io.murano.Object)"),
        (Rule.PROPERTY_WIDENED,),
    ),
]
