# SPDX-License-Identifier: Apache-2.0

"""A whole package: its manifest and what its class files say."""

import io
import pathlib
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano.package import (
    Archive,
    Contents,
    Description,
    InvalidArchive,
    InvalidManifest,
    InvalidPackage,
    package_types,
    read_contents,
)
from glare_murano.package.classes import ClassDefinition
from glare_murano.package.contents import MAX_IMAGE_SIZE
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.package.safe_yaml import compose_all, repeated_keys
from tests import effort, packages

NAME = "org.app"


def package(classes, files, **keys):
    """The files of a package.

    :param classes: what the manifest says of them, name -> file.
    :param files: path below ``Classes`` -> text.
    """
    manifest = packages.manifest(NAME, Classes=classes, **keys)
    return {
        "manifest.yaml": yaml.safe_dump(manifest).encode(),
        **{f"Classes/{path}": text.encode() for path, text in files.items()},
    }


def contents(classes, files, **keys):
    with Archive.open(io.BytesIO(packages.zipped(package(classes, files, **keys)))) as archive:
        return read_contents(archive)


def refused(kind, files):
    """The problems of a package: rule, place and line."""
    with (
        Archive.open(io.BytesIO(packages.zipped(files))) as archive,
        pytest.raises(InvalidPackage) as caught,
    ):
        read_contents(archive)
    assert type(caught.value) is kind
    return [(problem.rule, problem.where, problem.line) for problem in caught.value.problems]


def bases(found):
    return {definition.name: definition.extends for definition in found.classes}


def test_reading_ends_where_the_class_files_are_too_large():
    names = [f"a.C{number}" for number in range(5)]
    # Numbers, which cannot be packed into a hundredth of their size.
    text = "".join(f"# {number}\n" for number in range(40_000))
    files = {f"{name}.yaml": f"Name: {name}\n{text}" for name in names}
    found = refused(InvalidPackage, package({name: f"{name}.yaml" for name in names}, files))
    assert [(str(rule), where) for rule, where, _ in found] == [("yaml-size", "Classes/a.C3.yaml")]


def test_each_class_file_that_is_no_yaml_is_reported():
    files = {"A.yaml": "a: [", "B.yaml": "Name: a.B\n", "C.yaml": "c: ["}
    names = {f"a.{file[0]}": file for file in files}
    found = refused(InvalidPackage, package(names, files))
    assert [(str(rule), where) for rule, where, _ in found] == [
        ("yaml-syntax", "Classes/A.yaml"),
        ("yaml-syntax", "Classes/C.yaml"),
    ]


class TestReadContents:
    def test_has_the_manifest(self):
        found = contents({"a.B": "B.yaml"}, {"B.yaml": "Name: a.B\n"}, Version="1.2.3")
        assert found.manifest.fqn == NAME
        assert str(found.manifest.version) == "1.2.3"

    def test_has_the_classes_as_their_files_define_them(self):
        found = contents(
            {"a.B": "B.yaml", "a.C": "sub/C.yaml"},
            {
                "B.yaml": "Namespaces: {std: io.murano}\nName: a.B\nExtends: std:Object\n",
                "sub/C.yaml": "Namespaces: {=: a}\nName: C\nExtends: [B, x.Y]\n",
            },
        )
        assert bases(found) == {"a.B": ("io.murano.Object",), "a.C": ("a.B", "x.Y")}

    def test_has_several_classes_of_one_file(self):
        found = contents(
            {"a.B": "all.yaml", "a.C": "all.yaml", "a.D": "D.yaml"},
            {
                "all.yaml": "Namespaces: {=: a}\n---\nName: B\n---\nName: C\nExtends: B\n",
                "D.yaml": "Name: a.D\n",
            },
        )
        assert bases(found) == {"a.B": (), "a.C": ("a.B",), "a.D": ()}

    def test_a_class_without_a_name_takes_that_of_the_manifest(self):
        assert bases(contents({"a.B": "x.yaml"}, {"x.yaml": "Extends: c.D\n"})) == {"a.B": ("c.D",)}

    def test_has_no_class_that_the_manifest_does_not_name(self):
        files = {"B.yaml": "Name: a.B\n---\nName: a.C\n", "D.yaml": "Name: a.D\n"}
        assert bases(contents({"a.B": "B.yaml"}, files)) == {"a.B": ()}

    def test_does_not_read_a_file_that_the_manifest_does_not_name(self):
        files = {"B.yaml": "Name: a.B\n", "hostile.yaml": "!!python/name:os.system [\n"}
        assert bases(contents({"a.B": "B.yaml"}, files)) == {"a.B": ()}

    @pytest.mark.parametrize("classes", [None, {}])
    def test_a_package_may_have_no_classes(self, classes):
        found = contents(classes, {})
        assert found.classes == ()
        assert found.inherits == {}

    def test_reads_a_directory_alike(self, tmp_path: pathlib.Path):
        files = package({"a.B": "B.yaml"}, {"B.yaml": "Name: a.B\nExtends: c.D\n"})
        with Archive.open(packages.write(tmp_path, files)) as archive:
            assert bases(read_contents(archive)) == {"a.B": ("c.D",)}


