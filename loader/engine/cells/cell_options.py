# SPDX-License-Identifier: Apache-2.0

"""The options of the engine that a cell knows; it knows no secret one."""

from collections.abc import Iterator, Mapping
from typing import Any

from oslo_config import cfg

# The groups of which a cell knows all options that are not secret.
_GROUPS = (
    "engine",
    "murano",
    "package_loader",
    "networking",
    "heat",
    "neutron",
    "mistral",
    "glance",
    "barbican",
)
# The options of other groups that a cell knows.
_OPTIONS = {
    "DEFAULT": ("file_server", "home_region"),
    "murano_auth": ("www_authenticate_uri", "cafile", "insecure", "timeout"),
    "keystone_authtoken": ("www_authenticate_uri",),
    "key_manager": ("backend",),
}
# Paths that are of no use in a cell, and the option that makes cells.
_LEFT_OUT = {
    "request_cells",
    "task_cells",
    "signing_key",
    "class_configs",
    "packages_cache",
    "lock_file",
    "reserved_names_file",
}

_TYPES = (bool, int, float, str, list, dict)

Values = Mapping[str, Mapping[str, Any]]


def read(conf: cfg.ConfigOpts) -> Values:
    """Return the options for a cell: group -> option -> value, as values for JSON.

    Options with their default value are left out.
    """
    groups = (*_GROUPS, *_OPTIONS, *conf.engine.plugin_option_groups)
    return {group: dict(_changed(conf, group)) for group in groups}


def _changed(conf: cfg.ConfigOpts, group: str) -> Iterator[tuple[str, Any]]:
    for name, entry in _registered(conf, group).items():
        option = entry["opt"]
        is_known = name in _OPTIONS[group] if group in _OPTIONS else name not in _LEFT_OUT
        if is_known and not option.secret:
            value = conf[name] if group == "DEFAULT" else conf[group][name]
            # Values of other types cannot be sent as JSON.
            if value != option.default and isinstance(value, _TYPES):
                yield name, value


def _registered(conf: cfg.ConfigOpts, group: str) -> Mapping[str, Any]:
    if group == "DEFAULT":
        return conf._opts
    return conf._groups[group]._opts if group in conf._groups else {}


def apply(conf: cfg.ConfigOpts, values: Values) -> None:
    """Set the options of a cell. Options that are not registered yet are left out."""
    for group, options in values.items():
        for name in options.keys() & _registered(conf, group).keys():
            conf.set_override(name, options[name], None if group == "DEFAULT" else group)
