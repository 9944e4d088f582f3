# SPDX-License-Identifier: Apache-2.0

"""Packages that nobody must accept, as data: what each is, and the rule that it breaks.

Each is the package of ``good`` but for one thing, so that nothing else can be
the reason of a refusal. They are sorted by what shows that they are hostile:
``DIRECTORY`` by the archive's directory alone, ``MANIFEST`` and ``CLASSES`` by
those files, ``DATA`` only by every file's content, which unpacking reads.
"""

import dataclasses
import gzip
import io
import random
import stat
import struct
import tarfile
from collections.abc import Callable
from typing import Any

from glare_murano.package import Limits
from tests.hostile.zips import (
    DOS,
    FOLDER,
    LINK,
    STORED,
    UTF_8,
    Member,
    closed,
    closed_64,
    gap_overlap,
    laid_out,
    quoted_overlap,
    zipped,
)

NAME = "org.hostile"
VERSION = "1.0.0"
CLASS = f"{NAME}.Thing"
CLASS_FILE = "Classes/Thing.yaml"
CLASS_TEXT = f"Name: {CLASS}\n"
FORM_FILE = "UI/ui.yaml"
FORM_TEXT = "Application: {'?': {type: org.hostile.Thing}}\n"

# What a file holds that is damaged.
_CONTENT = bytes(range(256)) * 40
# What a YAML file of a package may be long.
_MEBIBYTE = 1024**2
_SLACK = 4096
_DEEP = 100_000


@dataclasses.dataclass(frozen=True)
class Case:
    """One hostile package.

    :param name: what it is, for people.
    :param rule: the rule that its refusal names.
    :param build: makes the archive; the same bytes each time.
    :param limits: smaller than the defaults where it would have to be large.
    """

    name: str
    rule: str
    build: Callable[[], bytes]
    limits: Limits = dataclasses.field(default_factory=Limits)


def good() -> bytes:
    """The package that all cases start from, and that is fine."""
    return with_members()


def manifest(**keys: str | None) -> str:
    """The text of a manifest; keys replace or add what follows the colon, or take it out."""
    lines = {
        "Format": "MuranoPL/1.4",
        "Type": "Library",
        "FullName": NAME,
        "Version": VERSION,
        "Classes": f"{{{CLASS}: Thing.yaml}}",
        **keys,
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items() if value is not None)


def with_members(*members: Member) -> bytes:
    """The good package, and more."""
    return zipped((*_members(), *members))


def _members() -> tuple[Member, Member]:
    first = Member("manifest.yaml", manifest().encode())
    return first, Member(CLASS_FILE, CLASS_TEXT.encode())


def with_paths(*paths: str | bytes) -> bytes:
    """The good package, and a file or a folder of each of these paths."""
    return with_members(
        *(Member(path, b"", FOLDER) if path[-1:] in ("/", b"/") else Member(path) for path in paths)
    )


def with_manifest(text: str | bytes) -> bytes:
    """The good package with another manifest."""
    data = text if isinstance(text, bytes) else text.encode()
    return zipped((Member("manifest.yaml", data), Member(CLASS_FILE, CLASS_TEXT.encode())))


def with_keys(**keys: str | None) -> bytes:
    return with_manifest(manifest(**keys))


def with_class(text: str | bytes) -> bytes:
    """The good package with another class file."""
    data = text if isinstance(text, bytes) else text.encode()
    return zipped((Member("manifest.yaml", manifest().encode()), Member(CLASS_FILE, data)))


def _paths() -> tuple[Case, ...]:
    named: dict[str, tuple[str, str | bytes]] = {
        "path that climbs": ("path-escape", "../hostile"),
        "path that climbs far": ("path-escape", "../" * 20 + "tmp/hostile"),
        "path that climbs from below": ("path-escape", "Resources/../../hostile"),
        "path that climbs at its end": ("path-escape", "Resources/.."),
        "path that is absolute": ("path-escape", "/tmp/hostile"),
        "path that is absolute twice": ("path-escape", "//tmp/hostile"),
        "path through the folder itself": ("path-escape", "./manifest.yaml"),
        "path with an empty part": ("path-escape", "Resources//hostile"),
        "path that is empty": ("path-escape", b""),
        "folder that climbs": ("path-escape", "../hostile/"),
        "folder that is absolute": ("path-escape", "/tmp/hostile/"),
        "folder that is the root": ("path-escape", "/"),
        "path that climbs by backslashes": ("path-characters", "..\\..\\hostile"),
        "path on a drive": ("path-characters", "C:/hostile"),
        "path relative to a drive": ("path-characters", "C:hostile"),
        "path of an alternate stream": ("path-characters", "manifest.yaml:hostile"),
        "path with a NUL": ("path-characters", b"Resources/run.sh\0.txt"),
        "path with a line break": ("path-characters", "Resources/a\nINFO forged"),
        "path with a terminal's escape": ("path-characters", "Resources/\x1b]0;hostile\x07"),
        "path with an eighth-bit control": ("path-characters", "Resources/\x9b2J"),
        "path written backwards": ("path-characters", "Resources/\u202egnp.exe"),
        "path with isolated directions": ("path-characters", "Resources/\u2066a\u2069"),
        "path with a zero-width space": ("path-characters", "manifest\u200b.yaml"),
        "path with a zero-width joiner": ("path-characters", ".g\u200dit/config"),
        "path with a byte order mark": ("path-characters", "\ufeffmanifest.yaml"),
        "path with a soft hyphen": ("path-characters", "mani\u00adfest.yaml"),
        "path with a line separator": ("path-characters", "Resources/a\u2028b"),
        "path of private characters": ("path-characters", "Resources/\ue000"),
        "path of many characters": ("path-length", "a/" * 16 + "b" * 250),
        "path of very many characters": ("path-length", "b" * 0xFFFF),
        "path with a name of 256 bytes": ("path-length", "Resources/" + "\u00e4" * 128),
        "path with a name of 800 bytes": ("path-length", "Resources/" + "\U0001f600" * 200),
        "path in too many folders": ("path-depth", "a/" * 33 + "b"),
        "folder in too many folders": ("path-depth", "a/" * 34),
    }
    cases = [
        Case(name, rule, lambda path=path: with_paths(path)) for name, (rule, path) in named.items()
    ]
    cases.append(
        Case(
            "path that is no text",
            "path-encoding",
            lambda: with_members(Member(b"Resources/\xff\xfe", flags=UTF_8)),
        )
    )
    return tuple(cases)


