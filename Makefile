# `make demo` and `make test` work from an empty clone: they need Python 3.11+ with pip, and neither a GPU nor a CUDA toolkit.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: venv test demo golden clean

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "layoutgen needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(STAMP)

test: venv
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

demo: venv
	$(BIN)/layoutgen build specs/warptile_128x128.yaml
	$(BIN)/python docs/demo.py

golden: venv
	$(BIN)/layoutgen emit --all

clean:
	rm -rf $(VENV) dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
