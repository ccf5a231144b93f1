# Every target sets up what it needs: a .venv in this folder, installed once for the present setup.cfg and
# constraints.txt. Another Python than the one found: make PYTHON=/path/to/python3.12 demo
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?=
# Of test-s3: a script that starts a Ceph radosgw, called with a folder and two ports
export RADOSGW ?=
# Of test-chaos: how many kills
ROUNDS ?= 100
PY := .venv/bin/python
# Much of a test's time is waiting for processes: two at once, each file (or group of files) by one of them, the slow folders first.
PARALLEL ?= -n 2 --dist loadfile --no-loadscope-reorder
# Files that `git clean` would call rubbish, all inside this folder. Your own ./callsheet-data is not among them.
RUBBISH := .venv build dist demo-data .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: help demo test test-fast test-s3 test-chaos lint format bench bench-preemption clean venv venv-demo

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: venv-demo ## Render eight films with the whole stack on this machine, and show them
	@$(PY) -m examples.demo

test: lint ## Run every check: lint, then all tests
	@$(PY) -m pytest $(PARALLEL)

test-fast: venv ## Run only the tests that need no server, no worker and no torch
	@$(PY) -m pytest tests/unit -m "not torch and not chaos"

test-s3: venv ## Run the tests of object storage against a real S3 server; says how to get one
	@$(PY) -m tests.support.real_s3

test-chaos: venv ## Kill what can be killed, ROUNDS times at random moments, and print a table
	@ROUNDS="$(ROUNDS)" $(PY) -m pytest tests/chaos

lint: venv ## Check style, types, the import contract and the sizes
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-logo
	@$(PY) -m tools.check_size

format: venv ## Put the source into shape
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

bench: venv ## Measure speed, print JSON
	@$(PY) -m benchmarks

bench-preemption: venv ## Measure preemption, checkpoints and recovery, print JSON
	@$(PY) -m benchmarks.preemption

clean: ## Remove the .venv, caches, builds and the demo's data
	@rm -rf -- $(RUBBISH) ./*.egg-info
	@find . -type d -name __pycache__ -prune -exec rm -rf -- {} +

venv: ## Set up .venv for development
	@PYTHON="$(PYTHON)" sh tools/venv.sh dev

venv-demo:
	@PYTHON="$(PYTHON)" sh tools/venv.sh demo
