# `make demo` and `make test` need nothing but Python 3.11 or newer: each makes its virtual environment,
# installs what it needs there, and runs. PYTHON=python3.13 chooses another interpreter.

PYTHON ?= $(shell command -v python3 || command -v python)
VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
RUN := $(BIN)/python -m
WORKERS ?= auto
COUNT ?= 1000000
HISTORIES ?= 20000
SEED ?= 0

WEB := src/mechanik/studio/web

.PHONY: demo studio page wheel dev test lint types layers unit fuzz histories browser benchmark motion bench loops clean

demo: $(VENV)/.installed
	@$(BIN)/mechanik demo

studio: page
	@$(BIN)/mechanik studio

# the studio's page, built when its sources have changed
page: $(VENV)/.installed
	@$(BIN)/python $(WEB)/build_page.py

# a wheel with kernels as machine code, into dist/: some minutes, or seconds where the kernels have not changed
wheel: $(VENV)/.created
	MECHANIK_PREBUILT=1 $(RUN) pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .
	@$(BIN)/python -c "import pathlib; [print(f'{path}: {path.stat().st_size / 1e6:.1f} MB') for path in pathlib.Path('dist').glob('*.whl')]"

# the page from Vite, which shows edits at once, beside `mechanik studio --port 8000`
dev: page
	cd $(WEB) && $(abspath $(BIN)/python) one_core.py npm run dev

test: lint types layers unit

lint: $(VENV)/.test-installed
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(BIN)/python tools/retired_words.py

types: $(VENV)/.test-installed
	$(BIN)/python $(WEB)/one_core.py $(RUN) pyright --pythonpath $(BIN)/python

layers: $(VENV)/.test-installed
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.test-installed page browser
	$(BIN)/mechanik warmup
	$(RUN) pytest -n $(WORKERS)

# COUNT random solves, verified from their configurations alone; about an hour on two cores. A stopped run goes on where
# it was (.fuzz holds its state, and a small case for each fault); RESTART=1 begins anew, SEED begins at another case
fuzz: $(VENV)/.test-installed
	$(BIN)/python tests/fuzz/run_fuzz.py solves --count $(COUNT) --workers $(WORKERS) --seed $(SEED) $(if $(RESTART),--restart)

# HISTORIES histories of calls of one solver from several threads, each call compared with a fresh solver
histories: $(VENV)/.test-installed
	$(BIN)/python tests/fuzz/run_fuzz.py histories --count $(HISTORIES) --workers $(WORKERS) --seed $(SEED) $(if $(RESTART),--restart)

# a browser for the studio's tests: the one that is there, or Debian's
browser:
	@$(PYTHON) tests/find_browser.py --install

benchmark: $(VENV)/.test-installed
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/takeover.py
	$(BIN)/python benchmarks/prebuilt.py
	$(BIN)/python benchmarks/fk.py
	$(BIN)/python benchmarks/solve.py
	$(BIN)/python benchmarks/long_arm.py
	$(BIN)/python benchmarks/chains.py
	$(BIN)/python benchmarks/big_loops.py
	$(BIN)/python benchmarks/fast_drags.py

# collision, paths and time, beside coal, MuJoCo, and OMPL with Pinocchio (about half an hour); cage.py and tracker.py
# take a Python with Pink, Mink and placo as well, see there
motion: $(VENV)/.test-installed
	$(BIN)/python benchmarks/distances.py
	$(BIN)/python benchmarks/cage.py
	$(BIN)/python benchmarks/follow.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/tracker.py

# against other libraries, each in an environment of its own below .bench (about 3 GB)
bench: $(VENV)/.test-installed
	$(BIN)/python benchmarks/peers/run.py --out .bench/report.md

# closed chains against closed-chain-ik in Node, placo and Klampt
loops: $(VENV)/.test-installed
	$(BIN)/python benchmarks/loops/run.py --out docs/loops.md

$(VENV)/.created:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Mechanik needs Python 3.11 or newer; this is ' + sys.version)"
	$(PYTHON) -m venv $(VENV)
	@$(RUN) pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml hatch_build.py
	@echo "installing Mechanik into $(VENV), and building the studio's page (about half a minute)"
	@$(RUN) pip install --quiet --disable-pip-version-check --editable ".[all]"
	@touch $@

$(VENV)/.test-installed: $(VENV)/.installed pyproject.toml
	@echo "installing the test tools and the oracles into $(VENV) (about 1 GB)"
	@$(RUN) pip install --quiet --disable-pip-version-check --group test --group oracles
	@touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis $(WEB)/node_modules src/mechanik/studio/page
