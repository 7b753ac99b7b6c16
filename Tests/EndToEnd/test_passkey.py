"""Passkeys in a real browser with a virtual authenticator, and by the API: adding, signing in without typing,
replacing the passcode, losing, removing."""

import base64
import concurrent.futures
import json
import re
from urllib.parse import parse_qs, urlparse

import pytest
import requests
import screens
from device import Device
from local_gateway import LocalGateway
from passkeys import Passkey, options
from screens import Screen, many
from yubico import Fido2Passkey

UNLOCK = 'return flow "pin_unlock" { purpose = "unlock", provider = "pin", account = "existing", steps = { any_of { "pin", "passkey" } } }\n'
# Requires the passcode or a passkey within five minutes.
PAY = """  { path = "/pay/**", to = "http://127.0.0.1:%s", decide = function(f)
    local passed = f.session.passed
    if (passed.passkey and f.now - passed.passkey < 300) or (passed.pin and f.now - passed.pin < 300) then return allow end
    return require_also "pin"
  end },
  { path = "/vault/**", to = "http://127.0.0.1:%s", require = { passed = "passkey", within = "5m" } },
  -- Everything else"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/phone_otp.lua", lambda text: many(text).replace('{ "60s", "120s" }', '"1s"'))
    gateway.edit("routes.lua", lambda text: text.replace("  -- Everything else", PAY % (gateway.ports[2], gateway.ports[2])))
    (gateway.config / "flows/pin_unlock.lua").write_text(UNLOCK)
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def key(driver):
    """A device with a fingerprint reader."""
    driver.execute_cdp_cmd("WebAuthn.enable", {})
    device = Device(driver)
    yield device
    driver.execute_cdp_cmd("WebAuthn.disable", {})


@pytest.fixture
def screen(screen, number):
    return screen.belongs_to(number)


def adds(screen, name="My phone", proof=None):
    screen.opens("/auth/account").presses("Add a passkey: Passkey").at("/auth/step")
    if proof:
        proof(screen.presses("Confirm it's you"))
        screen.waits(lambda: screen.path == "/auth/step" and screen.all("form[data-form=ceremony]"), "the way back")
    screen.reads("Next time, sign in with your fingerprint").is_sound("before a passkey is added")
    screen.presses("Add a passkey").reads("Your passkey is ready.")
    screen.is_sound("the name of a passkey")
    screen.fills('"field.name"', name).presses("Continue").at("/auth/account").reads("Passkey added.")
    return screen


def adds_another(screen):
    """The account already has a passkey, which must be used to add another."""
    screen.opens("/auth/account").presses("Add a passkey: Passkey").presses("Confirm it's you")
    screen.waits(
        lambda: screen.path == "/auth/step" and "flow=passkey_set" in screen.driver.current_url, "the way back"
    )
    return screen.presses("Add a passkey")


def with_pin(screen):
    answer = screen.gateway.api(
        "POST", "/set-passcode", {"passcode": "482915"}, headers={"Authorization": f"Bearer {screen.token}"}
    )
    assert answer.status_code == 200, answer.text
    screen.token = answer.json()["token"]
    screen.driver.add_cookie(
        {"name": "moongate", "value": screen.token, "path": "/", "httpOnly": True, "sameSite": "Lax"}
    )
    return screen


def test_added_and_signed_in_by_with_nothing_typed(screen, key):
    adds(screen)
    assert len(key.credentials) == 1 and key.credentials[0]["rpId"] == "localhost"
    screen.is_sound("the account").forget()
    # The phone field offers the passkeys of the device.
    assert (
        'autocomplete="tel webauthn"'
        in requests.get(f"{screen.gateway.url}/auth/login", headers={"Accept": "text/html"}, timeout=10).text
    )
    screen.opens("/auth/login").waits(
        lambda: screen.path == "/home", "the browser's offer, taken at once by the virtual device"
    )


def test_fragment_survives_the_sign_in(screen, key):
    """The server never sees a fragment; the browser keeps it in redirects (RFC 9110, section 10.2.2)."""
    adds(screen).forget()
    wanted = f"{screen.gateway.url}/#/dashboards/7"
    screen.opens("/#/dashboards/7").waits(lambda: screen.driver.current_url == wanted, "the address with its fragment")
    assert screen.driver.get_cookie("moongate")


def test_signed_in_by_the_button(screen, key):
    """In a browser without autofill of passkeys."""
    adds(screen).forget()
    script = screen.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument",
        {"source": "PublicKeyCredential.isConditionalMediationAvailable = async () => false"},
    )["identifier"]
    try:
        screen.opens("/auth/login")
        screen.is_sound("the sign-in page")
        screen.presses("Use your passkey").at("/home")
    finally:
        screen.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
    token = screen.driver.get_cookie("moongate")["value"]
    session = screen.gateway.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).json()["session"]
    assert session["aal"] == 2 and [step["provider"] for step in session["passed"]] == ["passkey"], session


def test_a_second_one_and_the_first_again(screen, key):
    adds(screen)
    # The device already has a passkey of this account.
    adds_another(screen).reads("This device already has a passkey for this account.")
    screen.is_sound("a device that has one")
    other = Device(screen.driver, transport="usb")
    screen.opens("/auth/account").presses("Add a passkey: Passkey").presses("Add a passkey").reads(
        "Your passkey is ready."
    )
    screen.presses("Continue").at("/auth/account").reads("Passkey added.")
    assert len(other.credentials) == 1
    assert not screen.all("a[aria-label='Remove a passkey: Passkey']"), "each passkey has its own link"
    removal = "/auth/step?flow=passkey_disable&return_to=/auth/account%3Fdone%3Dpasskey_disable"
    screen.opens(removal).presses("Remove a passkey").reads("Choose the passkey to remove.", "My phone")
    screen.is_sound("the choice")
    screen.find("input[type=radio]").click()
    screen.presses("Continue").at("/auth/account").reads("Passkey removed.")
    screen.opens(removal).presses("Remove a passkey")
    screen.at("/auth/account").reads("Passkey removed.")
    assert screen.all("a[aria-label='Add a passkey: Passkey']") and not screen.all("a[href*='flow=passkey_disable']")


def listed(screen):
    """The passkeys on the account page."""
    return [name.text for name in screen.all(".held strong")]


def test_each_is_listed_on_the_account_page(screen, key):
    assert listed(adds(screen)) == ["My phone"]
    Device(screen.driver, transport="usb")
    adds_another(screen).reads("Your passkey is ready.")
    screen.fills('"field.name"', "Key ring").presses("Continue").at("/auth/account").reads(
        "Passkey added.", "Security key"
    )
    assert listed(screen) == ["My phone", "Key ring"]
    screen.is_sound("the list of passkeys")


def test_two_tabs(screen, key):
    """Started in one tab and finished in another: the challenge is used once."""
    driver, first = screen.driver, screen.driver.current_window_handle
    screen.opens("/auth/account").presses("Add a passkey: Passkey").at("/auth/step")
    key.knows_its_owner(False)
    screen.presses("Add a passkey").reads("This was cancelled or took too long.")
    here = driver.current_url
    driver.switch_to.new_window("tab")
    try:
        driver.execute_cdp_cmd("WebAuthn.enable", {})
        Device(driver)
        driver.get(here)
        screen.reads("Your passkey is ready.").fills('"field.name"', "Other tab").presses("Continue").at(
            "/auth/account"
        ).reads("Passkey added.")
        assert listed(screen) == ["Other tab"]
    finally:
        driver.close()
        driver.switch_to.window(first)
    key.knows_its_owner(True)
    screen.presses("Add a passkey")
    screen.waits(lambda: key.credentials, "a passkey of the first tab's device, for the challenge that is spent")
    screen.opens("/auth/account")
    assert listed(screen) == ["Other tab"]


def test_too_late_and_tried_again(driver, tmp_path, number):
    """The browser gives up, the challenge has expired by then, and the next one is accepted."""
    gateway = LocalGateway(tmp_path)
    gateway.edit("policies/phone_otp.lua", many)
    gateway.edit("gateway.lua", lambda text: text.replace("passkey = {", "passkey = { timeout = 15,"))
    assert "timeout = 15" in (gateway.config / "gateway.lua").read_text()
    gateway.start()
    try:
        driver.execute_cdp_cmd("WebAuthn.enable", {})
        key = Device(driver)
        screen = Screen(driver, gateway).forget().belongs_to(number)
        screen.opens("/auth/account").presses("Add a passkey: Passkey").at("/auth/step")
        key.waits_for_a_touch(True)
        screen.presses("Add a passkey")
        screen.waits(
            lambda: "This was cancelled or took too long." in screen.text, "the browser's patience", seconds=40
        )
        key.waits_for_a_touch(False)
        screen.presses("Add a passkey").reads("That took too long. Try again.")
        screen.is_sound("a challenge that is too old")
        screen.presses("Add a passkey").reads("Your passkey is ready.")
    finally:
        driver.execute_cdp_cmd("WebAuthn.disable", {})
        gateway.stop()


def test_device_without_user_verification(driver, tmp_path, number):
    """Without user verification: a security key with touch only and no discoverable credentials. (PasskeyTests
    checks that it is a single factor.)"""
    gateway = LocalGateway(tmp_path)
    gateway.edit("policies/phone_otp.lua", many)
    gateway.edit("gateway.lua", lambda text: text.replace("passkey = {", 'passkey = { user_verification = "preferred",'))
    gateway.start()
    try:
        driver.execute_cdp_cmd("WebAuthn.enable", {})
        Device(driver, transport="usb", hasResidentKey=False, hasUserVerification=False, isUserVerified=False)
        screen = Screen(driver, gateway).forget().belongs_to(number)
        adds(screen, name="Touch only").forget().belongs_to(number)
        screen.opens("/auth/step?flow=passkey_unlock&return_to=/home").waits(
            lambda: screen.path == "/home", "the passkey, asked for on arrival"
        )
        _, told = the_session(screen)
        assert [step["provider"] for step in told.json()["session"]["passed"]] == ["phone_otp", "passkey"], told.text
    finally:
        driver.execute_cdp_cmd("WebAuthn.disable", {})
        gateway.stop()


def test_in_place_of_the_passcode(screen, key):
    """A passkey satisfies a route that requires a step, and the passcode remains as the alternative."""
    adds(with_pin(screen), proof=lambda screen: screen.at("/auth/pin").keys("482915"))
    # A session in which neither was proved.
    screen.forget().belongs_to(screen.number)
    screen.opens("/pay/now")
    screen.waits(lambda: screen.path == "/pay/now", "the passkey, asked for on arrival")
    # After a cancellation: the passcode.
    screen.forget().belongs_to(screen.number)
    key.knows_its_owner(False)
    screen.opens("/pay/now")
    screen.waits(lambda: "by=hand" in screen.driver.current_url, "the passcode after a cancelled passkey")
    screen.settles()
    screen.is_sound("the passcode beside the passkey")
    screen.keys("482915").waits(lambda: screen.path == "/pay/now", "the page behind the passcode")


def test_a_security_key_without_memory(screen, driver):
    """A credential that is not discoverable works once the account is known, and is not offered before."""
    driver.execute_cdp_cmd("WebAuthn.enable", {})
    try:
        key = Device(driver, transport="usb", hasResidentKey=False)
        adds(screen, name="Old key")
        assert [held["isResidentCredential"] for held in key.credentials] == [False]
        screen.forget().belongs_to(screen.number)
        screen.opens("/auth/step?flow=passkey_unlock&return_to=/home")
        screen.waits(lambda: screen.path == "/home", "the passkey, asked for on arrival")
        _, told = the_session(screen)
        assert [step["provider"] for step in told.json()["session"]["passed"]] == ["phone_otp", "passkey"], told.text
        screen.forget().opens("/auth/login").settles()
        assert screen.path == "/auth/login"
    finally:
        driver.execute_cdp_cmd("WebAuthn.disable", {})


def test_account_without_a_passkey_sees_no_hint_of_it(screen):
    with_pin(screen).forget().belongs_to(screen.number)
    screen.opens("/pay/now").at("/auth/pin")
    assert "passkey" not in screen.text.lower()


def test_cancelled_and_tried_again(screen, key):
    screen.opens("/auth/account").presses("Add a passkey: Passkey").at("/auth/step")
    key.knows_its_owner(False)
    screen.presses("Add a passkey").reads("This was cancelled or took too long.")
    screen.is_sound("a cancelled passkey")
    key.knows_its_owner(True)
    screen.presses("Add a passkey").reads("Your passkey is ready.")


def test_lost_and_removed_by_the_phone(screen, key):
    """The only passkey, which "Remove" would require, is lost. A code to the number replaces it."""
    adds(screen)
    key.is_lost()
    screen.forget().belongs_to(screen.number)
    screen.opens("/auth/account").presses("Remove: My phone").at("/auth/step").presses("I no longer have it").presses(
        "Send code"
    )
    screen.waits(lambda: screen.all("#code"), "the boxes")
    screen.enters(screen.gateway.code(screen.number)).reads("Choose the passkey to remove.")
    # The only passkey is preselected: with the browser's mark in forced colors, and round with large text.
    circle = "const mark = document.querySelector('input[type=radio]'); return [mark.offsetWidth - mark.offsetHeight, getComputedStyle(mark).appearance]"
    screen.js("document.documentElement.style.fontSize = '200%'")
    assert screen.js(circle) == [0, "none"]
    screen.js("document.documentElement.style.fontSize = ''")
    size, dark = screen.size, screen.dark
    assert screen.looks(forced=True).js(circle) == [0, "auto"]
    screen.looks(size, dark)
    screen.is_sound("the passkey that is lost").presses("Continue").at("/auth/account").reads(
        "Passkey removed. Your other devices are signed out."
    )
    assert listed(screen) == [] and not screen.all("a[href*='flow=passkey_disable']")


def test_lost_passkey_differs_from_a_used_one(screen, key):
    """A user who cancels can report it lost; a user who used it is not asked. A sign-in has other methods."""
    adds(screen)
    key.knows_its_owner(False)
    screen.presses("Remove: My phone").at("/auth/step").presses("Remove a passkey").reads(
        "This was cancelled or took too long.", "I no longer have it"
    )
    key.knows_its_owner(True)
    screen.opens("/auth/account").presses("Rename: My phone").at("/auth/step").reads("I no longer have it").presses(
        "Rename a passkey"
    )
    screen.waits(lambda: screen.all("input[name='field.name']"), "the name")
    assert not screen.all("[data-lost]")
    screen.opens("/auth/step?flow=passkey_set&return_to=/auth/account")
    assert not screen.all("[data-lost]")
    key.waits_for_a_touch(True)
    screen.forget().opens("/auth/step?flow=login&with=passkey")
    assert not screen.all("[data-lost]")


def test_a_reset_takes_more_than_a_session(shipped, number):
    """Attack: a stolen session reports the passkey lost. Nothing is removed without a code, and with another factor
    the code is not enough."""
    key, token = registered(shipped, number)
    headers = {"Authorization": f"Bearer {token}"}

    def resets(headers):
        flow = shipped.api("POST", "/flows", {"flow": "passkey_reset"}, headers=headers).json()["id"]
        begun = shipped.api("POST", f"/flows/{flow}/begin", {"provider": "passkey"}, headers=headers)
        assert begun.status_code == 409 and begun.json()["code"] == "step_not_open", begun.text
        told = shipped.api("POST", f"/flows/{flow}/submit", {"passkey": "all"}, headers=headers)
        assert told.status_code == 409, told.text
        return flow

    flow = resets(headers)
    # Attack: the thief also has the phone, and the account has a passcode.
    answer = shipped.api("POST", "/set-passcode", {"passcode": "482915"}, headers=headers)
    if answer.status_code == 403:
        step_up = shipped.api("POST", "/flows", {"flow": "passkey_unlock"}, headers=headers).json()["id"]
        begun = shipped.api("POST", f"/flows/{step_up}/begin", {"provider": "passkey"}, headers=headers)
        done = shipped.api("POST", f"/flows/{step_up}/submit", {"credential": key.get(options(begun))}, headers=headers)
        headers = {"Authorization": f"Bearer {done.json()['session']['token']}"}
        answer = shipped.api("POST", "/set-passcode", {"passcode": "482915"}, headers=headers)
    assert answer.status_code == 200, answer.text
    sign_in = shipped.flow()
    shipped.begin(sign_in, number)
    headers = {"Authorization": f"Bearer {shipped.submit(sign_in, shipped.code(number)).json()['session']['token']}"}
    told = shipped.api("POST", "/flows", {"flow": "passkey_reset"}, headers=headers)
    if told.status_code == 200 or told.status_code == 201:
        told = shipped.api("POST", f"/flows/{told.json()['id']}/begin", {"provider": "phone_otp"}, headers=headers)
    assert told.status_code == 403 and told.json()["code"] == "step_up_required" and told.json()["provider"] == "pin", (
        told.text
    )
    flow, said = asked(shipped)
    assert shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said)}).status_code == 200, (
        "the passkey is there"
    )


def two(screen, key):
    """An account with two passkeys on two devices of the same user."""
    adds(screen)
    Device(screen.driver, transport="usb")
    adds_another(screen).reads("Your passkey is ready.")
    screen.fills('"field.name"', "Key ring").presses("Continue").at("/auth/account").reads("Passkey added.")
    assert listed(screen) == ["My phone", "Key ring"]
    return screen


def the_session(screen, token=None):
    token = token or screen.driver.get_cookie("moongate")["value"]
    return token, screen.gateway.api("GET", "/session", headers={"Authorization": f"Bearer {token}"})


def test_one_of_them_is_removed_on_the_account_page(screen, key):
    two(screen, key)
    before, _ = the_session(screen)
    flow = screen.gateway.flow()
    screen.gateway.begin(flow, screen.number)
    elsewhere = screen.gateway.submit(flow, screen.gateway.code(screen.number)).json()["session"]["token"]
    screen.presses("Remove: Key ring").at("/auth/step").reads("Key ring")
    assert listed_by_api(screen) == ["My phone", "Key ring"], "opening the page removes nothing"
    screen.is_sound("before one passkey is removed")
    screen.presses("Remove a passkey").at("/auth/account").reads("Passkey removed. Your other devices are signed out.")
    assert listed(screen) == ["My phone"]
    screen.is_sound("the list behind a removal")
    # Like every removal: a new token, no proof by a passkey left, all other sessions ended, a notice to the owner, and
    # an audit event.
    token, told = the_session(screen)
    assert (
        token != before
        and the_session(screen, before)[1].status_code == 401
        and the_session(screen, elsewhere)[1].status_code == 401
    )
    assert [step["provider"] for step in told.json()["session"]["passed"]] == ["phone_otp"], told.text
    screen.waits(
        lambda: any(
            entry["to"] == screen.number and "A passkey was removed" in entry["text"] for entry in screen.gateway.outbox()
        ),
        "the notice",
    )
    events = requests.get(f"{screen.gateway.admin}/events?limit=200", timeout=10).json()
    lines = [line for line in events if line.get("flow") == "passkey_disable" and line["kind"] == "factor_changed"]
    lines = [line for line in lines if line["account"] == lines[0]["account"]]
    assert len(lines) == 1 and lines[0]["provider"] == "passkey" and lines[0]["detail"]["request"], lines


def listed_by_api(screen):
    page = requests.get(
        f"{screen.gateway.url}/auth/account",
        headers={"Accept": "text/html", "Cookie": f"moongate={screen.driver.get_cookie('moongate')['value']}"},
        timeout=10,
    ).text
    # Trusted devices can be removed too.
    page = re.sub(r'<section aria-labelledby="trusted-group">.*?</section>', "", page, flags=re.DOTALL)
    return re.findall(r'aria-label="Remove: ([^"]+)"', page)


def test_one_of_them_is_renamed_on_the_account_page(screen, key):
    two(screen, key).presses("Rename: My phone").at("/auth/step").reads("My phone").presses("Rename a passkey")
    screen.waits(lambda: screen.all("input[name='field.name']"), "the name")
    screen.fills('"field.name"', "Old phone").presses("Continue").at("/auth/account").reads("Passkey saved.")
    assert listed(screen) == ["Old phone", "Key ring"]


def test_removal_in_another_tab_is_reported(screen, key):
    two(screen, key)
    link = screen.find("a[aria-label='Remove: Key ring']").get_attribute("href")
    screen.presses("Remove: Key ring").at("/auth/step")
    page = screen.driver.current_url
    screen.presses("Remove a passkey").at("/auth/account").reads("Passkey removed.")
    for stale in (link, page):
        screen.driver.get(stale)
        screen.at("/auth/account").reads("This was already removed. Nothing was changed.")
    assert listed(screen) == ["My phone"]


def test_a_removal_needs_a_passkey_and_ones_own_page(screen, key):
    """Attack: the form is posted by another site, or by a stolen session without a passkey, or with another user's
    item."""
    two(screen, key)
    token = screen.driver.get_cookie("moongate")["value"]
    item = parse_qs(urlparse(screen.find("a[aria-label='Remove: Key ring']").get_attribute("href")).query)["item"][0]
    form = {
        "flow": "passkey_disable",
        "with": "passkey",
        "field.item": item,
        "field.passkey": item,
        "return_to": "/auth/account",
    }
    url, headers = f"{screen.gateway.url}/auth/step", {"Accept": "text/html", "Cookie": f"moongate={token}"}
    told = requests.post(url, data=form, headers={**headers, "Origin": "https://evil.example"}, timeout=10)
    assert told.status_code == 403, told.status_code
    client = requests.Session()
    client.cookies.set("moongate", token)
    told = client.post(url, data=form, headers={"Accept": "text/html", "Origin": screen.gateway.url}, timeout=10)
    assert told.status_code == 200 and 'data-call="get"' in told.text, "a passkey is asked for"
    assert listed_by_api(screen) == ["My phone", "Key ring"]
    headers = {"Authorization": f"Bearer {token}"}
    flow = screen.gateway.api("POST", "/flows", {"flow": "passkey_disable"}, headers=headers).json()["id"]
    told = screen.gateway.api("POST", f"/flows/{flow}/begin", {"provider": "passkey", "item": "AAAA"}, headers=headers)
    assert told.status_code == 401 and told.json()["code"] == "passkey_gone", told.text
    assert listed_by_api(screen) == ["My phone", "Key ring"]


@pytest.mark.parametrize("language", ["en", "hi"])
def test_the_way_of_a_passkey(screen, key, language):
    """Adding, signing in without typing, unlocking /pay, losing, signing in by phone, removing, in both languages."""

    def main():
        screen.waits(lambda: screen.find("main button.main").is_enabled(), "the button")
        screen.find("main button.main").click()

    def leads(selector):
        screen.waits(lambda: screen.find(selector).is_displayed(), selector)
        screen.find(selector).click()

    def speaks():
        assert screen.js("return document.documentElement.lang") == language

    def signs_out():
        screen.opens("/auth/account")
        leads("form.out button")
        screen.waits(lambda: screen.path in ("/auth/login", "/auth/logout", "/"), "signed out")

    with_pin(screen).opens(f"/auth/account?language={language}")
    speaks()
    # Adding. An account with a passcode must prove it first.
    leads("a[href*='flow=passkey_set']")
    leads("main a.button")
    screen.at("/auth/pin").keys("482915").at("/auth/step")
    main()
    screen.waits(lambda: screen.all("input[name='field.name']"), "the name")
    screen.fills('"field.name"', "Telefon")
    main()
    screen.at("/auth/account")
    speaks()
    assert listed(screen) == ["Telefon"]
    # Sign out and sign in without typing.
    signs_out()
    screen.opens("/auth/login").waits(
        lambda: screen.path == "/home", "the browser's offer, taken at once by the virtual device"
    )
    # Unlocks /pay in a session without any such proof.
    screen.belongs_to(screen.number).opens("/pay/now").waits(
        lambda: screen.path == "/pay/now", "the passkey, asked for on arrival"
    )
    # Lost: sign in by phone and remove it.
    key.is_lost()
    screen.forget()
    screen.enters(screen.asks_code(screen.number, f"login?language={language}")).at("/home").opens("/auth/account")
    speaks()
    leads(".held a[href*='flow=passkey_disable']")
    screen.at("/auth/step").is_sound("the removal of a passkey that is lost")
    leads("main a[data-lost]")
    leads("main a.button")
    screen.waits(lambda: "/auth/pin" in screen.path or screen.all("main button[value=pin]"), "the passcode")
    if screen.path != "/auth/pin":
        screen.find("main button[value=pin]").click()
    screen.at("/auth/pin").keys("482915").at("/auth/verify")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    main()
    screen.waits(lambda: screen.all("#code"), "the boxes")
    screen.enters(
        screen.waits(
            lambda: next(
                (entry["code"] for entry in screen.gateway.outbox() if entry["id"] not in seen and entry["code"]), None
            ),
            "a code",
        )
    )
    screen.waits(lambda: screen.all("input[type=radio]"), "the choice")
    screen.find("input[type=radio]").click()
    main()
    screen.at("/auth/account")
    speaks()
    assert listed(screen) == [] and not screen.all("a[href*='flow=passkey_disable']")
    if language == "en":
        screen.reads("Passkey removed. Your other devices are signed out.")
        screen.waits(
            lambda: any(
                entry["to"] == screen.number and "A passkey was removed" in entry["text"]
                for entry in screen.gateway.outbox()
            ),
            "the notice",
        )


def test_in_hindi_and_by_keyboard(screen, key):
    screen.opens("/auth/account?language=hi")
    screen.opens("/auth/step?flow=passkey_set&return_to=/auth/account")
    assert screen.js("return document.documentElement.lang") == "hi"
    screen.waits(lambda: screen.find("button.main").is_enabled(), "the button")
    screen.find("button.main").send_keys(screens.Keys.ENTER)
    screen.waits(lambda: screen.all("input[name='field.name']"), "the name")
    screen.is_sound("the name in Hindi")


@pytest.mark.parametrize("look", ["phone, light"])
def test_without_scripts_it_is_not_offered(tmp_path_factory, shipped, look):
    driver = screens.start(tmp_path_factory.mktemp("plain"), scripts=False)
    try:
        screen = Screen(driver, shipped, look).forget().opens("/auth/login")
        assert "Use your passkey" not in screen.text
        screen.opens("/auth/step?flow=login&with=passkey").reads("This needs JavaScript.")
        assert not any(button.is_displayed() for button in screen.all("main form button.main"))
    finally:
        driver.quit()


# The API for native apps.


def registered(gateway, number, key=None):
    """A software passkey of a new account. Returns it and the token."""
    token = gateway.register(number)["session"]["token"]
    key = key or Passkey(gateway.url)
    headers = {"Authorization": f"Bearer {token}"}
    flow = gateway.api("POST", "/flows", {"flow": "passkey_set"}, headers=headers).json()["id"]
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "passkey"}, headers=headers)
    assert begun.status_code == 200, begun.text
    named = gateway.api("POST", f"/flows/{flow}/submit", {"credential": key.create(options(begun))}, headers=headers)
    assert named.status_code == 200, named.text
    done = gateway.api("POST", f"/flows/{flow}/submit", {"name": "App"}, headers=headers)
    assert done.status_code == 200 and done.json()["status"] == "complete", done.text
    return key, done.json()["session"]["token"]


def asked(gateway, flow="login"):
    flow = gateway.flow(flow)
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "passkey"})
    assert begun.status_code == 200, begun.text
    return flow, options(begun)


def test_an_app_signs_in(shipped, number):
    key, _ = registered(shipped, number)
    flow, said = asked(shipped)
    assert said["allowCredentials"] == [] and said["userVerification"] == "required"
    done = shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said)})
    assert done.status_code == 200 and done.json()["session"]["aal"] == 2, done.text
    assert done.json()["account"]["phone"] == number


def test_200_answers_to_one_challenge_make_one_session(shipped, number):
    """Attack: a response is intercepted and replayed concurrently."""
    key, _ = registered(shipped, number)
    flow, said = asked(shipped)
    answer = key.get(said)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        codes = list(
            pool.map(
                lambda _: shipped.api("POST", f"/flows/{flow}/submit", {"credential": answer}).status_code, range(200)
            )
        )
    assert codes.count(200) == 1 and set(codes) <= {200, 401, 404, 409, 410, 429}, codes


def test_answers_that_prove_nothing(shipped, number, other_number):
    key, _ = registered(shipped, number)
    stranger, _ = registered(shipped, other_number())
    flow, said = asked(shipped)

    def refused(answer):
        nonlocal said
        told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": answer})
        assert told.status_code == 401 and told.json()["code"] == "invalid_passkey", told.text
        said = options(shipped.api("GET", f"/flows/{flow}"))

    # Attack: another account's user handle, another origin, a response to an earlier challenge, no user presence, no
    # user verification, an unknown account.
    stranger.handle = key.handle
    refused(stranger.get(said))
    elsewhere = Passkey("http://evil.example")
    elsewhere.__dict__.update(key.__dict__, origin="http://evil.example")
    refused(elsewhere.get(said))
    before = said
    refused(key.get(said, flags=0x04))
    refused(key.get(said, flags=0x01))
    refused(key.get(before))
    # Attack: the challenge of another concurrent flow of the same user.
    refused(key.get(asked(shipped)[1]))
    known, key.handle = key.handle, base64.urlsafe_b64encode(b"ac_nobody").rstrip(b"=").decode()
    refused(key.get(said))
    key.handle = None
    refused(key.get(said))
    key.handle = known
    done = shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said)})
    assert done.status_code == 200, "nothing is lost"


def test_wrong_answers_are_counted(shipped, number):
    """Attack: an attacker tries responses until one is accepted. According to the policy, 20 wrong responses lock
    the account's passkeys, but not its other methods."""
    key, _ = registered(shipped, number)
    flow, said = asked(shipped)
    for _ in range(20):
        told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said, flags=0x04)})
        if told.status_code == 429:
            break
        assert told.status_code == 401, told.text
        said = options(shipped.api("GET", f"/flows/{flow}"))
    told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said)})
    assert told.status_code == 429 and told.json()["code"] == "too_many_attempts", told.text
    flow = shipped.flow()
    shipped.begin(flow, number)
    assert shipped.submit(flow, shipped.code(number)).status_code == 200