class TestRefusal:
    def test_of_a_manifest_comes_alone(self):
        files = package({"a.B": "B.yaml"}, {"B.yaml": "Name: [\n"}, Type="Hostile")
        assert refused(InvalidManifest, files) == [("manifest-type", "Type", 7)]

    def test_of_class_files_names_all_that_is_wrong(self):
        files = package(
            {"a.B": "B.yaml", "a.C": "C.yaml", "a.D": "D.yaml", "a.E": "E.yaml", "a.F": "F.yaml"},
            {
                "B.yaml": "Name: a.B\n",
                "D.yaml": "Name: a.X\n",
                "E.yaml": "# the name\n\nName: x:E\n",
                "F.yaml": "Name: a.F\nA: !hostile x\n",
            },
        )
        assert refused(InvalidPackage, files) == [
            ("class-file", "Classes.a.C", 0),
            ("class-missing", "Classes/D.yaml", 1),
            ("class-syntax", "Classes/E.yaml", 3),
            ("class-missing", "Classes/E.yaml", 0),
            ("yaml-tag", "Classes/F.yaml", 2),
        ]

    def test_of_one_file_for_several_classes_is_reported_once_if_it_is_missing(self):
        files = package({"a.B": "x.yaml", "a.C": "x.yaml"}, {})
        assert refused(InvalidPackage, files) == [("class-file", "Classes.a.B", 0)]

    def test_of_a_class_file_in_other_letters(self):
        files = package({"a.B": "B.yaml"}, {"b.yaml": "Name: a.B\n"})
        assert refused(InvalidPackage, files) == [("class-file", "Classes.a.B", 0)]

    def test_of_a_class_file_that_is_no_yaml_is_reported_once_for_all_its_classes(self):
        files = package({"a.B": "x.yaml", "a.C": "x.yaml"}, {"x.yaml": "Name: a.B\nExtends: [\n"})
        assert refused(InvalidPackage, files) == [("yaml-syntax", "Classes/x.yaml", 3)]

    def test_of_many_values_names_the_file_with_which_they_are_too_many(self):
        names = [f"a.B{number}" for number in range(4)]
        classes = {name: f"{name}.yaml" for name in names}
        values = f"A: [{'a,' * 40_000}]\n"
        texts = {f"{name}.yaml": f"Name: {name}\n{values}" for name in names}
        assert refused(InvalidPackage, package(classes, texts)) == [
            ("yaml-size", "Classes/a.B2.yaml", 0)
        ]

    def test_of_a_large_class_file_names_it(self):
        files = package({"a.B": "B.yaml"}, {"B.yaml": "Name: a.B\n"})
        noise = "".join(f"# {number:x}\n" for number in range(150_000))
        files["Classes/B.yaml"] += noise.encode()
        assert refused(InvalidArchive, files) == [("entry-size", "Classes/B.yaml", 0)]


