# The commands of a contributor. Everything happens inside .venv, made from a plain python3 (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test check bench lock docs clean

demo: $(STAMP)  ## install, then run the whole team on the bundled sample
	@$(BIN)/iterdev demo

test: $(STAMP) check  ## everything that CI runs
	@$(BIN)/python -m pytest -n 4

check: $(STAMP)  ## lint, format, strict types, layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache >/tmp/iterdev-layers.$$$$ || { cat /tmp/iterdev-layers.$$$$; exit 1; }

bench: $(STAMP)  ## measure, and rewrite docs/benchmarks.md
	@$(BIN)/python bench/run.py

docs: $(STAMP)  ## write the reference pages again: configuration and commands
	@$(BIN)/python docs/generate.py

lock: $(STAMP)  ## resolve the dependencies again
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group dev pyproject.toml --output-file requirements.lock

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "iterdev needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
