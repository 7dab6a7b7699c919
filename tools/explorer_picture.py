"""Make the picture of the explorer in docs/reporting.md: python -m tools.explorer_picture.

Trains GCN and both RawlsGCN methods on Amazon-Photo, one run each with default settings, writes the
report, opens it in headless Chromium, selects the second group, and keeps a picture of the card.
Needs the dataset, Chromium and playwright.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import rawlsgcn as rg

PICTURE = Path("docs/images/audit-explorer.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dataset", default="amazon-photo")
    parser.add_argument("--out", type=Path, default=PICTURE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = rg.compare(given.dataset, seeds=1)
        page = results.audit().to_html(Path(folder, "report.html"))
        draw(page, given.out)
    print(f"Picture: {given.out}")


def draw(page: Path, out: Path) -> None:
    """Open a report, select its second group, and write a picture of the explorer."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
        )
        opened = started.new_page(viewport={"width": 1008, "height": 900})
        opened.goto(page.resolve().as_uri())
        mark = opened.locator("#plot .mark").nth(1)
        mark.scroll_into_view_if_needed()
        box = mark.bounding_box()
        assert box is not None
        opened.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        card = opened.locator("section", has=opened.locator("#explorer"))
        card.screenshot(path=out)
        started.close()
    Image.open(out).convert("RGB").quantize(256).save(out, optimize=True)


if __name__ == "__main__":
    main()