def test_invalid_answer_is_not_counted(shipped, number):
    registered(shipped, number)
    flow, _ = asked(shipped)
    for answer in ["", "x", [], 1, {}, {"id": "x"}, {"response": {}}, {"x": "1" * 40_000}]:
        told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": answer})
        assert told.status_code == 422 and told.json()["field"] == "credential", (answer, told.text)
    assert shipped.api("POST", f"/flows/{flow}/submit", {"credential": {"x": "1" * 70_000}}).status_code == 413


def test_adding_needs_a_recent_proof(shipped, number):
    """Attack: the thief of a session of a user with passkeys adds their own."""
    _, _ = registered(shipped, number)
    flow = shipped.flow("login")
    shipped.begin(flow, number)
    token = shipped.submit(flow, shipped.code(number)).json()["session"]["token"]
    told = shipped.api("POST", "/flows", {"flow": "passkey_set"}, headers={"Authorization": f"Bearer {token}"})
    assert (
        told.status_code == 403 and told.json()["code"] == "step_up_required" and told.json()["provider"] == "passkey"
    ), told.text


# Malformed responses.


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "RS256"])
def test_answers_of_fido2(shipped, number, algorithm):
    key, _ = registered(shipped, number, Fido2Passkey(shipped.url, algorithm, counter=7))
    flow, said = asked(shipped)
    done = shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said)})
    assert (
        done.status_code == 200 and done.json()["session"]["aal"] == 2 and done.json()["account"]["phone"] == number
    ), done.text
    # A response as text, as in a form.
    flow, said = asked(shipped)
    done = shipped.api("POST", f"/flows/{flow}/submit", {"credential": json.dumps(key.get(said))})
    assert done.status_code == 200, done.text


