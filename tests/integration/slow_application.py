# SPDX-License-Identifier: Apache-2.0

"""An application whose deployment takes as long as a test wants, and tasks that deploy it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration import services
from tests.processes import wait_until

NAME = "org.test.slow"
CLASS = f"{NAME}.Application"
_BEGUN = "it begins"
_CODE = f"""\
Namespaces:
  std: io.murano
Name: {CLASS}
Extends: std:Application
Properties:
  name:
    Contract: $.string().notNull()
  seconds:
    Contract: $.int().notNull()
  stage:
    Contract: $.string()
    Usage: Out
Methods:
  deploy:
    Body:
      - $.stage: begun
      - logger(slow).info('{_BEGUN}')
      - Try:
          - sleep($.seconds)
        Catch:
          Do:
            - $.stage: caught
        Finally:
          - logger(slow).info('it cleans up')
          - sleep($.seconds)
      - $.stage: done
  wait:
    Usage: Static
    Scope: Public
    Arguments:
      - seconds:
          Contract: $.int().notNull()
    Body:
      - logger(slow).info('{_BEGUN}')
      - sleep($seconds)
  .destroy:
    Body:
      - logger(slow).info('{_BEGUN} to destroy ' + $.name)
      - sleep($.seconds)
"""


@pytest.fixture(scope="module")
def glare_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Glare that has the application."""
    folder = tmp_path_factory.mktemp("glare")
    with services.glare_with(folder, NAME, {"Application": _CODE}) as url:
        yield url


def environment(seconds: int) -> dict[str, Any]:
    """Return the model of an environment whose deployment takes twice as long."""
    return services.environment(services.application(CLASS, seconds=seconds))


@contextlib.contextmanager
def beginning(engine: services.Engine) -> Iterator[None]:
    """Wait until the engine runs the task that a block starts."""
    before = engine.log.count(_BEGUN)
    yield
    wait_until(lambda: engine.log.count(_BEGUN) > before, "the start of the task")


def start(api: services.MuranoApi, engine: services.Engine, seconds: int) -> dict[str, Any]:
    """Start a deployment, and wait until the engine deploys the application; return the model."""
    model = environment(seconds)
    with beginning(engine):
        api.start(model, services.environment_id(model), "deploy")
    return model