# Some are the same for PyYAML.
KEYS = ["a", "'a'", '"a"', "b", "1", "'1'", "0x1", "0b1", "01", "1.0", "!!float 1", "60", "1:00"]
KEYS += ["true", "yes", "on", "'on'", "no", "~", "null", "", ".inf", "-.inf", "1e3", "1.0e+3"]
KEYS += ["2026-01-01", "2026-1-1", "!!binary YQ==", "!!str 1", "!!int '1'"]


class TestRepeatedKeys:
    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            ("Name: a.B\nName: a.B\n", [2]),
            ("Name: a.B\nProperties: {a: {}, b: {}, a: {}}\n", [2]),
            ("Name: a.B\nMethods:\n  run:\n    Body:\n    - {If: $, Then: 1, Then: 2}\n", [5]),
            ("Name: a.B\n---\nName: a.C\nMeta: [{a: 1, a: 1}]\n", [4]),
            ("Name: a.B\nMeta: {a: 1, a: 2, a: 3}\n", [2, 2]),
            # As PyYAML reads them.
            ("Name: a.B\nMeta: {1: a, 0x1: b}\n", [2]),
            ("Name: a.B\nMeta: {yes: a, on: b}\n", [2]),
            ("Name: a.B\nMeta: {~: a, null: b}\n", [2]),
            ("Name: a.B\nMeta: {1: a, true: b}\n", [2]),
            ("Name: a.B\nMeta: {a: 1, 'a': 2}\n", [2]),
            ("Name: a.B\nMeta: {$.a: 1, $.a: 2}\n", [2]),
            ("Name: a.B\nMeta: {x: &x {a: 1}, y: {<<: *x, <<: *x}}\n", [2]),
            # The engine takes the list of an alias twice.
            ("Name: a.B\nMeta: {x: &x {a: 1, a: 2}, y: *x, z: [*x]}\n", [2]),
            ("Name: a.B\nMeta: {? [a] : 1, ? [b] : 1, c: 1, c: 2}\n", [2]),
        ],
    )
    def test_in_a_class_file_are_refused(self, text, lines):
        files = package({"a.B": "B.yaml"}, {"B.yaml": text})
        found = refused(InvalidPackage, files)
        assert found == [("yaml-key", "Classes/B.yaml", line) for line in lines]

    def test_name_the_key(self):
        files = package({"a.B": "B.yaml"}, {"B.yaml": "Name: a.B\nExtends: a.C\nExtends: a.D\n"})
        with (
            Archive.open(io.BytesIO(packages.zipped(files))) as archive,
            pytest.raises(InvalidPackage, match=r"line 3: 'Extends' is repeated \[yaml-key\]"),
        ):
            read_contents(archive)

    @pytest.mark.parametrize(
        "text",
        [
            "Name: a.B\nMeta: [{a: 1}, {a: 2}]\n",
            "Name: a.B\nMeta: {a: {b: 1}, b: {a: 1}}\n",
            "Name: a.B\n---\nName: a.C\n",
            "Name: a.B\nMeta: {1: a, '1': b, 1.5: c}\n",
            "Name: a.B\nMeta: {x: &x {a: 1}, y: {<<: *x, a: 2}}\n",
            "Name: a.B\nMeta: {x: &x {a: 1}, y: *x, z: *x}\n",
            "Name: a.B\nMeta: {2026-01-01: a, !!binary YQ==: b}\n",
            "Name: a.B\nMeta: {? !!str [a] : 1, ? !yaql {a: b} : 1}\n",
        ],
    )
    def test_are_none(self, text):
        assert contents({"a.B": "B.yaml"}, {"B.yaml": text}).classes[0].name == "a.B"

    @settings(max_examples=effort.FILES)
    @given(st.lists(st.sampled_from(KEYS)))
    def test_are_those_that_pyyaml_drops(self, keys):
        text = "".join(f"? {key}\n: {number}\n" for number, key in enumerate(keys))
        nodes, _ = compose_all(text.encode(), "a file")
        repeated = list(repeated_keys(nodes))
        assert len(repeated) == len(keys) - len(yaml.safe_load(text) or {})

    def test_of_a_number_to_the_base_of_60_cost_no_time(self):
        key = "1" + ":59" * 100_000
        files = package({"a.B": "B.yaml"}, {"B.yaml": f"Name: a.B\n? {key}\n: 1\n? {key}\n: 2\n"})
        assert refused(InvalidPackage, files) == [("yaml-key", "Classes/B.yaml", 4)]


