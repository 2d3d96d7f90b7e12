# make run    the list of this machine's agents
# make test   everything that is tested, with all its set-up
# make test-full   the same suites with long loops
# make golden      write the golden files and generated docs anew (then read the diff)

PYTHON ?= python3
RUN := .venv
TEST := .build/venv
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run test test-full lint types golden record clean needs

run: $(RUN)/.ready
	@$(RUN)/bin/agenthub

$(RUN)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "agenthub needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@test -x $(RUN)/bin/python || $(PYTHON) -m venv $(RUN) || \
		{ echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }
	@$(RUN)/bin/pip install -q --upgrade pip
	@$(RUN)/bin/pip install -q --editable .
	@touch $@

# what only apt can bring; installed where we may, else the one line to run
needs:
	@missing=""; \
	for need in git:git npm:npm tmux:tmux; do \
		command -v $${need%%:*} >/dev/null || missing="$$missing $${need##*:}"; \
	done; \
	test -z "$$missing" || { \
		if [ "$$(id -u)" = 0 ]; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; \
		else \
			echo "missing:$$missing. Run: sudo apt-get install$$missing"; exit 1; \
		fi; \
	}

$(TEST)/.ready: pyproject.toml
	@mkdir -p .build
	@test -x $(TEST)/bin/python || $(PYTHON) -m venv $(TEST)
	@$(TEST)/bin/pip install -q --upgrade pip
	@$(TEST)/bin/pip install -q --group dev
	@touch $@

# the package as it is built is what is tested
.PHONY: wheel
wheel: $(TEST)/.ready
	@rm -rf .build/dist && $(TEST)/bin/python -m build --wheel --outdir .build/dist . >.build/build.log 2>&1 || \
		{ cat .build/build.log; exit 1; }
	@$(TEST)/bin/pip install -q .build/dist/*.whl
	@$(TEST)/bin/pip install -q --force-reinstall --no-deps .build/dist/*.whl

lint: $(TEST)/.ready
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .

types: wheel
	$(TEST)/bin/mypy
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(TEST)/bin/pyright --pythonpath $(TEST)/bin/python

test: needs lint types
	$(TEST)/bin/python fixtures/record.py --fetch
	AGENTHUB_TESTED=wheel $(TEST)/bin/python -m pytest -m "not long"

test-full: needs lint types
	$(TEST)/bin/python fixtures/record.py --fetch
	AGENTHUB_TESTED=wheel AGENTHUB_LOOPS=20 $(TEST)/bin/python -m pytest

golden: wheel
	$(TEST)/bin/python fixtures/record.py --golden
	$(TEST)/bin/python tests/generate.py

clean:
	rm -rf $(RUN) .build dist
