# What a fresh machine needs: Python 3.11 or newer, git, make and gcc. Everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup programs train test lint wheel mutants clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=... to one"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

# Debian packages that tests and matches call: GNU Backgammon as referee. Installed when root; else the command is shown.
DEBIAN := gnubg
programs:
	@dpkg -s $(DEBIAN) >/dev/null 2>&1 || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(DEBIAN) >/dev/null; \
	  else echo "some tests need: sudo apt-get install $(DEBIAN)"; fi

# Ten minutes of backgammon on this machine's CPU: ends with a rating, a plot and the command to play against it.
train: setup
	$(BIN)/alea train backgammon --preset quick --device cpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# All tests, on every core; the wheel, installed into an environment of its own; a sample of the mutants.
test: programs lint
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=20
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
