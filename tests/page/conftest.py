"""The page as a file and in a browser: a small record, the built page, and Chromium if the machine has it."""

import importlib.util
import shutil

import numpy as np
import pytest

from experiments import two_views
from figures.page.build import build
from meanfield.sweeps.studies import Study

#: What Chromium is called, and how it runs without a window, a sandbox (root has none) and any traffic of its own.
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
QUIET += ("--disable-background-networking", "--disable-component-update", "--disable-sync")

FLOWS = [*((variant, 1.0) for variant in two_views.VARIANTS), ("softmax", 4.0)]


@pytest.fixture(scope="session")
def study():
    """The record of two_views with few flows and few output times."""
    flows = [
        {"part": "flow", "variant": variant, "beta": beta, "sign": 1.0, "outputs": 7} for variant, beta in FLOWS
    ]
    cases = [{"part": "toy"}, {"part": "depths"}, *flows]
    arrays = [two_views.run(case, np.random.default_rng(0)) for case in cases]
    return Study("two_views", two_views.CLAIM, True, 0, cases, arrays)


@pytest.fixture(scope="session")
def toy(study):
    """Arrays of the small layer."""
    return study.select(part="toy")[0]


@pytest.fixture(scope="session")
def text(study):
    """The page."""
    return build(study)


@pytest.fixture(scope="session")
def file(text, tmp_path_factory):
    """The page on disk."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser without network, with an empty profile; skips where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed: pip install '.[page]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=found,
            args=list(QUIET),
            viewport={"width": 1280, "height": 900},
        )
        context.set_offline(True)
        yield context
        context.close()


@pytest.fixture
def page(chromium, file):
    """The page, freshly loaded at desk size; what it asks for and complains of is judged afterwards."""
    tab = chromium.new_page()
    asked, said = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(file.as_uri())
    yield tab
    tab.close()
    assert said == []
    assert asked == [file.as_uri()]
