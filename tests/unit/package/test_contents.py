# SPDX-License-Identifier: Apache-2.0

"""A whole package: its manifest and what its class files say."""

import io
import pathlib

import pytest
import yaml

from glare_murano.package import (
    Archive,
    Contents,
    InvalidArchive,
    InvalidManifest,
    InvalidPackage,
    read_contents,
)
from glare_murano.package.classes import ClassDefinition
from glare_murano.package.contents import MAX_IMAGE_SIZE
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.package.sandbox import Sandbox
from tests import packages

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


class TestReadContents:
    def test_has_the_manifest(self):
        found = contents({"a.B": "B.yaml"}, {"B.yaml": "Name: a.B\n"}, Version="1.2.3")
        assert found.manifest.full_name == NAME
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
            ("class-missing", "Classes/D.yaml", 0),
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
                assert bases(read_contents(archive, Sandbox().describe)) == {"a.B": ()}
                return
            with pytest.raises(InvalidPackage, match="class-unlisted"):
                read_contents(archive, Sandbox().describe)

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
