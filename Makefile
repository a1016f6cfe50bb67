# `make demo` and `make test` do all the set-up themselves, in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint clean

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e ".[mcp,confirm,postgres,dev,sdks,loops]"
	@touch $@

demo: $(VENV)/.core  ## the main job on sample transcripts, offline
	@$(BIN)/warmstart demo

test: $(VENV)/.dev  ## every test
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
