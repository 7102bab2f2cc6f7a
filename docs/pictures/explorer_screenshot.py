"""The explorer as Chromium shows it, at the paper's ★: python docs/pictures/explorer_screenshot.py OUT.png"""

import sys
import tempfile
from pathlib import Path

from screenshot import screenshot

from phinets.reports.explorer import explorer


def main(out: str) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "explorer.html")
        page.write_text(explorer(), encoding="utf-8")
        screenshot(f"{page.as_uri()}#rho=0.08&start=0.08,0.5", out, size=(1280, 940))


if __name__ == "__main__":
    main(sys.argv[1])
