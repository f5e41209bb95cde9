# The commands of a contributor. Everything happens inside .venv, made from a plain python3 (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
AGENTS := .agents/.installed
OPTIONAL := .agents-optional/.tried
RUNNERS := .test-runners/.installed

# The tests and the benchmarks start iterdev thousands of times, which takes three times as long if each compiles it anew.
unexport PYTHONDONTWRITEBYTECODE

KILLS ?= 1000

.PHONY: demo test check soak chaos host-kills bench fuzz corpus conformance lock docs pictures clean system corpus-system

demo: $(STAMP)  ## install, then run the whole team on the bundled sample
	@$(BIN)/iterdev demo

test: $(STAMP) $(AGENTS) $(OPTIONAL) $(RUNNERS) system check  ## everything that CI runs
	@$(BIN)/python -m pytest -n 4 --dist worksteal

check: $(STAMP)  ## lint, format, strict types, layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@layers=$$(PYTHONPATH=src $(BIN)/lint-imports --no-cache) || { echo "$$layers"; exit 1; }

soak: $(STAMP)  ## kill at random, KILLS times, and check that nothing is lost or left
	@$(BIN)/python -m tests.crash.soak --kills $(KILLS) --workers 2

chaos: $(STAMP)  ## fail hosts, engine, server, git and network of a session of TASKS tasks; needs root
	@$(BIN)/python -m tests.chaos --tasks $(or $(TASKS),200)

host-kills: $(STAMP)  ## kill hosts and engines of sessions on hosts at each effect, before and after it
	@for first in 0 1; do $(BIN)/python -m tests.execution.temporal.kill_matrix $$first 2 & runs="$$runs $$!"; done; \
	for run in $$runs; do wait $$run || failed=1; done; exit $${failed:-0}

bench: $(STAMP) $(AGENTS)  ## measure, and rewrite docs/benchmarks.md
	@$(BIN)/python bench/run.py

fuzz: $(STAMP)  ## give a million inputs to the parsers, and keep those that they fail on
	@$(BIN)/python -m tests.fuzz --inputs $(or $(INPUTS),1000000)

corpus: $(STAMP) system corpus-system  ## try iterdev on real packages, and rewrite docs/corpus.md
	@$(BIN)/python bench/corpus/run.py

docs: $(STAMP)  ## write the reference pages again: configuration and commands
	@$(BIN)/python docs/generate.py

pictures: $(STAMP)  ## draw the pictures of the documentation again, from the demo
	@$(BIN)/python docs/pictures.py

conformance: $(STAMP) $(AGENTS) $(OPTIONAL)  ## check the coding agents, and rewrite docs/conformance.md and docs/clients.md
	@$(BIN)/python docs/conformance.py
	@$(BIN)/python docs/clients.py

lock: $(STAMP)  ## resolve the dependencies again
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra conformance --extra otel --extra temporal --extra watch --extra web --group dev pyproject.toml --output-file requirements.lock

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "iterdev needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@echo "Installing iterdev and what it needs into .venv; this takes about a minute, and only once ..." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

$(AGENTS): tests/agents/clis.txt  # the coding agents that the tests run, at the versions that are known to work
	@command -v npm >/dev/null || { echo "npm (node 20 or newer) is needed to install the coding agents of the tests" >&2; exit 1; }
	@mkdir -p .agents
	@npm install --loglevel=error --no-save --no-audit --no-fund --ignore-scripts --prefix .agents $$(cat $<) >/dev/null
	@touch $@

$(OPTIONAL): tests/agents/optional-clis.txt  # further coding agents, each where it can be installed: a name and its packages
	@mkdir -p .agents-optional
	@while read -r name packages; do \
		npm install --loglevel=silent --no-save --no-audit --no-fund --ignore-scripts --prefix .agents-optional/$$name $$packages \
			>/dev/null </dev/null || echo "$$name could not be installed; its conformance is not tested" >&2; \
	done < $<
	@touch $@

$(RUNNERS): tests/host/test_suites/runners.txt  # test runners of Node whose reports are read
	@mkdir -p .test-runners
	@npm install --loglevel=error --no-save --no-audit --no-fund --ignore-scripts --prefix .test-runners $$(cat $<) >/dev/null
	@touch $@

TOOLS := tmux:tmux ip:iproute2 bwrap:bubblewrap strace:strace cmake:cmake cc:gcc cargo:cargo perl:perl rake:rake chromium:chromium
system:  # the tests use a real terminal, a real sandbox, and the test runners of several languages
	@missing=$$(for pair in $(TOOLS); do command -v $${pair%:*} >/dev/null || echo $${pair#*:}; done); \
	test -z "$$missing" \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --yes $$missing >/dev/null; } \
		|| { echo "the tests need $$missing; install it with your package manager" >&2; exit 1; }

CORPUS := golang-go meson ninja-build automake autoconf libtool pkg-config ruby-rspec ruby-nokogiri pry ruby-activesupport \
	ruby-rspec-pending-for php-cli phpunit composer libtest-fatal-perl libclass-method-modifiers-perl librole-tiny-perl \
	libsub-quote-perl librust-serde-dev librust-serde-json-dev librust-smallvec-dev
corpus-system:  # what the packages of the corpus need beyond that, as their authors would have it
	@missing=$$(for name in $(CORPUS); do dpkg-query --status $$name >/dev/null 2>&1 || echo $$name; done); \
	test -z "$$missing" \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --yes $$missing >/dev/null; } \
		|| { echo "the corpus needs $$missing; install it with your package manager" >&2; exit 1; }

clean:
	rm -rf .corpus .venv .agents .agents-optional .test-runners .mypy_cache .ruff_cache .pytest_cache
