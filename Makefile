# Two commands from a fresh clone: `make demo` and `make test`. Each makes .venv if it is missing; nothing is installed twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install compile demo test extra docs lint format bench soak audit clean

help:  ## what there is to make
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

install: $(READY)  ## the environment in .venv, with pinned versions

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . $(DEV)
	touch $@

DEV := build editables hatchling hypothesis import-linter mypy pandas-stubs playwright pytest pytest-xdist ruff types-networkx types-PyYAML

demo: $(READY)  ## a hundred peers by gossip and by rotating leader, side by side (about a minute)
	$(BIN)/peerveil run adpdfl-gossip adpdfl-leader
	@printf '%s\n' '' 'Next:' \
	  '  $(BIN)/peerveil report runs/adpdfl-gossip-7' \
	  '      a page of a run; open it in any browser' \
	  '  $(BIN)/peerveil serve runs' \
	  '      all runs on a page of this machine' \
	  '  $(BIN)/peerveil compare adpdfl-leader --protocols gossip,rotating_leader,central' \
	  '      which protocol to take, whom users must trust, and what decides it' \
	  '  $(BIN)/peerveil new mine && $(BIN)/peerveil run mine.yaml' \
	  '      a scenario of your own' \
	  '  $(BIN)/peerveil list' \
	  '      all that ships, and the question each asks; docs/tutorial.md takes ten minutes'

compile: $(READY)  ## the event core, so that nothing else waits for it
	$(BIN)/python -m p2p.transport

test: compile  ## all tests
	$(BIN)/python -m pytest -q -n 2

extra: compile $(VENV)/.extras  ## what takes longer: docs and their examples, notebooks, the package, clusters
	$(BIN)/python -m pytest -q -n 2 -m extra

docs: $(VENV)/.extras  ## the documentation as a site in docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build

$(VENV)/.extras: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dask,docs,mlflow,notebook,tensorboard]"
	touch $@

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## put the code in form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## how long things take, beside their goals
	$(BIN)/python -m benchmarks

soak: $(READY)  ## thousands of random scenarios instead of hundreds
	PEERVEIL_SOAK=30 $(BIN)/python -m pytest -q -n 2 -m soak

audit: $(READY)  ## lower bounds on epsilon against every figure of the catalog (minutes)
	PEERVEIL_AUDIT=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 tests/privacy/accounting/test_catalog_audit.py tests/privacy/accounting/test_audits.py tests/scenarios/auditing

clean:  ## remove the environment and the caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
