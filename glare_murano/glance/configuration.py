# SPDX-License-Identifier: Apache-2.0

"""Run the command ``glare-murano-glance-configure``, which enables packages in a configured Glance.

The command merges the files in the directory ``etc``, beside this module, into Glance's
configuration files. Existing settings stay, and a second run changes nothing. This module does not
import Glance.
"""

import argparse
import pathlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

import yaml

from glare_murano import images
from glare_murano.glance.ini_file import IniFile
from glare_murano.package import GlareMuranoError
from glare_murano.package.errors import quoted

ETC = pathlib.Path(__file__).parent / "etc"
PLUGIN = "murano_package"

_DIRECTORY = pathlib.Path("/etc/glance")
_CONF = "glance-api.conf"
_PASTE = "glance-api-paste.ini"
_IMPORT = "glance-image-import.conf"
_OPTIONS = "glance-murano.conf"
_POLICY = "glance-policy.yaml"
_PROTECTIONS = "property-protections.conf"
_OWN_POLICY = "glare-murano.yaml"
_HEADER = """\
# Written by glare-murano-glance-configure, from the rules in Glance's other policy files.
# Run the command again after a change of these rules.
"""

# Names in the paste file: sections, Glance's filters, and a flavor.
_API = "composite:api"
_MOUNTED = "composite:murano"
_CONTEXT = "context"
_VERSIONS = "versionnegotiation"
_KEYSTONE = "keystone"

# In our policy file, this string joins Glance's default for a rule with our condition.
_CONDITION = " and "
# Our own rules have this prefix, and need no condition.
_OWN_RULE = "murano_"
# Rules that permit everybody. Our condition replaces such a rule.
_EVERYBODY = {"", "@"}


class ConfigurationError(GlareMuranoError):
    """A file of Glance's configuration cannot be merged; the message names the file."""


def configure(directory: pathlib.Path) -> list[pathlib.Path]:
    """Merge all settings for packages into Glance's configuration files.

    :param directory: the directory that contains ``glance-api.conf`` and the other files.
    :returns: the paths of the files that were changed.
    :raises ConfigurationError: if ``glance-api.conf`` is missing, or if a file cannot be merged.
        Then no file is changed.
    :raises OSError: if a file cannot be read or written.
    """
    changes = find_changes(directory)
    for path, text in changes.items():
        _write(path, text, like=directory / _CONF)
    return [*changes]


def find_changes(directory: pathlib.Path) -> dict[pathlib.Path, str]:
    """Return what ``configure`` would write: the path of each changed file -> its new content.

    :param directory: as in ``configure``.
    :raises ConfigurationError: if ``glance-api.conf`` is missing, or if a file cannot be merged.
    :raises OSError: if a file cannot be read.
    """
    # Paths in the files must be absolute, since Glance runs in another directory than this command.
    directory = directory.absolute()
    conf = IniFile(directory / _CONF)
    if not conf.path.is_file():
        raise ConfigurationError(f"{conf.path} is missing: name the directory of Glance's files")
    imports = IniFile(directory / _IMPORT)
    _merge_formats(conf)
    _merge_plugin(conf, imports)
    files = [_merged_paste(conf), _merged_protections(conf), imports, conf]
    texts = {file.path: file.text for file in files} | _policy(conf)
    return {path: text for path, text in texts.items() if not _has(path, text)}


