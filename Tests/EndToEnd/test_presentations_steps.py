"""The pages of forms, external sites and WebAuthn ceremonies: one suite for all providers that declare the
presentation, both the included ones and programs unknown to Sources/."""

import html
import http.server
import json
import re
import subprocess
import sys
import threading
import urllib.parse

import pytest
import requests
import screens

from authenticator import App
from local_gateway import BIN, ROOT, LocalGateway, wait_for
from mockgoogle import choose, field
from presentations import KEYRING, MOTTO, ORCHARD, add
from screens import Screen
from test_accounts import tool
from test_passkey import Device
from test_presentations import BOXES, PADS


MAIN = "main form button.main"


class Form:
    """A form provider for the tests. `page` is the path of its step; `says` and `hindi` are the page's instructions."""

    def __init__(self, name, says, hindi, wrong, labels, page="/auth/step", locked=r"Try again in 00:0[1-4]"):
        self.locked = locked
        self.name, self.says, self.hindi, self.wrong, self.labels, self.page = name, says, hindi, wrong, labels, page

    def belongs(self, screen, number):
        """A session of a user who has set it up but not proved it. Returns the right and a wrong answer."""
        return getattr(self, "with_" + self.name)(screen.forget(), number)

    def with_totp(self, screen, number):
        token = screen.signs_in(number)
        flow, begun = begin(screen.gateway, "totp_set", {"provider": "totp"}, token)
        app = App(next(part["text"] for part in begun["step"]["show"] if part["kind"] == "qr"))
        submit(screen.gateway, flow, {"code": app.code(-1)}, token)
        keep(screen, submit(screen.gateway, flow, {}, token)["session"]["token"])
        return app.code, lambda: screens.wrong(app.code(2))

    def with_motto(self, screen, number):
        token = screen.signs_in(number)
        flow, _ = begin(screen.gateway, "motto_set", {"provider": "motto"}, token)
        keep(screen, submit(screen.gateway, flow, {"motto": "steady as an oak"}, token)["session"]["token"])
        return lambda: "steady as an oak", lambda: "quick as a hare"

    def with_password(self, screen, number):
        gateway, email = screen.gateway, f"oak{number[-5:]}@example.org"
        flow, _ = begin(
            gateway,
            "register_email",
            {
                "provider": "password",
                "email": email,
                "first_name": "Asha",
                "last_name": "Rao",
                "password": "correct horse battery",
            },
        )
        begin(gateway, None, {"provider": "email_code"}, flow=flow)
        done = submit(gateway, flow, {"code": gateway.code(email)})
        assert done["status"] == "complete", done
        # A session opened by a code does not prove the password.
        flow, _ = begin(gateway, "login", {"provider": "email_code", "email": email})
        screen.opens("/auth/error?code=not_found")
        keep(screen, submit(gateway, flow, {"code": gateway.code(email)})["session"]["token"])
        return lambda: "correct horse battery", lambda: "correct mare battery"

    def answers(self, screen, text):
        """Fills in the first field, regardless of its name."""
        box = screen.waits(lambda: screen.find("main form input:not([type=hidden]):not([disabled])"), "a field")
        box.clear()
        box.send_keys(text)
        # Digits of a fixed length are submitted automatically.
        if self.name != "totp" or not screen.driver.scripted:
            screen.find(MAIN).click()
        return screen


class Site:
    """A provider of an external site: its button, and the user's actions there."""

    def __init__(self, name, label, hindi, away, failed, cancelled):
        self.name, self.label, self.hindi, self.away, self.failed, self.cancelled = (
            name,
            label,
            hindi,
            away,
            failed,
            cancelled,
        )

    def does(self, screen, how):
        """The action on the site: `right`, `wrong` or `cancel`."""
        screen.waits(lambda: self.away in screen.driver.current_url, self.name)
        if self.name == "google_oauth":
            labels = {"cancel": "Cancel", "wrong": "Fail with an error"}
            return screen.presses(labels[how]) if how in labels else screen.find("button[name=account]").click()
        return screen.find(f"#{how}").click()


