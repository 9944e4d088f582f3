# SPDX-License-Identifier: Apache-2.0

# Environments are built in .venv and .cache, and results in build. git ignores these directories,
# and "make clean" removes them.

PYTHON ?= $(or $(shell command -v python3.11),python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORE := .cache/murano-16.0.0/meta
CORE_READY := $(CORE)/.ready
SWIFT := .cache/swift
SWIFT_READY := $(SWIFT)/.ready
GLANCE := .cache/glance
GLANCE_READY := $(GLANCE)/.ready
# The release of Glance before the newest one.
FORMER := .cache/glance-2025.2
FORMER_READY := $(FORMER)/.ready
DASHBOARD := .cache/dashboard
DASHBOARD_READY := $(DASHBOARD)/.ready
HEAT := .cache/heat
HEAT_READY := $(HEAT)/.ready
MUTANTS := .cache/mutants-environment
MUTANTS_READY := $(MUTANTS)/.ready
RELEASE := .cache/release
RELEASE_READY := $(RELEASE)/.ready
# The tests of Murano and its client, plain Murano, and Murano with this project.
TEMPEST := .cache/tempest
TEMPEST_READY := $(addsuffix /.ready,$(addprefix $(TEMPEST)/,client stock ours))
DEVSTACK := .cache/devstack
# A repository, or a file that "git bundle" has written.
DEVSTACK_SOURCE := https://opendev.org/openstack/devstack

AXE := .cache/axe-core
AXE_READY := $(AXE)/.ready
AXE_VERSION := 4.14.1
AXE_FILE := axe-core-$(AXE_VERSION).tgz
AXE_SHA1 := 14d8a6f3f085afd126b8b5ca1e42e50e17fb1d99
DOCS := .cache/docs
DOCS_READY := $(DOCS)/.ready
PYTHONS := 3.11 3.12 3.13

# Three workers for two cores, since they wait for Glare half of the time. Each has a Glare of
# its own. All tests of a file run in one worker, and share its fixtures.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile

.PHONY: help venv core-library swift glance dashboard heat devstack demo demo-glance test test-programs test-cells services former-glance test-docs browser screenshots attacks break-outs races mutants murano-tests glance-tests tempest bench style docs pictures wheel release pythons unpinned samples clean
.DEFAULT_GOAL := help

help:
	@echo "make core-library  fetch Murano's core library, which the tests and the demo need"
	@echo "make demo      publish packages in a real Glare and deploy from it"
	@echo "make demo-glance  the same with the real Keystone and Glance"
	@echo "make test      run the tests that start no other program, in a few minutes"
	@echo "make test-programs  run the tests that start Glance, the engine, cells or other programs"
	@echo "make test-cells  run the tests of the engine again, with all code of packages in cells"
	@echo "make services  run the tests that need RabbitMQ, MariaDB and PostgreSQL on this host"
	@echo "make former-glance  run some tests of Glance with the previous release"
	@echo "make test-docs  run the commands of the tutorials and guides, and compare their output"
	@echo "make browser   open the pages of a catalogue in Chromium, and check them"
	@echo "make screenshots  make the screenshots of the documentation again, with Chromium"
	@echo "make attacks   run the hostile packages, which make services runs as well"
	@echo "make break-outs  run programs that have broken out of YAQL, as make services does"
	@echo "make races     run each race of two requests 200 times, which make services runs 10 times"
	@echo "make mutants   change code at random places, and check that a test fails; takes hours"
	@echo "make devstack  fetch DevStack, and run the plug-in with DevStack's own functions"
	@echo "make murano-tests  run Murano's own unit tests with and without the changes to Murano"
	@echo "make glance-tests  run Glance's own tests of images without and with packages"
	@echo "make tempest   run Murano's tempest plug-in and its client's tests with and without this project"
	@echo "make bench     measure, and compare with the goals"
	@echo "make style     check formatting, types, imports and shell scripts"
	@echo "make docs      build the documentation, the manual pages and the release notes"
	@echo "make pictures  draw the pictures of the documentation again"
	@echo "make wheel     build the wheel, and test it in an environment for each extra"
	@echo "make release VERSION=1.0.0  make and check all files of a release; tag and upload nothing"
	@echo "make pythons   run the unit tests and the demo on Python $(PYTHONS), where installed"
	@echo "make unpinned  run the loader's unit tests with the newest libraries"
	@echo "make samples   write the samples of the options in etc again"
	@echo "make clean     remove what the other targets made"

venv: $(READY)
core-library: $(CORE_READY)
swift: $(SWIFT_READY)
glance: $(GLANCE_READY)
dashboard: $(DASHBOARD_READY)
heat: $(HEAT_READY)

$(READY): VERSION constraints.txt requirements.txt test-requirements.txt setup.cfg setup.py pyproject.toml
	@echo "Building $(VENV), once; it takes a few minutes."
	@.ci/environment $(PYTHON) $(VENV) -c constraints.txt -r test-requirements.txt \
	    -e '.[glare,engine,cli]'
	@touch $@

# Murano's core library, which is in its source distribution only. tox sets READY to nothing, and
# BIN to its own environment.
$(CORE_READY): examples/core-library.txt | $(READY)
	@echo "Fetching Murano's core library, once."
	@mkdir -p .cache
	@$(BIN)/python -m pip download -q --disable-pip-version-check --no-deps \
	    --no-build-isolation --no-binary murano -r examples/core-library.txt -d .cache
	@$(BIN)/python -m tarfile -e .cache/murano-16.0.0.tar.gz .cache
	@touch $@

# Swift, which one test runs, and Keystone, which the tests of services and the benchmarks run.
$(SWIFT_READY): tests/functional/swift.txt
	@echo "Building $(SWIFT), once; it takes a minute or two."
	@$(PYTHON) -m venv --clear --without-pip $(SWIFT)
	@$(PYTHON) -m pip --python $(SWIFT)/bin/python install -q --disable-pip-version-check \
	    --only-binary :all: -r $<
	@touch $@

# Glance, with this project's part for it, and a Keystone of its own.
$(GLANCE_READY): constraints-glance.txt requirements.txt setup.cfg
	@echo "Building $(GLANCE), once; it takes a minute or two."
	@.ci/environment $(PYTHON) $(GLANCE) -c constraints-glance.txt fixtures keystone \
	    psycopg2-binary PyMySQL testtools waitress -e '.[glance]'
	@touch $@

$(FORMER_READY): tests/functional/glance/glance-2025.2.txt requirements.txt setup.cfg
	@echo "Building $(FORMER), once; it takes a minute or two."
	@.ci/environment $(PYTHON) $(FORMER) -c $< psycopg2-binary PyMySQL waitress -e '.[glance]'
	@touch $@

# Horizon with murano-dashboard, whose guide has its panels copied into Horizon.
$(DASHBOARD_READY): tests/integration/dashboard.txt
	@echo "Building $(DASHBOARD), once; it takes a minute or two."
	@.ci/environment $(PYTHON) $(DASHBOARD) -r $<
	@cd $(DASHBOARD)/lib/python*/site-packages && \
	    cp muranodashboard/local/enabled/_[0-9]*.py openstack_dashboard/local/enabled
	@touch $@

$(HEAT_READY): tests/integration/heat.txt
	@echo "Building $(HEAT), once; it takes a minute."
	@.ci/environment $(PYTHON) $(HEAT) -r $<
	@touch $@

$(MUTANTS_READY): tests/mutants/requirements.txt
	@echo "Building $(MUTANTS), once."
	@.ci/environment $(PYTHON) $(MUTANTS) -r $<
	@touch $@

$(RELEASE_READY): constraints.txt tests/packaging/requirements.txt
	@echo "Building $(RELEASE), once."
	@.ci/environment $(PYTHON) $(RELEASE) -c constraints.txt -r tests/packaging/requirements.txt
	@touch $@

$(TEMPEST)/client/.ready $(TEMPEST)/stock/.ready: $(TEMPEST)/%/.ready: tests/tempest/%.txt
	@echo "Building $(TEMPEST)/$*, once; it takes a minute."
	@.ci/environment $(PYTHON) $(TEMPEST)/$* -r $<
	@touch $@

$(TEMPEST)/ours/.ready: constraints.txt requirements.txt setup.cfg
	@echo "Building $(TEMPEST)/ours, once; it takes a minute."
	@.ci/environment $(PYTHON) $(TEMPEST)/ours -c constraints.txt PyMySQL -e '.[engine]'
	@touch $@

$(AXE_READY):
	@echo "Fetching axe-core, once."
	@mkdir -p $(AXE)
	@cd $(AXE) && npm pack --silent axe-core@$(AXE_VERSION) > /dev/null
	@echo "$(AXE_SHA1)  $(AXE)/$(AXE_FILE)" | sha1sum --check --quiet
	@tar -xzf $(AXE)/$(AXE_FILE) -C $(AXE)
	@touch $@

# DevStack, which is in no package index. Only "make devstack" needs it.
$(DEVSTACK):
	@echo "Fetching DevStack from $(DEVSTACK_SOURCE), once."
	@mkdir -p .cache
	@git clone -q --depth 1 $(DEVSTACK_SOURCE) $@

# exec: a signal to make also stops the demo, which then cleans up.
demo: $(READY) $(CORE_READY)
	@exec $(BIN)/python -W ignore -m examples.demo $(CORE)

# The same with the real Keystone and Glance.
demo-glance: $(READY) $(CORE_READY) $(GLANCE_READY)
	@exec $(BIN)/python -W ignore -m examples.demo_glance $(CORE)

# Tests start many processes, which would all compile the same modules.
unexport PYTHONDONTWRITEBYTECODE

# Tests that need no other service of the host, and no other user.
ALONE := not services and not devstack and not ordinary_user
IN_PROCESS := $(ALONE) and not programs
PROGRAMS := $(ALONE) and programs

# Glare and Murano register options of the same names, and so cannot be in one
# process: the tests of the engine run in a process of their own.
test: $(READY) $(CORE_READY)
	$(PYTEST) tests/unit tests/hostile tests/functional -m '$(IN_PROCESS)'
	$(PYTEST) tests/integration -m '$(IN_PROCESS)'

test-programs: $(READY) $(CORE_READY) $(GLANCE_READY)
	$(PYTEST) tests/unit tests/hostile tests/functional -m '$(PROGRAMS)'
	$(PYTEST) tests/integration -m '$(PROGRAMS)'

# The tests of the engine again, with all code of packages in cells. The engines of "make services"
# always use cells.
test-cells: export CELLS = 1
test-cells: $(READY) $(CORE_READY)
	$(PYTEST) tests/integration -m '$(ALONE)'

services: $(READY) $(CORE_READY) $(SWIFT_READY) $(GLANCE_READY) $(DASHBOARD_READY) $(HEAT_READY)
	$(BIN)/python -m tests.prerequisites
	$(PYTEST) tests/functional -m services
	$(PYTEST) tests/integration -m 'services and not attacks'
	$(MAKE) attacks break-outs

# Run some tests of Glance with the previous release.
former-glance: $(READY) $(CORE_READY) $(FORMER_READY)
	GLANCE_BIN=$(FORMER)/bin $(PYTEST) $(addprefix tests/functional/glance/test_, \
	    import.py protections.py publications.py queries.py saves.py start.py workers.py)

# The guides for operators are one long test, so a free worker takes the next of the other tests.
test-docs: $(READY) $(CORE_READY) $(SWIFT_READY) $(GLANCE_READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/pages

# It needs Chromium, and npm for axe-core.
browser: $(READY) $(CORE_READY) $(AXE_READY)
	$(BIN)/python -m pytest tests/browser

screenshots: $(READY) $(CORE_READY)
	$(BIN)/python -m tests.browser.screenshots

# In one process, since an attack's processor time is compared with that of an honest deployment.
attacks: $(READY) $(CORE_READY)
	$(BIN)/python -m pytest tests/integration -m attacks

# root passes some walls between processes.
break-outs: $(READY) $(CORE_READY)
	$(BIN)/python -m tests.ordinary_user tests/integration/test_break_outs.py

# RACE_ROUNDS is the number of rounds of each race.
races: export RACE_ROUNDS ?= 200
races: $(READY) $(GLANCE_READY)
	$(BIN)/python -m pytest tests/functional/test_removal_races.py \
	    tests/functional/glance/test_image_races.py -m services

# A run that was stopped continues at the same place. AREAS are names in tests/mutants/areas.toml, by default all.
mutants: $(READY) $(CORE_READY) $(SWIFT_READY) $(GLANCE_READY) $(DASHBOARD_READY) $(HEAT_READY) \
    $(MUTANTS_READY)
	$(BIN)/python -m tests.prerequisites
	$(MUTANTS)/bin/python -m tests.mutants $(AREAS)

devstack: $(READY) $(GLANCE_READY) $(DEVSTACK)
	$(PYTEST) tests/functional/devstack

murano-tests: $(READY) $(CORE_READY)
	$(BIN)/python -W ignore -m tests.murano_suite

glance-tests: $(READY) $(GLANCE_READY)
	$(BIN)/python -W ignore -m tests.glance_suite

tempest: $(READY) $(CORE_READY) $(SWIFT_READY) $(GLANCE_READY) $(TEMPEST_READY)
	@exec $(BIN)/python -W ignore -m tests.tempest

bench: $(READY) $(CORE_READY) $(SWIFT_READY) $(GLANCE_READY)
	$(BIN)/python -W ignore -m benchmarks

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck .ci/* devstack/plugin.sh devstack/settings tests/unit/package/archives/make.sh \
	    tests/pages/programs/* \
	    $(addprefix tests/functional/devstack/,stack.sh */devstack/* programs/*)

# The options of Glare's part and the help of the commands are in the documentation.
$(DOCS_READY): constraints.txt doc/requirements.txt requirements.txt setup.cfg
	@echo "Building $(DOCS), once; it takes a minute."
	@.ci/environment $(PYTHON) $(DOCS) -c constraints.txt -r doc/requirements.txt -e '.[glare,cli]'
	@touch $@

# -E: otherwise a page that has not changed is not checked again.
docs: $(DOCS_READY)
	@rm -rf build/doc build/man build/releasenotes
	PYTHONPATH=. $(DOCS)/bin/python -W ignore -m sphinx -E -W --keep-going -q -b html doc/source build/doc
	PYTHONPATH=. $(DOCS)/bin/python -W ignore -m sphinx -W --keep-going -q -b man -d build/doc/.doctrees doc/source build/man
	$(DOCS)/bin/python -W ignore -m sphinx -E -W --keep-going -q -b html releasenotes/source build/releasenotes

pictures: $(READY)
	$(BIN)/python doc/pictures/draw.py

wheel: $(READY)
	.ci/wheel

# SIGNING_KEY is the file of the maintainer's SSH key; without it, this is a dry run.
release: $(READY) $(RELEASE_READY)
	.ci/release $(VERSION)

pythons: $(PYTHONS:%=python-%)

python-%: $(CORE_READY)
	.ci/python $*

unpinned: $(CORE_READY)
	.ci/unpinned $(PYTHONS)

samples: $(READY)
	$(BIN)/oslo-config-generator --namespace glare_murano \
	    --output-file glare_murano/glare/etc/glare-options.conf
	$(BIN)/oslo-config-generator --namespace glare_murano.loader \
	    --output-file loader/engine/etc/murano-options.conf

clean:
	rm -rf $(VENV) .cache build .tox .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
