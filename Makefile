# Two commands do all the set-up: `make demo` and `make test`.
# They need Python 3.11 or newer with venv and pip, and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BENCH := ./src/htf_bench
STATIC := src/htf/maps/browser/static
# Tests start many programs, which read what was compiled before.
unexport PYTHONDONTWRITEBYTECODE
export DENO_DIR := $(abspath $(VENV))/deno
export DENO_NO_UPDATE_CHECK := 1
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test test-all lint types docs versions dist reliability benchmark clean

demo: $(VENV)/.installed-demo
	$(BIN)/htf demo --out htf-demo --overwrite

# The telling part of all tests (CONTRIBUTING.md); test-all runs every one.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -m "not slow" --hypothesis-profile quick

test-all: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/deno fmt --check
	$(BIN)/deno lint
	$(BIN)/deno check $(STATIC)/page/page.js $(STATIC)/offline/offline.js

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Into site/, to be opened from there: site/index.html. A warning, such as a broken link, is an error.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

versions: $(VENV)/.installed-dev
	.ci/versions $(BIN)/python

# The wheels, built in isolation, then installed and used in a fresh environment outside of this folder.
dist: $(VENV)/.installed-dev
	.ci/dist $(BIN)/python

# Hostile files, kills, faults, load: docs/reliability.md. RELIABILITY="--seed 2 --scale 0.1" tries other things, or fewer.
reliability: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m reliability.campaign $(RELIABILITY)

benchmark: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/release.py
	$(BIN)/python benchmarks/ingest.py
	$(BIN)/python benchmarks/query.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/mechanisms.py
	$(BIN)/python benchmarks/bench_overhead.py

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed: make PYTHON=python3.11 …')"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: $(BIN)/python pyproject.toml $(BENCH)/pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e '.[all]' -e $(BENCH)
	touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml $(BENCH)/pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e '.[dev]' -e $(BENCH)
	touch $@ $(VENV)/.installed-demo

clean:
	rm -rf $(VENV) dist htf-demo site
