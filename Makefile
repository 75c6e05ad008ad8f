# Every target sets up .venv by itself; PYTHON names another interpreter (3.11 to 3.13).
.PHONY: demo test check bench format clean
bin := .venv/bin

setup = @PYTHON='$(PYTHON)' .ci/setup

demo:  ## judge the last image bump of a simulated history
	$(setup)
	@$(bin)/tracker demo

# Modules are compiled once, not by each process that a test starts; a file's tests share what its fixtures made.
test:  ## every test, with the examples in the docstrings
	$(setup)
	PYTHONDONTWRITEBYTECODE= $(bin)/python -m pytest -n auto --dist loadfile -q

check:  ## format, lint, types, import contracts, workflows
	$(setup)
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/lint-imports
	PATH="$(abspath $(bin)):$$PATH" .ci/lint-workflows .

bench:  ## figures: calibration, ingest, compare
	$(setup)
	$(bin)/python -m bench

format:
	$(setup)
	$(bin)/ruff format .
	$(bin)/ruff check --fix .

clean:  ## remove what the other targets made
	rm -rf .venv demo
