# `make demo` and `make test` work on a fresh machine: they create .venv and install what they need by name.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# `make bench TOPICS=binned` runs one of them.
TOPICS ?= $(filter-out collect,$(basename $(notdir $(shell grep -l __main__ benchmarks/*.py))))
EXTRAS := cli,boost,spark,warehouse,dask,mlflow

.PHONY: demo test check format bench reproduce docs chromium clean

demo: $(VENV)/demo.stamp
	$(BIN)/calibrant demo

test: $(VENV)/test.stamp chromium check
	$(BIN)/python -m pytest -n 2 --dist loadscope

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[cli]'
	touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[$(EXTRAS)]' --group test
	touch $@

docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open site/index.html; for the search: python3 -m http.server -d site"

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e . --group docs
	touch $@

# Other packages live in an environment of their own. Their order matters: the CPU build of torch comes first.
.venv-peers/bench.stamp:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --upgrade pip
	.venv-peers/bin/pip install --quiet torch==2.13.0
	.venv-peers/bin/pip install --quiet netcal torchmetrics probmetrics numba pandas uncertainty-toolbox relplot catboost
	touch $@

bench: $(VENV)/test.stamp .venv-peers/bench.stamp
	for topic in $(TOPICS); do OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.$$topic || exit 1; done
	$(BIN)/python -m benchmarks.collect

# The browser tests need Chromium; root may install Debian's, anybody else is told.
chromium:
	@command -v chromium >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	  echo "NOTE: Chromium is missing and cannot be installed here; the browser tests will be skipped."

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