def _collisions() -> tuple[Case, ...]:
    named = {
        "file twice": ("Resources/a", "Resources/a"),
        "manifest twice": ("manifest.yaml",),
        "manifest in capitals": ("MANIFEST.YAML",),
        "class file in other letters": ("classes/thing.yaml",),
        "folder in other letters": ("Resources/a", "resources/b"),
        "sharp s": ("Resources/stra\u00dfe", "Resources/STRASSE"),
        "ligature": ("Resources/\ufb01le", "Resources/FILE"),
        "long s": ("Resources/\u017f", "Resources/S"),
        "dotted capital i": ("Resources/\u0130", "Resources/i\u0307"),
        # Folding letters takes apart what was composed before.
        "composed only before letters are folded": ("Resources/\u0390", "Resources/\u03aa\u0301"),
        "file and folder": ("Resources/a", "Resources/a/b"),
        "folder and file": ("Resources/a/b", "Resources/a"),
        "file and folder in other letters": ("Resources/A", "Resources/a/b"),
        "manifest and folder": ("manifest.yaml/a",),
        "manifest and empty folder": ("manifest.yaml/",),
    }
    return tuple(
        Case(
            f"collision: {name}",
            "path-collision",
            lambda paths=paths: with_paths(*paths),
        )
        for name, paths in named.items()
    )


def _kinds() -> tuple[Case, ...]:
    outside = b"../../../../etc/passwd"
    members = {
        "symlink": (Member("Resources/link", outside, LINK),),
        "symlink to write through": (
            Member("Resources/link", b"/tmp", LINK),
            Member("Resources/link/hostile"),
        ),
        "symlink in the place of the manifest's neighbour": (Member("UI/ui.yaml", outside, LINK),),
        "symlink named like a folder": (Member("Resources/", b"/etc", LINK),),
        "symlink made on DOS": (Member("Resources/link", outside, LINK, DOS),),
        "symlink with setuid": (Member("Resources/link", outside, LINK | stat.S_ISUID),),
        "character device": (Member("Resources/null", b"", stat.S_IFCHR | 0o666),),
        "block device": (Member("Resources/sda", b"", stat.S_IFBLK | 0o666),),
        "FIFO": (Member("Resources/fifo", b"", stat.S_IFIFO | 0o666),),
        "FIFO named like a folder": (Member("Resources/fifo/", b"", stat.S_IFIFO | 0o666),),
        "socket": (Member("Resources/socket", b"", stat.S_IFSOCK | 0o666),),
        "kind that is none": (Member("Resources/a", b"", 0o170000 | 0o666),),
        "file that says it is a folder": (Member("Resources/a", b"x", FOLDER),),
        "folder that says it is a file": (Member("Resources/a/", b""),),
    }
    return tuple(
        Case(name, "entry-type", lambda more=more: with_members(*more))
        for name, more in members.items()
    )


def _unreadable() -> tuple[Case, ...]:
    def resource(**fields: object) -> Callable[[], bytes]:
        return lambda: with_members(Member("Resources/a", **fields))  # type: ignore[arg-type]

    return (
        Case("encrypted", "entry-encrypted", resource(flags=0x1)),
        Case(
            "encrypted manifest",
            "entry-encrypted",
            lambda: zipped([Member("manifest.yaml", manifest(Classes=None).encode(), flags=0x1)]),
        ),
        Case("strong encryption", "entry-encrypted", resource(flags=0x41)),
        Case("strong encryption alone", "entry-encrypted", resource(flags=0x40)),
        Case("patch data", "entry-encrypted", resource(flags=0x20)),
        Case("masked header", "entry-encrypted", resource(flags=0x2000)),
        Case("bzip2", "entry-compression", resource(method=12)),
        Case("lzma", "entry-compression", resource(method=14)),
        Case("deflate64", "entry-compression", resource(method=9)),
        Case("zstandard", "entry-compression", resource(method=93)),
        Case("compression 99", "entry-compression", resource(method=99)),
        Case("compression 65535", "entry-compression", resource(method=0xFFFF)),
    )


