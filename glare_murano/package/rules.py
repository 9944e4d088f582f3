# SPDX-License-Identifier: Apache-2.0

"""Define the rules for packages: the code of each rule, and how to correct a package.

A message ends in the code of the broken rule, in brackets. Counters of refusals have the code as a
label. The strings below the codes appear in ``doc/source/reference/refusals.rst``.
"""

import enum


@enum.unique
class Rule(enum.StrEnum):
    """A rule for packages; the value is its code.

    The string below each rule says when a package is refused, and what to do.
    """

    ARCHIVE_FORMAT = "archive-format"
    """The archive is not a ZIP file. Pack the contents of the package's directory as ZIP."""
    ARCHIVE_LAYOUT = "archive-layout"
    """The archive has bytes in front of, between or behind its files, or its end records contradict
    each other. Then programs find different files in it. Pack the files into a new archive."""
    ARCHIVE_SIZE = "archive-size"
    """The archive is larger than ``max_archive_size``. Remove files from the package."""
    ARCHIVE_ENTRIES = "archive-entries"
    """There are more files and directories than ``max_archive_entries``. Pack fewer."""
    ARCHIVE_RATIO = "archive-ratio"
    """The files are more than ``max_archive_ratio`` times as large as the archive. Remove files
    that are mostly padding."""
    UNPACKED_SIZE = "unpacked-size"
    """All files together are larger than ``max_unpacked_size``. Remove some of them."""
    PATH_ESCAPE = "path-escape"
    """A path is empty, is absolute, or leaves the package's directory. Use relative paths
    without ``.``, ``..`` and empty parts."""
    PATH_CHARACTERS = "path-characters"
    """A path contains control characters, a backslash or a colon, or ends like a version of VMS
    (``;1``). Rename the file."""
    PATH_ENCODING = "path-encoding"
    """A path outside ASCII is not marked as UTF-8, or is not in the Unicode form NFC. Rename the
    file, or pack with ``openstack murano package build``, 7-Zip, ``jar``, ``git archive`` or
    Python. Most builds of ``zip``, and macOS, do not mark paths."""
    PATH_COLLISION = "path-collision"
    """Two paths differ only in case, or a path is both a file and a directory.
    Rename one of them."""
    PATH_LENGTH = "path-length"
    """A path has more than 255 characters, or a name in it more than 255 bytes. Shorten it."""
    PATH_DEPTH = "path-depth"
    """A path has more than 32 directories. Use fewer levels."""
    ENTRY_TYPE = "entry-type"
    """An entry is neither a file nor an empty directory, but a link or a device, for example.
    Replace it by a file."""
    ENTRY_ENCRYPTED = "entry-encrypted"
    """A file is encrypted. Pack the package without a password."""
    ENTRY_COMPRESSION = "entry-compression"
    """A file is compressed by a method other than Deflate, or needs a newer version of the ZIP
    format than 4.5. Pack the package with Deflate, or without compression."""
    ENTRY_SIZE = "entry-size"
    """A file is too large, or not as large as declared. Shorten the file, or pack again."""
    ENTRY_DATA = "entry-data"
    """A file is damaged, or more bytes follow the end of its compressed data. Pack again."""
    ENTRY_HEADER = "entry-header"
    """The header in front of a file, or the sizes behind it, contradict the directory of the
    archive. Pack again with another program."""
    ENTRY_EXTRA = "entry-extra"
    """An extra field of a file is cut off, or gives the file another name or type. Only some
    programs use this name or type. Pack again with another program, or with names in ASCII."""
    ENTRY_STREAMED = "entry-streamed"
    """A file is stored without compression, and its size is behind it, not in front of it. Some
    programs pack so when they write to a pipe. Compress the file, or pack into a file instead of a
    pipe."""
    ENTRY_OVERLAP = "entry-overlap"
    """Two files share bytes of the archive. Pack again."""
    MANIFEST_MISSING = "manifest-missing"
    """The archive has no ``manifest.yaml`` at its top. Pack the contents of the package's
    directory, not the directory."""
    MANIFEST_MAPPING = "manifest-mapping"
    """The manifest is not a mapping. Write lines such as ``FullName: org.example.app``."""
    MANIFEST_KEY = "manifest-key"
    """A key is not a string, is repeated, or is a merge key (``<<``). Write each key once. An
    unknown key is only logged as a warning."""
    MANIFEST_VALUE = "manifest-value"
    """A mapping in the manifest has a merge key, or a key that is not a string. Write out merged
    keys, and write keys as strings."""
    MANIFEST_TEXT = "manifest-text"
    """``Name``, ``Description`` or ``Author`` is not a string. Write a string."""
    MANIFEST_NAME = "manifest-name"
    """``FullName`` is missing or not valid. Join ASCII letters, digits and underscores by dots. A
    letter of another alphabet may look the same; the message has its code."""
    MANIFEST_VERSION = "manifest-version"
    """``Version`` is not a valid version. Write a SemVer version such as ``1.2.3``."""
    MANIFEST_FORMAT = "manifest-format"
    """``Format`` is unknown. Correct it, or install the plug-in that registers the format."""
    MANIFEST_TYPE = "manifest-type"
    """``Type`` is missing or unknown. Write ``Application`` or ``Library``."""
    MANIFEST_TAGS = "manifest-tags"
    """``Tags`` is not a list of strings. Write a list."""
    MANIFEST_CLASSES = "manifest-classes"
    """``Classes`` is not a mapping of class names to relative paths. Correct the line."""
    MANIFEST_FILE = "manifest-file"
    """``UI``, ``Logo`` or ``Supplier.Logo`` is not a relative path. Write a relative path."""
    MANIFEST_REQUIRE = "manifest-require"
    """``Require`` is not a mapping of package names to valid ranges, or has more than 256
    entries. Write lines such as ``org.example.db: ">=1.2,<2"``."""
    MANIFEST_SUPPLIER = "manifest-supplier"
    """``Supplier`` is not a mapping of strings. Correct the line."""
    MANIFEST_MISMATCH = "manifest-mismatch"
    """The package disagrees with a field of the artifact, or with the name or the id of the image.
    Create an artifact or an image with the values of the package, or correct the package."""
    MANIFEST_LIMIT = "manifest-limit"
    """The service cannot store a value: a string is too long, a number in the version is too
    large, a tag contains a comma or a slash, a character is NUL or beyond U+FFFF, or all lists and
    mappings of a package (classes, base classes, requirements, tags, keywords, supplier) together
    have more than 1024 elements. All fields of a package together have at most 60 KiB in JSON. In
    Glance, the image has a limited number of properties. Change the value."""
    YAML_SYNTAX = "yaml-syntax"
    """A file is not valid YAML, or has several documents instead of one. Correct the line."""
    YAML_SIZE = "yaml-size"
    """A YAML file, or all class files together, have more than 1 MiB or 100,000 values, or a file
    has more than 100 ``%TAG`` directives. A string counts as one value more for each 64 characters.
    Move data into resources."""
    YAML_DEPTH = "yaml-depth"
    """YAML is nested more than 64 levels deep. Use fewer levels."""
    YAML_TAG = "yaml-tag"
    """A YAML tag is neither standard nor ``!yaql``. Remove the tag."""
    YAML_ALIAS = "yaml-alias"
    """A YAML alias contains itself, or aliases expand to more than 100,000 values. A string counts
    as one value more for each 64 characters. Write out the values."""
    YAML_KEY = "yaml-key"
    """A mapping in a class file or a form has a key twice. Some programs would use the first value,
    others the last. Write each key once. In a form, a key that is repeated with the same value is
    only logged as a warning."""
    CLASS_FILE = "class-file"
    """The file of a class is missing. Add it to the directory ``Classes``, or correct the
    manifest."""
    CLASS_SYNTAX = "class-syntax"
    """``Name``, ``Extends`` or ``Namespaces`` of a class is not valid. Correct the class."""
    CLASS_NAME = "class-name"
    """Several classes in a file have no ``Name``. Name all of them but one."""
    CLASS_MISSING = "class-missing"
    """A file does not define a class that the manifest lists. Correct the manifest or ``Name``."""
    CLASS_CYCLE = "class-cycle"
    """A class extends itself, directly or through other classes of the package. A base class is
    looked up in the package itself first. Correct ``Extends``."""
    CLASS_UNLISTED = "class-unlisted"
    """No installed function finds the classes that the package type generates. List them in
    ``Classes`` in the manifest, or install a plug-in with such a function on the server."""
    NAME_RESERVED = "name-reserved"
    """The operator has reserved the name of the package, or of a class, for other projects; or the
    package has the name of the core library. Choose another name, or publish in one of these
    projects."""
    FORM_SECTION = "form-section"
    """A form is not a mapping; or ``Application`` is missing or has no header with a type; or
    another section is not what the dashboard expects. Correct the section. An unknown section is
    only logged as a warning."""
    FORM_VERSION = "form-version"
    """``Version`` of a form is not from 2.0 to 2.4. Write the version that the form needs."""
    FORM_PAGE = "form-page"
    """An entry of ``Forms`` is not a mapping of the page's name to a mapping with a list
    ``fields``. Correct the indentation. Other keys are only logged as a warning."""
    FORM_FIELD = "form-field"
    """A field of a form has no ``name``, or no ``type``. Add them. Both are strings. A type that
    the dashboard does not know has to be the name of a class."""
    FORM_ATTRIBUTE = "form-attribute"
    """A field of a form has an attribute that its type does not have, or a value of another kind.
    Correct the attribute, or remove it."""
    FORM_VALIDATOR = "form-validator"
    """A regular expression is not valid, or a validator is malformed. Correct it. Write YAQL
    expressions without quotes."""
    FORM_RANGE = "form-range"
    """``classVersion`` in the header of an object is not a range of versions, or YAML reads it as
    another one: ``1.10`` without quotes is the number 1.1. Write it in quotes. Engines refuse such
    an object, so the package is refused whatever the value of ``check_forms`` is."""
    IMAGE_MISSING = "image-missing"
    """The file of a logo is missing. Add it, or remove the key from the manifest."""
    IMAGE_SIZE = "image-size"
    """A logo has more than 500 KiB. Use a smaller image."""
    IMAGE_TYPE = "image-type"
    """A logo is not a PNG, JPEG or GIF image. Convert it."""
    TEMPLATE_MISSING = "template-missing"
    """A Heat package has no ``template.yaml`` at its top. Add the Heat template."""
    TEMPLATE_MAPPING = "template-mapping"
    """The template, or a section of it, is not a mapping with strings as keys. Correct it."""
    TEMPLATE_RESOURCES = "template-resources"
    """The template has no section ``resources``. Add one, even if it is empty."""
    TEMPLATE_PARAMETER = "template-parameter"
    """The label or description of a parameter is not a string. Write a string."""
    TEMPLATE_TYPE = "template-type"
    """The type of a parameter is missing or unknown. Use a type that Heat knows."""
    TEMPLATE_CONSTRAINT = "template-constraint"
    """A constraint of a parameter is malformed. Correct the constraint."""
    TEMPLATE_GROUP = "template-group"
    """A parameter group does not list parameters. Correct ``parameter_groups``."""
    TEMPLATE_VALUE = "template-value"
    """A mapping in the template has a key that is not a string, or merges (``<<``) something else
    than mappings. Correct the key."""
    PACKAGE_TYPE_RESULT = "package-type-result"
    """A class, base class, requirement or form that the package type generates is not valid, or
    the package type itself refuses a file. Correct the package."""
    READING_LIMIT = "reading-limit"
    """To read the package, the service needs more processor time than ``max_reading_seconds``, or
    more memory than ``max_reading_memory``; or the metadata, logos and form of the package take
    more than 4 MiB. Simplify the package."""
    READING_FAILURE = "reading-failure"
    """The service could not read the package, or the plug-in of the package type failed (in Glare
    and murano-api, status 500). Read the service's log, and correct or reinstall the plug-in."""
    SERVICE_BUSY = "service-busy"
    """The service was reading other packages for ``max_reading_wait`` seconds, or too many packages
    of the project are already waiting (in Glare and murano-api, status 503). Nothing is wrong with
    the package: upload it again. The ``openstack`` command repeats the upload by itself, a few
    times."""
    PLUGIN_NAME = "plugin-name"
    """The package has the name of an extension plug-in of the engines (``provided_packages``), or
    defines a class of such a plug-in (``provided_classes``). Choose another name."""
    REQUIREMENT_MISSING = "requirement-missing"
    """A package cannot be activated, because it requires a package that is missing, or extends a
    class that none of the packages that it requires defines. Upload the missing package first,
    change the range, or add the missing package to ``Require``."""
    REQUIREMENT_PRIVATE = "requirement-private"
    """A package cannot be made public, because it requires a package that is not public, or extends
    a class of such a package. Publish that package first."""
    REQUIREMENT_LAST = "requirement-last"
    """A package cannot be deleted or deactivated, because no other package satisfies the
    requirements of active packages. Upload another version first."""
