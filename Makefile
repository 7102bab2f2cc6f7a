.PHONY: check test slow bench pictures

check:  ## linters and types
	ruff check .
	ruff format --check .
	mypy

test:  ## the everyday tests
	pytest

slow:  ## the slow tests: kills, several processes, browsers, whole runs
	pytest -m slow

bench:  ## what things cost here
	python benchmarks/step.py
	python benchmarks/views.py
	python benchmarks/shapes.py
	python benchmarks/stream.py
	python benchmarks/continual.py
	python benchmarks/embed.py
	python benchmarks/probe.py
	python benchmarks/basins.py

pictures:  ## the documentation's pictures
	phinets draw architecture --out docs/pictures/architecture.png --overwrite
	phinets draw shapes --out docs/pictures/shapes.png --overwrite
	phinets dynamics portrait --figure regimes --version published --out docs/pictures/dynamics-regimes-published.png --overwrite
	phinets dynamics portrait --figure regimes --out docs/pictures/dynamics-regimes-corrected.png --overwrite
	phinets dynamics portrait --figure line --system simsiam --out docs/pictures/dynamics-simsiam.png --overwrite
	phinets dynamics portrait --figure comparison --out docs/pictures/dynamics-comparison.png --overwrite
	phinets dynamics bifurcations --version published --out docs/pictures/dynamics-bifurcations-published.png --overwrite
	phinets dynamics bifurcations --out docs/pictures/dynamics-bifurcations-corrected.png --overwrite
	phinets dynamics bifurcations --figure map --out docs/pictures/dynamics-sinks.png --overwrite
	phinets dynamics basins --rho 0.08 --box -0.2 0.6 -1.5 1.5 --out docs/pictures/dynamics-basins-medium.png --overwrite
	phinets dynamics basins --rho 0.0001 --box -0.2 0.6 -4 4 --out docs/pictures/dynamics-basins-weak.png --overwrite
	phinets continual --out runs/stream --or-resume
	phinets draw continual runs/stream --figure matrix --out docs/pictures/continual-matrix.png --overwrite
	-python docs/pictures/explorer_screenshot.py docs/pictures/dynamics-explorer.png