def main() -> int:
    """Run the command.

    :returns: the exit code: 1 if ``glance-api.conf`` is missing, or if a file cannot be read,
        merged or written; otherwise 0.
    """
    parser = argparse.ArgumentParser(
        prog="glare-murano-glance-configure",
        description="Merge the settings for Murano packages into the configuration of a Glance.",
        epilog="Existing settings stay. Restart Glance afterwards.",
    )
    parser.add_argument(
        "directory",
        nargs="?",
        type=pathlib.Path,
        default=_DIRECTORY,
        help="the directory of glance-api.conf (default: %(default)s)",
    )
    arguments = parser.parse_args()
    try:
        changed = configure(arguments.directory)
    except (ConfigurationError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    for path in changed:
        print(f"changed {path}")
    if not changed:
        print("nothing to change")
    return 0


def _has(path: pathlib.Path, text: str) -> bool:
    return path.read_text() == text if path.exists() else not text


def _write(path: pathlib.Path, text: str, like: pathlib.Path) -> None:
    """Write a file. A new file gets the owner and the mode of another file.

    :param like: the path of the other file.
    """
    is_new = not path.exists()
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if is_new:
        owner = like.stat()
        shutil.copymode(like, path)
        shutil.chown(path, owner.st_uid, owner.st_gid)


def _merge_formats(conf: IniFile) -> None:
    option = "container_formats"
    # Older releases of Glance have the option in the group DEFAULT.
    known = conf.get("image_format", option) or conf.get("DEFAULT", option)
    if known is None:
        shipped = IniFile(ETC / _OPTIONS).get("image_format", option)
        conf.set("image_format", option, str(shipped))
    elif images.CONTAINER_FORMAT not in (formats := [name.strip() for name in known.split(",")]):
        conf.set("image_format", option, ",".join([*formats, images.CONTAINER_FORMAT]))


def _merge_plugin(conf: IniFile, imports: IniFile) -> None:
    """Enable our import plug-in as the last import plug-in.

    No other plug-in may change the archive after our plug-in has read it.
    """
    section, option = "image_import_opts", "image_import_plugins"
    # Glance reads a separate file for imports. A value in its main file replaces the value in the
    # separate file.
    file = conf if conf.get(section, option) is not None else imports
    values = (file.get(section, option) or "").strip().removeprefix("[").removesuffix("]")
    plugins = [name for value in values.split(",") if (name := value.strip(" '\""))]
    if plugins[-1:] != [PLUGIN]:
        others = [name for name in plugins if name != PLUGIN]
        names = ", ".join(f"'{name}'" for name in [*others, PLUGIN])
        file.set(section, option, f"[{names}]")


def _merged_paste(conf: IniFile) -> IniFile:
    """Return the paste file, with our filters in each pipeline that has the filter ``context``."""
    shipped = IniFile(ETC / _PASTE)
    paste = IniFile(_path(conf, conf.get("paste_deploy", "config_file") or _PASTE))
    if not paste.path.exists():
        conf.set("paste_deploy", "config_file", str(paste.path))
        paste.add(shipped.text.rstrip("\n"))
    pipelines = _authenticated(paste)
    for section in shipped.sections():
        if "murano" in section and section not in paste.sections():
            paste.add(f"\n{shipped.section(section)}")
    shipped_api = shipped.options(_API)[_KEYSTONE].split()
    ours = [name for name in shipped_api if "murano" in name]
    mounted = shipped.options(_MOUNTED)[_KEYSTONE].split()
    requests, application = mounted[shipped_api.index(_VERSIONS)], mounted[-1]
    for flavor, filters in pipelines.items():
        theirs = [name for name in filters if name not in ours]
        end = theirs.index(_CONTEXT) + 1
        before = [requests if name == _VERSIONS else name for name in theirs[:end]]
        # The operator's filters stay in front of ours: an audit must see the requests that our
        # filters refuse.
        added = [name for name in theirs[end:-1] if not _is_of_glance(paste, name)]
        end = max([end, *(theirs.index(name) + 1 for name in added)])
        _set(paste, _API, flavor, [*theirs[:end], *ours, *theirs[end:]])
        _set(paste, _MOUNTED, flavor, [*before, *added, application])
        _set(paste, f"composite:glance-api-{flavor}", "/murano", ["murano"])
    return paste


def _is_of_glance(paste: IniFile, name: str) -> bool:
    """Return whether a filter is one of Glance's own, such as its cache."""
    factory = paste.get(f"filter:{name}", "paste.filter_factory") or ""
    return factory.startswith("glance.")


def _authenticated(paste: IniFile) -> dict[str, list[str]]:
    """Return the pipelines that have the filter ``context``: flavor -> names of the filters.

    :raises ConfigurationError: if no pipeline has the filter.
    """
    pipelines = {name: value.split() for name, value in paste.options(_API).items()}
    found = {name: filters for name, filters in pipelines.items() if _CONTEXT in filters}
    if not found:
        raise ConfigurationError(
            f"{paste.path}: [{_API}] should have pipelines with the filter {_CONTEXT}, as in "
            f"Glance's own file; begin with {ETC / _PASTE}"
        )
    return found


def _set(file: IniFile, section: str, option: str, values: Sequence[str]) -> None:
    """Set an option, unless the option already has these values."""
    if (file.get(section, option) or "").split() != [*values]:
        file.set(section, option, " ".join(values))


def _merged_protections(conf: IniFile) -> IniFile:
    """Return the file of property protections, with our rule in its first section.

    Glance uses the first section that matches a property.

    :raises ConfigurationError: if the file has our rule, but not in its first section.
    """
    option = "property_protection_file"
    shipped = IniFile(ETC / _PROTECTIONS)
    ours = shipped.sections()[0]
    protections = IniFile(_path(conf, conf.get("DEFAULT", option) or _PROTECTIONS))
    if conf.get("DEFAULT", option) is None:
        conf.set("DEFAULT", option, str(protections.path))
    if not protections.sections():
        protections.add(shipped.text.rstrip("\n"))
    elif ours not in protections.sections():
        protections.add_before_sections(shipped.section(ours))
    elif protections.sections()[0] != ours:
        raise ConfigurationError(
            f"{protections.path}: [{ours}] should be the first section, since Glance uses the "
            f"first one that matches a property; move it there"
        )
    return protections


def _policy(conf: IniFile) -> dict[pathlib.Path, str]:
    """Return the path and the content of our policy file.

    We restrict some rules of Glance. If another policy file contains such a rule, our file contains
    the rule of that file, with our condition added. If not, our file contains the rule as we ship
    it.

    :returns: path -> content; empty if our file needs no rules.
    :raises ConfigurationError: if a policy file is malformed, or if a file that is read after ours
        would replace a rule of ours.
    """
    directory = _path(conf, conf.get("oslo_policy", "policy_dirs") or "policy.d")
    own = directory / _OWN_POLICY
    shipped = _rules(ETC / _POLICY)
    effective = _rules(_path(conf, conf.get("oslo_policy", "policy_file") or "policy.yaml"))
    # oslo.policy reads the files in this order.
    for path in sorted(directory.glob("[!.]*")):
        rules = _rules(path) if path != own else {}
        if path > own and (replaced := sorted(set(rules) & set(shipped))):
            raise ConfigurationError(
                f"{path} is read after {own.name} and would replace its rule "
                f"{quoted(replaced[0])}: move that rule into the policy file"
            )
        effective |= rules
    merged = dict(_with_conditions(shipped, effective))
    return {own: f"{_HEADER}{yaml.safe_dump(merged, width=1000)}"} if merged else {}


def _with_conditions(
    shipped: Mapping[str, str], effective: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each rule that our policy file needs.

    * A rule that no configured file contains is yielded as shipped.
    * A configured rule of this project's own API is left out.
    * A configured rule of Glance is joined with the condition at the end of the shipped rule. If
      the configured rule permits everybody, only the condition is yielded. If the configured rule
      equals the shipped rule, the rule is left out.

    :param shipped: the rules that this project ships, by name.
    :param effective: the rules in the configured files, by name.
    """
    for name, rule in shipped.items():
        present = effective.get(name)
        condition = rule.rpartition(_CONDITION)[2]
        if present is None:
            yield name, rule
        elif name.startswith(_OWN_RULE):
            # The operator has written this rule, and it needs no condition of ours.
            continue
        elif present.strip() in _EVERYBODY:
            yield name, condition
        elif present != rule:
            yield name, f"({present}){_CONDITION}{condition}"


def _rules(path: pathlib.Path) -> dict[str, str]:
    """Read the rules of a policy file. A missing file has no rules.

    :raises ConfigurationError: if the file does not have the form of a policy file.
    """
    if not path.is_file():
        return {}
    try:
        rules = yaml.safe_load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(rules, dict) or not all(isinstance(rule, str) for rule in rules.values()):
        raise ConfigurationError(f"{path} should contain rules as strings, by their names")
    return rules


def _path(conf: IniFile, name: str) -> pathlib.Path:
    """Return the path that an option names. A relative path starts at the directory of ``conf``."""
    return conf.path.parent / name


if __name__ == "__main__":
    sys.exit(main())
