"""Pages in a browser: dark and light, by the keyboard, with a name for everything, at two widths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from dev.test_programs import chromium
from drawdown.airflow.pages import frame
from tests.support.browser import PICTURES
from tests.support.fleet_records import FleetRecords
from tests.support.pictured_fleet import FLEET, pictured_fleet
from tests.support.pictured_history import NEWEST_RUN, pictured_history
from tests.support.pipeline_history import history
from tests.support.served_pages import served_pages

pytestmark = [pytest.mark.capability("SEE-19"), pytest.mark.timeout(120)]

RUN = quote("scheduled__2026-01-31T02:00:00+00:00", safe="")
PAGES = (
    "/fleet",
    "/dags/orders",
    f"/runs/orders/{RUN}",
    "/decisions",
    "/quarantine/orders/orders",
    "/quarantine/sales/sales",
    "/calendar/revenue_by_day",
    "/graph",
    "/dags/unknown",
    "/data-docs/orders/orders/gone.html",
)
THEMES = ("light", "dark")
NAMED = {
    "button", "checkbox", "combobox", "DisclosureTriangle", "image", "img", "link", "region", "searchbox",
    "table", "textbox",
}  # fmt: skip
CONTRAST = """() => {
  const rgb = text => {
    const n = text.match(/[\\d.]+/g).map(Number);
    return n.length > 3 && n[3] === 0 ? null : n;
  };
  const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const found = rgb(getComputedStyle(at).backgroundColor);
      if (found) return found;
    }
    return [255, 255, 255];
  };
  const weak = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || ["TITLE", "OPTION"].includes(node.nodeName.toUpperCase())) continue;
    const style = getComputedStyle(node);
    const colour = node.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const a = light(rgb(colour)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(`${text.data.trim()}: ${ratio.toFixed(2)}`);
  }
  return weak;
}"""
FOCUS = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const name = `${at.nodeName} ${at.getAttribute("aria-label") || at.textContent.trim().slice(0, 40)}`;
  return [name, at === document.body, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1];
}"""
FOCUSABLE = "a[href], button, input:not([type=hidden]), select, summary, [tabindex]"


