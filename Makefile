.PHONY: check test quick bench pictures

check:  ## linters and types
	ruff check .
	ruff format --check .
	mypy

test:  ## all tests
	pytest

quick:  ## the tests that take no time
	pytest -m "not slow"

bench:  ## what things cost here
	python benchmarks/step.py
	python benchmarks/views.py
	python benchmarks/shapes.py
	python benchmarks/probe.py

pictures:  ## the README's pictures
	phinets draw architecture --out docs/pictures/architecture.png --overwrite
	phinets draw shapes --out docs/pictures/shapes.png --overwrite
