# From a fresh clone with only python3 and make:  make demo | make test | make test-all
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# The real graphs, where they lie beside the project; otherwise RAWLSGCN_DATA decides.
ifneq ($(wildcard ../shared/data),)
export RAWLSGCN_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo docs test test-slow test-all test-cuda bench lint format clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt hatch_build.py src/rawlsgcn/_core/kernels.c
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/rawlsgcn demo --out out

# The site, from nothing and without a network; its tutorials run, and a warning is an error.
docs: $(READY)
	rm -rf docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Site: docs/_build/html/index.html"

# In parallel and in random order; the seed is printed: add -p no:randomly for the written order.
test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow'

# Short forms of the fuzzer, the killer and the sanitizers (tools/).
test-slow: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow

test-all: test test-slow

# On a machine with a GPU, which the other tests do not use.
test-cuda: $(READY)
	RAWLSGCN_TEST_CUDA=1 $(BIN)/python -m pytest $(CUDA_TESTS)

CUDA_TESTS := tests/balancing/test_solver.py tests/balancing/test_normalizations.py \
	tests/training/stacked/test_engine_on_gpu.py tests/_core/test_random_state.py tests/test_metrics.py \
	tests/graphs/lifting/test_lifted_graph.py

# Speed and memory against rivals; writes benchmarks/RESULTS.md. PARTS="training balance" for some.
bench: $(READY)
	$(BIN)/python -m benchmarks $(PARTS) --out benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv out build dist docs/_build docs/reference/api
