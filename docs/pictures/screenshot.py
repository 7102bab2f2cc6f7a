"""A page as Chromium shows it: python docs/pictures/screenshot.py PAGE.html OUT.png"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --force-prefers-reduced-motion"
CALM = "--disable-background-networking --disable-component-update --disable-sync --virtual-time-budget=3000"


def screenshot(address: str, out: str, size: tuple[int, int] = (1280, 900), colors: int = 128) -> None:
    """The top of the page at an address, as a .png of few colors."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit(f"there is no Chromium here, so '{out}' stays as it is.")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder, "shot.png")
        places = [f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}", f"--screenshot={shot}"]
        subprocess.run(
            [chromium, *FLAGS.split(), *CALM.split(), *places, address], check=True, stderr=subprocess.DEVNULL
        )
        Image.open(shot).convert("RGB").quantize(colors).save(out, optimize=True)


if __name__ == "__main__":
    screenshot(Path(sys.argv[1]).resolve().as_uri(), sys.argv[2])
