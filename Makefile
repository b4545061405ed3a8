# Two commands for a bare Debian 12 as root: `make demo` and `make test`. Both do all set-up.
.DELETE_ON_ERROR:
.PHONY: help setup check test demo lab-up lab-down lock evidence-abort-latency evidence-sigkill clean

VENV := .venv/bin
SHELL_SCRIPTS := $(shell git ls-files '*.sh' .ci/run scripts)
PYTEST := $(VENV)/python -m pytest

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 26

setup: ## Debian packages and the virtual environment (seconds when done before)
	@sh scripts/setup.sh

check: ## Lint, types, contracts, fast tests: under a minute, no root, no lab
	@test -x $(VENV)/ruff || sh scripts/setup.sh
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/shellcheck $(SHELL_SCRIPTS)
	$(PYTEST) -q -m "not lab and not ssh and not slow and not evidence"

test: setup ## Everything once, the lab's tests included: half an hour cold, 20 min warm
	$(MAKE) --no-print-directory check
	$(PYTEST) -q -m "(ssh or slow) and not lab and not evidence"
	$(VENV)/stressor lab build
	$(PYTEST) -q -m "lab and not evidence"
	$(VENV)/stressor lab down

demo: setup ## The main job on the lab: load, breach, abort, proof, report
	$(VENV)/stressor demo

lab-up: setup ## A real three-node Kubernetes on this machine
	$(VENV)/stressor lab up

lab-down: ## Take the lab down: nothing is left
	$(VENV)/stressor lab down

evidence-abort-latency: setup ## Five breaches on the lab: sample arrived to last host proven
	$(PYTEST) -q -s -m evidence tests/lab -k abort_latency

evidence-sigkill: setup ## SIGKILL of the run at 20 seeded moments
	$(PYTEST) -q -s -m evidence tests/lab -k sigkill

lock: ## Write requirements.lock anew from pyproject.toml
	$(VENV)/python -m pip install -q uv
	$(VENV)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --all-extras --output-file requirements.lock pyproject.toml

clean: ## Remove the virtual environment and tool caches of this tree
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
