# SPDX-License-Identifier: Apache-2.0

"""Class files: names and base classes as tables, and agreement with the engine."""

import json
import subprocess
import sys

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from murano.dsl import namespace_resolver

from glare_murano.package import Archive, InvalidPackage, read_contents
from glare_murano.package.classes import read_classes
from glare_murano.package.safe_yaml import compose_all
from tests import effort, prerequisites

ROOT_CLASS = "io.murano.Object"
FILE = "Classes/a.yaml"

# The engine loads classes as Murano's own loader has it do, but for classes
# that no package defines: those it gets made up. It needs its options, which
# cannot be in one process with Glare's.
ENGINE = """
import json
import sys

from murano.common import config
from murano.dsl import exceptions, murano_package, murano_type, namespace_resolver
from murano.engine import yaql_yaml_loader
from yaql.language import utils

load = yaql_yaml_loader.get_loader("1.4")


class Loader:
    def __init__(self, packages):
        self.packages = {"io.murano": Package(self, "io.murano", {})}
        for name, classes in packages.items():
            self.packages[name] = Package(self, name, classes)

    def load_package(self, name, version_spec):
        return self.packages[name]


class Package(murano_package.MuranoPackage):
    def __init__(self, loader, name, classes):
        super().__init__(loader, name, runtime_version="1.4")
        self.defined = set(classes)
        for name, text in classes.items():
            self.register_class(lambda text=text: load(text, "file"), name)

    def find_class(self, name, search_requirements=True):
        try:
            return super().find_class(name, search_requirements)
        except exceptions.NoClassFound:
            if name in self.defined or not search_requirements:
                raise
            resolver = namespace_resolver.NamespaceResolver(None)
            return murano_type.MuranoClass(resolver, name, self, utils.NO_VALUE)


def bases(package, name):
    try:
        return [parent.name for parent in package.find_class(name).parents]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


for line in sys.stdin:
    loader = Loader(json.loads(line))
    found = {
        name: bases(package, name)
        for package in loader.packages.values()
        for name in package.defined
    }
    print(json.dumps(found), flush=True)
"""


