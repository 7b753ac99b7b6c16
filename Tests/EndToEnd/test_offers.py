"""The offer after a sign-in (`offer` in accounts.lua) in a real browser: set up, skipped, and not shown where it is
not possible."""

import pytest
import requests
import screens
from device import Device
from local_gateway import LocalGateway
from screens import Screen, many
from test_passkey import with_pin

NO_API = "delete window.PublicKeyCredential"


def gateways(folder, *providers):
    gateway = LocalGateway(folder)
    offers = ", ".join(f'{{ "{provider}", every = "30d" }}' for provider in providers)
    # Several sign-ins of one user without waiting for the resend timer.
    gateway.edit("policies/phone_otp.lua", lambda text: many(text).replace('{ "60s", "120s" }', '"1ms"'))
    gateway.edit(
        "accounts.lua",
        lambda text: text.replace("return accounts {", f"return accounts {{\n  offer = {{ {offers} }},", 1),
    )
    return gateway.start()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    gateway = gateways(tmp_path_factory.mktemp("gateway"), "passkey")
    yield gateway
    gateway.stop()


@pytest.fixture
def key(driver):
    driver.execute_cdp_cmd("WebAuthn.enable", {})
    yield Device(driver)
    driver.execute_cdp_cmd("WebAuthn.disable", {})


@pytest.fixture
def screen(screen, number):
    """A user with an account who signs in."""
    screen.gateway.register(number)
    screen.number = number
    return screen


def signs_in(screen, page="login"):
    screen.forget()
    return screen.enters(screen.asks_code(screen.number, page))


def before_scripts(driver, source):
    return driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})["identifier"]


@pytest.mark.parametrize("language", ["en", "hi"])
def test_a_passkey_is_offered_after_a_code_and_added_on_the_way(screen, key, language):
    screen.opens(f"/auth/login?language={language}")
    screen.enters(screen.asks_code(screen.number, f"login?language={language}&return_to=/home?from=there")).at(
        "/auth/step"
    )
    assert screen.js("return document.documentElement.lang") == language
    skip = screen.find("a[data-skip]")
    assert skip.get_attribute("href") == f"{screen.gateway.url}/home?from=there"
    if language == "en":
        screen.reads("Next time, sign in with your fingerprint", "Skip for now")
    else:
        assert "Next time" not in screen.text and "Skip" not in screen.text
    screen.is_sound("the offer")
    screen.find("main button.main").click()
    screen.waits(lambda: screen.all("input[name='field.name']"), "the name of the passkey")
    assert screen.all("a[data-skip]"), "it can be skipped to the end"
    screen.find("main button.main").click()
    screen.at("/home").waits(lambda: screen.driver.current_url.endswith("/home?from=there"), "where they were going")
    assert len(key.credentials) == 1
    # A user who has it is not offered it, and signs in with it.
    screen.forget().opens("/auth/login").waits(
        lambda: screen.path == "/home", "the browser's offer, taken at once by the virtual device"
    )


def test_skipped_and_not_offered_again(screen, key):
    signs_in(screen).at("/auth/step").presses("Skip for now").at("/home")
    signs_in(screen).at("/home")
    assert not key.credentials


def test_cancelled_and_skipped(screen, key):
    signs_in(screen).at("/auth/step")
    key.knows_its_owner(False)
    screen.presses("Add a passkey").reads("This was cancelled or took too long.")
    screen.presses("Skip for now").at("/home")


def test_an_account_with_a_passcode_proves_it_first(screen, key):
    """The offer obeys the rules for changes: an account with its own factor proves it before it adds another."""
    screen.opens("/auth/error?code=not_found").belongs_to(screen.number)
    with_pin(screen)
    signs_in(screen).at("/auth/step").reads("Skip for now")
    assert not [button for button in screen.all("main button.main") if button.is_displayed()]
    screen.is_sound("an offer that wants a proof first")
    screen.presses("Confirm it's you").at("/auth/pin").keys("482915").at("/auth/step").reads("Skip for now")
    screen.presses("Add a passkey").reads("Your passkey is ready.").presses("Continue").at("/home")
    assert len(key.credentials) == 1


def test_a_browser_without_the_api_is_not_asked(screen):
    """It is neither shown nor counted as shown, so that the next browser is asked."""
    driver = screen.driver
    script = before_scripts(driver, NO_API)
    try:
        signs_in(screen).at("/home")
        # A visit to the page continues automatically.
        screen.opens("/auth/account?from=offer").driver.get(
            f"{screen.gateway.url}/auth/step?flow=passkey_set&offer=1&return_to=/home?after=offer"
        )
        screen.waits(lambda: screen.driver.current_url.endswith("/home?after=offer"), "the page behind the offer")
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
    signs_in(screen).at("/auth/step").reads("Skip for now")


def test_the_way_on_leads_nowhere_else(screen):
    """Attack: a link to the offer with another site as its target, followed manually or by the script that skips."""
    screen.opens("/auth/error?code=not_found").belongs_to(screen.number)
    for target in ("https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"):
        page = requests.get(
            f"{screen.gateway.url}/auth/step",
            params={"flow": "passkey_set", "offer": "1", "return_to": target},
            timeout=10,
            headers={"Accept": "text/html", "Cookie": f"moongate={screen.token}"},
        ).text
        assert 'data-skip href="/home"' in page and "evil" not in page and "alert(1)" not in page, target
    script = before_scripts(screen.driver, NO_API)
    try:
        screen.driver.get(f"{screen.gateway.url}/auth/step?flow=passkey_set&offer=1&return_to=https://evil.example/")
        screen.waits(lambda: screen.path == "/home", "the gateway's own page")
    finally:
        screen.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})


def test_without_scripts_other_factors_are_offered_and_a_passkey_is_not(tmp_path_factory, number):
    """Any provider with a flow for its setup, on its own page; one per sign-in."""
    gateway = gateways(tmp_path_factory.mktemp("several"), "pin", "totp", "passkey")
    driver = screens.start(tmp_path_factory.mktemp("plain"), scripts=False)
    try:
        gateway.register(number)
        screen = Screen(driver, gateway)
        screen.number = number
        for page in ("/auth/pin", "/auth/step"):
            signs_in(screen).at(page)
            assert "offer=1" in driver.current_url
            screen.presses("Skip for now").at("/home")
        signs_in(screen).at("/home")
    finally:
        driver.quit()
        gateway.stop()


def test_the_pad_is_offered_and_leads_on(tmp_path_factory, driver, number):
    gateway = gateways(tmp_path_factory.mktemp("pin"), "pin")
    try:
        gateway.register(number)
        screen = Screen(driver, gateway)
        screen.number = number
        screen.enters(screen.forget().asks_code(number, "login?return_to=/home?from=there")).at("/auth/pin").reads(
            "Skip for now"
        )
        screen.is_sound("the pad as an offer")
        screen.keys("482915").reads("Confirm passcode").keys("482915")
        screen.waits(lambda: driver.current_url.endswith("/home?from=there"), "where they were going")
    finally:
        gateway.stop()


def test_apps_and_new_accounts_are_not_offered_anything(shipped, number, other_number):
    new = shipped.register(number)
    assert new["next"].startswith("/profile-setup"), new
    flow = shipped.flow()
    shipped.begin(flow, number)
    assert shipped.submit(flow, shipped.code(number)).json()["next"] == "/home"


def test_offer_does_not_interrupt_the_way_to_a_gateway_page(screen, key):
    screen.forget()
    screen.enters(screen.asks_code(screen.number, "login?return_to=/auth/account")).at("/auth/account")
    # That does not count either.
    signs_in(screen).at("/auth/step").reads("Skip for now")
