# Every target sets up .venv by itself; PYTHON names another interpreter (3.11 to 3.13).
.PHONY: demo test check bench package sbom audit licences format clean
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

package:  ## wheel and sdist, built twice, each tried installed; PYTHONS names other interpreters
	$(setup)
	$(bin)/python .ci/package $(PYTHONS)

sbom:  ## dist/sbom.cdx.json: what the wheel with its extras brings, CycloneDX
	$(setup)
	@.ci/setup-supply
	$(bin)/python .ci/sbom

audit:  ## known vulnerabilities of the pinned packages; ends with 3 where the list cannot be had
	$(setup)
	@.ci/setup-supply
	$(bin)/python .ci/audit

licences:  ## docs/licences.md
	$(setup)
	$(bin)/python .ci/licences

format:
	$(setup)
	$(bin)/ruff format .
	$(bin)/ruff check --fix .

clean:  ## remove what the other targets made
	rm -rf .venv .venv-supply demo dist
