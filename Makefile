# Copyright by the authors of glare-murano; Apache License 2.0, see LICENSE.
#
# Everything is built below .venv and .cache, both of which git ignores.
# "make clean" takes them away again.

PYTHON ?= $(or $(shell command -v python3.11),python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORE := .cache/murano-16.0.0/meta
CORE_READY := $(CORE)/.ready
SWIFT := .cache/swift
SWIFT_READY := $(SWIFT)/.ready

# Two workers, each with a Glare of its own. A worker that is done takes tests from the other.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: help venv core-library swift demo test services bench style clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      publish packages in a real Glare and deploy from it"
	@echo "make test      run all tests that need no other service"
	@echo "make services  run the tests that need RabbitMQ, MariaDB and PostgreSQL on this host"
	@echo "make bench     measure, and compare with the goals"
	@echo "make style     check formatting, types, imports and shell scripts"
	@echo "make clean     remove what the other targets made"

venv: $(READY)
core-library: $(CORE_READY)
swift: $(SWIFT_READY)

# --without-pip, since Debian keeps ensurepip in a package of its own; the pip
# that is on the machine installs the pinned one. Without isolation, what builds
# is pinned as well.
$(READY): constraints.txt requirements.txt test-requirements.txt setup.cfg setup.py pyproject.toml
	@echo "Building $(VENV), once; it takes a minute or two."
	@$(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check \
	    -c constraints.txt pip setuptools pbr
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation \
	    -c constraints.txt -r test-requirements.txt -e '.[glare,engine,cli]'
	@touch $@

# Murano's core library, which is in its source distribution only. tox, which has
# environments of its own, sets READY to nothing, and BIN.
$(CORE_READY): examples/core-library.txt | $(READY)
	@echo "Fetching Murano's core library, once."
	@mkdir -p .cache
	@$(BIN)/python -m pip download -q --disable-pip-version-check --no-deps \
	    --no-build-isolation --no-binary murano -r examples/core-library.txt -d .cache
	@$(BIN)/python -m tarfile -e .cache/murano-16.0.0.tar.gz .cache
	@touch $@

# Swift and Keystone: one test runs both, the benchmarks Keystone.
$(SWIFT_READY): tests/functional/swift.txt
	@echo "Building $(SWIFT), once; it takes a minute or two."
	@mkdir -p .cache
	@$(PYTHON) -m venv --clear --without-pip $(SWIFT)
	@$(PYTHON) -m pip --python $(SWIFT)/bin/python install -q --disable-pip-version-check \
	    --only-binary :all: -r $<
	@touch $@

# exec, so that what stops make stops the demo, which then cleans up.
demo: $(READY) $(CORE_READY)
	@exec $(BIN)/python -W ignore -m examples.demo $(CORE)

# Glare and Murano register options of the same names, and so cannot be in one
# process: the tests of the engine run in a process of their own.
test: $(READY) $(CORE_READY)
	$(PYTEST) tests/unit tests/hostile tests/functional -m 'not services'
	$(PYTEST) tests/integration -m 'not services'

services: $(READY) $(CORE_READY) $(SWIFT_READY)
	$(BIN)/python -m tests.prerequisites
	$(PYTEST) tests/functional -m services
	$(PYTEST) tests/integration -m services

bench: $(READY) $(CORE_READY) $(SWIFT_READY)
	$(BIN)/python -W ignore -m benchmarks

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck devstack/plugin.sh devstack/settings

clean:
	rm -rf $(VENV) .cache build .tox .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
