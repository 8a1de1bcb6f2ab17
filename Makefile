# Each target makes the environment it needs from pyproject.toml; the next run finds it ready.
PYTHON ?= python3
VENV ?= .venv
DATA ?= $(SCWORMHOLE_DATA)
# set to take the newest release of every dependency
UPGRADE ?=
PYTEST_ARGS ?=
# what `make check-build` runs of the tests, as paths in the source distribution
BUILD_TESTS ?= tests
# tests go to as many processes as there are cores, a file at a time, as most of their time is compilation
PARALLEL := -n auto --maxprocesses 4 --dist loadfile

BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

ifneq ($(shell command -v uv 2>/dev/null),)
create = uv venv --quiet --python "$(PYTHON)" $(VENV)
install = uv pip install --quiet --python $(BIN)/python $(if $(UPGRADE),--upgrade)
else
create = $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -qq --upgrade pip
install = $(BIN)/python -m pip install -qq $(if $(UPGRADE),--upgrade --upgrade-strategy eager)
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test slow lint docs tutorials figures bench build check-build require-data clean

help:
	@echo "make demo | test | slow | lint | docs | tutorials | figures | bench | build | check-build | clean"

demo: $(VENV)/.installed-test
	$(BIN)/python -m scwormhole demo --out demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow $(PARALLEL) $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# notebooks are executed in place: what they print and draw is committed with them
tutorials: $(VENV)/.installed-tutorials
	$(BIN)/python tutorials/run.py

figures: $(VENV)/.installed-test
	$(BIN)/python docs/figures.py

bench: require-data $(VENV)/.installed-bench
	$(BIN)/python benchmarks/ot_engine.py --data "$(DATA)" --out docs/benchmarks/ot_engine.md

require-data:
	@test -n "$(DATA)" || { echo "make bench needs a folder of data: make bench DATA=folder, or set SCWORMHOLE_DATA" >&2; exit 2; }

build: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*

# the wheel in an environment of its own, and the tests of the source distribution against it, far from here
check-build: build
	@set -eu; outside=$$(mktemp -d); trap 'rm -rf "$$outside"' EXIT; \
	$(BIN)/python -m venv "$$outside/venv"; \
	"$$outside/venv/bin/python" -m pip install -qq "$$(echo "$$PWD"/dist/*.whl)[test]"; \
	mkdir "$$outside/source"; tar -xzf dist/*.tar.gz -C "$$outside/source" --strip-components 1; \
	cd "$$outside/source"; \
	"$$outside/venv/bin/python" -c "import scwormhole, sys; print(scwormhole.__version__, scwormhole.__file__); \
	sys.exit(not scwormhole.__file__.startswith(sys.prefix))"; \
	"$$outside/venv/bin/python" -m pytest $(PARALLEL) $(BUILD_TESTS) $(PYTEST_ARGS)

# build products and caches; the environments stay
clean:
	rm -rf build demo dist docs/_build docs/jupyter_execute docs/tutorials .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(wildcard src tests benchmarks docs) -type d -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	$(create)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(install) --editable ".[$*]"
	@touch $@