class Key:
    """A provider with a ceremony: its page calls the browser's API."""

    def __init__(self, name, set_up, title, hindi, wrong):
        self.name, self.set_up, self.title, self.hindi, self.wrong = name, set_up, title, hindi, wrong

    def is_set(self, screen):
        screen.opens(f"/auth/step?flow={self.name}_set&return_to=%2Fauth%2Faccount").presses(self.set_up)
        if self.name == "passkey":
            screen.reads("Your passkey is ready.").presses("Continue")
        screen.at("/auth/account")


FORMS = [
    Form(
        "totp",
        ("Authenticator app", "Enter the six digits"),
        ("ऑथेंटिकेटर ऐप", "ऐप का कोड"),
        "Invalid code. Please try again.",
        ["Code from the app"],
    ),
    Form(
        "password",
        ("Enter your password to continue.",),
        ("आगे बढ़ने के लिए अपना पासवर्ड लिखें।",),
        "Incorrect email or password.",
        ["Password"],
        page="/auth/login",
        locked=r"Please try again in \d seconds",
    ),
    Form(
        "motto",
        ("Family motto", "Say the motto of your family."),
        ("परिवार का आदर्श वाक्य", "अपने परिवार का आदर्श वाक्य लिखें।"),
        "That is another family's motto.",
        ["Motto"],
    ),
]
SITES = [
    Site(
        "google_oauth",
        "Continue with Google",
        "Google से आगे बढ़ें",
        "/mock-google/authorize",
        "Google sign-in failed. Try again.",
        "Sign-in cancelled",
    ),
    Site(
        "orchard",
        "Continue with Orchard",
        "बाग़ से आगे बढ़ें",
        "/orchard?",
        "The orchard does not know you.",
        "Sign-in cancelled",
    ),
]
KEYS = [
    Key("passkey", "Add a passkey", "Passkey", "अपने फ़िंगरप्रिंट", "This passkey could not be verified. Try again."),
    Key("keyring", "Add a key", "Key ring", "अपनी चाबी ताले से लगाएँ।", "This key does not turn."),
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
every_site = pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
every_key = pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)


def begin(gateway, name, fields, token=None, flow=None):
    own = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    if flow is None:
        created = gateway.api("POST", "/flows", {"flow": name}, **own)
        assert created.status_code == 201, created.text
        flow = created.json()["id"]
    begun = gateway.api("POST", f"/flows/{flow}/begin", fields, **own)
    assert begun.status_code == 200, begun.text
    return flow, begun.json()


def submit(gateway, flow, fields, token=None):
    own = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    done = gateway.api("POST", f"/flows/{flow}/submit", fields, **own)
    assert done.status_code == 200, done.text
    return done.json()


def keep(screen, token):
    """Gives the browser this session."""
    screen.driver.add_cookie({"name": "moongate", "value": token, "path": "/", "httpOnly": True, "sameSite": "Lax"})