class Engine:
    """The real engine, in a process of its own."""

    def __init__(self, process):
        self._process = process

    def bases(self, packages):
        """Load all classes.

        :param packages: name of a package -> name of a class -> the text of
            its file.
        :returns: name of a class -> its base classes, or the error as text.
        """
        self._process.stdin.write(json.dumps(packages) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def bases_in(self, text, names):
        """Load all classes of one file: their bases, or None if one cannot be loaded."""
        found = self.bases({"org.app": dict.fromkeys(names, text)})
        return None if any(isinstance(bases, str) for bases in found.values()) else found


@pytest.fixture(scope="module")
def engine():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", ENGINE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Engine(process)
        process.stdin.close()


def as_the_engine_has_it(name, extends):
    """Base classes with the one that the engine adds where a file names none."""
    return list(extends) or ([] if name == ROOT_CLASS else [ROOT_CLASS])


def read_file(data, names):
    try:
        nodes, _ = compose_all(data, FILE)
        return read_classes(nodes, FILE, names)
    except InvalidPackage as error:
        return [], list(error.problems)


def bases_in(text, names):
    """What we read, as ``Engine.bases_in`` tells it."""
    found, problems = read_file(text.encode(), names)
    if problems:
        return None
    assert [definition.name for definition in found] == list(names)
    return {item.name: as_the_engine_has_it(item.name, item.extends) for item in found}


def read(text, *names):
    found, problems = read_file(text.encode(), names)
    assert problems == []
    return {definition.name: definition.extends for definition in found}


def problems_in(text, *names):
    return read_file(text.encode(), names)[1]


NS = "Namespaces: {=: org.app, std: io.murano, deep: org.other.sub, none: }\n"

# The text of a file, and its classes with their bases.
READ = {
    "a class": ("Name: a.B\nExtends: c.D\n", {"a.B": ("c.D",)}),
    "a list of bases": ("Name: a.B\nExtends: [c.D, e.F]\n", {"a.B": ("c.D", "e.F")}),
    "bases in their order": ("Name: a.B\nExtends: [e.F, c.D]\n", {"a.B": ("e.F", "c.D")}),
    "a block list of bases": ("Name: a.B\nExtends:\n- c.D\n- e.F\n", {"a.B": ("c.D", "e.F")}),
    "no bases": ("Name: a.B\n", {"a.B": ()}),
    "bases that are null": ("Name: a.B\nExtends:\n", {"a.B": ()}),
    "bases that are a tilde": ("Name: a.B\nExtends: ~\n", {"a.B": ()}),
    "an empty list of bases": ("Name: a.B\nExtends: []\n", {"a.B": ()}),
    "a base that is an empty text": ("Name: a.B\nExtends: ''\n", {"a.B": ()}),
    "the root class": (f"Name: {ROOT_CLASS}\n", {ROOT_CLASS: ()}),
    # Names and namespaces
    "a name in the namespace": (NS + "Name: B\n", {"org.app.B": ()}),
    "a name in the namespace by a colon": (NS + "Name: :B\n", {"org.app.B": ()}),
    "a name in another namespace": (NS + "Name: std:B\n", {"io.murano.B": ()}),
    "a name with dots": (NS + "Name: a.B\n", {"a.B": ()}),
    "a name with dots in the namespace": (NS + "Name: :a.B\n", {"org.app.a.B": ()}),
    "a base in the namespace": (NS + "Name: B\nExtends: C\n", {"org.app.B": ("org.app.C",)}),
    "a base in the namespace by a colon": (
        NS + "Name: B\nExtends: ':C'\n",
        {"org.app.B": ("org.app.C",)},
    ),
    "a base in another namespace": (
        NS + "Name: B\nExtends: std:Object\n",
        {"org.app.B": (ROOT_CLASS,)},
    ),
    "a base with dots in another namespace": (
        NS + "Name: B\nExtends: deep:x.Y\n",
        {"org.app.B": ("org.other.sub.x.Y",)},
    ),
    "a base with dots": (NS + "Name: B\nExtends: x.Y\n", {"org.app.B": ("x.Y",)}),
    "a base in no namespace": (NS + "Name: B\nExtends: none:Y\n", {"org.app.B": ("Y",)}),
    "bases of all kinds": (
        NS + "Name: B\nExtends: [C, ':D', std:E, x.F]\n",
        {"org.app.B": ("org.app.C", "org.app.D", "io.murano.E", "x.F")},
    ),
    "no namespaces": ("Name: B\nExtends: C\n", {"B": ("C",)}),
    "namespaces that are null": ("Namespaces:\nName: B\nExtends: C\n", {"B": ("C",)}),
    "a namespace with digits": (
        "Namespaces: {=: a1.b_2}\nName: B3\nExtends: _C\n",
        {"a1.b_2.B3": ("a1.b_2._C",)},
    ),
    "other letters": (
        "Namespaces: {x\u00e4: x\u00f6}\nName: a.B\u00dc\nExtends: x\u00e4:C\u65e5\n",
        {"a.B\u00dc": ("x\u00f6.C\u65e5",)},
    ),
    # Several documents
    "several classes": (
        "Name: a.B\nExtends: c.D\n---\nName: a.C\nExtends: e.F\n",
        {"a.B": ("c.D",), "a.C": ("e.F",)},
    ),
    "namespaces carried on": (
        NS + "Name: B\n---\nName: C\nExtends: B\n---\nName: D\nExtends: std:X\n",
        {"org.app.B": (), "org.app.C": ("org.app.B",), "org.app.D": ("io.murano.X",)},
    ),
    "namespaces replaced": (
        NS + "Name: B\n---\nNamespaces: {=: org.new}\nName: C\nExtends: B\n",
        {"org.app.B": (), "org.new.C": ("org.new.B",)},
    ),
    "namespaces replaced and carried on": (
        NS + "Name: B\n---\nNamespaces: {=: new}\nName: C\n---\nName: D\nExtends: C\n",
        {"org.app.B": (), "new.C": (), "new.D": ("new.C",)},
    ),
    "namespaces alone": (
        NS + "---\nName: B\nExtends: std:C\n",
        {"org.app.B": ("io.murano.C",)},
    ),
    "namespaces alone, twice": (
        NS + "---\nNamespaces: {=: new}\n---\nName: B\nExtends: C\n",
        {"new.B": ("new.C",)},
    ),
    "empty documents": ("---\n---\nName: a.B\n---\n---\n", {"a.B": ()}),
    "documents that are empty mappings": ("{}\n---\nExtends: c.D\n---\n{}\n", {"a.B": ("c.D",)}),
    "a class and more than requested": ("Name: a.X\n---\nName: a.B\n", {"a.B": ()}),
    "a class twice": (
        "Name: a.B\nExtends: c.D\n---\nName: a.B\nExtends: e.F\n",
        {"a.B": ("e.F",)},
    ),
    # No name
    "no name": ("Extends: c.D\n", {"a.B": ("c.D",)}),
    "no name in a namespace": (NS + "Extends: C\n", {"org.app.B": ("org.app.C",)}),
    "no name in another namespace": (NS + "Extends: C\n", {"a.B": ("org.app.C",)}),
    "a name that is null": ("Name:\nExtends: c.D\n", {"a.B": ("c.D",)}),
    "a name that is an empty text": ("Name: ''\nExtends: c.D\n", {"a.B": ("c.D",)}),
    "no name beside a name": (
        "Name: a.B\n---\nExtends: c.D\n",
        {"a.B": (), "a.C": ("c.D",)},
    ),
    # What else a class file holds
    "expressions": (
        "Name: a.B\nExtends: c.D\nMethods: {run: {Body: [!yaql $.a, {$x: !yaql y}]}}\n",
        {"a.B": ("c.D",)},
    ),
    "expressions as names": (
        NS + "Name: !yaql B\nExtends: [!yaql 'std:C', !yaql D]\n",
        {"org.app.B": ("io.murano.C", "org.app.D")},
    ),
    "quoted names": (
        "Namespaces: {'=': \"a\"}\nName: 'B'\nExtends: [\"C\"]\n",
        {"a.B": ("a.C",)},
    ),
    "aliases": ("A: &a c.D\nName: a.B\nExtends: [*a, e.F]\n", {"a.B": ("c.D", "e.F")}),
    "merged keys": ("A: &a {Extends: c.D}\nName: a.B\n<<: *a\n", {"a.B": ("c.D",)}),
    "merged namespaces": (
        "A: &a {x: org.x}\nNamespaces: {<<: *a, =: a}\nName: B\nExtends: x:C\n",
        {"a.B": ("org.x.C",)},
    ),
    "merged keys that are written out": (
        "A: &a {Extends: c.D}\nName: a.B\n<<: *a\nExtends: e.F\n",
        {"a.B": ("e.F",)},
    ),
    "a kind of metadata": ("Name: a.B\nUsage: Meta\n", {"a.B": ()}),
}

# The text of a file, the rule that it breaks where class a.B is requested, and
# what the message says.
REFUSED = {
    "another class": ("Name: a.C\n", "class-missing", "does not define class a.B; it defines a.C"),
    "no class": ("", "class-missing", "it defines none"),
    "namespaces alone": (NS, "class-missing", "it defines none"),
    "a class in the wrong namespace": (NS + "Name: B\n", "class-missing", "it defines org.app.B"),
    "two classes without a name": (
        "Extends: c.D\n---\nExtends: e.F\n",
        "class-name",
        "2 classes have no name",
    ),
    "two names that are null": ("Name:\n---\nName: ~\n", "class-name", "2 classes have no name"),
    "two classes without a name beside the class": (
        "Name: a.B\n---\nExtends: c.D\n---\nExtends: e.F\n",
        "class-name",
        "2 classes have no name",
    ),
    "a name with two dots": ("Name: a..B\n", "class-syntax", "'a..B' is not a valid class name"),
    "a name that starts with a dot": ("Name: .B\n", "class-syntax", "not a valid"),
    "a name that ends with a dot": ("Name: B.\n", "class-syntax", "not a valid"),
    "a name that starts with a digit": ("Name: 1B\n", "class-syntax", "not a valid"),
    "a name with a hyphen": ("Name: a-B\n", "class-syntax", "not a valid"),
    "a name with a space": ("Name: a B\n", "class-syntax", "not a valid"),
    "a name with two colons": (NS + "Name: std:a:B\n", "class-syntax", "not a valid"),
    "a name that is a prefix": (NS + "Name: 'std:'\n", "class-syntax", "not a valid"),
    "a name by an equals sign and a colon": (NS + "Name: '=:B'\n", "class-syntax", "not a valid"),
    "a name that is a path": ("Name: ../B\n", "class-syntax", "not a valid"),
    "a name that is a list": ("Name: [a.B]\n", "class-syntax", "found a sequence"),
    "a name that is a mapping": ("Name: {a: B}\n", "class-syntax", "found a mapping"),
    "a name of an undeclared prefix": (
        "Name: x:B\n",
        "class-syntax",
        "'x:B': the namespace prefix 'x' is not declared",
    ),
    "a base of an undeclared prefix": (
        NS + "Name: a.B\nExtends: [std:C, x:D]\n",
        "class-syntax",
        "'x:D': the namespace prefix 'x' is not declared",
    ),
    "a base of a prefix that was replaced": (
        NS + "Name: X\n---\nNamespaces: {=: new}\nName: a.B\nExtends: std:C\n",
        "class-syntax",
        "'std' is not declared",
    ),
    "a base of a prefix declared too late": (
        "Name: a.B\nExtends: std:C\n---\n" + NS,
        "class-syntax",
        "'std' is not declared",
    ),
    "a base that is no name": ("Name: a.B\nExtends: c..D\n", "class-syntax", "not a valid"),
    "a base by an equals sign": (NS + "Name: a.B\nExtends: '=:C'\n", "class-syntax", "not a valid"),
    "an empty base in a list": ("Name: a.B\nExtends: [c.D, '']\n", "class-syntax", "not a valid"),
    "a base that is a list": ("Name: a.B\nExtends: [[c.D]]\n", "class-syntax", "a sequence"),
    "a base that is a mapping": ("Name: a.B\nExtends: {c: D}\n", "class-syntax", "a mapping"),
    "namespaces that are a list": ("Namespaces: [a]\nName: a.B\n", "class-syntax", "a sequence"),
    "namespaces that are a text": ("Namespaces: a\nName: a.B\n", "class-syntax", "a string"),
    "a prefix that is no name": ("Namespaces: {x y: a}\nName: a.B\n", "class-syntax", "'x y'"),
    "a prefix that is empty": ("Namespaces: {'': a}\nName: a.B\n", "class-syntax", "''"),
    "a namespace that is no name": ("Namespaces: {x: y z}\nName: a.B\n", "class-syntax", "'y z'"),
    "a namespace that is a path": ("Namespaces: {x: ../y}\nName: a.B\n", "class-syntax", "../y"),
    "a namespace that is a list": ("Namespaces: {x: [y]}\nName: a.B\n", "class-syntax", "a seq"),
    "a list": ("- a\n", "class-syntax", "expected a mapping, found a sequence"),
    "a text": ("a\n", "class-syntax", "expected a mapping, found a string"),
    "a text beside the class": ("Name: a.B\n---\na\n", "class-syntax", "found a string"),
    "no YAML": ("a: [\n", "yaml-syntax", "not valid YAML"),
}  # fmt: skip

_LINE = "\n- "


def table(cases):
    return [pytest.param(*case, id=name) for name, case in cases.items()]


class TestReadClasses:
    @pytest.mark.parametrize(("text", "classes"), table(READ))
    def test_names_and_bases_are_read(self, text, classes):
        assert read(text, *classes) == classes

    @pytest.mark.parametrize(("text", "rule", "message"), table(REFUSED))
    def test_anything_else_is_refused(self, text, rule, message):
        problems = problems_in(text, "a.B")
        assert (problems[0].rule, problems[0].where) == (rule, FILE)
        assert message in problems[0].message

    @pytest.mark.parametrize("null", ["null", "~", ""])
    def test_a_base_that_is_null_is_none(self, null):
        """The engine would ask for a class of the name ``None``."""
        problems = problems_in(f"Name: a.B\nExtends:\n- {null}\n", "a.B")
        assert [problem.rule for problem in problems][:1] == ["class-syntax"]

    def test_definitions_come_in_the_order_they_are_requested(self):
        text = "Name: a.B\n---\nName: a.C\n---\nName: a.D\n"
        assert list(read(text, "a.D", "a.B")) == ["a.D", "a.B"]

    def test_one_class_without_a_name_takes_every_name_that_is_requested(self):
        assert read("Extends: c.D\n", "a.B", "a.C") == {"a.B": ("c.D",), "a.C": ("c.D",)}

    def test_a_class_without_a_name_takes_no_name_that_stands_there(self):
        text = "Name: a.B\nExtends: c.D\n---\nExtends: e.F\n"
        assert read(text, "a.B", "a.C") == {"a.B": ("c.D",), "a.C": ("e.F",)}

    def test_a_class_without_a_name_takes_no_name_in_another_namespace(self):
        """The engine resolves the name that it asks for as if it were written."""
        (problem,) = problems_in("Namespaces: {=: a}\nExtends: c.D\n", "Thing")
        assert problem.rule == "class-missing"

    def test_all_problems_are_collected(self):
        text = "Name: a.B\n---\nName: x:C\n---\na\n---\nName: a.D\nExtends: y:E\n"
        found = [(problem.rule, problem.line) for problem in problems_in(text, "a.B", "a.Z")]
        assert found == [
            ("class-syntax", 3),
            ("class-syntax", 5),
            ("class-syntax", 8),
            ("class-missing", 1),
        ]

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("Namespaces:\n  =: a\n  x: [y]\nName: B\n", 3),
            ("Namespaces:\n  =: a\n  x y: z\nName: B\n", 3),
            ("Namespaces:\n- a\nName: B\n", 2),
            ("Extends: c.D\nName: a-B\n", 2),
            ("Name: a.B\nExtends:\n- c.D\n- x:E\n", 4),
            ("Name: a.B\nExtends:\n- c.D\n-\n", 4),
            ("Name: a.B\nExtends:\n- c.D\n- yes\n", 4),
            (f"Name: a.B\nExtends:\n- {_LINE.join(['c.D'] * 65)}\n", 67),
            ("Namespaces: {=: a}\n---\nExtends: c.D\nName: X\n", 4),
            ("# a\nExtends: c.D\n---\n# b\nExtends: e.F\n", 5),
        ],
    )
    def test_a_problem_has_the_line_of_the_mistake(self, text, line):
        assert next(problem.line for problem in problems_in(text, "a.B")) == line

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_every_encoding_of_yaml_is_read(self, encoding):
        data = "Name: a.B\nExtends: c.D\n# \u00e4\n".encode(encoding)
        (definition,), problems = read_file(data, ["a.B"])
        assert (definition.extends, problems) == (("c.D",), [])

    @pytest.mark.parametrize("tag", ["!!python/name:os.system", "!expr", "!<tag:a,2026:b>"])
    def test_no_other_tag_is_accepted_than_that_of_expressions(self, tag):
        (problem,) = problems_in(f"Name: a.B\nBody: {tag} x\n", "a.B")
        assert problem.rule == "yaml-tag"


