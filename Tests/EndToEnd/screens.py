"""A user of the pages in headless Chromium: light or dark, phone or laptop, with or without scripts."""

import importlib.util
import pathlib
import re

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from local_gateway import free_port, wait_for, wrong

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
SHELL = "/usr/lib/chromium/chromium-headless-shell"
PHONE, LAPTOP = (320, 720), (1280, 800)
AXE = pathlib.Path(importlib.util.find_spec("axe_playwright_python").submodule_search_locations[0]) / "axe.min.js"
# Runs axe, and measures what it does not: how much wider the page is than the window, and targets below 44 px.
SOUND = """
const found = await axe.run(document, {resultTypes: ['violations']});
const inside = document.querySelector('dialog[open]') ?? document;
return {
  violations: found.violations.map(one =>
    one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160) + ' ' + node.failureSummary).join(' // ')),
  wide: document.documentElement.scrollWidth - innerWidth,
  small: [...inside.querySelectorAll('a, button, input:not([type=hidden])')].filter(element => {
    const box = element.getBoundingClientRect();
    return element.checkVisibility({visibilityProperty: true}) && !element.closest('[hidden]') && (box.width < 44 || box.height < 44)
  }).map(element => element.outerHTML.slice(0, 120) + JSON.stringify(element.getBoundingClientRect()))
}"""
# The text of the page; null if parts of it are transparent.
PLAIN_TEXT = """
return [...document.body.querySelectorAll('*')].some(one => one.checkVisibility() && !one.checkVisibility({opacityProperty: true}))
  ? null : document.body.innerText"""
FINISH = "document.getAnimations().forEach(animation => { try { animation.finish() } catch { animation.cancel() } })"


# The looks of a page. Each test runs with one of them, which is in its name; `--looks all` runs all of them.
LOOKS = {
    "phone, light": {"size": PHONE},
    "laptop, dark": {"size": LAPTOP, "dark": True},
    "phone, dark, calm": {"size": PHONE, "dark": True, "calm": True},
    "laptop, light, calm": {"size": LAPTOP, "calm": True},
}


