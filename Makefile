# What a fresh machine needs: Python 3.11 or newer with venv, git and make. Everything else is installed into .venv,
# in the exact versions of constraints.txt, each checked by its hash.
PYTHON ?= $(shell sh scripts/newest_python.sh)
VENV := .venv
BIN := $(VENV)/bin

# Tests start many processes: each reads the byte code that others have written.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train setup web programs lock check test long lint wheel lowest mutants bench-check bench-floors gpu-check clean

# ---- installing

# Installs the first sections of constraints.txt, up to the one that is named, and the package itself.
define install
	@awk '/^# $(1)$$/ {exit} 1' constraints.txt >$(VENV)/wanted.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(VENV)/wanted.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(VENV)/.core: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ]
	@echo "installing what training needs into $(VENV): about 760 MB"
	@[ "$$($(BIN)/python -V 2>&1)" = "$$($(PYTHON) -V)" ] || $(PYTHON) -m venv --clear $(VENV)
	$(call install,setup)

$(VENV)/.setup: $(VENV)/.core
	@echo "installing the extra all, and what developers use: about 1.4 GB more"
	$(call install,test)

$(VENV)/.test: $(VENV)/.setup
	@echo "installing RLlib with PyTorch, GNU Backgammon's networks and W&B for tests: on Linux about 6 GB more"
	$(call install,end)

# The extra `all`, what developers use, and the page of `alea web`.
PAGE := aleazero/web/static/index.html
setup: $(VENV)/.setup $(PAGE)

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

# Write constraints.txt anew: the newest versions that pyproject.toml allows, with their hashes.
lock: $(VENV)/.setup
	$(BIN)/python scripts/lock.py

clean:
	rm -rf $(VENV) $(LOWEST) aleazero/web/static frontend/node_modules build dist \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# ---- training

# Two minutes of backgammon on this machine's CPU: ends with a rating, a plot and the command to play against it.
train: $(VENV)/.core
	$(BIN)/alea train backgammon --preset quick --device cpu --seconds 120

# ---- testing

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

# While you write: style, types and the quick tests, in about five minutes on two cores.
check: lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not speed and not long"

# All that guards a promise: style and types; the wheel, installed into an environment of its own; every test but those of
# `make long`, with one process more than there are cores, because many wait for others, and tests of speed after them,
# alone; the lowest versions; a sample of the mutants; our speed beside our peers'.
test: programs $(PAGE) $(VENV)/.test
	$(MAKE) -j2 --output-sync lint wheel
	$(BIN)/python -m pytest -n $$(($$($(BIN)/python -c "import os; print(os.cpu_count())") + 1)) --dist worksteal \
	  --durations=20 -m "not speed and not long"
	$(BIN)/python -m pytest -m "speed and not long"
	$(MAKE) lowest
	$(BIN)/python scripts/mutate.py --sample 5
	$(MAKE) bench-check

# The full matrices: more seeds, sizes and games of what `make test` has one or two of.
long: programs $(PAGE) $(VENV)/.test
	$(BIN)/python -m pytest -m long --durations=20

wheel: $(VENV)/.setup $(PAGE)
	rm -rf build dist
	$(BIN)/python -m build --wheel --outdir dist . >/dev/null
	$(BIN)/python scripts/smoke_wheel.py dist

# A part of the tests on Python 3.11 and the lowest versions that pyproject.toml allows: of each package what we call.
LOWEST := .venv-lowest
LOWEST_TESTS := $(addprefix tests/, $(patsubst %,core/test_%.py,devices files game keys settings) models/test_onnx.py \
  replay/test_log.py $(patsubst %,observe/test_%.py,hardware mlflow png prometheus tensorboard) play/test_ratings.py \
  $(patsubst %,frozen/test_%.py,networks records wire replay) \
  $(patsubst %,frozen/test_runs.py::test_it_goes_on_and_writes_the_same_files[%],search ppo) \
  games/test_pgx.py::test_othello_agrees_with_pgx_move_for_move games/test_gym.py graph/test_store.py \
  classical/test_board.py::test_leaves_are_as_many_as_is_known bridges/test_mcp.py::test_standard_streams_serve_the_same \
  bench/test_spiel.py runtimes/redis/test_server.py runtimes/redis/test_access.py \
  runtimes/ray/test_inference.py::test_requests_are_joined_and_answered_each_with_its_own \
  web/test_api.py::test_a_game_of_backgammon_against_another_player)
$(LOWEST)/.installed: $(VENV)/.setup pyproject.toml
	$(BIN)/uv venv --quiet --allow-existing --no-python-downloads --python 3.11 $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[all]' --group test
	touch $@

lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal -m "not speed and not long" $(LOWEST_TESTS)

mutants: $(VENV)/.test
	$(BIN)/python scripts/mutate.py

# Our speed beside our peers', in about 90 seconds: fails if a ratio is below its floor (aleazero/bench/floors.toml).
bench-check: $(VENV)/.setup
	$(BIN)/python -m aleazero.bench.gate

# Records the floors anew; on a quiet machine.
bench-floors: $(VENV)/.setup
	$(BIN)/python -m aleazero.bench.gate --record

# The figures recorded of an H200, repeated on one: fails if one is below its floor (aleazero/bench/gpu_floors.toml).
gpu-check: $(VENV)/.core
	$(BIN)/python -m aleazero.bench.gpu_check