class Orchard(http.server.BaseHTTPRequestHandler):
    """An external site with a link for each action."""

    def do_GET(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        ways = {
            "right": {"code": "apple-asha"},
            "wrong": {"code": "worm"},
            "cancel": {"error": "access_denied"},
            "forged": {"code": "apple-asha", "state": "x" * 43},
        }
        links = "".join(
            f'<p><a id="{name}" href="{html.escape(asked["address"] + "?" + urllib.parse.urlencode({"state": asked["state"], **way}))}">{name}</a>'
            for name, way in ways.items()
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(("<!doctype html><title>Orchard</title>" + links).encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    orchard = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Orchard)
    threading.Thread(target=orchard.serve_forever, daemon=True).start()
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("gateway.lua", lambda text: re.sub(r"risk_budget.*\n", "\n", text))
    gateway.edit("policies/phone_otp.lua", lambda text: screens.many(text).replace('{ "60s", "120s" }', '"1s"'))
    gateway.edit("policies/password.lua", screens.registrations)
    gateway.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"1s"'))
    add(gateway, "motto", MOTTO)
    add(gateway, "orchard", ORCHARD)
    # The package for signatures is installed in the test environment.
    add(gateway, "keyring", KEYRING, python=sys.executable)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace("orchard.py\" }", f'orchard.py", site = "http://127.0.0.1:{orchard.server_port}" }}'),
    )
    for name in [one.name for one in FORMS + KEYS]:
        (gateway.config / "policies" / f"{name}.lua").write_text(f'''return policy "{name}" {{
          limits = {{ verify = {{ on = "verify", per = "account", max = 3, window = "24h", counts = "failures", lock = {{ "4s", "2h" }} }} }},
        }}''')
        (gateway.config / "flows" / f"prove_{name}.lua").write_text(
            f'return flow "prove_{name}" {{ purpose = "step_up", account = "existing", steps = {{ {{ "{name}" }} }}, next = {{ returning = "/home" }} }}'
        )
    gateway.edit(
        "flows/login.lua",
        lambda text: text.replace('"google_oauth", "passkey"', '"google_oauth", "orchard", "passkey"').replace(
            '"existing",', '"any",', 1
        ),
    )
    assert "orchard" in (gateway.config / "flows/login.lua").read_text()
    (gateway.config / "policies/orchard.lua").write_text('return policy "orchard" {}')
    routes = "".join(
        '  { path = "/%s/**", to = "http://127.0.0.1:%s", flow = "prove_%s", require = { passed = "%s" } },\n'
        % (one.name, gateway.ports[2], one.name, one.name)
        for one in FORMS + KEYS
    )
    gateway.edit("routes.lua", lambda text: text.replace("  -- Everything else", routes + "  -- Everything else"))
    # Otherwise accounts.lua would require the app in addition to the other forms.
    (gateway.config / "accounts.lua").write_text("return accounts {}\n")
    yield gateway.start()
    gateway.stop()
    orchard.shutdown()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A browser without scripts."""
    driver = screens.start(tmp_path_factory.mktemp("chromium"), scripts=False)
    yield driver
    driver.quit()


@pytest.fixture
def device(driver):
    driver.execute_cdp_cmd("WebAuthn.enable", {})
    yield Device(driver)
    driver.execute_cdp_cmd("WebAuthn.disable", {})


# Forms.


@every_form
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_of_a_form(screen, number, form, dark):
    form.belongs(screen.looks(dark=dark), number)
    screen.opens(f"/{form.name}/gold").waits(lambda: screen.path == form.page, "the form")
    screen.reads(*form.says).is_sound("the form")
    box = screen.find("main form input:not([type=hidden])")
    assert box.accessible_name in form.labels and screen.driver.switch_to.active_element == box, "focused on arrival"
    assert screen.js("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(30, 30, 30)" if dark else "rgb(255, 255, 255)"
    )
    screen.presses("हिन्दी").reads(*form.hindi).is_sound("the form in Hindi")
    screen.presses("English").reads(*form.says)


@every_form
def test_a_wrong_answer_to_a_form_and_the_right_one(screen, number, form):
    right, wrong = form.belongs(screen, number)
    screen.opens(f"/{form.name}/gold?x=1").waits(lambda: screen.path == form.page, "the form")
    form.answers(screen, wrong()).reads(f"{form.wrong} 2 tries left.").is_sound("a wrong answer")
    form.answers(screen, right()).waits(
        lambda: screen.driver.current_url == f"{screen.gateway.url}/{form.name}/gold?x=1",
        "the route behind it, as it was asked for",
    )


@every_form
def test_a_lock_of_a_form_counts_down_and_ends(screen, number, form):
    right, wrong = form.belongs(screen, number)
    screen.opens(f"/{form.name}/gold").waits(lambda: screen.path == form.page, "the form")
    form.answers(screen, wrong()).reads("2 tries left.")
    form.answers(screen, wrong()).reads("1 try left.")
    form.answers(screen, wrong()).matches(form.locked).is_sound("locked")
    if form.page == "/auth/step":
        assert not screen.find(MAIN).is_enabled()
        screen.waits(lambda: screen.find(MAIN).is_enabled() and not screen.all(".timer"), "the end of the lock")
    wait_for(lambda: json.loads(tool(screen.gateway, "locks", "list", "--json")[1]) == [], "the end of the lock")
    form.answers(screen, right()).waits(lambda: screen.path == f"/{form.name}/gold", "the route behind it")


@every_form
def test_a_form_without_scripts(plain, shipped, number, form):
    screen = Screen(plain, shipped)
    right, wrong = form.belongs(screen, number)
    screen.opens(f"/{form.name}/gold").waits(lambda: screen.path == form.page, "the form")
    form.answers(screen, wrong()).reads(f"{form.wrong} 2 tries left.").is_sound("wrong, without scripts")
    form.answers(screen, right()).waits(lambda: screen.path == f"/{form.name}/gold", "the route behind it")


# External sites.


@every_site
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_button_of_a_site(screen, site, dark):
    screen.looks(dark=dark).opens("/auth/login").reads(site.label).is_sound("the button")
    button = next(one for one in screen.all("button.site") if one.text.strip() == site.label)
    assert button.accessible_name == site.label and button.size["height"] >= 44
    screen.presses("हिन्दी").reads(site.hindi).is_sound("the button in Hindi")
    screen.presses("English").reads(site.label)


@every_site
def test_there_and_back(screen, site):
    """Cancelled, refused, and signed in: the user always returns to the right page."""
    screen.opens("/auth/login?return_to=%2Fshelf%3Fx%3D1").presses(site.label)
    site.does(screen, "cancel")
    screen.at("/auth/login").reads(site.cancelled).is_sound("cancelled")
    screen.presses(site.label)
    site.does(screen, "wrong")
    screen.at("/auth/login").reads(site.failed).is_sound("refused")
    screen.presses(site.label)
    site.does(screen, "right")
    screen.waits(
        lambda: screen.path == "/profile-setup" or screen.driver.current_url == screen.gateway.url + "/shelf?x=1",
        "the way back",
    )
    assert "%2Fshelf" in screen.driver.current_url or "/shelf" in screen.driver.current_url, "return_to is kept"
    # The same user has an account the second time.
    screen.forget().opens("/auth/login?return_to=%2Fshelf%3Fx%3D1").presses(site.label)
    site.does(screen, "right")
    screen.waits(lambda: screen.driver.current_url == screen.gateway.url + "/shelf?x=1", "the page that was wanted")


@every_site
def test_there_and_back_without_scripts(plain, shipped, site):
    screen = Screen(plain, shipped).forget().opens("/auth/login?return_to=%2Fhome").presses(site.label)
    site.does(screen, "cancel")
    screen.reads(site.cancelled).is_sound("cancelled, without scripts").presses(site.label)
    site.does(screen, "right")
    screen.waits(lambda: screen.path in ("/home", "/profile-setup"), "the way back")


@every_site
def test_the_way_back_of_another_browser(screen, site):
    """Attack: the callback of another user's sign-in, and an invented state."""
    screen.opens("/auth/login").presses(site.label)
    screen.waits(lambda: site.away in screen.driver.current_url, "the site")
    if site.name == "google_oauth":
        back = choose(screen.driver.current_url, account="100000000000000000002")
    else:
        back = screen.find("#right").get_attribute("href")
    state = field("state", back)
    for address in (back, back.replace(state, "x" * len(state))):
        answer = requests.get(address, headers={"Accept": "text/html"}, allow_redirects=False, timeout=20)
        assert answer.status_code == 404 and "moongate" not in answer.cookies, answer.text
    screen.opens(back.removeprefix(screen.gateway.url)).waits(
        lambda: screen.path in ("/profile-setup", "/home"), "the way back of this browser"
    )


# Ceremonies.

# Changes one bit of the signature that the browser returns.
SPOILED = """const get = PublicKeyCredential.prototype.toJSON;
  PublicKeyCredential.prototype.toJSON = function () {
    const told = get.call(this), signature = told.response.signature;
    if (signature) told.response.signature = signature.slice(0, -8) + (signature.at(-8) === 'A' ? 'B' : 'A') + signature.slice(-7);
    return told;
  }"""


def button(screen):
    return screen.waits(lambda: screen.find(MAIN).text.strip(), "a button")


def asked(screen, device, key):
    """The page that a route leads to. It calls the device on arrival, which is not prepared then, so the next call
    starts with a press."""
    device.knows_its_owner(False)
    screen.opens(f"/{key.name}/gold?x=1").at("/auth/step").waits(
        lambda: screen.find(MAIN).is_enabled() and button(screen) != "Verifying…", "the button"
    )
    device.knows_its_owner(True)
    return screen


@every_key
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_of_a_ceremony(screen, number, device, key, dark):
    key.is_set(screen.looks(dark=dark).belongs_to(number))
    asked(screen, device, key).reads(key.title).is_sound("the ceremony")
    assert screen.js("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(30, 30, 30)" if dark else "rgb(255, 255, 255)"
    )
    device.knows_its_owner(False)
    screen.presses("हिन्दी").reads(key.hindi).is_sound("the ceremony in Hindi")


@every_key
def test_the_right_key_opens(screen, number, device, key):
    key.is_set(screen.belongs_to(number))
    screen.opens(f"/{key.name}/gold?x=1")
    screen.waits(
        lambda: screen.driver.current_url == f"{screen.gateway.url}/{key.name}/gold?x=1",
        "the route behind it, as it was asked for",
    )


@every_key
def test_a_cancelled_call_costs_nothing(screen, number, device, key):
    key.is_set(screen.belongs_to(number))
    asked(screen, device, key)
    device.knows_its_owner(False)
    screen.presses(button(screen)).reads("This was cancelled or took too long. Try again when you are ready.").is_sound(
        "cancelled"
    )
    assert "left" not in screen.text
    device.knows_its_owner(True)
    screen.presses(button(screen)).waits(lambda: screen.path == f"/{key.name}/gold", "the route behind it")


@every_key
def test_a_wrong_key_and_its_lock(screen, number, device, key):
    key.is_set(screen.belongs_to(number))
    asked(screen, device, key).js(SPOILED)
    screen.presses(button(screen)).reads(f"{key.wrong} 2 tries left.").is_sound("a wrong key")
    screen.presses(button(screen)).reads("1 try left.")
    screen.presses(button(screen)).matches(r"Try again in 00:0[1-4]")
    assert not screen.find(MAIN).is_enabled()
    screen.is_sound("locked")
    # The page calls the device again automatically, and now the response is not changed.
    screen.waits(lambda: screen.path == f"/{key.name}/gold", "the route behind it")


@every_key
def test_a_ceremony_without_scripts(plain, shipped, number, key):
    screen = Screen(plain, shipped).forget().belongs_to(number)
    screen.opens(f"/auth/step?flow={key.name}_set&return_to=%2Fauth%2Faccount").reads(
        "This needs JavaScript."
    ).is_sound("without scripts")
    assert not any(one.is_displayed() for one in screen.all(MAIN))


# All presentations.


def declared():
    """The presentation of each included provider, from its descriptor."""
    found = {}
    for folder in sorted(folder for folder in (ROOT / "Plugins").iterdir() if folder.is_dir()):
        source = "\n".join(file.read_text() for file in [*folder.glob("*.swift"), *folder.glob("*_*.py")])
        name = re.search(r'^return policy "(\w+)"', (folder / "policy.lua").read_text(), re.M)[1]
        kind = re.search(r"\bpresentation: \.(\w+)", source)
        # The default for a code provider is boxes.
        found[name] = kind[1] if kind else "codeEntry"
    return found


def test_every_shipped_provider_is_in_the_list_of_its_presentation():
    """An added provider must be covered by these tests."""
    listed = json.loads(
        subprocess.run(
            [BIN / "moongate", "provider", "list", "--json"], capture_output=True, text=True, check=True
        ).stdout
    )
    assert {one["name"] for one in listed} | {"chat_code"} == set(declared())
    # The form of a directory asks for a name too, and needs a server: test_ldap.py::test_page.
    covered = {"ldap"}
    lists = {"codeEntry": BOXES, "digitPad": PADS, "form": FORMS, "externalSite": SITES, "ceremony": KEYS}
    left = {name for name, kind in declared().items() if name not in [one.name for one in lists[kind]]}
    assert left == covered
    # Each list must also contain programs.
    assert all({one.name for one in some} - set(declared()) for some in lists.values())
