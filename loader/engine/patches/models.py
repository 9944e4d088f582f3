# SPDX-License-Identifier: Apache-2.0

"""Plan object models as a whole, and keep all entries in the headers of objects."""

import logging
from collections.abc import Mapping
from typing import Any

from murano.common import engine
from murano.dsl import dsl_types, executor, helpers, object_store, serializer

from loader.engine.adapter import EnginePackageLoader
from loader.environments import object_model, pin_moves

LOG = logging.getLogger(__name__)

# The keys of an object's header that Murano reads and writes itself.
_KNOWN_KEYS = frozenset(
    ["classVersion", "dependencies", "destroyed", "id", "metadata", "name", "package", "type"]
)


def plan_whole_models() -> None:
    """Plan the packages for all objects in a model, before the first object is loaded.

    Murano 16 looks for the package of each object separately. Then the order of the objects decides
    how many versions of a package an environment gets, and each package needs a request. Here, all
    packages are chosen together, in ``EnginePackageLoader.plan_model``.
    """
    load = executor.MuranoDslExecutor.load

    def planned_load(executor: Any, model: Any) -> Any:
        if isinstance(executor.package_loader, EnginePackageLoader):
            model = executor.package_loader.plan_model(model)
        return load(executor, model)

    executor.MuranoDslExecutor.load = planned_load


def keep_pins_in_models() -> None:
    """After each task, write the pinned versions into the model, which Murano's API shows.

    Murano 16 keeps the pins in ``SystemData``, which its API neither shows nor changes. Here, they
    are an entry in the header of the model's root object. If a task fails before its action, for
    example since a version is missing, the entry keeps the pins from before the task.
    """
    execute = engine.TaskExecutor._execute

    def execute_with_pins(executor: Any, packages: Any) -> Any:
        if not isinstance(packages, EnginePackageLoader):
            return execute(executor, packages)
        model = executor.model

        def warn(message: str) -> None:
            LOG.warning(message)
            executor._reporter._report(None, message, level="warning")

        packages.warn = warn
        result = execute(executor, packages)
        # An executed action replaces the model by a new one, which has the used versions.
        if result["action"]["isException"] and executor.model is model:
            packages.restore_fixation_table()
        if header := object_model.root_header(executor.model):
            header[pin_moves.KEY] = packages.export_fixation_table()
        return result

    engine.TaskExecutor._execute = execute_with_pins


def keep_designer_entries() -> None:
    """Keep the entries of an object's header that Murano does not know.

    By the MuranoPL reference, designers may add entries with any key (section "Object model"), and
    a deployed object keeps such an entry (section "Murano actions"). Murano 16 reads only entries
    whose keys begin with an underscore. It keeps them in a temporary store, which exists only while
    a model is loaded. So each task drops the entries, for example the list of disabled actions.
    Here, all entries are read, and the temporary store shares them with the store that remains.
    """
    cls = object_store.InitializationObjectStore
    initialize = cls.__init__
    parse = helpers.parse_object_definition

    def share_entries(store: Any, root_owner: Any, parent_store: Any, keep_ids: bool) -> None:
        initialize(store, root_owner, parent_store, keep_ids)
        store._designer_attributes_store = parent_store._designer_attributes_store

    def parse_with_entries(definition: Any, scope_type: Any, context: Any) -> Any:
        parsed = parse(definition, scope_type, context)
        header = definition.get("?") if parsed else None
        if isinstance(header, Mapping):
            entries = {key: each for key, each in header.items() if key not in _KNOWN_KEYS}
            parsed["extra"] |= helpers.evaluate(entries, context, freeze=False)
        return parsed

    cls.__init__ = share_entries
    helpers.parse_object_definition = parse_with_entries
    object_store.ObjectStore._get_designer_attributes = staticmethod(dict)


def name_unsaved_values() -> None:
    """Describe a value that cannot be saved: its type, and the class of the object that has it.

    Murano 16 raises an error without a message, so an author cannot find the value.
    """
    serialize = serializer._pass12_serialize

    def serialize_value(value: Any, *args: Any) -> Any:
        try:
            return serialize(value, *args)
        except ValueError as error:
            if not error.args:
                error.args = (f"a value of the type {type(value).__name__} cannot be saved",)
            elif isinstance(value, dsl_types.MuranoObject):
                error.args = (f"class {value.type.name}: {error}",)
            raise

    serializer._pass12_serialize = serialize_value
