# SPDX-License-Identifier: Apache-2.0

"""MuranoPL of packages in Glare, called in the real engine as a task calls it.

Tasks as murano-api sends them, with their models and results, are in ``tasks``.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

from murano.common import engine as murano_engine
from murano.dsl import dsl, helpers, schema_generator, serializer
from murano.dsl import executor as murano_executor
from murano.engine import package_loader
from yaql.language import utils

from loader.engine import contract_schemas
from tests.integration import tasks


class Engine:
    """One run of the engine, which keeps its classes and objects from call to call."""

    def __init__(self, loader: Any, executor: Any) -> None:
        self.loader = loader
        self._executor = executor

    def find_class(self, name: str) -> Any:
        """Return the newest version of a class."""
        package = self.loader.load_class_package(name, helpers.parse_version_spec("*"))
        return package.find_class(name, search_requirements=False)

    def call(self, class_name: str, method: str, **arguments: Any) -> Any:
        """Call a static method as MuranoPL code does."""
        murano_class = self.find_class(class_name)
        with helpers.with_object_store(self._executor.object_store):
            context = self._executor.create_object_context(murano_class)
            result = murano_class.invoke(method, None, (), arguments, context)
        return serializer.serialize(result, self._executor)

    def load(self, class_name: str, **properties: Any) -> Any:
        """Load the model of an object, which may have others, and return the object."""
        header = {"type": class_name, "classVersion": "*"}
        return self._executor.load({"Objects": {"?": header, **properties}}).object

    def act(self, murano_object: Any, method: str, **arguments: Any) -> Any:
        """Call a method of an object from outside."""
        result = self._executor.run(murano_object.type, method, murano_object, (), arguments)
        return serializer.serialize(result, self._executor)

    def dump(self, murano_object: Any) -> Any:
        """Return an object's properties as the model has them."""
        return serializer.serialize(murano_object, self._executor)

    def schemas(self, class_name: str, methods: Any = None, package_name: str | None = None) -> Any:
        """Return the schemas of a class and of its model builders, or of requested methods."""
        return schema_generator.generate_schema(
            self.loader,
            murano_engine.ContextManager(),
            class_name,
            methods,
            class_version="*",
            package_name=package_name,
        )

    def classes(self, package_name: str) -> Iterator[tuple[str, Any]]:
        """Yield the names and the classes of a package."""
        package = self.loader.load_package(package_name, helpers.parse_version_spec("*"))
        for name in sorted(package.classes):
            yield name, package.find_class(name, search_requirements=False)

    def translate(self, declared: Any) -> Any:
        """Return the JSON schema of a property's contract."""
        cls = declared.declaring_type
        with helpers.with_object_store(self._executor.object_store):
            context = self._executor.create_object_context(cls)
            version = cls.package.runtime_version
            return contract_schemas.translate(declared.contract.spec, context, version)

    def take(self, declared: Any, value: Any = dsl.NO_VALUE) -> Any:
        """Return what becomes of a value by the contract of a property or of an argument.

        :param value: without it, the default is taken.
        """
        method = getattr(declared, "murano_method", declared)
        cls = method.declaring_type
        with helpers.with_object_store(self._executor.object_store):
            context = self._executor.create_object_context(cls)
            given = utils.convert_input_data(value)
            taken = declared.contract.transform(given, context, None, None, declared.default, cls)
        return serializer.serialize(taken, self._executor)


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """Run the engine with packages from Glare."""
    session = tasks.session()
    with (
        package_loader.CombinedPackageLoader(session) as loader,
        murano_executor.MuranoDslExecutor(
            loader, murano_engine.ContextManager(), session
        ) as executor,
    ):
        yield Engine(loader, executor)
        # Objects of failed calls are destroyed while the engine still exists.
        gc.collect()