class TestImages:
    @pytest.mark.parametrize(
        ("keys", "path"),
        [
            ({}, "logo.png"),
            ({"Logo": "images/a.gif"}, "images/a.gif"),
        ],
    )
    @pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"])
    def test_a_logo_is_read(self, keys, path, start):
        files = {**package(None, {}, **keys), path: start.ljust(MAX_IMAGE_SIZE, b"x")}
        with Archive.open(io.BytesIO(packages.zipped(files))) as archive:
            found = read_contents(archive)
        assert (found.logo, found.supplier_logo) == (files[path], None)

    def test_a_package_may_have_no_logo(self):
        found = contents(None, {})
        assert (found.logo, found.supplier_logo) == (None, None)

    def test_a_missing_logo_is_refused(self):
        files = package(None, {}, Logo="a.png", Supplier={"Logo": "b.png"})
        assert refused(InvalidPackage, files) == [
            ("image-missing", "Logo", 0),
            ("image-missing", "Supplier.Logo", 0),
        ]

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (b"GIF89a".ljust(MAX_IMAGE_SIZE + 1, b"x"), "image-size"),
            (b"<svg/>", "image-type"),
            (b"", "image-type"),
        ],
    )
    def test_a_wrong_logo_is_refused(self, content, rule):
        files = {**package(None, {}), "logo.png": content, "supplier_logo.png": content}
        assert refused(InvalidPackage, files) == [(rule, "Logo", 0), (rule, "Supplier.Logo", 0)]


class TestOtherFormats:
    """Of a package type without a function, only the manifest is known."""

    @pytest.fixture
    def plug_in(self, site):
        site.install("tosca", "1.0", {PLUGIN_NAMESPACE: {"TOSCA/1.0": "no.such:Class"}}, {})

    @pytest.mark.usefixtures("plug_in")
    def test_the_class_is_that_of_the_package(self):
        found = contents(None, {}, Format="TOSCA/1.0", Type="Application")
        assert found.classes == (ClassDefinition(NAME, ()),)

    @pytest.mark.usefixtures("plug_in")
    def test_the_classes_are_those_that_the_manifest_names(self):
        found = contents({"a.B": "missing.yaml", "a.C": "x"}, {}, Format="TOSCA/1.0")
        assert bases(found) == {"a.B": (), "a.C": ()}

    @pytest.mark.usefixtures("plug_in")
    @pytest.mark.parametrize("classes", [None, {"a.B": "missing.yaml"}])
    def test_a_server_needs_the_names_of_the_classes(self, classes):
        data = packages.zipped(package(classes, {}, Format="TOSCA/1.0"))
        with Archive.open(io.BytesIO(data)) as archive:
            if classes:
                assert bases(read_contents(archive, package_types.describe)) == {"a.B": ()}
                return
            with pytest.raises(InvalidPackage, match="class-unlisted"):
                read_contents(archive, package_types.describe)

    @pytest.mark.usefixtures("plug_in")
    def test_nothing_inherits(self):
        assert contents(None, {}, Format="TOSCA/1.0").inherits == {}

    def test_a_heat_template_is_an_application(self):
        files = package(None, {}, Format="Heat.HOT/1.0", Type="Application")
        template = {"template.yaml": b"heat_template_version: 2013-05-23\nresources: {}\n"}
        with Archive.open(io.BytesIO(packages.zipped({**files, **template}))) as archive:
            found = read_contents(archive)
        assert found.classes == (ClassDefinition(NAME, ("io.murano.Application",)),)
        assert found.inherits == {"io.murano.Application": (NAME,)}

    @pytest.mark.parametrize(
        ("classes", "line", "reason"),
        [
            ("Name: A\nExtends: A", 3, "org.app.A extends org.app.A"),
            (
                "Name: D\nExtends: A\n---\nName: A\nExtends: [x.Y, B]\n---\nName: B\n"
                "Extends: C\n---\nName: C\nExtends: A",
                6,
                "org.app.A extends org.app.B extends org.app.C extends org.app.A",
            ),
        ],
    )
    def test_a_class_that_extends_itself_is_refused(self, classes, line, reason):
        names = re.findall("Name: (.)", classes)
        files = package(
            {f"org.app.{name}": "all.yaml" for name in names},
            {"all.yaml": f"Namespaces: {{=: org.app}}\n{classes}\n"},
            # An older version of the class is not meant.
            Version="2.0.0",
            Require={NAME: "1"},
        )

        with (
            Archive.open(io.BytesIO(packages.zipped(files))) as archive,
            pytest.raises(InvalidPackage) as caught,
        ):
            read_contents(archive)
        message = f"a class cannot extend itself: {reason} [class-cycle]"
        assert str(caught.value) == f"Classes/all.yaml, line {line}: {message}"

    def test_a_generated_class_that_extends_itself_is_refused(self):
        files = package({}, {}, Format="Heat.HOT/1.0", Type="Application")
        described = Description({NAME: ["x.Y", NAME]}, {})

        with (
            Archive.open(io.BytesIO(packages.zipped(files))) as archive,
            pytest.raises(InvalidPackage, match=f"class {NAME}: a class cannot extend itself"),
        ):
            read_contents(archive, lambda manifest, archive: described)

    def test_a_heat_template_that_is_missing_is_reported(self):
        with pytest.raises(InvalidPackage, match="template-missing"):
            contents({"x.y.Z": "z.yaml"}, {}, Format="Heat.HOT/1.0", Type="Application")

    @pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "MuranoPL/1.4", "1"])
    def test_every_version_of_muranopl_is_read(self, version):
        found = contents({"a.B": "B.yaml"}, {"B.yaml": "Extends: c.D\n"}, Format=version)
        assert bases(found) == {"a.B": ("c.D",)}


