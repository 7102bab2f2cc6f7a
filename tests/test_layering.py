"""The package has floors: a module imports only from lower ones, or from its own package."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "phinets"

FLOORS = {
    "config": 0,
    "runtime": 1,
    "losses": 2,
    "backbones": 2,
    "views": 2,
    "data": 2,
    "dynamics": 2,
    "paper": 3,
    "methods": 3,
    "detection": 3,
    "training": 4,
    "continual": 5,
    "reports": 5,
    "evaluation": 6,
    "runs": 7,
    "embed": 8,
    "export": 8,
    "reproduce": 9,
    "cli": 10,
}
WITHOUT_TORCH = ("config", "paper", "reports", "data/shapes/rendering.py", "data/shapes/scene.py", "dynamics")
ENTRY_POINTS = ("__init__", "__main__")


def imports(path: Path) -> set[str]:
    """The phinets modules that a file imports when it is loaded or run, type-checking blocks included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            if node.module == "phinets":
                found |= {f"phinets.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def rooms(modules: set[str]) -> set[str]:
    return {m.split(".")[1] for m in modules if m.startswith("phinets.")} & set(FLOORS)


def files() -> list[Path]:
    return [p for p in sorted(SOURCE.rglob("*.py")) if p.stem not in ENTRY_POINTS or p.parent != SOURCE]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_room_has_a_floor() -> None:
    assert {room_of(p) for p in files()} == set(FLOORS)


def test_a_module_imports_only_from_lower_floors() -> None:
    upward = {
        f"{path.relative_to(SOURCE)} imports {room}"
        for path in files()
        for room in rooms(imports(path))
        if room != room_of(path) and FLOORS[room] >= FLOORS[room_of(path)]
    }
    assert not upward


@pytest.mark.parametrize("place", WITHOUT_TORCH)
def test_these_rooms_do_without_torch(place: str) -> None:
    for path in [SOURCE / place] if place.endswith(".py") else (SOURCE / place).rglob("*.py"):
        assert not {m for m in imports(path) if m.split(".")[0] in ("torch", "torchvision")}, path


def test_training_does_not_evaluate() -> None:
    for path in (SOURCE / "training").rglob("*.py"):
        assert "evaluation" not in rooms(imports(path)), path


@pytest.mark.parametrize("words", ["import phinets", "from phinets.cli.main import _run; _run(['--help'], False)"])
def test_nothing_heavy_is_imported_before_it_is_needed(words: str) -> None:
    heavy = ("torch", "torchvision", "matplotlib", "scipy", "numpy", "tyro")
    code = f"{words}\nimport sys; print('HEAVY', [m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_help_for_training_comes_without_torch() -> None:
    code = (
        "import sys\nfrom phinets.cli.train import parse\n"
        "try: parse(['--help'])\nexcept SystemExit: pass\n"
        "print('TORCH', 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "TORCH False"
    assert "Example: phinets train" in done.stdout
