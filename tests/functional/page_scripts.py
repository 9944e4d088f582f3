# SPDX-License-Identifier: Apache-2.0

"""Scripts in the guides for operators that tests of their own run."""

import re

from tests import processes

_GUIDES = processes.ROOT / "doc" / "source" / "guides" / "operators"
GLANCE = _GUIDES / "glance.rst"
BACKUP = _GUIDES / "backup.rst"


def glance_checks() -> str:
    """Return the commands of the step "Check" in the guide to Glance."""
    return blocks(glance_section("4. Check"), "sh")


def glance_section(title: str) -> str:
    """Return a section of the guide to Glance, up to the next one."""
    _, found, after = GLANCE.read_text().partition(f"\n{title}\n{'=' * len(title)}\n")
    assert found
    return re.split(r"\n[^\n]+\n==+\n", after)[0]


def blocks(text: str, language: str) -> str:
    """Return the blocks of code in a language."""
    found = re.findall(rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", text, re.M)
    return re.sub("^    ", "", "".join(found), flags=re.M)


def backup_check() -> str:
    """Return the commands that save every release, in the guide to backups."""
    return blocks(BACKUP.read_text(), "sh")