class TestInherits:
    def inherits(self, *classes):
        definitions = tuple(ClassDefinition(name, tuple(extends)) for name, extends in classes)
        return Contents(contents(None, {}).manifest, definitions, {}).inherits

    def test_of_no_classes_is_nothing(self):
        assert self.inherits() == {}

    def test_of_classes_without_bases_is_nothing(self):
        assert self.inherits(("a.B", []), ("a.C", [])) == {}

    def test_names_the_direct_subclasses_of_each_base(self):
        found = self.inherits(("a.B", ["x.Y"]), ("a.C", ["a.B", "x.Y"]), ("a.D", ["a.C"]))
        assert found == {"x.Y": ("a.B", "a.C"), "a.B": ("a.C",), "a.C": ("a.D",)}

    def test_is_sorted_whatever_the_order_of_the_classes(self):
        found = self.inherits(("a.C", ["z.Z", "b.B"]), ("a.A", ["z.Z"]), ("a.B", ["z.Z"]))
        assert list(found.items()) == [("b.B", ("a.C",)), ("z.Z", ("a.A", "a.B", "a.C"))]

    def test_names_an_subclass_once(self):
        assert self.inherits(("a.B", ["x.Y", "x.Y"])) == {"x.Y": ("a.B",)}

    def test_is_read_from_the_files(self):
        found = contents(
            {"a.C": "all.yaml", "a.B": "all.yaml"},
            {"all.yaml": "Namespaces: {=: a, x: x.y}\nName: C\nExtends: x:Z\n---\nExtends: x:Z\n"},
        )
        assert found.inherits == {"x.y.Z": ("a.B", "a.C")}


@pytest.mark.parametrize("tag", ["set", "map", "seq", "omap", "pairs"])
def test_a_key_of_any_type_is_compared(tag: str) -> None:
    nodes, _ = compose_all(f"!!{tag} : 1\nother: 2\n".encode(), "file")
    assert [*repeated_keys(nodes)] == []
