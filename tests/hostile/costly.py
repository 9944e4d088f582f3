# SPDX-License-Identifier: Apache-2.0

"""Small uploads that take a service much work, as data: what each is, and what comes of it.

Most of them break no rule, or break it only at the end of the work.
"""

import dataclasses
import random
import zlib
from collections.abc import Callable, Mapping

from tests import packages
from tests.hostile import cases
from tests.hostile.cases import CLASS_FILE, CLASS_TEXT, FORM_FILE, NAME
from tests.hostile.zips import STORED, Member, zipped

# What comes of an upload: it is accepted, or a limit of the child process ends its reading.
ACCEPTED = ""
LIMIT = "reading-limit"

_PNG = b"\x89PNG\r\n\x1a\n"
_LARGEST_IMAGE = 500 * 1024
_MEBIBYTE = 1024**2
# Each character of such a set is looked at when it is compiled.
_SET = "[\\0-\\uffff]"
_FORM = "Application: {'?': {type: org.hostile.Thing}}\nForms:\n- page:\n    fields:\n"
_TEMPLATE = "heat_template_version: 2013-05-23\nresources: {}\nparameters:\n"


@dataclasses.dataclass(frozen=True)
class Costly:
    """A costly package.

    :param outcome: the rule that refuses it, ``ACCEPTED`` or ``LIMIT``.
    :param options: options of the service, for a limit that would take long to reach.
    """

    name: str
    outcome: str
    build: Callable[[], bytes]
    options: Mapping[str, int] = dataclasses.field(default_factory=dict)


def _with_form(text: str) -> bytes:
    files = {
        "manifest.yaml": cases.manifest().encode(),
        CLASS_FILE: CLASS_TEXT.encode(),
        FORM_FILE: text.encode(),
    }
    return packages.zipped(files)


def _field(number: int, pattern: str) -> str:
    return f"    - {{name: f{number}, type: string, regexpValidator: '{pattern}'}}\n"


def _patterns() -> bytes:
    # Equal ones would be compiled once.
    return _with_form(_FORM + "".join(_field(n, f"/{_SET}{n}/i") for n in range(5_000)))


def _one_pattern() -> bytes:
    return _with_form(_FORM + _field(0, f"(?i){_SET * 5800}"))


def _template(parameters: str, more: str = "") -> bytes:
    keys = {"Format": "Heat.HOT/1.0", "Type": "Application", "Classes": None}
    files = {
        "manifest.yaml": (cases.manifest(**keys) + more).encode(),
        "template.yaml": (_TEMPLATE + parameters).encode(),
    }
    # Stored, since such a template would be refused for its ratio.
    return zipped(Member(path, data, method=STORED) for path, data in files.items())


def _template_patterns() -> bytes:
    pattern = f"  p: {{type: string, constraints: [{{allowed_pattern: '(?i){_SET * 40_000}'}}]}}\n"
    return _template(pattern)


def _parameters(count: int) -> str:
    line = "  p{}: {{type: string, default: x, constraints: [{{length: {{max: 8}}}}]}}\n"
    return "".join(line.format(number) for number in range(count))


def _template_and_lists() -> bytes:
    """Nearly as many parameters, and as many values of the manifest, as a package may have."""
    return _template(_parameters(6_000), _lists())


def _files() -> bytes:
    # The manifest, the class and these are the most files that an archive may have.
    paths = (f"Resources/{number % 100}/{number}" for number in range(9_998))
    return cases.with_members(*(Member(path, b"x", method=STORED) for path in paths))


def _near_keys() -> bytes:
    names = ("Require", "Description", "Supplier", "Author", "FullName", "Classes")
    lines = "".join(f"{name}{number}: 1\n" for name in names for number in range(7_500))
    return _stored_manifest(cases.manifest() + lines)


def _stored_manifest(text: str, classes: str = CLASS_TEXT) -> bytes:
    return zipped(
        [
            Member("manifest.yaml", text.encode(), method=STORED),
            Member(CLASS_FILE, classes.encode(), method=STORED),
        ]
    )


def _lists() -> str:
    value = "[" * 60 + "]" * 60
    return f"Meta: [{','.join([value] * 1_500)}]\n"


def _nested() -> bytes:
    return cases.with_manifest(cases.manifest() + _lists())


