# SPDX-License-Identifier: Apache-2.0

"""The rules that ``openstack murano package check`` adds to the rules for uploads.

The codes of the rules, and the strings below the rules, appear in
``doc/source/guides/authors/authoring.rst``.
"""

import enum


@enum.unique
class CheckRule(enum.StrEnum):
    """A rule of the command ``package check``.

    The value of a member is the code of the rule. The string below a member says what is wrong, and
    what to do.
    """

    PACKAGE_UNREADABLE = "package-unreadable"
    """A file or a directory cannot be read, or there is no package in it. Correct the path."""
    PACKAGE_DIRECTORY = "package-directory"
    """The name of the directory is a version, but ``Version`` is another one. Rename the directory,
    or correct the manifest."""
    VERSION_SMALL = "version-small"
    """``Version`` is too small for the changes since the compared release. Raise it as the message
    says, or revert the listed changes."""
    VERSION_MISSING = "version-missing"
    """``Version`` is missing, or a compared version is 0.0.0, so any change is allowed. Add a
    version; in a directory ``dev``, ``package release`` sets it."""
    FILE_UNLISTED = "file-unlisted"
    """``Classes`` does not list a class file, so its classes cannot be used. List them, or remove
    the file."""
    FORM_MISSING = "form-missing"
    """The file of ``UI`` is missing, so the dashboard cannot show a form. Add the file, or remove
    the key."""
    FORM_CLASS = "form-class"
    """The form makes an object of a missing class, which should be in the package by its namespace.
    Correct the ``type``, or add the class to ``Classes``."""
    FORM_VALUE = "form-value"
    """The form uses the value of a page or a field that is missing, so the value is null. Correct
    the name, as in ``$.PAGE.FIELD``."""
    BASE_UNKNOWN = "base-unknown"
    """``Extends`` names a class that neither the package nor a required package has. Add the class
    to ``Classes`` or its package to ``Require``, or correct the name."""
    CLASS_UNREQUIRED = "class-unrequired"
    """A contract or ``new()`` uses a class that no required package has, so no engine finds it.
    Require the package of the class, or correct the name. An upload accepts the package, since
    engines search for the class only when the code runs. The required packages are read only with
    ``--path``, or with ``--against`` and a package of a cloud."""
    EXPRESSION_INVALID = "expression-invalid"
    """A string looks like a YAQL expression, but is not valid YAQL. So the engine, or the dashboard
    in a form, does not evaluate it. Correct the expression, or put the string into quotes."""
