"""Measures the hosted pages in a browser by the Chrome DevTools Protocol: first and largest paint, layout shift, the
longest response to an input, bytes, requests, and the time until the page is complete, on a fast and a slow
connection (400 kbit/s, 400 ms per round trip).

    MOONGATE_BIN=.build/release .build-e2e/venv/bin/python Tests/Bench/vitals.py [--json FILE]

Each page is opened with an empty cache. Exits with 1 if a figure exceeds its limit.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))

import screens
from album import shipped
from screens import Screen

LINES = {"fast": (0, -1), "slow 3G": (400, 50_000)}
# The limits on the fast and on the slow connection; bytes and shift apply to both.
MOST = {
    "paint": (100, 2_500),
    "largest": (200, 2_500),
    "complete": (400, 2_500),
    "input": (100, 100),
    "bytes": (60_000, 60_000),
    "shift": (0.001, 0.001),
}

WATCH = """
window.seen = { shift: 0, largest: 0, input: 0, complete: 0 };
new PerformanceObserver(list => { for (const one of list.getEntries()) if (!one.hadRecentInput) seen.shift += one.value })
  .observe({ type: 'layout-shift', buffered: true });
new PerformanceObserver(list => { for (const one of list.getEntries()) seen.largest = one.startTime }).observe({ type: 'largest-contentful-paint', buffered: true });
new PerformanceObserver(list => { for (const one of list.getEntries()) if (one.interactionId) seen.input = Math.max(seen.input, one.duration) })
  .observe({ type: 'event', durationThreshold: 16, buffered: true });
(function look() {
  const stands = document.readyState === 'complete'
    && [...document.querySelectorAll('form[data-form=code], form[data-form=pad]')].every(form => form.dataset.ready)
    && [...document.querySelectorAll('main > form .country')].every(button => !button.disabled);
  if (stands) seen.complete = performance.now(); else requestAnimationFrame(look);
})();
"""

FIGURES = """
const loaded = performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource')).filter(one => !one.name.includes('/api/'));
return { ...seen, paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
  bytes: loaded.reduce((sum, one) => sum + one.transferSize, 0), requests: loaded.length };
"""


def pages(screen):
    """The path of each page and the input typed there."""
    gateway, number = screen.gateway, "+919876555001"
    token = gateway.register(number)["session"]["token"]

    def waiting():
        # A page shows flows only to their own browser.
        screen.forget().opens("/auth/register").fills("phone", number[:-3] + str(200 + len(taken)))
        taken.append(1)
        screen.waits(lambda: screen.find("button.main").is_enabled(), "a number")
        screen.find("button.main").click()
        screen.at("/auth/verify")
        return screen.driver.current_url.removeprefix(gateway.url)

    def signed_in(path):
        def come():
            screen.forget().opens("/auth/error?code=not_found")
            screen.driver.add_cookie(
                {"name": "moongate", "value": token, "path": "/", "httpOnly": True, "sameSite": "Lax"}
            )
            return path

        return come

    def stranger(path):
        def come():
            screen.forget()
            return path

        return come

    taken = []
    return {
        "sign in": (stranger("/auth/login"), "9876543210"),
        "sign in, Hindi": (stranger("/auth/login?language=hi"), "9876543210"),
        "register by email": (stranger("/auth/register?with=email"), "Asha"),
        "code": (waiting, "12345"),
        "account": (signed_in("/auth/account"), ""),
        "passcode": (signed_in("/auth/pin?flow=pin_set"), "4829"),
    }


def measure(screen, come, typed, line):
    delay, rate = LINES[line]
    path = come()
    screen.driver.execute_cdp_cmd("Network.enable", {})
    screen.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    throttle = lambda delay, rate: screen.driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": delay, "downloadThroughput": rate, "uploadThroughput": rate},
    )
    throttle(delay, rate)
    try:
        screen.driver.get(screen.gateway.url + path)
        screen.waits(lambda: screen.js("return seen.complete"), "the page to be complete", 60)
    finally:
        throttle(0, -1)
    figures = screen.js(FIGURES)
    for key in typed:
        screen.types(key)
    screen.js("return new Promise(done => requestAnimationFrame(() => setTimeout(done, 150)))")
    return {**figures, "input": screen.js("return seen.input")}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options = options.parse_args()
    told, beyond = {}, []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        (folder / "gateway").mkdir()
        gateway = shipped(folder / "gateway")
        stack.callback(gateway.stop)
        gateway.start()
        driver = screens.start(folder / "chromium")
        stack.callback(driver.quit)
        screen = Screen(driver, gateway)
        driver.execute_cdp_cmd("Page.enable", {})
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        screen.opens("/auth/login")
        print(f"{'':24}{'paint':>8}{'largest':>9}{'complete':>10}{'input':>7}{'shift':>8}{'bytes':>8}{'requests':>9}")
        for name, (come, typed) in pages(screen).items():
            for at, line in enumerate(LINES):
                rounds = [measure(screen, come, typed, line) for _ in range(options.rounds)]
                # The median of times, and the maximum of everything else.
                figures = {
                    key: (statistics.median if key in ("paint", "largest", "complete") else max)(
                        one[key] for one in rounds
                    )
                    for key in rounds[0]
                }
                told[f"{name}, {line}"] = figures
                beyond += [
                    f"{name}, {line}: {key} {figures[key]:.3f} > {most[at]}"
                    for key, most in MOST.items()
                    if figures[key] > most[at]
                ]
                print(
                    f"{name + ', ' + line:24}{figures['paint']:>6.0f}ms{figures['largest']:>7.0f}ms{figures['complete']:>8.0f}ms{figures['input']:>5.0f}ms"
                    f"{figures['shift']:>8.4f}{figures['bytes']:>8}{figures['requests']:>9}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps(told, indent=2))
    for one in beyond:
        print("beyond its limit:", one, file=sys.stderr)
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