def test_answers_that_no_authenticator_sends(shipped, number):
    """Unreadable input gives 422 or 401, never an error, and the flow continues."""
    key, _ = registered(shipped, number, Fido2Passkey(shipped.url))
    flow, said = asked(shipped)
    right = key.get(said)
    for change in ({"response": {}}, {"id": 1}, {"rawId": None}, {"response": "x"}, {"type": ["public-key"]}):
        told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": {**right, **change}})
        assert told.status_code == 422 and told.json()["field"] == "credential", told.text
    for credential in ("", "x", "[]", 7, None, True, [], "{" * 4000):
        told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": credential})
        assert told.status_code == 422, told.text
    for part in ("authenticatorData", "signature", "clientDataJSON"):
        response = {**right["response"], part: "A" * 50_000}
        told = shipped.api("POST", f"/flows/{flow}/submit", {"credential": {**right, "response": response}})
        assert told.status_code == 401 and told.json()["code"] == "invalid_passkey", told.text
    said = options(shipped.api("GET", f"/flows/{flow}"))
    assert shipped.api("POST", f"/flows/{flow}/submit", {"credential": key.get(said)}).status_code == 200


# Discovery by other programs.


def test_where_passkeys_are_looked_after(shipped):
    told = requests.get(f"{shipped.url}/.well-known/passkey-endpoints", timeout=10)
    assert told.status_code == 200 and told.headers["Content-Type"] == "application/json", told.text
    assert told.json() == {
        "enroll": f"{shipped.url}/auth/step?flow=passkey_set&return_to=%2Fauth%2Faccount",
        "manage": f"{shipped.url}/auth/account",
    }
    # Without other origins there is no document, and routes are not consulted.
    assert requests.get(f"{shipped.url}/.well-known/webauthn", timeout=10).status_code == 404