NAMES = ("a.A", "b.c.A", "x.y.A", "A", "a.a.B")
_declared = st.fixed_dictionaries(
    {},
    optional={
        "=": st.sampled_from(["a", "b.c", "", None]),
        "x": st.sampled_from(["x.y", "x", "x y"]),
        "y": st.none(),
        "1": st.just("a"),
    },
)
_name = st.sampled_from(
    ["A", ":A", "a.A", "b.c.A", "x:A", "y:A", ":a.B", "z:A", "=:A", "1A", "A-", "", None]
)
_base = st.sampled_from(["C", ":C", "x:C", "y:D", "c.C", "x:e.C", "z:C", "C:", "=:C", "-"])
_document = st.fixed_dictionaries(
    {},
    optional={
        "Namespaces": _declared,
        "Name": _name,
        "Extends": st.none() | st.just("") | _base | st.lists(_base, max_size=2),
        "Methods": st.just({}),
    },
)


class TestAgreesWithTheEngine:
    @pytest.mark.parametrize(("text", "classes"), table(READ))
    def test_on_what_it_reads(self, engine, text, classes):
        expected = {name: as_the_engine_has_it(name, bases) for name, bases in classes.items()}
        assert engine.bases_in(text, list(classes)) == expected

    @pytest.mark.parametrize(("text", "rule", "message"), table(REFUSED))
    def test_on_what_it_refuses(self, engine, text, rule, message):
        assert engine.bases_in(text, ["a.B"]) is None

    @settings(max_examples=effort.FILES)
    @given(
        st.lists(_document, max_size=4), st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
    )
    def test_on_any_file_that_we_read(self, engine, documents, names):
        """We also refuse classes that nobody asks for, if they are wrong; the engine does not."""
        text = yaml.safe_dump_all(documents)
        ours = bases_in(text, names)
        if ours is not None:
            assert engine.bases_in(text, names) == ours

    @settings(max_examples=effort.FILES)
    @given(
        st.text("aB1_ -:=.\u00e4", max_size=6),
        st.dictionaries(
            st.text("aB1_=\u00e4 :", max_size=2),
            st.none() | st.text("aB1_. \u00e4", max_size=4),
            max_size=2,
        ),
    )
    def test_on_any_name_in_any_namespaces(self, name, namespaces):
        text = yaml.safe_dump({"Namespaces": namespaces, "Name": "a.B", "Extends": [name]})
        found, problems = read_file(text.encode(), ["a.B"])
        try:
            resolver = namespace_resolver.NamespaceResolver(namespaces)
            expected = (resolver.resolve_name(name),)
        except (ValueError, KeyError):
            assert [problem.rule for problem in problems][:1] == ["class-syntax"]
        else:
            assert problems == []
            assert found[0].extends == expected

    def test_on_the_core_library(self, engine):
        core = prerequisites.core_library()
        folders = [core / "io.murano", core / "io.murano.applications"]
        texts = {}
        ours = {}
        for folder in folders:
            with Archive.open(folder) as archive:
                contents = read_contents(archive)
            manifest = contents.manifest
            texts[manifest.fqn] = {
                name: (folder / "Classes" / file).read_text()
                for name, file in manifest.classes.items()
            }
            ours |= {
                definition.name: as_the_engine_has_it(definition.name, definition.extends)
                for definition in contents.classes
            }
        assert len(ours) > 50
        assert engine.bases(texts) == ours

    def test_murano_does_not_leave_its_options_in_this_process(self):
        assert "murano.common.config" not in sys.modules