def start(folder, scripts=True, language="en", network=False, full=False, arguments=()):
    """Starts a browser.

    Chromium's headless shell renders pages as Chromium does and takes half of its processor time. Without a process for
    graphics and without optimizing compilers, which cost more than they save on pages that are seen once, it takes a
    fifth less again, and a fifth of the rest less without a new document host for each page. `full` starts Chromium
    itself, with a profile in `folder`. `network` records the requests, which slows them down."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM if full else SHELL
    # The headless shell ignores a profile folder given by WebDriver and creates its own.
    quick = [
        "--in-process-gpu",
        "--js-flags=--no-opt,--no-maglev",
        "--disable-features=RenderDocument",
        "--num-raster-threads=1",
    ]
    own = ["--headless=new", f"--user-data-dir={folder}"] if full else [f"--accept-lang={language}", *quick]
    for argument in [
        *own,
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--lang={language}",
        *arguments,
    ]:
        options.add_argument(argument)
    if full:
        options.add_experimental_option("prefs", {"intl.accept_languages": language})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", **({"performance": "ALL"} if network else {})})
    # A port of ours: another program may take the one that selenium chooses before its driver listens there.
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER, port=free_port()))
    driver.set_page_load_timeout(30)
    driver.set_script_timeout(30)
    if not scripts:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.scripted = scripts
    return driver


def many(text):
    """The default phone policy, with one address sending for all tests."""
    return re.sub(r"(send_ip\s*= \{[^}]*max = )30", r"\g<1>1000", text)


def registrations(text):
    """The default password policy, with one address registering for all tests."""
    return re.sub(r"(register_ip\s*= \{[^}]*max = )10", r"\g<1>1000", text)


class Screen:
    """The pages of a gateway as a user sees and uses them."""

    def __init__(self, driver, gateway, look=None):
        self.driver, self.gateway = driver, gateway
        self.looks(**(LOOKS[look] if isinstance(look, str) else look or {})).slow(0)
        driver.get_log("browser")

    def moves(self):
        """The same look with motion."""
        return self.looks(self.size, self.dark)

    def looks(self, size=(390, 844), dark=False, calm=False, forced=False):
        """Sets window size, color scheme and reduced motion; `forced` enables forced colors."""
        self.size, self.dark = size, dark
        look = (self.driver.current_window_handle, size, dark, calm, forced)
        if getattr(self.driver, "look", None) == look:
            return self
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                    {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
                    {"name": "forced-colors", "value": "active" if forced else "none"},
                ]
            },
        )
        self.driver.look = look
        return self

    def forget(self):
        """Clears all browser data of the site."""
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        return self

    def opens(self, path):
        self.driver.get(self.gateway.url + path)
        if self.driver.scripted:
            self.settles()
        return self

    def settles(self):
        """Waits until the page's scripts have loaded."""
        self.waits(
            lambda: self.js(
                "return document.readyState === 'complete' && [...document.querySelectorAll('form[data-form=code], form[data-form=pad]')]"
                ".every(form => form.dataset.ready) && [...document.querySelectorAll('main > form .country')].every(button => !button.disabled)"
            ),
            "the scripts",
        )

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def waits(self, condition, what, seconds=15):
        def met():
            try:
                return condition()
            except WebDriverException:
                return None

        try:
            return wait_for(met, what, seconds)
        except Exception as error:
            raise AssertionError(f"waited in vain for {what}; at {self.driver.current_url}:\n{self.text}") from error

    @property
    def text(self):
        """The visible text. WebDriver's own way takes ten times as long and is needed only if something is transparent."""
        text = self.js(PLAIN_TEXT)
        return " ".join((self.find("body").text if text is None else text).split())

    @property
    def path(self):
        """The path of a page of the gateway or of the demo service, which has the mock of Google."""
        address = self.driver.current_url.split("?")[0]
        return address.removeprefix(self.gateway.url).removeprefix(getattr(self.gateway, "service", ""))

    def at(self, path):
        self.waits(lambda: self.path == path, f"the page {path}")
        if self.driver.scripted:
            self.settles()
        return self

    def says(self, selector):
        """The complete text of an element, even during a fade-in."""
        return " ".join(self.waits(lambda: self.find(selector), selector).get_attribute("textContent").split())

    def reads(self, *sentences):
        missing = list(sentences)

        def are_there():
            text = self.text
            missing[:] = [sentence for sentence in missing if sentence not in text]
            return not missing

        try:
            self.waits(are_there, "sentences")
        except AssertionError as error:
            raise AssertionError(f"missing: {missing}") from error
        return self

    def matches(self, pattern):
        self.waits(lambda: re.search(pattern, self.text), pattern)
        return self

    def hears(self, sentence):
        """Waits for an announcement of a live region, including earlier ones since the page was opened."""
        self.waits(
            lambda: (
                sentence in " | ".join(self.js("return window.heard ?? []"))
                or sentence
                in self.js(
                    "return document.getElementById('polite').textContent + ' | ' + document.getElementById('urgent').textContent"
                )
            ),
            f"hearing {sentence!r}",
        )
        return self

    def listens(self):
        self.js("""window.heard = []; for (const id of ['polite', 'urgent']) new MutationObserver(() => {
          const text = document.getElementById(id).textContent; if (text) heard.push(text) }).observe(document.getElementById(id), {childList: true})""")
        return self

    def fills(self, name, text):
        field, value = self.waits(
            lambda: self.js(
                "const field = document.querySelector(arguments[0]); return field && [field, field.value]",
                f"main input[name={name}]",
            ),
            f"the field {name}",
        )
        if value:
            field.clear()
        field.send_keys(text)
        return self

    def presses(self, label, within=""):
        def press():
            element = self.js(
                "return [...document.querySelectorAll(arguments[0])].find(one => "
                "[one.innerText.trim(), one.getAttribute('aria-label')].includes(arguments[1]) && !one.disabled && "
                "one.checkVisibility({opacityProperty: true, visibilityProperty: true}))",
                f"{within} button, {within} a",
                label,
            )
            if not element:
                return False
            element.click()
            return True

        self.waits(press, f"{label!r} to press")
        return self

    def types(self, text):
        self.driver.switch_to.active_element.send_keys(text)
        return self

    def keys(self, digits):
        """Types digits on the number pad."""
        for digit in digits:
            self.js(
                "return [...document.querySelectorAll('.pad button')].find(key => key.textContent === arguments[0])", digit
            ).click()
        return self

    def pastes(self, selector, text):
        self.js(
            """const data = new DataTransfer(); data.setData('text', arguments[1]);
          document.querySelector(arguments[0]).dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))""",
            selector,
            text,
        )
        return self

    def offline(self, is_off=True):
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": is_off, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
        )
        return self

    def slow(self, milliseconds):
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1},
        )
        return self

    def spoken(self):
        """The text of the live regions in the accessibility tree, and the names of the text fields."""
        nodes = {
            node["nodeId"]: node for node in self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        }

        def value(node, member):
            return node.get(member, {}).get("value", "")

        def text(node):
            inner = " ".join(text(nodes[child]) for child in node.get("childIds", []) if child in nodes)
            return inner if inner.strip() else value(node, "name")

        live = [text(node) for node in nodes.values() if value(node, "role") in ("status", "alert")]
        return " | ".join(live), [
            value(node, "name")
            for node in nodes.values()
            if value(node, "role") == "textbox" and not node.get("ignored")
        ]

    # Checks of every page.

    def errors(self):
        """The console messages, except for expected refusals."""
        # Failed requests are expected for refusals and for tests that disconnect the network.
        expected = ("status of 4", "status of 502", "ERR_INTERNET_DISCONNECTED")
        lines = [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]
        return [line for line in lines if not any(part in line for part in expected)]

    def finishes(self):
        """Waits for the end of animations."""
        self.js(FINISH)
        return self

    def is_sound(self, what):
        """axe finds nothing, contrast is sufficient, targets are 44 px, and nothing is wider than the window."""
        # Without scripts, timers never finish.
        soon = (
            "" if self.driver.scripted else "window.setTimeout = work => { Promise.resolve().then(work); return 0 }; "
        )
        # In one evaluation: a page that has just arrived begins its animations between two.
        expression = f"'axe' in window ? (async () => {{ {soon}{FINISH}; {SOUND} }})() : 'axe is missing'"
        # A page that navigates loses the injected script.
        for _ in range(4):
            answer = self.driver.execute_cdp_cmd(
                "Runtime.evaluate",
                {"expression": expression, "awaitPromise": True, "returnByValue": True, "timeout": 20_000},
            )
            if answer["result"].get("value") != "axe is missing":
                break
            self.brings_axe()
        found = answer["result"].get("value")
        assert isinstance(found, dict), f"{what}: {answer}"
        assert found["violations"] == [], f"{what}: {found['violations']}"
        assert found["wide"] <= 0, f"{what}: {found['wide']} px wider than the window"
        assert found["small"] == [], f"{what}: {found['small']}"
        return self

    def brings_axe(self):
        """Injects axe into this page, and into all later ones, where it takes a tenth of the time."""
        axe = AXE.read_text()
        if not getattr(self.driver, "has_axe", False):
            self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": axe})
            self.driver.has_axe = True
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})

    # Stories.

    def asks_code(self, number, page="login"):
        """From the phone number to the code page. Returns the sent code."""
        seen = {entry["id"] for entry in self.gateway.outbox()}
        self.opens(f"/auth/{page}").fills("phone", number)
        self.waits(lambda: self.find("button.main").is_enabled(), "a number that can be sent")
        self.find("button.main").click()
        self.at("/auth/verify")
        return wait_for(
            lambda: next(
                (entry["code"] for entry in self.gateway.outbox() if entry["id"] not in seen and entry["code"]), None
            ),
            "a code",
        )

    def enters(self, code):
        self.find("#code").send_keys(code)
        if not self.driver.scripted:
            self.find("button[value=verify]").click()
        return self

    def signs_in(self, phone):
        """Signs in with the number without using pages."""
        flow = self.gateway.flow("login")
        begun = self.gateway.begin(flow, phone)
        if begun.status_code == 404:
            token = self.gateway.register(phone)["session"]["token"]
        else:
            token = self.gateway.submit(flow, self.gateway.code(phone)).json()["session"]["token"]
        self.opens("/auth/error?code=not_found")
        self.driver.add_cookie({"name": "moongate", "value": token, "path": "/", "httpOnly": True, "sameSite": "Lax"})
        return token

    def belongs_to(self, phone):
        """Gives the browser a session of the number."""
        self.token = self.signs_in(phone)
        self.number = phone
        return self


__all__ = ["AXE", "LAPTOP", "PHONE", "Keys", "Screen", "many", "start", "wrong"]