@pytest.fixture(scope="module")
def address(airflow_home: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from drawdown.airflow.pages.access import may_read_runs, readable_dags
    from drawdown.airflow.pages.app import app

    root, before = tmp_path_factory.mktemp("readable"), Path.cwd()
    fleet = FleetRecords(root)
    history(fleet, "orders")
    pictured_history(fleet, "sales")
    fleet.pipeline("new")
    fleet.record("orders", "sales", "new")
    pictured_fleet(fleet)
    app.dependency_overrides[readable_dags] = lambda: {"orders", "sales", "new", *FLEET}
    app.dependency_overrides[may_read_runs] = lambda: None
    os.chdir(root)
    try:
        with served_pages() as url:
            yield url
    finally:
        os.chdir(before)
        app.dependency_overrides.clear()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    options = {"executable_path": chromium(), "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as started:
        yield started


@pytest.mark.parametrize(
    ("path", "says", "name"),
    [
        ("/dags/sales", "Seconds by phase", "pipeline-page"),
        (f"/runs/sales/{quote(NEWEST_RUN, safe='')}", "Timeline of", "run-page"),
    ],
)
def test_a_pipeline_with_a_day_of_runs_fits_a_browser(
    chrome: Browser, address: str, request: pytest.FixtureRequest, path: str, says: str, name: str
) -> None:
    with opened(chrome, address) as page:
        page.set_viewport_size({"width": 1200, "height": 1500})
        page.goto(address + path)
        page.get_by_role("img", name=says).first.wait_for()
        if request.config.getoption("--pictures"):
            page.screenshot(path=PICTURES / f"{name}.png", full_page=name == "run-page")


def test_a_quarantine_fits_a_browser(chrome: Browser, address: str, request: pytest.FixtureRequest) -> None:
    with opened(chrome, address) as page:
        page.goto(f"{address}/quarantine/sales/sales")
        page.get_by_label("Why").fill("discounts are allowed since January")
        page.get_by_role("button", name="Replay 7 open rows").click()
        page.get_by_text("Nothing was started: Not Found").wait_for()  # no Airflow is around these pages
        page.get_by_role("button", name="Replay 7 open rows").wait_for()
        page.goto(f"{address}/quarantine/sales/sales?reason=negative")
        page.get_by_role("button", name="Replay 4 open rows").wait_for()
        if request.config.getoption("--pictures"):
            page.screenshot(path=PICTURES / "quarantine-page.png", full_page=True)


def test_a_decision_fits_a_browser(chrome: Browser, address: str, request: pytest.FixtureRequest) -> None:
    with opened(chrome, address) as page:
        page.goto(f"{address}/decisions?pipeline=sales")
        page.get_by_role("table", name="Numbers of sales, batches 87 to 89").wait_for()
        if request.config.getoption("--pictures"):
            page.screenshot(path=PICTURES / "decisions-page.png", full_page=True)


@pytest.mark.parametrize(
    ("path", "says", "name"),
    [
        ("/fleet?tag=shop", "worst first", "fleet-page"),
        ("/calendar/revenue_by_day", "What may need a replay", "calendar-page"),
        ("/graph?tag=shop", "As a table", "graph-page"),
    ],
)
def test_the_pages_of_a_shop_fit_a_browser(
    chrome: Browser, address: str, request: pytest.FixtureRequest, path: str, says: str, name: str
) -> None:
    with opened(chrome, address) as page:
        page.set_viewport_size({"width": 1300, "height": 300})
        page.goto(address + path)
        page.get_by_text(says).first.wait_for()
        if request.config.getoption("--pictures"):
            page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def opened(chrome: Browser, address: str, theme: Any = "light", width: int = 1200) -> Page:
    return chrome.new_page(
        base_url=address, viewport={"width": width, "height": 860}, color_scheme=theme, bypass_csp=True
    )


def show_all(page: Page, url: str) -> None:
    page.goto(url)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


def test_all_text_stands_out_in_dark_and_light(chrome: Browser, address: str) -> None:
    grounds = set()
    for theme in THEMES:
        with opened(chrome, address, theme) as page:
            for path in PAGES:
                show_all(page, address + path)
                assert page.evaluate(CONTRAST) == [], f"{path}, {theme}"
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == len(THEMES)


def test_airflows_own_theme_wins_over_that_of_the_system(chrome: Browser, address: str) -> None:
    with opened(chrome, address, "light") as page:
        page.goto(f"{address}/fleet")
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"


def test_screen_readers_hear_a_name_for_all_that_is_not_text(chrome: Browser, address: str) -> None:
    with opened(chrome, address) as page:
        session = page.context.new_cdp_session(page)
        found = dict.fromkeys(NAMED, 0)
        for path in PAGES:
            show_all(page, address + path)
            assert page.locator("html").get_attribute("lang") == "en"
            assert page.get_by_role("heading", level=1).count() == 1
            for node in session.send("Accessibility.getFullAXTree")["nodes"]:
                role = node.get("role", {}).get("value", "")
                if node["ignored"] or role not in NAMED:
                    continue
                found[role] += 1
                assert node.get("name", {}).get("value", "").strip(), f"{path}: a {role} without a name"
    assert found["link"] > 10
    assert found["image"] + found["img"] > 10, "charts"
    assert found["table"] > 3


def test_the_keyboard_reaches_everything_and_shows_where_it_is(chrome: Browser, address: str) -> None:
    with opened(chrome, address) as page:
        for path in PAGES[:3]:
            show_all(page, address + path)
            expected = page.locator(FOCUSABLE).count()
            reached = 0
            while reached <= expected:
                page.keyboard.press("Tab")
                name, is_end, is_visible = page.evaluate(FOCUS)
                if is_end:
                    break
                reached += 1
                assert is_visible, f"{path}: nothing shows that {name} has the focus"
            assert reached == expected, path


@pytest.mark.parametrize("width", [1200, 800])
def test_nothing_is_cut_off(chrome: Browser, address: str, width: int) -> None:
    with opened(chrome, address, width=width) as page:
        for path in PAGES:
            show_all(page, address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_colours_of_every_state_stand_out_on_both_grounds() -> None:
    style = (frame.HERE / "static/pages.css").read_text()
    themes = [
        dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root[^{]*{([^}]*)}", style)
    ]
    themes = [each for each in themes if each]
    assert len(themes) == 3
    assert themes[1] == themes[2], "dark by the system and by Airflow"
    for theme in themes:
        texts = ("--text", "--quiet", "--link", "--good", "--warn", "--bad", "--calm")
        for name, ground in product(texts, ("--ground", "--raised")):
            assert contrast(theme[name], theme[ground]) >= 4.5, f"{name} on {ground}: {theme}"
        for name in (each for each in theme if each.startswith(("--series", "--none"))):
            assert contrast(theme[name], theme["--ground"]) >= 3, f"{name}: {theme}"


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2."""
    dark, bright = sorted(map(_luminance, (one, other)))
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