def _bombs() -> tuple[Case, ...]:
    def flat() -> bytes:
        return with_members(Member("Resources/zeros", bytes(4 * _MEBIBYTE)))

    def split() -> bytes:
        return with_members(*(Member(f"Resources/{n}", bytes(900_000)) for n in range(8)))

    def declared(*sizes: int) -> Callable[[], bytes]:
        return lambda: with_members(
            *(Member(f"Resources/{n}", size=size) for n, size in enumerate(sizes))
        )

    def many() -> bytes:
        return with_members(*(Member(f"{n}", b"", method=STORED) for n in range(10_001)))

    def many_folders() -> bytes:
        return with_members(*(Member(f"{n}/", b"", FOLDER, method=STORED) for n in range(10_001)))

    def many_alike() -> bytes:
        """More entries than any reader's objects should be made for, all of one place."""
        return closed(b"", Member("a", b"").directory_entry(0) * 60_000, 60_000)

    def declared_64(size: int) -> bytes:
        """The sizes in four bytes say that they stand in eight bytes elsewhere."""
        packed = Member("Resources/a")
        extra = struct.pack("<HHQQ", 1, 16, size, len(packed.data))
        sizes = {"size": 0xFFFFFFFF, "packed_size": 0xFFFFFFFF}
        return with_members(dataclasses.replace(packed, extra=extra, header_extra=extra, **sizes))

    names = [f"{n:03}" for n in range(200)]
    content = bytes(100_000)
    return (
        Case("flat bomb", "archive-ratio", flat),
        Case("bomb of several files", "archive-ratio", split),
        Case("unpacks to 4 GiB by its own word", "unpacked-size", declared(0xFFFFFFFE)),
        Case("unpacks to 8 EiB by its own word", "unpacked-size", lambda: declared_64(2**63)),
        Case("unpacks to much in sum", "unpacked-size", declared(*[100 * _MEBIBYTE] * 6)),
        Case(
            "entries that quote each other", "entry-overlap", lambda: quoted_overlap(names, content)
        ),
        Case(
            "entries with a gap to one kernel", "entry-overlap", lambda: gap_overlap(names, content)
        ),
        Case(
            "entries in one place",
            "entry-overlap",
            lambda: with_members(Member("a", offset=0), Member("b", offset=0)),
        ),
        Case(
            "entry in the midst of another",
            "entry-overlap",
            lambda: with_members(Member("a", offset=20)),
        ),
        Case(
            "entry beyond the end",
            "archive-layout",
            lambda: with_members(Member("a", offset=10**9)),
        ),
        Case(
            "entry over the directory",
            "entry-overlap",
            lambda: with_members(Member("a", packed_size=60, size=60)),
        ),
        Case("too many entries", "archive-entries", many),
        Case("too many folders", "archive-entries", many_folders),
        Case("huge directory", "archive-entries", many_alike),
        Case(
            "directory of 4 GiB by its own word",
            "archive-entries",
            lambda: closed(b"", b"", 1, 0xFFFFFFFE),
        ),
        Case(
            "directory of 16 EiB by its own word",
            "archive-entries",
            lambda: closed_64(b"", b"", 1, 2**64 - 1),
        ),
        Case("large archive", "archive-size", good, Limits(archive_size=100)),
        Case(
            "large unpacked",
            "unpacked-size",
            lambda: with_members(Member("Resources/a", bytes(1000))),
            Limits(unpacked_size=1000),
        ),
    )