def test_related_origins(new_gateway):
    gateway = new_gateway
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            'passkey = { rp_name = "Moongate" }',
            'passkey = { origins = { "https://shop.example", "android:apk-key-hash:sjYxqUM11Op8oHJuOdbrsCqtvYvbKHhQoKBlt28dLec" } }',
        ),
    )
    gateway.start()
    assert requests.get(f"{gateway.url}/.well-known/webauthn", timeout=10).json() == {"origins": ["https://shop.example"]}


def test_required_passkey_names_the_requester(screen, key):
    screen.opens("/vault/now").at("/auth/step").reads("Moongate asks you to set this up first.")
    screen.is_sound("why a passkey is set up")
    adds(screen)
    key.waits_for_a_touch(True)
    screen.opens("/vault/now").at("/auth/step").reads("Moongate asks you to confirm that it's you.")
    screen.is_sound("why a passkey is asked for")
    # Start from a page without a ceremony: otherwise the page would be left before the response with the new token
    # arrives.
    screen.opens("/auth/error?code=not_found")
    key.waits_for_a_touch(False)
    screen.opens("/vault/now").waits(lambda: screen.path == "/vault/now", "the passkey, asked for on arrival")
    assert "asks you" not in screen.opens("/auth/step?flow=passkey_set&return_to=%2Fauth%2Faccount").text, (
        "no further one is requested"
    )
