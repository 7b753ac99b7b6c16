"""Checks of all pages and states (`album.py`): light and dark, at 320 and 1280 px, with and without motion, with and
without scripts. axe finds nothing, contrast and targets are sufficient, nothing is wider than the window, the
console is empty, and no other site is contacted."""

import json

import pytest

import album
import screens
from screens import LAPTOP, PHONE, Screen

# Each color scheme is tested at both sizes, and each size with both motion settings.
LOOKS = [(PHONE, False, True), (PHONE, True, False), (LAPTOP, False, False), (LAPTOP, True, True)]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = screens.start(tmp_path_factory.mktemp("chromium"), network=True)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def gateways(tmp_path_factory):
    running = {}

    def gateway(name):
        if name not in running:
            running[name] = album.HOUSES[name](tmp_path_factory.mktemp(name)).start()
        return running[name]

    yield gateway
    for one in running.values():
        one.stop()


def visits(story, screen, number):
    """Runs the story and checks each of its states in every look."""
    seen = []

    def keep(name):
        seen.append(name)
        for size, dark, calm in LOOKS:
            what = f"{name}, {size[0]} px, {'dark' if dark else 'light'}"
            screen.looks(size, dark, calm).is_sound(what)
        # Text at twice its size, in a window that is wide enough for it.
        screen.looks((640, 800))
        screen.js("document.documentElement.style.fontSize = '200%'")
        wide = screen.js("return document.documentElement.scrollWidth - innerWidth")
        screen.js("document.documentElement.style.fontSize = ''")
        assert wide <= 0, f"{name} at 200 %: {wide} px wider than the window"
        screen.looks()

    story(screen, keep, number)
    assert len(seen) == len(set(seen)), seen
    assert screen.errors() == []
    asked = [json.loads(line["message"])["message"] for line in screen.driver.get_log("performance")]
    addresses = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    # Including the last events of the previous page of another gateway.
    ours = ("http://localhost:", "http://127.0.0.1:", "data:", "chrome")
    assert addresses and all(address.startswith(ours) for address in addresses), [
        address for address in addresses if not address.startswith(ours)
    ]


@pytest.mark.parametrize("story, name", album.STORIES, ids=[story.__name__ for story, _ in album.STORIES])
def test_every_state(driver, gateways, number, story, name):
    screen = Screen(driver, gateways(name)).forget()
    with album.still(driver):
        visits(story, screen, number)


def test_every_state_without_scripts(gateways, number, tmp_path):
    driver = screens.start(tmp_path / "plain", scripts=False, network=True)
    try:
        visits(album.plain, Screen(driver, gateways("shipped")), number)
    finally:
        driver.quit()
