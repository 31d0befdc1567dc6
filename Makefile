# Every target works on a fresh machine: it creates .venv and installs what it needs by name.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# `make bench TOPICS=binned` runs one of them.
TOPICS ?= $(filter-out against collect,$(basename $(notdir $(shell grep -l __main__ benchmarks/*.py))))
EXTRAS := cli,plot,boost,spark,warehouse,dask,mlflow,fast,onnx
# What the compiled loops serve; `make compiled` tests it with them, `make test` mostly without.
COMPILED := tests/numerics tests/data tests/table tests/estimators tests/pu tests/scale/test_streaming.py

# `make reproduce` runs all four papers (hours); PAPER=variational, bias, regression or unlabeled one of them; QUICK=1 a
# version of minutes; STUDY=coverage a study that belongs to no paper. An interrupted run goes on where it stopped.
PAPER ?=
QUICK ?=
STUDY ?=
# `make drift CELLS=50` runs a random sample of stored cells again.
CELLS ?= 20
# `make fast SINCE=main~3` compares with a commit of your choice.
SINCE ?=
# `make mutants ROOM=numerics/equal_mass BUDGET=5` mutates one module for at most five minutes,
# `make mutants ROOM="inference numerics" SAMPLE=40 SEED=3` tries 40 random mutants of two rooms.
ROOM ?=
BUDGET ?= 30
SAMPLE ?=
# `make golden-update REASON="folds are salted"` says why frozen results moved.
REASON ?=
# `make fuzz MINUTES=60 SEED=1000` runs an hour of cases that the tests never see.
MINUTES ?= 10
SEED ?= 0
# One thread for each test process: libraries that start threads of their own only slow each other down. `make test`
# has three for two cores, since a browser or a cluster lets the test that started it wait.
fast test compiled mutants fuzz reproduce drift: export OMP_NUM_THREADS := 1
fast test compiled mutants fuzz reproduce drift: export OPENBLAS_NUM_THREADS := 1

# Tests start many processes, which without kept bytecode compile the whole package each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo readme setup fast test tests collect compiled check lint types format durations mutants constants golden golden-update fuzz bench reproduce drift docs look man version release wheel lowest chromium axe clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp ## simulated predictions, real commands, reports to open in a browser
	$(BIN)/calibrant demo

setup: $(VENV)/test.stamp ## an environment with the package, editable, and everything its tests need

fast: $(VENV)/test.stamp check ## lint, types and the tests of what changed, in under 40 seconds
	$(BIN)/python -m tools.affected --since '$(SINCE)'

test: $(VENV)/test.stamp chromium axe ## everything that must pass before a change lands, with branch coverage
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory --jobs=2 types tests

# Types take a minute on a clean clone, and the tests need not wait for them; either fails `make test`.
tests: collect
	$(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder --cov --cov-report=term --junit-xml=artifacts/tests.xml -o junit_family=xunit1

# Every process of the tests then finds their bytecode and the machine code of the loops. What fails here is shown by the
# tests themselves.
collect: $(VENV)/test.stamp
	@$(BIN)/python -m pytest --collect-only --quiet --no-cov > /dev/null 2>&1 || true
	@$(BIN)/python -c "import calibrant; calibrant.warm_up()" > /dev/null 2>&1 || true

compiled: $(VENV)/test.stamp ## the tests of everything that the compiled loops serve, with them
	CALIBRANT_FAST=on $(BIN)/python -m pytest -n 2 --dist loadscope --no-cov $(COMPILED)

check: lint types ## lint and types

lint: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tools.constants --check
	$(BIN)/python -m tools.words

types: $(VENV)/test.stamp
	$(BIN)/mypy

format: $(VENV)/test.stamp ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

durations: ## record how long tests took in the last `make test`, for `make fast`
	$(BIN)/python -m tools.durations artifacts/tests.xml

mutants: $(VENV)/mutation.stamp ## which small faults in ROOM=<rooms or room/module> do tests miss? within BUDGET minutes
	$(BIN)/python -m tools.mutants $(ROOM) --minutes $(BUDGET) --seed $(SEED) $(if $(SAMPLE),--sample $(SAMPLE))

constants: $(VENV)/test.stamp ## the page of all numeric constants with their sources, docs/methods/constants.md
	$(BIN)/python -m tools.constants

golden: $(VENV)/test.stamp ## have frozen results of public calls moved? shows which
	$(BIN)/python -m tests.golden

golden-update: $(VENV)/test.stamp ## freeze them again; REASON="..." is listed in the changelog
	$(BIN)/python -m tests.golden --update '$(REASON)'

fuzz: $(VENV)/test.stamp ## random and damaged input for MINUTES=10; prints the cases that fail
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[cli]'
	touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[$(EXTRAS)]' --group test
	touch $@

$(VENV)/mutation.stamp: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --group mutation
	touch $@

docs: $(VENV)/docs.stamp ## the site, in site/
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs site
	$(BIN)/python -m tools.site site
	@echo "Open site/index.html; for the search: python3 -m http.server -d site"

look: docs chromium ## the site in Chromium, on a phone and on a desk: what is wrong, and pictures of it in artifacts/site/
	$(BIN)/python -m tools.site_in_browser site artifacts/site

man: $(VENV)/docs.stamp ## the manual page of the command line, in site/man/
	$(BIN)/python -m sphinx -b man -q docs site/man

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[cli,plot]' --group docs
	touch $@

# `make version TAG=v0.1.0` writes the version into the package, the changelog, the citation and the recipe;
# `make release TAG=v0.1.0` checks that everything names this version, and builds what is published.
TAG ?=
readme: $(VENV)/test.stamp chromium ## what the README shows, and its picture, from the command that it names
	$(BIN)/python -m tools.readme --write
	$(BIN)/python -m tools.picture --write

version: $(VENV)/test.stamp ## name the version TAG=v... everywhere, and date its section of the changelog
	$(BIN)/python -m tools.release '$(TAG)' --write

release: $(VENV)/test.stamp ## the source archive and the wheel of version TAG=v..., checked, in dist/
	$(BIN)/python -m tools.release '$(TAG)'
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

wheel: $(VENV)/test.stamp ## build the wheel, install it in an environment of its own, run the README and every page's examples there
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --no-isolation --wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --upgrade pip
	.venv-wheel/bin/pip install --quiet dist/*.whl
	.venv-wheel/bin/python -m doctest -o NORMALIZE_WHITESPACE -o ELLIPSIS README.md
	.venv-wheel/bin/python tests/smoke.py
	.venv-wheel/bin/pip install --quiet "$$(ls dist/*.whl)[cli,plot]" --group examples
	.venv-wheel/bin/python -m pytest -q --no-header tests/test_docs.py tests/test_readme.py

lowest: ## the oldest versions of NumPy, SciPy and scikit-learn that are allowed, in an environment of their own
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet -e . -c packaging/lowest.txt
	.venv-lowest/bin/python tests/smoke.py

# Other packages live in an environment of their own. Their order matters: the CPU build of torch comes first.
.venv-peers/bench.stamp:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --upgrade pip
	.venv-peers/bin/pip install --quiet torch==2.13.0
	.venv-peers/bin/pip install --quiet netcal torchmetrics probmetrics numba pandas uncertainty-toolbox relplot catboost river mapie calzone-tool pycalib betacal properscoring
	touch $@

bench: $(VENV)/test.stamp .venv-peers/bench.stamp ## speed and memory against other packages; TOPICS=<one of benchmarks/>
	for topic in $(TOPICS); do OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.$$topic || exit 1; done
	$(BIN)/python -m benchmarks.collect

reproduce: $(VENV)/test.stamp ## the four papers, from nothing (hours); PAPER=bias one, QUICK=1 minutes, STUDY=coverage
	$(BIN)/python -m reproduce $(if $(PAPER),--paper $(PAPER)) $(if $(QUICK),--quick) $(if $(STUDY),--study $(STUDY))

drift: $(VENV)/test.stamp ## a random sample of CELLS=20 stored results again; fails if one moved beyond chance
	$(BIN)/python -m reproduce.drift --cells $(CELLS)

# The browser tests need Chromium; root may install Debian's, anybody else is told.
chromium:
	@command -v chromium >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	  echo "NOTE: Chromium is missing and cannot be installed here; the browser tests will be skipped."

# Pages are checked with axe-core where npm can bring it; without it our own rules are checked alone.
axe: $(BIN)/python
	@test -s $(VENV)/axe/node_modules/axe-core/axe.min.js || \
	  { command -v npm >/dev/null && npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe axe-core@4; } || \
	  echo "NOTE: axe-core cannot be installed here; pages are checked by our own rules of access alone."

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
