# Copyright by the authors of glare-murano; Apache License 2.0, see LICENSE.
#
# Everything is built below .venv and .cache, both of which git ignores.
# "make clean" takes them away again.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help venv demo test integration style clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         publish packages to a real Glare and deploy from it"
	@echo "make test         run all tests that need no other service"
	@echo "make integration  run the tests that need RabbitMQ"
	@echo "make style        check formatting, types and the direction of imports"
	@echo "make clean        remove what the other targets made"

venv: $(READY)

# --without-pip, since Debian keeps ensurepip in a package of its own; the pip
# that is on the machine installs the pinned one.
$(READY): constraints.txt requirements.txt test-requirements.txt setup.cfg setup.py pyproject.toml
	@echo "building $(VENV) (once; it takes a minute or two)"
	@$(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check \
	    -c constraints.txt pip setuptools
	@$(BIN)/python -m pip install -q --disable-pip-version-check \
	    -c constraints.txt -r test-requirements.txt -e '.[glare,engine,cli]'
	@touch $@

test: $(READY)
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) .cache build .tox .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
