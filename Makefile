# Each target starts from a bare Debian 12 with Python 3.11, Go and Rust; `make setup` brings the rest.
PYTHON ?= python3
VENV := .venv/bin
PYTEST := $(VENV)/python -m pytest --no-header --durations=10
# The rooms and the door; tests are type-checked by running them.
TYPED := operator/queen_operator lab

.DEFAULT_GOAL := help
.PHONY: help setup environment static test test-unit test-api test-node test-campaign check format generate lock demo demo-down demo-kind demo-kind-down

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install Debian packages, build and cache Kubernetes, broker and images (10 to 15 minutes, once)
	@$(PYTHON) -m lab setup

environment: # the Python environment alone: enough for unit tests and checks
	@$(PYTHON) -m lab setup python

test: setup static ## Run everything: checks, unit, api (real API server), node (real node, brokers, PostgreSQL)
	$(PYTEST) -q -n 2 tests/unit
	$(PYTEST) -v tests/api
	$(PYTEST) -v -n 2 --dist loadfile tests/node

test-unit: environment ## Run the unit tests: no network, seconds
	$(PYTEST) -q -n 2 tests/unit

test-api: setup ## Run the tests against a real kube-apiserver and etcd
	$(PYTEST) -v tests/api

test-node: setup ## Run the tests on a real node with real brokers and PostgreSQL
	$(PYTEST) -v -n 2 --dist loadfile tests/node

test-campaign: setup ## Run the long scenarios under load (about 2 hours; not part of make test); writes .lab/figures
	$(PYTEST) -v tests/campaign

check: static test-unit ## Check format, lint, types, import order and the generated CRD, and run the unit tests

static: environment # everything of check but the tests
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy $(TYPED)
	PYTHONPATH=operator $(VENV)/lint-imports
	PYTHONPATH=operator $(VENV)/python -m queen_operator.api.crd --check

format: environment ## Format the code and apply the safe fixes of the linter
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

generate: environment ## Write the CRD from the models into crds/ and the chart
	PYTHONPATH=operator $(VENV)/python -m queen_operator.api.crd

lock: ## Resolve the Python dependencies anew and write requirements*.lock
	@$(PYTHON) -m lab lock

demo: ## Start (or refresh) a demo: operator, three brokers, PostgreSQL, messages through them
	@$(PYTHON) -m lab demo

demo-down: ## End the demo; nothing stays behind
	@$(PYTHON) -m lab demo-down

demo-kind: ## The demo with Docker and kind, where they work
	@$(PYTHON) -m lab demo-kind

demo-kind-down: ## Delete the kind cluster of the demo
	@$(PYTHON) -m lab demo-kind-down
