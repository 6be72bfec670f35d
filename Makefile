# What a fresh machine needs: Python 3.11 or newer, git, make and gcc. Everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup web programs train test lint wheel mutants bench-check bench-floors clean

PAGE := aleazero/web/static/index.html

setup: $(STAMP) $(PAGE)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=... to one"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

# The page of `alea web`, built into the package where npm is present. Not by `npm ci`, which insists on the parts of the
# build tools for every other platform; versions are those of the lock file all the same, and it is not written.
web: $(PAGE)
$(PAGE): $(shell find frontend -path frontend/node_modules -prune -o -type f -print)
	@if command -v npm >/dev/null; then \
	  cd frontend && npm install --no-save --silent && npm run --silent build >/dev/null && touch ../$(PAGE); \
	else echo "the page of alea web is not built: install Node 20 with npm, then: make web"; fi

# Debian packages that tests and matches call: GNU Backgammon as referee, Stockfish as opponent, Redis for many
# machines, Prometheus for metrics, Chromium for the page.
# Installed when root; else the command is shown.
DEBIAN := gnubg redis-server prometheus stockfish chromium
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

# All tests, on every core; the wheel, installed into an environment of its own; a sample of the mutants; our speed.
test: programs lint
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=20
	$(MAKE) wheel
	$(BIN)/python scripts/mutate.py --sample 5
	$(MAKE) bench-check

wheel: setup
	rm -rf build dist
	$(BIN)/python -m build --wheel --outdir dist . >/dev/null
	$(BIN)/python scripts/smoke_wheel.py dist

mutants: setup
	$(BIN)/python scripts/mutate.py

# Our speed beside our peers', in about 90 seconds: fails if a ratio is below its floor (aleazero/bench/floors.toml).
bench-check: setup
	$(BIN)/python -m aleazero.bench.gate

# Records the floors anew; on a quiet machine.
bench-floors: setup
	$(BIN)/python -m aleazero.bench.gate --record

clean:
	rm -rf $(VENV) aleazero/web/static frontend/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
