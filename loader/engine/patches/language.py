# SPDX-License-Identifier: Apache-2.0

"""Read text resources and write inherited properties, as the MuranoPL reference describes."""

from typing import IO, Any

from murano.dsl import reflection
from murano.engine.system import resource_manager


def read_text_resources() -> None:
    """Let ``io.murano.system.Resources`` read text on Python 3.11 and newer.

    Murano 16 opens text with the mode ``rU``, which Python 3.11 refuses. So the example
    ``$resources.yaml('ExportConfig.template')`` in the MuranoPL reference, section "Murano
    actions", fails. Here, a replaced ``open`` drops the ``U`` from the mode. The ``U`` requested
    universal newlines, which are the default in Python 3.
    """

    def open_resource(path: str, mode: str) -> IO[Any]:
        return open(path, mode.replace("U", ""))

    resource_manager.open = open_resource


def write_inherited_properties() -> None:
    """Let reflection write a property that an object's class inherits.

    In the MuranoPL reference, section "Property access", ``setValue`` sets a property of an object.
    Murano 16 treats the object as an instance of the class that declares the property, and refuses
    objects of subclasses. Here, ``setValue`` sets the property as an assignment does.
    """
    set_value = reflection.property_set_value

    def set_property(context: Any, property_: Any, object_: Any, value: Any) -> None:
        if object_ is None:
            set_value(context, property_, object_, value)
        else:
            object_.real_this.set_property(property_.name, value, context)

    # YAQL's decorators store the function to call in this attribute.
    set_value.__yaql_function__.payload = set_property