def _aliases() -> bytes:
    lines = ["Meta:", "- &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 4):
        lines.append(f"- &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    return cases.with_manifest(cases.manifest() + "\n".join(lines) + "\n")


def _repeated_labels() -> bytes:
    """Fields with one long label, which the check of forms reads again for each field."""
    label = "x " * 350_000
    fields = "".join("    - *field\n" for _ in range(5_000))
    first = f"    - &field {{name: f, type: string, label: &label {label}!, initial: *label}}\n"
    return _with_form(_FORM + first + fields)


def _tag_directives() -> bytes:
    lines = "".join(f"%TAG !t{number}! !\n" for number in range(50_000))
    return _stored_manifest(f"{lines}---\n{cases.manifest()}")


def _classes(count: int) -> bytes:
    names = [f"{NAME}.Class{number}" for number in range(count)]
    classes = ", ".join(f"{name}: Thing.yaml" for name in names)
    text = "---\n".join(f"Name: {n}\nExtends: org.base.Base{n[-1]}\n" for n in names)
    return _stored_manifest(cases.manifest(Classes=f"{{{classes}}}"), text)


def _bases() -> bytes:
    """Base classes whose names are long only when their prefixes are replaced."""
    namespaces = f"Namespaces: {{=: {NAME}, l: org.{'x' * 200}}}\n"
    names = [f"Class{number}" for number in range(60)]
    bases = [", ".join(f"l:B{n}x{base}" for base in range(12)) for n in range(60)]
    text = "---\n".join(f"Name: {n}\nExtends: [{b}]\n" for n, b in zip(names, bases, strict=True))
    classes = ", ".join(f"{NAME}.{name}: Thing.yaml" for name in names)
    return _stored_manifest(cases.manifest(Classes=f"{{{classes}}}"), namespaces + text)


def _words() -> bytes:
    words = " ".join(f"{number:x}" for number in range(0x10000, 0x10000 + 140_000))
    return _stored_manifest(cases.manifest(Name=words))


def _requirements() -> bytes:
    ranges = ", ".join(
        f"org.base{number}: '{','.join(f'!={n}.{number}' for n in range(26))}'"
        for number in range(256)
    )
    return cases.with_keys(Require=f"{{{ranges}}}")


def _logos(size: int) -> bytes:
    noise = random.Random(0).randbytes(size - len(_PNG))
    logos = (Member(f"{name}.png", _PNG + noise) for name in ("logo", "supplier_logo"))
    return cases.with_members(*logos)


def _wide_form() -> bytes:
    fields = "".join(
        f"    - {{name: f{number}, type: string, label: a, required: true}}\n"
        for number in range(8_000)
    )
    return _with_form(_FORM + fields)


def _inflated() -> bytes:
    """Nearly as many bytes as an archive may unpack to, and nearly as many as its size allows."""
    piece = 32 * _MEBIBYTE
    content = random.Random(0).randbytes(200_000) + bytes(piece - 200_000)
    packed, checksum = Member("", content).data, zlib.crc32(content)
    return cases.with_members(
        *(
            Member(f"Resources/{number}", b"", packed=packed, size=piece, checksum=checksum)
            for number in range(15)
        )
    )


def _blocks() -> bytes:
    """A deflate stream of blocks that hold nothing, each with tables of its own."""
    # Made by zlib for a few bytes; its two tables are read for each block.
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY)
    text = random.Random(0).choices(b"abcdefgh", [40, 20, 10, 5, 4, 3, 2, 1], k=300)
    one = compressor.compress(bytes(text)) + compressor.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    count = 40_000
    packed = one * count + last.flush()
    content = bytes(text) * count
    return cases.with_members(
        Member("Resources/a", b"", packed=packed, size=len(content), checksum=zlib.crc32(content))
    )


def _large() -> bytes:
    return cases.with_members(
        Member("Resources/noise", random.Random(0).randbytes(20 * _MEBIBYTE), method=STORED)
    )


COSTLY = (
    Costly("form with hundreds of regular expressions", ACCEPTED, _patterns),
    Costly("form with one long regular expression", ACCEPTED, _one_pattern),
    Costly("form with thousands of fields", ACCEPTED, _wide_form),
    Costly("template with a long regular expression", ACCEPTED, _template_patterns),
    Costly(
        "template with thousands of parameters", ACCEPTED, lambda: _template(_parameters(3_000))
    ),
    Costly("ten thousand files", ACCEPTED, _files),
    Costly("keys that nearly match", ACCEPTED, _near_keys),
    Costly("nested lists", ACCEPTED, _nested),
    Costly("aliases", ACCEPTED, _aliases),
    Costly("a long string repeated by aliases", "yaml-alias", _repeated_labels),
    Costly("thousands of %TAG directives", "yaml-size", _tag_directives),
    Costly("many classes", ACCEPTED, lambda: _classes(1_000)),
    Costly("10,000 classes", "manifest-limit", lambda: _classes(10_000)),
    Costly("long names of base classes", "manifest-limit", _bases),
    Costly("a name of many words", "manifest-limit", _words),
    Costly("256 long requirements", ACCEPTED, _requirements),
    Costly("large logos", ACCEPTED, lambda: _logos(_LARGEST_IMAGE)),
    Costly("logos that are too large", "image-size", lambda: _logos(_LARGEST_IMAGE + 1)),
    Costly("files that unpack to half a gigabyte", ACCEPTED, _inflated),
    Costly("blocks with tables of their own", ACCEPTED, _blocks),
    Costly("a large file", ACCEPTED, _large),
    Costly(
        "values that take more time than is allowed",
        LIMIT,
        _template_and_lists,
        options={"max_reading_seconds": 1},
    ),
    Costly(
        "values that take more memory than is allowed",
        LIMIT,
        _nested,
        options={"max_reading_memory": 64 * _MEBIBYTE},
    ),
)
