"""Pictures of all pages and states: light and dark, phone and laptop, with an open keyboard, with forced colors, and
with text at twice its size. `make screenshots`. Review them after a change."""

import contextlib
import pathlib
import shutil
import sys
import tempfile

import album
from screens import LAPTOP, PHONE, Screen, start

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".build-e2e/screenshots")
ONLY = set(sys.argv[2:])
LOOKS = {
    "phone-light": ((390, 844), False),
    "phone-dark": ((390, 844), True),
    "laptop-light": (LAPTOP, False),
    "laptop-dark": (LAPTOP, True),
    "small-dark": (PHONE, True),
    # The keyboard of a phone takes 300 px of the window.
    "keyboard": ((390, 544), False),
    "tiny": ((320, 568), False),
}


def tell(story, screen, number):
    """Takes a picture of each state in each look."""
    count = 0

    def keep(name):
        nonlocal count
        count += 1
        for look, (size, dark) in LOOKS.items():
            screen.looks(size, dark).finishes()
            screen.driver.save_screenshot(str(OUT / f"{story.__name__}-{count:02}-{name}-{look}.png"))
        screen.looks(forced=True).finishes()
        screen.driver.save_screenshot(str(OUT / f"{story.__name__}-{count:02}-{name}-forced.png"))
        screen.looks().js("document.documentElement.style.fontSize = '200%'")
        screen.finishes().driver.save_screenshot(str(OUT / f"{story.__name__}-{count:02}-{name}-large.png"))
        screen.js("document.documentElement.style.fontSize = ''")
        screen.looks()

    story(screen, keep, number)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        driver = start(folder / "chromium")
        stack.callback(driver.quit)
        stack.enter_context(album.still(driver))
        gateways = {}
        for index, (story, name) in enumerate(album.STORIES):
            if ONLY and story.__name__ not in ONLY:
                continue
            if name not in gateways:
                (folder / name).mkdir()
                gateways[name] = album.HOUSES[name](folder / name)
                stack.callback(gateways[name].stop)
                gateways[name].start()
            tell(story, Screen(driver, gateways[name]).forget(), f"+9198760{index:02}001")
        if not ONLY or "plain" in ONLY:
            plain = start(folder / "plain", scripts=False)
            stack.callback(plain.quit)
            gateway = gateways.get("shipped")
            if gateway is None:
                (folder / "shipped").mkdir()
                gateway = album.shipped(folder / "shipped")
                stack.callback(gateway.stop)
                gateway.start()
            tell(album.plain, Screen(plain, gateway).forget(), "+919876099001")
    print(f"{len(list(OUT.iterdir()))} pictures in {OUT}")


if __name__ == "__main__":
    main()
