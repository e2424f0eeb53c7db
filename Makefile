# One line a target. `make` or `make help` lists them; everything else makes sure of the set-up first.
PYTHON := .venv/bin/python
# Files of tests are shared out among this many processes; each has a Spark of its own (1 to 2 GB). One more than
# the two cores of a small machine: tests of Airflow wait a good part of their time.
WORKERS := 3
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Tests start hundreds of processes: each would compile the library again where this is set.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup demo up day env down setup-tests test test-unit test-engine test-faults test-all soak test-conformance conformance capabilities test-airflow test-security test-e2e screenshots docs lint audit lock bench clean

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16
setup: ## Make the environment: Python packages, Java, jars, class archive (seconds when it is there)
	@python3 dev/bootstrap.py
demo: setup ## Run the main job: three days of real flights through real Airflow and Kafka
	@$(PYTHON) -m dev.demo
up: setup ## Start Airflow and the broker in the background, with a day of flights; print address and login
	@$(PYTHON) -m dev.services up
day: setup ## Deliver the next day of flights to what `make up` started, and run the examples
	@$(PYTHON) -m dev.services day
env: ## Write .env for docker-compose.yaml from .env.example, with new secrets
	@PYTHONPATH=include python3 -m dev.deployment_env
down: ## Stop what `make up` started
	@PYTHONPATH=include python3 -m dev.services down
setup-tests: setup
	@$(PYTHON) -m dev.test_programs
test: setup-tests ## Run all tests
	@$(PYTHON) -m pytest $(SHARED)
test-unit: setup-tests ## Run the tests without Spark, Kafka and Airflow
	@$(PYTHON) -m pytest tests/unit
test-engine: setup-tests ## Run the tests with real Spark and Kafka
	@$(PYTHON) -m pytest $(SHARED) tests/engine
test-faults: setup-tests ## Run the tests that kill drains
	@$(PYTHON) -m pytest $(SHARED) tests/faults
test-all: setup-tests ## Run every fault on every sink, and all else that is left out (hours); write docs/faults.md
	@$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal -m "fault or full" --faults-page
soak: setup-tests ## Kill drains at random for MINUTES=5 from SEED=1; say what was lost or duplicated
	@$(PYTHON) -m tests.faults.soak --minutes $(or $(MINUTES),5) --seed $(or $(SEED),1)
test-conformance: setup-tests ## Run one test for every streaming system of Spark's guide
	@$(PYTHON) -m pytest $(SHARED) -m "" tests/conformance
conformance: setup-tests ## Run them and write docs/conformance.md
	@$(PYTHON) -m pytest $(SHARED) -m "" tests/conformance --conformance-page
capabilities: setup-tests ## Run what shows the capabilities beyond Spark's guide, and write docs/capabilities.md
	@$(PYTHON) -m pytest $(SHARED) -m capability tests --capabilities-page
test-airflow: setup-tests ## Run the tests with real Airflow
	@$(PYTHON) -m pytest tests/airflow
test-security: setup ## Run the tests of paths, YAML and secrets
	@$(PYTHON) -m pytest tests/security
test-e2e: setup-tests ## Run whole lines of pipelines with a real scheduler
	@$(PYTHON) -m pytest tests/e2e
screenshots: setup-tests ## Take the screenshots of docs/images again, in a real browser
	@$(PYTHON) -m pytest tests/airflow tests/pages --pictures -k browser -m ""
docs: setup ## Build the documentation as a site with a search, in .drawdown/site
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict && echo "look at it: python3 -m http.server --directory .drawdown/site"
lint: setup ## Check format, style, types and layers
	@$(PYTHON) -m ruff format --check . && $(PYTHON) -m ruff check . && $(PYTHON) -m mypy && .venv/bin/lint-imports
audit: setup ## Ask PyPI for known weaknesses of the pinned packages (fails when it cannot be reached)
	@$(PYTHON) -m uv tool run --from pip-audit==2.10.1 pip-audit --strict --disable-pip --no-deps -r requirements.txt -r dev/requirements.txt
lock: setup ## Resolve and pin requirements.txt and jars.lock again
	@$(PYTHON) -m dev.lock
bench: setup-tests ## Run the benchmarks (hours; ONLY="small_runs audit") and write docs/performance.md
	@$(PYTHON) -m tests.benchmarks $(ONLY)
clean: down ## Remove what set-up and runs made (.venv, .drawdown)
	@rm -rf .venv .drawdown