def _formats() -> tuple[Case, ...]:
    def tar() -> bytes:
        stream = io.BytesIO()
        with (
            # Without the time of day.
            gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            info = tarfile.TarInfo("manifest.yaml")
            info.size = len(manifest())
            archive.addfile(info, io.BytesIO(manifest().encode()))
        return stream.getvalue()

    def cut_directory() -> bytes:
        """Half of the directory is gone; the end record still tells of the whole."""
        whole = good()
        start = whole.index(b"PK\1\2")
        return whole[: start + 40] + whole[-22:]

    def shifted(by: int) -> Callable[[], bytes]:
        def build() -> bytes:
            whole = good()
            start = whole.index(b"PK\1\2")
            return closed(whole[:start], whole[start:-22], 2, offset=start + by)

        return build

    def no_directory_entry() -> bytes:
        whole = good()
        start = whole.index(b"PK\1\2")
        return closed(whole[:start], b"JUNK" + whole[start + 4 : -22], 2)

    return (
        Case("empty file", "archive-format", lambda: b""),
        Case("text", "archive-format", lambda: manifest().encode()),
        Case("zeros", "archive-format", lambda: bytes(100_000)),
        Case("tar", "archive-format", tar),
        Case("cut off in its end record", "archive-format", lambda: good()[:-1]),
        Case("cut off in its directory", "archive-format", lambda: good()[:-40]),
        Case("cut off in its files", "archive-format", lambda: good()[:60]),
        Case("directory with a hole", "archive-layout", cut_directory),
        Case("directory without its signature", "archive-layout", no_directory_entry),
        Case(
            "directory with a field cut off",
            "entry-extra",
            lambda: with_members(Member("a", extra=struct.pack("<HH", 1, 0xFFFF))),
        ),
        Case(
            "directory with a long size cut off",
            "entry-extra",
            lambda: with_members(Member("a", size=0xFFFFFFFF, extra=struct.pack("<HHI", 1, 4, 1))),
        ),
        Case("directory elsewhere, behind", "archive-layout", shifted(1)),
        Case("directory elsewhere, far behind", "archive-layout", shifted(0x7FFFFFFF)),
        Case("no file at all", "manifest-missing", lambda: zipped([])),
        Case("no manifest", "manifest-missing", lambda: zipped([Member(CLASS_FILE)])),
        Case(
            "manifest in a folder",
            "manifest-missing",
            lambda: zipped([Member(f"{NAME}/manifest.yaml", manifest().encode())]),
        ),
        Case(
            "manifest in capitals",
            "manifest-missing",
            lambda: zipped([Member("MANIFEST.yaml", manifest().encode())]),
        ),
        Case(
            "manifest that is a folder",
            "manifest-missing",
            lambda: zipped([Member("manifest.yaml/", b"", FOLDER)]),
        ),
    )


def _resource(content: bytes, **fields: Any) -> Callable[[], bytes]:
    return lambda: with_members(Member("Resources/a", content, **fields))


def _damaged() -> tuple[Case, ...]:
    def of_manifest(**fields: Any) -> Callable[[], bytes]:
        text = manifest(Classes=None).encode()
        return lambda: zipped([Member("manifest.yaml", text, **fields)])

    packed = Member("Resources/a", _CONTENT).data
    return (
        Case("larger than declared, packed", "entry-size", _resource(_CONTENT, size=100)),
        Case("larger than an empty file", "entry-size", _resource(_CONTENT, size=0, checksum=0)),
        Case("smaller than declared, packed", "entry-size", _resource(_CONTENT, size=10_241)),
        Case("wrong checksum, packed", "entry-data", _resource(_CONTENT, checksum=1)),
        Case("wrong checksum, stored", "entry-data",
             _resource(_CONTENT, checksum=1, method=STORED)),
        Case("cut off, packed", "entry-data", _resource(_CONTENT, packed=packed[:-20])),
        Case("longer than its packed data", "entry-data",
             _resource(_CONTENT, packed=packed + b"\0")),
        Case("no deflate stream", "entry-data", _resource(_CONTENT, packed=b"\xff" * 100)),
        Case("manifest with a wrong checksum", "entry-data", of_manifest(checksum=1)),
        Case("manifest longer than declared", "entry-size", of_manifest(size=10)),
    )  # fmt: skip


def _contradicted() -> tuple[Case, ...]:
    """Damage that the archive's directory and the headers show."""

    def no_header() -> bytes:
        whole = with_members(Member("Resources/a", _CONTENT))
        start = whole.rindex(b"PK\3\4")
        return whole[:start] + b"JUNK" + whole[start + 4 :]

    cut = _CONTENT[:-20]
    return (
        Case("larger than declared, stored", "entry-size",
             _resource(_CONTENT, size=100, method=STORED)),
        Case("smaller than declared, stored", "entry-size",
             _resource(_CONTENT, size=10_241, method=STORED)),
        Case("cut off, stored", "entry-size", _resource(_CONTENT, packed=cut, method=STORED)),
        Case("no header in front", "entry-header", no_header),
    )  # fmt: skip


def _misnamed() -> tuple[Case, ...]:
    def resource(name: bytes) -> Callable[[], bytes]:
        return lambda: with_members(Member("Resources/a", b"x").headed(name=name, flags=UTF_8))

    text = manifest(Classes=None).encode()
    return (
        Case("another name in front", "entry-header", resource(b"../../../ab")),
        Case("a long other name in front", "entry-header", resource(b"\1" * 0xFFFF)),
        Case("a longer name in front", "entry-header", resource(b"Resources/ab")),
        Case(
            "manifest of another name in front",
            "entry-header",
            lambda: zipped([Member("manifest.yaml", text).headed(name="../manifest.y")]),
        ),
    )


def _laughs(levels: int, width: int = 10) -> str:
    """Aliases that stand for ``width ** levels`` values."""
    lines = ["Laughs:\n- &a0 [x]"]
    for level in range(1, levels):
        lines.append(f"- &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines) + "\n"


def _merging_laughs(levels: int) -> str:
    """Merge keys that copy one pair ``10 ** levels`` times."""
    lines = ["Laughs:\n- &a0 {x: y}"]
    for level in range(1, levels):
        lines.append(f"- &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}")
    return "\n".join(lines) + "\n"


def _yaml(start: str, wrap: Callable[[str | bytes], bytes]) -> list[tuple[str, str, Callable]]:
    """What no YAML file may hold, whichever it is.

    :param start: what the file begins with.
    :param wrap: makes a package with this file.
    """
    python = "!!python/object/apply:os.system ['touch /tmp/hostile']"

    def after(text: str) -> Callable[[], bytes]:
        return lambda: wrap(start + text)

    return [
        ("nested lists", "yaml-depth", after("Deep: " + "[" * _DEEP + "]" * _DEEP + "\n")),
        ("nested mappings", "yaml-depth", after("Deep: " + "{a: " * _DEEP + "}" * _DEEP + "\n")),
        ("nested lists without an end", "yaml-depth", after("Deep: " + "[" * _DEEP)),
        ("nested block lists", "yaml-depth", after("Deep:\n " + "- " * _DEEP + "\n")),
        ("nested complex keys", "yaml-depth", after("Deep:\n " + "? " * _DEEP + "\n")),
        ("nested 65 levels", "yaml-depth", after("Deep: " + "[" * 64 + "]" * 64 + "\n")),
        ("nested in other line breaks", "yaml-depth", after("Deep:\x85 " + "- " * _DEEP)),
        ("nested after a separator", "yaml-depth", after("Deep:\u2028 " + "- ? " * (_DEEP // 2))),
        ("nested after a byte order mark", "yaml-depth", lambda: wrap("\ufeff" + "- " * _DEEP)),
        ("nested in UTF-16", "yaml-depth", lambda: wrap(("[" * _DEEP).encode("utf-16"))),
        ("a billion laughs", "yaml-alias", after(_laughs(10))),
        ("a billion merged laughs", "yaml-alias", after(_merging_laughs(10))),
        ("quadratic laughs", "yaml-alias", after(f"A: &a [{'x,' * 900}]\nB: [{'*a,' * 900}]\n")),
        ("list in itself", "yaml-alias", after("Loop: &a [*a]\n")),
        ("mapping in itself", "yaml-alias", after("Loop: &a {b: {c: *a}}\n")),
        ("mapping as its own key", "yaml-alias", after("Loop: &a {? *a : b}\n")),
        ("mapping merged into itself", "yaml-alias", after("Loop: &a {<<: *a}\n")),
        ("the whole in itself", "yaml-alias", lambda: wrap("&a\n" + start + "Loop: *a\n")),
        ("python call", "yaml-tag", after(f"Call: {python}\n")),
        ("python name", "yaml-tag", after("Call: !!python/name:os.system\n")),
        ("python call as a key", "yaml-tag", after(f"? {python}\n: b\n")),
        ("python call by a short hand", "yaml-tag",
         lambda: wrap("%TAG !p! tag:yaml.org,2002:python/\n---\n" + start + "A: !p!tuple [1]\n")),
        ("unknown tag", "yaml-tag", after("Call: !hostile x\n")),
        ("verbatim tag", "yaml-tag", after("Call: !<tag:example.org,2026:hostile> x\n")),
        ("alias of nothing", "yaml-syntax", after("A: *nothing\n")),
        ("binary", "yaml-syntax", lambda: wrap(bytes(range(256)))),
        ("control characters", "yaml-syntax", after("A: \x1b[2J\n")),
        ("no UTF-8", "yaml-syntax", lambda: wrap(start.encode() + b"A: \xff\xfe\n")),
        ("UTF-16 cut in half", "yaml-syntax", lambda: wrap(start.encode("utf-16") + b"x")),
        ("UTF-32", "yaml-syntax", lambda: wrap(start.encode("utf-32"))),
        ("UTF-16 of half characters", "yaml-syntax", lambda: wrap(b"\xff\xfeA\0:\0 \0\x00\xd8A\0")),
        ("file too big", "entry-size", after(f"#{'x' * _MEBIBYTE}\n")),
        # Each value takes some hundred bytes once it is read.
        ("half a million values", "yaml-size",
         after(f"Many: [{'a,' * ((_MEBIBYTE - _SLACK) // 2)}]\n")),
        ("a hundred thousand keys", "yaml-size",
         after("".join(f"{key:x}: 1\n" for key in range(0x10000, 0x10000 + 100_000)))),
    ]  # fmt: skip


def _stored(wrap: Callable[[str | bytes], bytes], name: str) -> Callable[[str | bytes], bytes]:
    """Wrap a file, stored rather than packed, so that no ratio gives it away."""

    def build(text: str | bytes) -> bytes:
        data = text if isinstance(text, bytes) else text.encode()
        if len(data) <= _MEBIBYTE:
            return wrap(data)
        members = {"manifest.yaml": manifest().encode(), CLASS_FILE: CLASS_TEXT.encode()}
        members[name] = data
        return zipped(Member(*item, method=STORED) for item in members.items())

    return build


def _manifests() -> tuple[Case, ...]:
    inherited = "&a {FullName: org.hostile, Type: Library}"
    keys: dict[str, tuple[str, dict[str, str | None]]] = {
        "FullName: missing": ("manifest-name", {"FullName": None}),
        "FullName: a path": ("manifest-name", {"FullName": "../../etc/passwd"}),
        "FullName: absolute": ("manifest-name", {"FullName": "/etc/passwd"}),
        "FullName: dots": ("manifest-name", {"FullName": "'..'"}),
        "FullName: an empty part": ("manifest-name", {"FullName": "org..hostile"}),
        "FullName: a line break": ("manifest-name", {"FullName": '"org.hostile\\n"'}),
        "FullName: a NUL": ("manifest-name", {"FullName": '"org.hostile\\0"'}),
        "FullName: a look-alike": ("manifest-name", {"FullName": "\u043erg.hostile"}),
        "FullName: written backwards": ("manifest-name", {"FullName": '"org.\\u202ehostile"'}),
        "FullName: long": ("manifest-name", {"FullName": "a" * 256}),
        "FullName: very long": ("manifest-name", {"FullName": "a" * 500_000}),
        "FullName: SQL": ("manifest-name", {"FullName": "\"a' OR '1'='1\""}),
        "FullName: a list": ("manifest-name", {"FullName": "[org.hostile]"}),
        "FullName: merged": ("manifest-name", {"FullName": None, "Base": inherited, "<<": "*a"}),
        "Type: unknown": ("manifest-type", {"Type": "Hostile"}),
        "Format: unknown": ("manifest-format", {"Format": "Hostile/1.0"}),
        "Format: a path": ("manifest-format", {"Format": "../../MuranoPL/1.0"}),
        "Format: enormous": ("manifest-format", {"Format": "9" * 5000}),
        "Version: enormous": ("manifest-version", {"Version": "9" * 5000}),
        "Version: enormous, in parts": ("manifest-version", {"Version": f"1.{'9' * 5000}.0"}),
        "Version: four parts": ("manifest-version", {"Version": "1.2.3.4"}),
        "Version: other digits": ("manifest-version", {"Version": "\u0661.\u0662.\u0663"}),
        "Version: infinite": ("manifest-version", {"Version": ".inf"}),
        "Version: exponential": ("manifest-version", {"Version": "1e999999999"}),
        "Version: a mapping": ("manifest-version", {"Version": "{a: b}"}),
        "Require: a path": ("manifest-require", {"Require": "{../../etc: 1}"}),
        "Require: an empty name": ("manifest-require", {"Require": "{'': 1}"}),
        "Require: a line break": ("manifest-require", {"Require": '{"org.base\\n": 1}'}),
        "Require: a long name": ("manifest-require", {"Require": f"{{{'a' * 1000}: 1}}"}),
        "Require: a key that is a list": ("manifest-key", {"Require": "{[org.base]: 1}"}),
        "Require: a package twice": ("manifest-key", {"Require": "{org.base: 1, org.base: 2}"}),
        "Require: a list": ("manifest-require", {"Require": "[org.base]"}),
        "Require: a range that is a list": ("manifest-require", {"Require": "{org.base: [1]}"}),
        "Require: an enormous number": ("manifest-require", {"Require": f"{{a: '{'9' * 5000}'}}"}),
        "Require: thousands of clauses": (
            "manifest-require",
            {"Require": "{a: '" + ",".join(f"!={n}.0.0" for n in range(5000)) + "'}"},
        ),
        # Each of them short enough; to read a range takes its length squared.
        "Require: hundreds of long ranges": (
            "manifest-require",
            {"Require": "{" + ", ".join(f"a{n}: '{_long_range(n)}'" for n in range(900)) + "}"},
        ),
        "Require: thousands of packages": (
            "manifest-require",
            {"Require": "{" + ", ".join(f"a{n}: {n}" for n in range(40_000)) + "}"},
        ),
        "Classes: a list": ("manifest-classes", {"Classes": "[Thing.yaml]"}),
        "Classes: a name that is a path": ("manifest-classes", {"Classes": "{../x: Thing.yaml}"}),
        "Classes: a file above": ("manifest-classes", {"Classes": f"{{{CLASS}: ../../x}}"}),
        "Classes: a file aside": ("manifest-classes", {"Classes": f"{{{CLASS}: ../a.yaml}}"}),
        "Classes: a folder above": ("manifest-classes", {"Classes": f"{{{CLASS}: a/../..}}"}),
        "Classes: an absolute file": ("manifest-classes", {"Classes": f"{{{CLASS}: /etc/passwd}}"}),
        "Classes: backslashes": ("manifest-classes", {"Classes": f"{{{CLASS}: '..\\..\\x'}}"}),
        "Classes: an empty file": ("manifest-classes", {"Classes": f"{{{CLASS}: ''}}"}),
        "Classes: no file": ("manifest-classes", {"Classes": f"{{{CLASS}: [a]}}"}),
        "Classes: a class twice": (
            "manifest-key",
            {"Classes": f"{{{CLASS}: Thing.yaml, {CLASS}: Other.yaml}}"},
        ),
        "Classes: a missing file": ("class-file", {"Classes": f"{{{CLASS}: Other.yaml}}"}),
        "Classes: a folder": ("class-file", {"Classes": f"{{{CLASS}: Resources}}"}),
        "Classes: a missing file that would forge a log": (
            "class-file",
            {"Classes": f'{{{CLASS}: "x\\nINFO forged \\e[2J"}}'},
        ),
        "Classes: thousands of missing files": (
            "class-file",
            {"Classes": "{" + ", ".join(f"a{n}: b{n}" for n in range(20_000)) + "}"},
        ),
        "Logo: a file above": ("manifest-file", {"Logo": "../../etc/passwd"}),
        "Logo: an absolute file": ("manifest-file", {"Logo": "/etc/passwd"}),
        "UI: a file above": ("manifest-file", {"UI": "../manifest.yaml"}),
        "UI: an absolute file": ("manifest-file", {"UI": "/etc/passwd"}),
        "UI: a file above from below": ("manifest-file", {"UI": "a/../../../x"}),
        "Supplier: a logo above": ("manifest-file", {"Supplier": "{Logo: ../../etc/passwd}"}),
        "Supplier: a logo absolute": ("manifest-file", {"Supplier": "{Logo: /etc/passwd}"}),
        "Supplier: a list": ("manifest-supplier", {"Supplier": "[a]"}),
        "Supplier: a key that would forge a log": (
            "manifest-supplier",
            {"Supplier": '{"a\\nINFO forged \\e[2J": [b]}'},
        ),
        "Supplier: a long key": ("manifest-supplier", {"Supplier": f"{{? {'a' * 500_000} : [b]}}"}),
        "Tags: a mapping": ("manifest-tags", {"Tags": "{a: b}"}),
        "Meta: a key that is a list": ("manifest-value", {"Meta": "{[a]: b}"}),
        "Meta: a key twice": ("manifest-key", {"Meta": "{a.B: {c: 1, c: 2}}"}),
        "Meta: a key thousands of times": ("manifest-key", {"Meta": f"{{{'a: 1, ' * 40_000}}}"}),
    }  # fmt: skip
    texts: dict[str, tuple[str, str]] = {
        "empty": ("manifest-mapping", ""),
        "a comment": ("manifest-mapping", "# nothing\n"),
        "a list": ("manifest-mapping", "- a\n- b\n"),
        "a text": ("manifest-mapping", "FullName"),
        "a number": ("manifest-mapping", "1"),
        "two documents": ("yaml-syntax", manifest() + "---\n" + manifest()),
        "a key twice": ("manifest-key", manifest() + "FullName: org.other\n"),
        "a key that is a mapping": ("manifest-key", manifest() + "? {a: b}\n: c\n"),
        "a key thousands of times": ("manifest-key", manifest() + "A: 1\n" * 40_000),
    }
    cases = [
        Case(f"manifest: {name}", rule, build)
        for name, rule, build in _yaml(manifest(), _stored(with_manifest, "manifest.yaml"))
    ]
    cases += [
        Case(f"manifest, {name}", rule, lambda changed=changed: with_keys(**changed))
        for name, (rule, changed) in keys.items()
    ]
    cases += [
        Case(f"manifest: {name}", rule, lambda text=text: with_manifest(text))
        for name, (rule, text) in texts.items()
    ]
    return tuple(cases)


def _long_range(number: int) -> str:
    return ",".join(f">{n}" for n in range(200)) + f",<{number + 1000}"


def _class_files() -> tuple[Case, ...]:
    unnamed = "Extends: io.murano.Object\n"
    texts = {
        "empty": ("class-missing", ""),
        "a list": ("class-syntax", "- a\n"),
        "a text": ("class-syntax", "a\n"),
        "of another class": ("class-missing", "Name: org.hostile.Other\n"),
        "of the class in another namespace": (
            "class-missing",
            "Namespaces: {=: org.other}\nName: Thing\n",
        ),
        "namespaces alone": ("class-missing", "Namespaces: {=: org.hostile}\n"),
        "two classes without a name": ("class-name", f"{unnamed}---\n{unnamed}"),
        "a name that is a path": ("class-syntax", "Name: ../../x\n"),
        "a name that is a list": ("class-syntax", "Name: [org.hostile.Thing]\n"),
        "a name with a line break": ("class-syntax", 'Name: "org.hostile.Thing\\n"\n'),
        "an undeclared prefix of a name": ("class-syntax", "Name: x:Thing\n"),
        "an undeclared prefix of a base": ("class-syntax", CLASS_TEXT + "Extends: x:Y\n"),
        "an undeclared prefix in a list": ("class-syntax", CLASS_TEXT + "Extends: [a.B, x:Y]\n"),
        "a base that is a path": ("class-syntax", CLASS_TEXT + "Extends: ../../x\n"),
        "a base that is a mapping": ("class-syntax", CLASS_TEXT + "Extends: {a: b}\n"),
        "namespaces that are a list": ("class-syntax", CLASS_TEXT + "Namespaces: [a]\n"),
        "a namespace that is a path": (
            "class-syntax",
            CLASS_TEXT + "Namespaces: {x: ../../etc}\nExtends: x:passwd\n",
        ),
        "a namespace that would forge a log": (
            "class-syntax",
            'Namespaces: {x: "a\\nINFO forged \\e[2J"}\nName: x:Thing\n',
        ),
        # Each base class would take as much.
        "thousands of bases in a long namespace": (
            "class-syntax",
            f"Namespaces: {{=: {'a' * 500_000}}}\n"
            f"Name: {CLASS}\nExtends: [{_numbered('a', 10_000)}]\n",
        ),
        "a key twice": ("yaml-key", CLASS_TEXT + "Extends: io.murano.Object\nExtends: a.B\n"),
        "a method twice": ("yaml-key", CLASS_TEXT + "Methods: {run: {Usage: Action}, run: {}}\n"),
        "a key thousands of times": ("yaml-key", CLASS_TEXT + "A: 1\n" * 40_000),
        "a key that is thousands of numbers": (
            "yaml-key",
            CLASS_TEXT + f"A: {{{', '.join(f'0{bin(n)[1:]}: 1, {n}: 2' for n in range(9000))}}}\n",
        ),
        "a base with a long name": ("class-syntax", CLASS_TEXT + f"Extends: {'a' * 256}\n"),
        # Each document stands for nearly as many values as one may hold.
        "many laughs, one a document": (
            "yaml-alias",
            CLASS_TEXT + "---\n" + f"---\n{_laughs(5, 14)}" * 1000,
        ),
        "many documents that are texts": ("class-syntax", CLASS_TEXT + "--- a\n" * 40_000),
    }
    cases = [
        Case(f"class file: {name}", rule, build)
        for name, rule, build in _yaml(CLASS_TEXT, _stored(with_class, CLASS_FILE))
    ]
    cases += [
        Case(f"class file: {name}", rule, lambda text=text: with_class(text))
        for name, (rule, text) in texts.items()
    ]
    cases.append(Case("class file: missing classes by many others", "class-missing", _long_lists))
    cases.append(
        Case("class file: thousands of subclasses of thousands", "class-syntax", _many_subclasses)
    )
    cases += [
        Case("class files: many large ones", "yaml-size", lambda: _large_classes("")),
        Case("class files: many that break off", "yaml-syntax", lambda: _large_classes("A: [")),
    ]
    return tuple(cases)


def _forms() -> tuple[Case, ...]:
    fields = "Forms:\n- p:\n    fields:\n"
    field = f"{fields}    - {{name: a, type: string, "
    texts = {
        "no form": ("form-section", ""),
        "a list of itself": ("yaml-alias", f"{FORM_TEXT}Forms: &a [*a]\n"),
        "a version of half a megabyte": ("form-version", f"{FORM_TEXT}Version: {'2.' * 250_000}\n"),
        "a number to the base of 60": ("form-version", f"{FORM_TEXT}Version: 2{':59' * 300_000}\n"),
        "thousands of pages that are none": ("form-page", f"{FORM_TEXT}Forms: [{'x,' * 49_000}]\n"),
        "thousands of fields that are none": (
            "form-field",
            f"{FORM_TEXT}{fields}" + "    - {}\n" * 30_000,
        ),
        "a type that is a path": (
            "form-field",
            f"{FORM_TEXT}{fields}    - {{name: a, type: ../a}}\n",
        ),
        "a terminal's control characters": (
            "form-attribute",
            f'{FORM_TEXT}{field}"\\e[2J\\a": x}}\n',
        ),
        "a key twice": ("yaml-key", f"{FORM_TEXT}Templates: {{a: 1, a: 2}}\n"),
        "a page whose name stands twice": (
            "yaml-key",
            f"{FORM_TEXT}Forms:\n- p: {{fields: []}}\n  p: {{fields: [a]}}\n",
        ),
        "a key thousands of times with a large value": (
            "yaml-key",
            f"{FORM_TEXT}a: &a [{'[x],' * 30}]\nb: {{{'c: [*a],' * 900} c: 1}}\n",
        ),
        "patterns that take long": (
            "form-validator",
            f"{FORM_TEXT}{fields}"
            + f"    - {{name: a, type: string, regexpValidator: '{'(a{1,9}' * 9}'}}\n" * 3000,
        ),
        "a tab and much more": ("yaml-syntax", f"{FORM_TEXT}a: b\t\n{'- [a, {b: c}]' * 4000}\n"),
        "values that are no numbers": ("yaml-syntax", f"{FORM_TEXT}a: [{'!!int x,' * 30_000}]\n"),
    }
    cases = [
        Case(f"form: {name}", rule, build)
        for name, rule, build in _yaml(FORM_TEXT, _stored(_with_form, FORM_FILE))
    ]
    cases += [
        Case(f"form: {name}", rule, lambda text=text: _with_form(text))
        for name, (rule, text) in texts.items()
    ]
    return tuple(cases)


def _with_form(text: str | bytes) -> bytes:
    return with_members(Member(FORM_FILE, text if isinstance(text, bytes) else text.encode()))


def _long_lists() -> bytes:
    """Many classes that a file does not define, and many that it does."""
    classes = "{" + ", ".join(f"b{n}: Thing.yaml" for n in range(500)) + "}"
    text = "---\n".join(f"Name: a{n}\n" for n in range(20_000))
    return zipped(
        [
            Member("manifest.yaml", manifest(Classes=classes).encode()),
            Member(CLASS_FILE, text.encode()),
        ]
    )


def _many_subclasses() -> bytes:
    """One class of many bases, under many names."""
    classes = "{" + ", ".join(f"b{n}: Thing.yaml" for n in range(5000)) + "}"
    text = f"Extends: [{_numbered('a', 5000)}]\n"
    return zipped(
        [
            Member("manifest.yaml", manifest(Classes=classes).encode()),
            Member(CLASS_FILE, text.encode()),
        ]
    )


def _numbered(name: str, count: int) -> str:
    return ", ".join(f"{name}{number}" for number in range(count))


def _large_classes(end: str) -> bytes:
    """Class files that are each fine, but for their end, and that take minutes to read."""
    count = 300
    classes = "{" + ", ".join(f"a{n}: {n}.yaml" for n in range(count)) + "}"
    members = [Member("manifest.yaml", manifest(Classes=classes).encode())]
    body = f"Values: [{'a,' * 45_000}]\n"
    texts = [f"Name: a{n}\n{body}{end}".encode() for n in range(count)]
    members += [Member(f"Classes/{n}.yaml", text) for n, text in enumerate(texts)]
    # So that the ratio does not give it away.
    noise = random.Random(0).randbytes(400_000)
    return zipped((*members, Member("Resources/noise", noise, method=STORED)))


def _harmless() -> tuple[tuple[str, Callable[[], bytes]], ...]:
    special = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
    return (
        ("good", good),
        (
            "setuid",
            lambda: with_members(Member("Resources/run.sh", mode=stat.S_IFREG | special | 0o777)),
        ),
        ("no mode", lambda: with_members(Member("Resources/a", mode=0, system=DOS))),
        ("folder", lambda: with_members(Member("Resources/", b"", FOLDER))),
        ("stored", lambda: with_members(Member("Resources/a", method=STORED))),
        ("packed into a pipe", lambda: with_members(Member("Resources/a").streamed())),
        (
            "packed into a pipe, with an empty file",
            lambda: with_members(Member("Resources/a", b"", method=STORED).streamed()),
        ),
        ("comment", lambda: zipped(_members(), b"0" * 40)),
        ("large kind", lambda: closed_64(*laid_out(_members()))),
        (
            "folder without data, packed",
            lambda: with_members(Member("Resources/", b"", FOLDER).streamed()),
        ),
        ("archive in the archive", lambda: with_members(Member("Resources/a.zip", good()))),
        ("yaql", lambda: with_class(CLASS_TEXT + "Methods: {run: {Body: !yaql $.a}}\n")),
        ("alias", lambda: with_class(CLASS_TEXT + "A: &a [x]\nB: *a\n")),
        ("nested 64 levels", lambda: with_class(CLASS_TEXT + f"A: {'[' * 63}{']' * 63}\n")),
        (
            "unusual names",
            lambda: with_paths(*("\u65e5\u672c", "-rf", "a b", "...")),
        ),
    )


DIRECTORY = (
    *_paths(),
    *_collisions(),
    *_kinds(),
    *_unreadable(),
    *_misnamed(),
    *_contradicted(),
    *_bombs(),
    *_formats(),
)
MANIFEST = _manifests()
CLASSES = _class_files()
FORMS = _forms()
DATA = _damaged()
CASES = (*DIRECTORY, *MANIFEST, *CLASSES, *FORMS, *DATA)

# Name and archive of packages that only look hostile, and must be accepted.
HARMLESS = _harmless()

__all__ = ["CASES", "CLASSES", "DATA", "DIRECTORY", "FORMS", "HARMLESS", "MANIFEST", "Case"]
