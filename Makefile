# From a fresh clone with only python3 and make:  make demo | make test
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# The real graphs, where they lie beside the project; otherwise RAWLSGCN_DATA decides.
ifneq ($(wildcard ../shared/data),)
export RAWLSGCN_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test lint format clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt hatch_build.py src/rawlsgcn/kernels.c
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/rawlsgcn demo --out out

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv out build dist
