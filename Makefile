# The commands of the project; `make` alone lists them.
.PHONY: help install lock format lint types test core contract others beyond lowest docs slow perf measure

# Compiled modules are kept: without them every process takes twice as long to begin.
unexport PYTHONDONTWRITEBYTECODE
# One thread for each process: tests run in several, whose products would wait for one another's threads.
export OMP_NUM_THREADS ?= 1

help:      ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*##/	/'

install:   ## the package and its tools, editable, as CI installs them
	bash .ci/install
	pre-commit install

lock:      ## newer versions of everything into requirements-lock.txt, with their hashes
	python tools/lock.py

format:    ## rewrite to the project's style
	ruff format .
	ruff check --fix .

lint:      ## style, spelling, layers, and the program of the page
	ruff format --check .
	ruff check .
	codespell
	lint-imports
	bash tools/page/check

types:     ## mypy, strict
	mypy

TESTS = python -m pytest --durations=30 -m "not slow and not beyond"

test: contract others  ## all tests but the slow ones and those of `make beyond`; prints the 30 slowest

core:      ## the model and the estimators, in under a minute; needs `pip install -e .` and pytest alone
	HANDFUL_CORE=1 python -m pytest -q -rs -m "not slow and not beyond" tests/model tests/estimators

contract:  ## what all methods promise; shapes are checked here, where all methods pass through
	HANDFUL_CHECK_SHAPES=1 $(TESTS) tests/contract/test_methods.py

# Files stay whole, so that what their tests share is made once.
others:    ## all other tests, and the examples of the documentation
	$(TESTS) -n 2 --dist loadfile --no-loadscope-reorder --ignore=tests/contract/test_methods.py

beyond:    ## Ray, training, notebooks, the HTTP server, memory of methods: slow, and rarely the first to fail
	python -m pytest --durations=10 -m "beyond and not slow" $$(grep -rl --include='test_*.py' mark.beyond tests)

lowest:    ## the quick tests with the lowest versions the package claims, in an environment of their own
	bash .ci/lowest

docs:      ## the site, into docs/_build/html; needs requirements-docs.txt, no network
	python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	python tools/check_site.py docs/_build/html

slow:      ## the slow tests too, with many more random examples and shapes checked
	HANDFUL_CHECK_SHAPES=1 HYPOTHESIS_PROFILE=thorough python -m pytest -m "slow or not slow"

perf:      ## speed, never part of the tests
	python perf/run.py
	python perf/labelling.py --out perf/results/labelling.json

measure:   ## every figure again, with this version: make measure DATA=folder; goes on where it was stopped
	python tools/measure.py $(DATA)
	python tools/measure.py --check
