# SPDX-License-Identifier: Apache-2.0

"""Plan object models as a whole, and keep entries in the headers of their objects."""

import logging
from typing import Any

from murano.common import engine
from murano.dsl import dsl_types, executor, object_store, serializer

from loader.engine.adapter import EnginePackageLoader
from loader.environments import object_model, pin_moves

LOG = logging.getLogger(__name__)


def plan_whole_models() -> None:
    """Plan the packages for all objects in a model, before the first object is loaded.

    Murano 16 looks for the package of each object separately. Then the order of the objects
    decides how many versions of a package an environment gets, and each package needs a
    request.
    """
    load = executor.MuranoDslExecutor.load

    def planned_load(executor: Any, model: Any) -> Any:
        if isinstance(executor.package_loader, EnginePackageLoader):
            model = executor.package_loader.plan_model(model)
        return load(executor, model)

    executor.MuranoDslExecutor.load = planned_load


def keep_pins_in_models() -> None:
    """After each task, write the pins into the model, which Murano's API shows.

    Murano 16 keeps the pins in ``SystemData``, which its API neither shows nor changes. If a task
    fails before its action, for example since a version is missing, the pins do not change.
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
    """Keep the entries of an object's header that begin with an underscore.

    The MuranoPL reference, section "Object model", lets designers add such entries, and its
    section "Murano actions" shows an entry of a deployed object. Murano 16 keeps the entries in a
    temporary store, which exists only while a model is loaded. So each task drops the entries, for
    example the disabled actions. Here, the store shares its entries with its parent store.
    """
    cls = object_store.InitializationObjectStore
    initialize = cls.__init__

    def share_entries(store: Any, root_owner: Any, parent_store: Any, keep_ids: bool) -> None:
        initialize(store, root_owner, parent_store, keep_ids)
        store._designer_attributes_store = parent_store._designer_attributes_store

    cls.__init__ = share_entries


def name_unsaved_values() -> None:
    """Name the type and the class of a value that cannot be saved, such as a YAQL context.

    Murano 16 raises an error without a message.
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
