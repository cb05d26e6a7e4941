# What a fresh clone needs: Python 3.10 or later with its venv module, git and make.
#
#   make demo    the main job on real wheels, in a scratch environment under .demo/
#   make test    the tests             make slow     those that take minutes
#   make lint    ruff and mypy         make package  the wheel, in an empty environment
#   make conformance   apply and revert on every release there is (downloads 600 MB, once)
#   make bench   speed, as ratios      make clean    remove what these made

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow conformance lint package bench clean
.DELETE_ON_ERROR:

demo: .venv/.package
	$(BIN)/python examples/demo.py

test: .venv/.tools
	$(BIN)/python -m pytest -n 2

slow: .venv/.tools
	$(BIN)/python -m pytest -n 2 -m slow

conformance: .venv/.tools
	PYTHONPATH=tests $(BIN)/python tests/conformance.py --fetch --write

package: .venv/.tools
	$(BIN)/python -m pytest -m "slow or not slow" tests/test_package.py

lint: .venv/.tools
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy
	$(BIN)/mypy --strict examples/demo.py examples/deploy.py examples/own-set/run.py benchmarks

bench: .venv/.package
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/apply.py

clean:
	rm -rf .venv .demo build dist

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(f"gatepatch needs Python 3.10 or later, and {sys.executable} is {v}: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "this Python has no venv module: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
# An older pip knows neither --group nor --python.
	$@ -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"

.venv/.package: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.tools: .venv/.package
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
