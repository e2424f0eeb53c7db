"""Airflow's own pages in a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from dev.airflow.home import LocalAirflow
from dev.test_programs import chromium

PICTURES = Path(__file__).parents[2] / "docs/images"
PATIENCE = 120_000
"""Milliseconds that a click waits for what it is to click on: a machine may be busy."""


@dataclass(frozen=True)
class Browser:
    """One window on an Airflow; `takes_pictures` for the documentation, or is only looked at."""

    page: Page
    url: str
    takes_pictures: bool

    def open(self, *path: str) -> None:
        """A page by its address."""
        self.page.goto("/".join([self.url, *(quote(part, safe="") for part in path)]))

    def picture(self, name: str) -> None:
        """Keep what is to be seen now as docs/images/NAME.png."""
        if self.takes_pictures:
            self.page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")


@contextmanager
def logged_in(airflow: LocalAirflow, *, takes_pictures: bool) -> Iterator[Browser]:
    """A browser on the first page, as Airflow's user; it ends with the block."""
    # Chromium's sandbox refuses root, as whom containers run tests; the pages are our own.
    options = {"executable_path": chromium(), "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as started:
        page = started.new_page(viewport={"width": 1200, "height": 860})
        page.set_default_timeout(PATIENCE)
        browser = Browser(page, airflow.url, takes_pictures)
        browser.open()
        page.get_by_role("textbox", name="Username").fill(airflow.user)
        page.get_by_label("Password").fill(airflow.password)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Dags").first.wait_for()
        yield browser
