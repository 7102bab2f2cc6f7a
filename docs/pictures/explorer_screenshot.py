"""The explorer as Chromium shows it, at the paper's ★: python docs/pictures/explorer_screenshot.py OUT.png"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from phinets.reports.explorer import explorer

FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --force-prefers-reduced-motion"
CALM = "--disable-background-networking --disable-component-update --disable-sync --virtual-time-budget=3000"


def main(out: str) -> None:
    """Write the picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no Chromium here, so the explorer's picture stays as it is.")
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder, "explorer.html"), Path(folder, "shot.png")
        page.write_text(explorer(), encoding="utf-8")
        places = [f"--user-data-dir={folder}/profile", "--window-size=1280,940", f"--screenshot={shot}"]
        words = [chromium, *FLAGS.split(), *CALM.split(), *places, f"{page.as_uri()}#rho=0.08&start=0.08,0.5"]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        Image.open(shot).convert("RGB").quantize(128).save(out, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
