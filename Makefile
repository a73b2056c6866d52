# Needs make and Python >= 3.11 with pip and venv; everything else goes into .venv.
#   make demo PYTHON=python3.13      another Python
#   make test ARGS="-k pruning -x"   arguments for pytest (test, test-slow, coverage); "-n 0": one process
#   make bench ARGS="fit grid"       other sets of benchmarks

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# A process that has no tests left takes some from another: none waits for the other at the end.
PYTEST := $(RUN) -m pytest -n logical --dist worksteal --durations 10

# Images of containers often forbid bytecode: then each process of the tests, and each script that they
# start, would compile every file anew, 13 seconds of a worker.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slow test-all soak mutations browser coverage lint format bench docs
.PHONY: wheel check-wheel clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

demo: $(VENV)/.has-demo  ## real data, scores and times beside scikit-learn, a tree as text, picture and page
	$(RUN) docs/examples/quickstart.py

test: $(VENV)/.has-test browser  ## the tests of every feature, one process a processor
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.has-test browser  ## more combinations, whole compilations, processes that are killed
	$(PYTEST) -m slow $(ARGS)

test-all: test test-slow  ## all tests

mutations: $(VENV)/.has-test browser  ## which of some 120 small mistakes in the package the tests of "make test" notice
	$(RUN) -m tests.mutations run -m "not slow and not timing" $(ARGS)

browser:
	.ci/get_browser

soak: $(VENV)/.has-test  ## random fits for MINUTES (10), and which of them break a promise
	$(RUN) -m tests.soak --minutes $(or $(MINUTES),10) $(ARGS)

coverage: $(VENV)/.has-test  ## the tests on tiny data once more, interpreted, with coverage
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m interpreted --cov $(ARGS)

lint: $(VENV)/.has-lint  ## style, types, which room imports which, docstrings of the public API
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports
	$(RUN) .ci/check_docstrings.py

format: $(VENV)/.has-lint  ## put the code into the form that lint asks for
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench: $(VENV)/.has-bench  ## the short benchmarks; the others are in benchmarks/README.md
	$(RUN) -m benchmarks.speed $(ARGS)

docs: $(VENV)/.has-docs browser  ## the site: docs/_build/html/index.html; runs the tutorials on the way
	$(RUN) docs/examples/quickstart.py --out docs/_build/quickstart
	$(RUN) -m sphinx --builder html --fail-on-warning --keep-going --conf-dir docs . docs/_build/html
	$(RUN) .ci/check_site.py docs/_build/html
	$(RUN) .ci/check_layout.py docs/_build/html

wheel: $(VENV)/.has-test  ## dist/*.whl with machine code for this platform: it needs no compiler where it is installed
	rm -rf dist/sklboost-*.whl
	SKLBOOST_MACHINE_CODE=1 $(RUN) -m pip wheel --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation --wheel-dir dist .

check-wheel: wheel  ## that wheel in an environment without numba: import, first fit, bits, pickles
	SKLBOOST_WHEEL=dist $(RUN) -m pytest -rP tests/wheel $(ARGS)

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist mutations.jsonl .coverage .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	rm -rf docs/_build docs/reference/api docs/tutorials sklboost_quickstart
	find sklboost tests benchmarks docs -type d -name __pycache__ -exec rm -rf {} +

# $(VENV)/.has-test says that the extra "test" of pyproject.toml is installed, as it stands there now.
$(VENV)/.has-%: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(RUN):
	$(PYTHON) -m venv $(VENV)
