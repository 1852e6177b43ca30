# Every target sets up its own virtual environment; nothing else needs to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: setup demo review test test-all lint format docs dist bench clean clean-kernels

setup: $(STAMP)

$(RUNTIME): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	touch $(RUNTIME)

$(STAMP): $(RUNTIME)
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $(STAMP)

demo: $(RUNTIME)
	@echo "The first run compiles the kernels, which takes about half a minute."
	$(BIN)/python -m sylvan.app.demo

# The review page on the built-in set, with pictures; Ctrl-C ends it.
review: $(RUNTIME)
	$(BIN)/python -m pip install --quiet --editable ".[review]"
	$(BIN)/sylvan demo --review

test: setup
	$(PYTEST) -m "not slow"

# What takes long or needs extra machinery: dask clusters, fresh processes, browsers, documentation, examples, coverage
# of kernels without the JIT.
test-all: setup
	$(BIN)/python -m pytest -m slow
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow" tests/kernels --cov=sylvan.kernels --cov-report=term-missing:skip-covered
	$(BIN)/python -m pytest --doctest-modules src/sylvan --ignore=src/sylvan/app/demo.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation, in site/; needs no network.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

# A source distribution and a wheel, in dist/.
dist: setup
	$(BIN)/python -m build

bench: setup
	$(BIN)/python benchmarks/forest.py
	$(BIN)/python benchmarks/cascade.py

# Compiled kernels, old and new.
clean-kernels:
	find src -name "*.nb[ic]" -delete

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
