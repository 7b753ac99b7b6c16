""" "Keep me signed in" over the API and in a real browser: the cookie, the other ways to sign in, and signing out."""

import re
import time

import pytest
import requests
from device import Device
from local_gateway import LocalGateway, problem, wait_for
from screens import Screen, many, start

DAYS = 86_400
BOX = "[name=remember][data-remember]"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A gateway whose flows on the sign-in page offer to stay signed in."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/phone_otp.lua", lambda text: many(text).replace('{ "60s", "120s" }', '"1ms"'))
    for name in ("login", "register"):
        gateway.edit(
            f"flows/{name}.lua",
            lambda text: re.sub(
                r"session = \{ lifetime = \"12h\", idle = \"1h\" \}",
                'session = { lifetime = "12h", idle = "1h", remember = { lifetime = "90d", idle = "30d" } }',
                text,
            ),
        )
    gateway.registers_app("https://wallet.example.com/back")
    gateway.offers("en", "hi", "ar")
    yield gateway.start()
    gateway.stop()


def fresh_code(gateway, number, seen):
    """The code that was sent to the number after the entries of the outbox with these ids."""

    def new():
        return next(
            (
                entry["code"]
                for entry in gateway.outbox()
                if entry["id"] not in seen and entry["to"] == number and entry["code"]
            ),
            None,
        )

    return wait_for(new, f"a code to {number}")


def outbox_ids(gateway):
    return {entry["id"] for entry in gateway.outbox()}


def signs_in(gateway, number, remember=None):
    """Signs in as a script of a page does. Returns the session's cookie as the gateway sets it, and the client."""
    client = requests.Session()
    client.headers["Origin"] = gateway.url

    def call(path, body):
        answer = client.post(f"{gateway.url}/api/auth/flows{path}", json=body, timeout=20)
        assert answer.ok, answer.text
        return answer

    flow = call("", {"flow": "login", **({} if remember is None else {"remember": remember})}).json()
    assert flow["remember"] is (remember or False)
    seen = outbox_ids(gateway)
    begun = call(f"/{flow['id']}/begin", {"provider": "phone_otp", "phone": number}).json()
    assert begun["remember"] is (remember or False)
    done = call(f"/{flow['id']}/submit", {"code": fresh_code(gateway, number, seen)})
    assert done.json()["status"] == "complete"
    return next(line for line in done.raw.headers.getlist("Set-Cookie") if re.match("moongate=[^;]", line)), client


