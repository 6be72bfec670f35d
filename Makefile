# What a fresh machine needs: Python 3.11 or newer, git, make and gcc. Everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup train test lint wheel mutants clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=... to one"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

# A few minutes of Connect Four on this machine's CPU: ends with a rating, a plot and the command to play against it.
train: setup
	$(BIN)/alea train connect_four --preset quick --device cpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# All tests, on every core; the wheel, installed into an environment of its own; a sample of the mutants.
test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal
	$(MAKE) wheel
	$(BIN)/python scripts/mutate.py --sample 5

wheel: setup
	rm -rf build dist
	$(BIN)/python -m build --wheel --outdir dist . >/dev/null
	$(BIN)/python scripts/smoke_wheel.py dist

mutants: setup
	$(BIN)/python scripts/mutate.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
