# SPDX-License-Identifier: Apache-2.0

"""The commands for the package cache of this host: list, show, prune, verify."""

import argparse
import datetime
import re
from collections.abc import Sequence

from loader import errors
from loader.cache import cache_directory, cached_packages
from loader.cache.cached_packages import CachedPackage
from loader.cache.store import Cache
from loader.commands import base, output, parsing
from loader.references import PackageReference

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(r"([0-9]{1,15})([KMGT]?)")
_PACKAGE_HELP = "Name of a package, NAME@VERSION, NAME@RANGE, or the SHA-256 digest of an archive."


class ListCache(base.Lister):
    """List the packages in a cache.

    The size is the disk space of the archive and of its unpacked files. A package in use is one
    that a process has opened; "cache prune" does not remove it. For example::

        $ openstack murano cache list
        $ openstack murano cache list --directory /var/cache/murano --sort-column "Last Used"
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_directory(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        with Cache.existing(parsed_args.directory) as cache:
            packages = cached_packages.read_all(cache)
        names = ("Name", "Version", "Size", "Last Used", "In Use", "SHA-256")
        return names, [
            (
                package.fqn,
                _version(package),
                output.Size(package.stored.size),
                _last_used(package),
                package.stored.is_in_use,
                package.stored.digest,
            )
            for package in packages
        ]


class ShowCached(base.ShowOne):
    """Show a package in a cache: the newest version in a range, or the archive with a digest.

    For example::

        $ openstack murano cache show "org.example.db@>=1,<2"
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "package", type=_digest_or_reference, metavar="<package>", help=_PACKAGE_HELP
        )
        _add_directory(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Properties:
        with Cache.existing(parsed_args.directory) as cache:
            package = cached_packages.find(cache, parsed_args.package)
        shown = {
            "name": package.fqn,
            "version": _version(package),
            "sha256": package.stored.digest,
            "archive": str(package.stored.archive),
            "size": output.Size(package.stored.size),
            "last_used": _last_used(package),
            "in_use": package.stored.is_in_use,
        }
        return tuple(shown), tuple(shown.values())


class PruneCache(base.Lister):
    """Remove the least recently used packages from a cache, until the others fit into a size.

    Packages that a process uses are not removed, even if they do not fit. A removed package is
    fetched again when it is needed. For example::

        $ openstack murano cache prune --max-size 10G
    """

    nothing = ""

    _freed: int

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--max-size",
            required=True,
            type=_size,
            metavar="<size>",
            help="The largest size of all packages together, in bytes, or with the unit K, M, G or "
            "T (powers of 1024); 0 removes all packages.",
        )
        _add_directory(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        with Cache.existing(parsed_args.directory) as cache:
            packages = {p.stored.digest: p for p in cached_packages.read_all(cache)}
            pruned = cache.prune(parsed_args.max_size)
        self._freed = pruned.freed
        # Another process may have stored a package meanwhile, which has no name here.
        removed = [packages[digest] for digest in pruned.removed if digest in packages]
        return ("Name", "Version", "Size", "SHA-256"), [
            (p.fqn, _version(p), output.Size(p.stored.size), p.stored.digest) for p in removed
        ]

    def finish(self, parsed_args: argparse.Namespace) -> None:
        self.app.stderr.write(f"{output.Size(self._freed).human_readable()} were freed.\n")


class VerifyCache(base.Lister):
    """Check all packages in a cache, or one package, and list those that are damaged.

    All files are read. Damaged archives are removed, and fetched again when they are needed. The
    exit code is 1 if a package was damaged. For example::

        $ openstack murano cache verify --directory /var/cache/murano/packages
    """

    nothing = "No package is damaged."

    _damaged: Sequence[CachedPackage]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "package",
            nargs="?",
            type=_digest_or_reference,
            metavar="<package>",
            help=f"{_PACKAGE_HELP} By default, all packages.",
        )
        _add_directory(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        with Cache.existing(parsed_args.directory) as cache:
            if parsed_args.package:
                packages = [cached_packages.find(cache, parsed_args.package)]
            else:
                packages = cached_packages.read_all(cache)
            problems = cache.verify(*(p.stored.digest for p in packages)) if packages else {}
        self._damaged = [p for p in packages if p.stored.digest in problems]
        return ("Name", "Version", "Problems", "SHA-256"), [
            (p.fqn, _version(p), "\n".join(problems[p.stored.digest]), p.stored.digest)
            for p in self._damaged
        ]

    def finish(self, parsed_args: argparse.Namespace) -> None:
        if self._damaged:
            raise errors.CacheError(
                f"damaged in the cache {parsed_args.directory}: "
                f"{errors.listed(map(str, self._damaged))}; they are fetched or unpacked again "
                f"when they are needed"
            )


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--directory",
        type=parsing.path,
        default=cache_directory.of_user(),
        metavar="<path>",
        help="The directory of the cache, such as [engine] packages_cache of an engine; by "
        "default the user's own cache.",
    )


def _digest_or_reference(text: str) -> str | PackageReference:
    return text if _DIGEST.fullmatch(text) else parsing.reference(text)


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not a size, such as 500M or 10G")
    return int(found[1]) << 10 * " KMGT".index(found[2] or " ")


def _version(package: CachedPackage) -> str:
    return str(package.version or "")


def _last_used(package: CachedPackage) -> str:
    if not package.stored.used:
        return ""
    used = datetime.datetime.fromtimestamp(package.stored.used / 1e9, datetime.UTC)
    return used.isoformat(timespec="seconds")