@pytest.mark.parametrize("remember", [None, False, True])
def test_cookie_of_the_api(shipped, number, remember):
    shipped.register(number)
    cookie, client = signs_in(shipped, number, remember)
    assert ("Max-Age=7776000" in cookie) == (remember is True) and ("Max-Age" in cookie) == (remember is True), cookie
    session = client.get(f"{shipped.url}/api/auth/session", timeout=20).json()["session"]
    lives = time.mktime(time.strptime(session["expires_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime())
    expected = 90 * DAYS if remember else DAYS / 2
    assert abs(lives - expected) < 7200, session


def test_an_app_does_not_choose_for_its_user(shipped):
    gateway = shipped
    body = {
        "flow": "login",
        "remember": True,
        "redirect_to": "https://wallet.example.com/back",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    }
    refused = gateway.api("POST", "/flows", body)
    problem(refused, 422, "invalid_input")
    assert refused.json()["field"] == "remember"
    assert gateway.api("POST", "/flows", {**body, "remember": False}).status_code == 201


def test_signing_out_everywhere_ends_a_remembered_session(shipped, number):
    shipped.register(number)
    _, here = signs_in(shipped, number, True)
    _, there = signs_in(shipped, number, True)
    ended = here.delete(f"{shipped.url}/api/auth/sessions?all=true", timeout=20)
    assert ended.status_code == 204, ended.text
    for client in (here, there):
        token = client.cookies.get("moongate")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        assert requests.get(f"{shipped.url}/api/auth/session", headers=headers, timeout=20).status_code == 401


# MARK: a browser


def expiry(screen):
    """How long the browser keeps the session's cookie, in seconds; None for a cookie that ends with the browser."""
    cookie = screen.driver.get_cookie("moongate")
    assert cookie, screen.path
    return cookie["expiry"] - time.time() if "expiry" in cookie else None


@pytest.mark.parametrize("ticks", [False, True])
def test_the_box_decides_how_long_the_browser_keeps_the_cookie(screen, number, ticks):
    screen.gateway.register(number)
    seen = outbox_ids(screen.gateway)
    screen.opens("/auth/login").reads("Keep me signed in").is_sound("the sign-in page with its box")
    assert not screen.find(BOX).is_selected()
    if ticks:
        screen.find(BOX).click()
    screen.fills("phone", number)
    screen.waits(lambda: screen.find("button.main").is_enabled(), "a number that can be sent")
    screen.find("button.main").click()
    screen.at("/auth/verify")
    screen.enters(fresh_code(screen.gateway, number, seen)).at("/home")
    kept = expiry(screen)
    assert (kept is not None and abs(kept - 90 * DAYS) < 600) if ticks else kept is None
    # The account page signs out, and the browser forgets the cookie.
    screen.opens("/auth/logout").find("form[data-signs-out] button").click()
    screen.waits(lambda: screen.driver.get_cookie("moongate") is None, "no cookie")
    # On the next visit, the box is empty again.
    screen.opens("/auth/login")
    assert not screen.find(BOX).is_selected()


def test_the_box_counts_for_another_site(screen):
    screen.opens("/auth/login").find(BOX).click()
    screen.presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.find("form button").click()
    screen.waits(lambda: screen.path in ("/profile-setup", "/home"), "the way back")
    assert abs(expiry(screen) - 90 * DAYS) < 600


def test_the_site_that_was_used_last_comes_first(screen):
    screen.opens("/auth/login").find(BOX).click()
    screen.presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.find("form button").click()
    screen.waits(lambda: screen.path in ("/profile-setup", "/home"), "the way back")
    screen.opens("/auth/logout").find("form[data-signs-out] button").click()
    screen.waits(lambda: screen.driver.get_cookie("moongate") is None, "no cookie")
    screen.opens("/auth/login").reads("Last used")
    kept = screen.driver.get_cookie("moongate-way")
    assert (kept["value"], kept["path"], kept["httpOnly"]) == ("google_oauth", "/auth", True)
    assert screen.find("main > form").get_attribute("data-site") is not None
    assert len(screen.all("form[data-site]")) == 1
    for tag in ("en", "hi", "ar"):
        screen.opens(f"/auth/login?language={tag}").is_sound(f"the last used site in {tag}")
    # A planted cookie can only reorder what the page offers.
    screen.driver.delete_cookie("moongate-way")
    screen.driver.add_cookie({"name": "moongate-way", "value": "reset", "path": "/auth"})
    screen.opens("/auth/login?language=en").reads("Mobile Number")
    assert "Last used" not in screen.text
    screen.driver.delete_cookie("moongate-way")


def test_another_site_without_the_box(screen):
    screen.opens("/auth/login").presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.find("form button").click()
    screen.waits(lambda: screen.path in ("/profile-setup", "/home"), "the way back")
    assert expiry(screen) is None


@pytest.mark.parametrize("ticks", [False, True])
def test_the_box_counts_for_a_passkey(screen, number, ticks):
    screen.driver.execute_cdp_cmd("WebAuthn.enable", {})
    key = Device(screen.driver)
    script = screen.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument",
        {"source": "PublicKeyCredential.isConditionalMediationAvailable = async () => false"},
    )["identifier"]
    try:
        screen.belongs_to(number).opens("/auth/account").presses("Add a passkey: Passkey").at("/auth/step")
        screen.presses("Add a passkey").reads("Your passkey is ready.").fills('"field.name"', "My phone")
        screen.presses("Continue").at("/auth/account").forget().opens("/auth/login")
        if ticks:
            screen.find(BOX).click()
        screen.presses("Use your passkey").at("/home")
        kept = expiry(screen)
        assert (kept is not None and abs(kept - 90 * DAYS) < 600) if ticks else kept is None
        if ticks:
            screen.opens("/auth/logout").find("form[data-signs-out] button").click()
            screen.waits(lambda: screen.driver.get_cookie("moongate") is None, "no cookie")
            screen.opens("/auth/login").reads("Last used").is_sound("the last used passkey")
            assert screen.find("main > form").get_attribute("data-conditional") is not None
            screen.driver.delete_cookie("moongate-way")
    finally:
        screen.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
        key.is_lost()
        screen.driver.execute_cdp_cmd("WebAuthn.disable", {})


def test_the_box_without_script(shipped, number, tmp_path):
    shipped.register(number)
    driver = start(tmp_path, scripts=False)
    try:
        screen = Screen(driver, shipped).forget()
        screen.opens("/auth/login")
        # The form and each button of another site have a box of their own.
        assert len(screen.all("[name=remember]")) == 2
        screen.find(BOX).click()
        screen.find("#phone").send_keys(number)
        seen = outbox_ids(shipped)
        screen.find("button.main").click()
        screen.at("/auth/verify")
        screen.enters(fresh_code(shipped, number, seen))
        screen.waits(lambda: screen.path == "/home", "signed in")
        assert abs(expiry(screen) - 90 * DAYS) < 600
    finally:
        driver.quit()
