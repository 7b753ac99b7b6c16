"""Passcodes: setting, changing, resetting and locking them. The email address of an account, and its page."""

import pytest
import requests

from local_gateway import LocalGateway, wait_for
from screens import LAPTOP, PHONE, many

PIN, OTHER = "482915", "593026"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/phone_otp.lua", many)
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "  -- Everything else",
            '  { path = "/pay/**", to = "http://127.0.0.1:%s", require = { passed = "pin", within = "5m" } },\n'
            '  { path = "/receipts/**", to = "http://127.0.0.1:%s", require = { email_verified = true } },\n'
            '  { path = "/sent/**", to = "http://127.0.0.1:%s", require = { passed = "phone_otp", within = "1s" } },\n  -- Everything else'
            % ((gateway.ports[2],) * 3),
        ),
    )
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def screen(screen, number):
    return screen.belongs_to(number)


def with_pin(screen, pin=PIN):
    answer = screen.gateway.api(
        "POST", "/set-passcode", {"passcode": pin}, headers={"Authorization": f"Bearer {screen.token}"}
    )
    assert answer.status_code == 200, answer.text
    screen.token = answer.json()["token"]
    screen.driver.add_cookie(
        {"name": "moongate", "value": screen.token, "path": "/", "httpOnly": True, "sameSite": "Lax"}
    )
    return screen


def heading(screen):
    return screen.js(
        "return [...document.querySelectorAll('.stage')].find(stage => !stage.hidden).querySelector('label').textContent"
    )


def mailed(screen, seen):
    return wait_for(
        lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen and e["code"]), None), "a code"
    )


def seen(screen):
    return {entry["id"] for entry in screen.gateway.outbox()}


def test_the_pad(screen):
    screen.opens("/auth/pin?flow=pin_set")
    keys = screen.all(".pad > *")
    assert [key.get_attribute("textContent").strip() for key in keys] == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "",
        "0",
        "",
    ]
    assert keys[11].accessible_name == "Delete"
    sizes = {(key.size["width"], key.size["height"]) for key in screen.all(".pad button")}
    # Smaller in a low window, so that the pad needs no scrolling.
    side = 72 if screen.size == PHONE else 60
    assert (
        sizes == {(side, side)}
        and screen.js("return getComputedStyle(document.querySelector('.pad button')).borderRadius") == "50%"
    )
    dots = "return document.querySelectorAll('.stage:not([hidden]) .dot.filled').length"
    screen.keys("12")
    assert screen.js(dots) == 2
    keys[11].click()
    assert screen.js(dots) == 1
    screen.types("345")
    assert screen.js(dots) == 4, "the keyboard works too"
    assert screen.js("return document.querySelector('.stage input').type") == "password"
    assert "1345" not in screen.text
    screen.is_sound("create")


def test_create_a_passcode(screen):
    screen.opens("/auth/pin?flow=pin_set&return_to=%2Fauth%2Faccount%3Fdone%3Dpin_set").reads(
        "Set Passcode", "Create a passcode", "Cancel"
    )
    screen.keys(PIN).reads("Confirm passcode")
    screen.keys(OTHER).reads("Passcodes don't match. Try again.")
    screen.waits(lambda: heading(screen) == "Create a passcode", "the first step")
    screen.keys("123456").reads("Confirm passcode")
    screen.keys("123456").reads("This passcode is too easy to guess. Choose another.")
    screen.is_sound("weak")
    screen.keys(PIN).reads("Confirm passcode")
    screen.keys(PIN).at("/auth/account").reads("Passcode saved.")
    screen.is_sound("account, with a passcode")


def test_change_a_passcode(screen):
    with_pin(screen).opens("/auth/account").presses("Change: Passcode").at("/auth/pin").reads(
        "Change Passcode", "Enter current passcode"
    )
    screen.keys(OTHER).reads("Incorrect passcode. 4 tries left.")
    assert heading(screen) == "Enter current passcode"
    screen.is_sound("change")
    screen.keys(PIN).reads("Enter new passcode")
    screen.keys(OTHER).reads("Confirm new passcode")
    screen.keys(OTHER).at("/auth/account").reads("Passcode changed.")
    # The browser got its session from the API and is not trusted, so both attempts count together.
    screen.opens("/auth/pin?return_to=/home").keys(PIN).reads("Incorrect passcode. 3 tries left.").keys(OTHER).at(
        "/home"
    )


def test_a_route_that_requires_a_passcode(screen):
    screen.opens("/pay/now").at("/auth/pin").reads("Create a passcode", "Moongate asks you to set this up first.")
    screen.keys(PIN).reads("Confirm passcode")
    # A passcode that was just set is not requested.
    screen.keys(PIN).at("/pay/now")
    screen.belongs_to(screen.number).opens("/pay/now").at("/auth/pin").reads(
        "Enter Passcode", "Moongate asks you to confirm that it's you."
    )
    assert "return_to=%2Fpay%2Fnow" in screen.driver.current_url
    screen.is_sound("lock")
    assert not screen.all(".bar"), "it cannot be bypassed"
    screen.keys(OTHER).reads("Incorrect passcode. 4 tries left.")
    assert screen.js("return document.querySelector('.dots').getAnimations()[0]?.animationName") in ("shake", None)
    assert screen.js("return document.querySelectorAll('.dot.filled').length") == 0
    screen.types(PIN).at("/pay/now")


def test_required_code_names_the_requester(screen):
    """Before it is sent, and on the page where it is entered."""
    screen.waits(lambda: screen.opens("/sent/now").path == "/auth/verify", "a proof that is too old")
    screen.reads("Moongate asks you to confirm that it's you.")
    assert "return_to=%2Fsent%2Fnow" in screen.driver.current_url
    screen.is_sound("why a code is asked for")
    screen.presses("Send code").waits(lambda: screen.all("#code"), "the boxes")
    # A page that was opened directly shows no reason.
    assert "asks you" not in screen.opens("/auth/verify?flow=step_up").text


def test_voluntary_step_has_no_reason(screen):
    for path in (
        "/auth/pin?flow=pin_set&return_to=%2Fhome",
        "/auth/pin?flow=pin_set",
        "/auth/step?flow=totp_set&return_to=%2Fauth%2Faccount",
    ):
        assert "asks you" not in screen.opens(path).text, path
    with_pin(screen)
    for path in (
        "/auth/pin",
        "/auth/pin?return_to=%2Fauth%2Faccount",
        "/auth/pin?return_to=https%3A%2F%2Fevil.example%2F",
        "/auth/pin?flow=pin_disable",
    ):
        assert "asks you" not in screen.opens(path).text, path
    # All other steps of a step-up also name the service.
    screen.opens("/auth/step?flow=step_up&return_to=%2Fhome").reads("Moongate asks you to confirm that it's you.")


def test_locked_passcode(screen):
    with_pin(screen).opens("/auth/pin")
    # The page identifies the account on shared devices, with no more of the number than its owner needs.
    masked = screen.reads("Account").says("main .subtitle bdi").replace(" ", "")
    assert masked.endswith("••" + screen.number[-2:]) and sum(one.isdigit() for one in masked) == 2, masked
    for left in (4, 3, 2, 1):
        screen.keys(OTHER).reads(f"Incorrect passcode. {left} tr")
    screen.keys(OTHER).reads("Too many attempts. Please try again in 15 minutes.")
    screen.matches(r"Try again in 1[45]:")
    assert not screen.find(".pad button").is_enabled()
    screen.is_sound("locked")
    # It is announced again after a reload, before any input.
    screen.driver.refresh()
    screen.settles()
    screen.reads("Too many attempts. Please try again in 15 minutes.").matches(r"Try again in 1[45]:")
    assert not screen.find(".pad button").is_enabled() and screen.says("main .subtitle bdi").replace(" ", "") == masked
    # A locked passcode can be reset.
    screen.presses("Forgot Passcode?").reads("Send Reset Code")


def test_forgotten_passcode(screen):
    with_pin(screen).opens("/auth/pin?return_to=/home").presses("Forgot Passcode?")
    screen.reads(
        "We can send a reset code to your phone, or you can logout and sign in again.",
        "Cancel",
        "Send Reset Code",
        "Logout",
    )
    screen.is_sound("forgotten")
    before = seen(screen)
    screen.presses("Send Reset Code", "dialog[open]")
    screen.waits(lambda: "Enter reset code from SMS" in screen.text, "the code step")
    screen.settles()
    code = mailed(screen, before)
    screen.keys(str((int(code) + 1) % 10**6).zfill(6)).reads("Enter new passcode")
    screen.keys(OTHER).reads("Confirm new passcode")
    screen.keys(PIN).reads("Passcodes don't match")
    screen.waits(lambda: heading(screen) == "Enter new passcode", "the new passcode")
    screen.keys(OTHER).reads("Confirm new passcode")
    screen.keys(OTHER).reads("Invalid code.")
    assert heading(screen) == "Enter reset code from SMS", "back to the code"
    screen.is_sound("reset")
    screen.keys(code).reads("Enter new passcode")
    screen.keys(OTHER).reads("Confirm new passcode")
    screen.keys(OTHER).at("/home")


def test_a_mismatch_is_shown_once(screen):
    screen.moves().opens("/auth/pin?flow=pin_set").keys(PIN).reads("Confirm passcode").listens()
    screen.js(
        """window.shakes = 0; document.addEventListener('animationstart', event => { if (event.animationName === 'shake') shakes += 1 })"""
    )
    screen.keys(OTHER).reads("Passcodes don't match. Try again.")
    screen.waits(lambda: heading(screen) == "Create a passcode", "the first step")
    screen.hears("Create a passcode")
    said = [one for one in screen.js("return heard") if "match" in one]
    assert said == ["Error. Passcodes don't match. Try again."], said
    assert screen.js("return shakes") == 1


def test_the_code_of_a_reset_is_seen_pasted_and_counted_down_to(screen):
    with_pin(screen).opens("/pay/now").at("/auth/pin").presses("Forgot Passcode?")
    before = seen(screen)
    screen.presses("Send Reset Code", "dialog[open]")
    screen.waits(lambda: "Enter reset code from SMS" in screen.text, "the code step")
    screen.settles()
    field = screen.find("#code")
    assert (field.get_attribute("autocomplete"), field.get_attribute("inputmode")) == ("one-time-code", "numeric")
    screen.matches(r"Resend code in (00:5\d|01:00)")
    code = mailed(screen, before)
    screen.types(code[:2])
    assert (
        screen.js("return [...document.querySelectorAll('.box')].map(box => box.textContent).join('')") == code[:2]
    ), "its digits are visible"
    screen.is_sound("the code of a reset")
    screen.pastes("#code", f"{code[:3]} {code[3:]}").reads("Enter new passcode")
    assert field.get_attribute("value") == code
    # A passcode that was just set is not requested on the way back.
    screen.keys(OTHER).reads("Confirm new passcode").keys(OTHER).at("/pay/now")


def test_asked_again_too_soon(screen):
    asks = lambda: (
        screen.opens("/auth/pin?return_to=/home").presses("Forgot Passcode?").presses("Send Reset Code", "dialog[open]")
    )
    with_pin(screen)
    asks().waits(lambda: "Enter reset code from SMS" in screen.text, "the code step")
    asks()
    screen.waits(lambda: "Resend code in" in screen.find("dialog[open]").text, "the wait, where it was asked for")


def test_by_email_and_logout(screen):
    email = f"pin{screen.number[-5:]}@example.org"
    screen.opens("/auth/email?flow=change_email").reads("Add your email").is_sound("add an email")
    before = seen(screen)
    screen.fills("email", email).presses("Send code").waits(lambda: screen.all("#code"), "the code page")
    screen.settles()
    screen.find("#code").send_keys(mailed(screen, before))
    screen.at("/home")
    with_pin_cookie(screen)
    # An address that was just added cannot reset anything; the number can.
    screen.opens("/auth/pin").presses("Forgot Passcode?").reads("Send Reset Code")
    before, email = seen(screen), "only-" + email
    screen.forget().opens("/auth/register?with=email").fills("first_name", "Asha").fills("last_name", "Rao")
    screen.fills("email", email).fills("password", "correct horse battery").find("button.main").click()
    screen.at("/auth/email").settles()
    screen.find("#code").send_keys(mailed(screen, before))
    screen.at("/profile-setup")
    with_pin_cookie(screen)
    screen.opens("/auth/pin").presses("Forgot Passcode?").reads("Send Reset Email")
    screen.presses("Logout", "dialog[open]").at("/auth/login")
    assert all(cookie["name"] != "moongate" for cookie in screen.driver.get_cookies())
    answer = requests.post(
        screen.gateway.url + "/auth/logout",
        headers={"Origin": screen.gateway.url, "Content-Type": "application/x-www-form-urlencoded"},
        allow_redirects=False,
        timeout=10,
    )
    assert answer.headers["Clear-Site-Data"]


def with_pin_cookie(screen):
    screen.token = next(cookie["value"] for cookie in screen.driver.get_cookies() if cookie["name"] == "moongate")
    return with_pin(screen)


def test_a_server_that_fails(screen):
    screen.opens("/auth/pin?flow=pin_set")
    screen.keys(PIN).reads("Confirm passcode")
    screen.offline()
    try:
        screen.keys(PIN).reads("Unable to continue. Check your connection.")
        assert screen.path == "/auth/pin"
    finally:
        screen.offline(False)
    screen.keys(PIN).at("/home")


def test_the_servers_own_sentence(screen):
    """Not every failure is a network failure."""
    screen.opens("/auth/pin?flow=pin_set").keys(PIN).reads("Confirm passcode")
    screen.js("""const real = fetch; window.fetch = async (address, ...more) => { if (!address.startsWith('/auth/')) return real(address, ...more); window.fetch = real;
      return new Response('<body data-page="error"><main><h1>Busy</h1><p class="subtitle" role="alert">Too much is going on. Try again in a minute.</p></main></body>',
        {status: 503, headers: {'Content-Type': 'text/html'}}) }""")
    screen.keys(PIN).reads("Too much is going on. Try again in a minute.")
    assert screen.path == "/auth/pin" and "connection" not in screen.text
    screen.keys(PIN).at("/home")


def test_turn_a_passcode_off(screen):
    with_pin(screen).opens("/auth/account").presses("Turn off: Passcode").at("/auth/pin").reads(
        "Turn Off Passcode", "Enter current passcode"
    )
    screen.keys(OTHER).reads("Incorrect passcode. 4 tries left.").is_sound("turn off")
    screen.keys(PIN).at("/auth/account").reads("Passcode turned off.", "Set up")


def test_email_address_of_an_account(screen):
    email, next_email = (f"{name}{screen.number[-5:]}@example.org" for name in ("one", "two"))
    screen.opens("/receipts/1").at("/auth/email").reads("Add your email")
    before = seen(screen)
    screen.fills("email", email).presses("Send code").waits(lambda: screen.all("#code"), "the code page")
    screen.settles()
    screen.reads("Verify Your Email", email).is_sound("email")
    # Shown after the timer has ended.
    assert "Check your spam folder" in screen.driver.page_source and "Check your spam folder" not in screen.text
    screen.matches(r"Resend code in (00:5\d|01:00)")
    screen.find("#code").send_keys(mailed(screen, before))
    screen.at("/receipts/1")
    screen.opens("/auth/email").at("/auth/account").reads(email, "Verified")

    screen.presses("Change: Email").at("/auth/email").reads("Change email").is_sound("change email")
    before = seen(screen)
    screen.fills("email", next_email).presses("Send code").waits(lambda: screen.all("#code"), "the code page")
    screen.settles()
    screen.find("#code").send_keys(mailed(screen, before))
    screen.at("/auth/account").reads("Email changed.", next_email)
    assert any(entry["to"] == email and not entry["code"] for entry in screen.gateway.outbox()), "notice to the old one"


def test_change_phone(screen, other_number):
    other = other_number()
    screen.opens("/auth/account").presses("Change: Phone").at("/auth/verify").reads("Change phone number").is_sound(
        "change phone"
    )
    before = seen(screen)
    screen.fills("phone", other)
    screen.waits(lambda: screen.find("button.main").is_enabled(), "a number")
    screen.presses("Send code").waits(lambda: screen.all("#code"), "the code page")
    screen.settles()
    screen.find("#code").send_keys(mailed(screen, before))
    screen.at("/auth/account").reads("Phone number changed.", f"+91 {other[3:8]} {other[8:]}")


def test_sessions(screen):
    flow = screen.gateway.flow("login")
    screen.gateway.api(
        "POST",
        f"/flows/{flow}/begin",
        {"provider": "phone_otp", "phone": screen.number},
        headers={"User-Agent": "Firefox/1 (Windows)"},
    )
    elsewhere = requests.post(
        f"{screen.gateway.url}/api/auth/flows/{flow}/submit",
        json={"code": screen.gateway.code(screen.number)},
        headers={"User-Agent": "Mozilla/5.0 (Windows) Firefox/1"},
        timeout=10,
    ).json()["session"]["token"]

    def lives(token):
        return (
            requests.get(
                screen.gateway.url + "/api/auth/session", headers={"Authorization": f"Bearer {token}"}, timeout=10
            ).status_code
            == 200
        )

    assert lives(elsewhere)
    screen.opens("/auth/account").reads("Devices", "Firefox on Windows", "This device").is_sound("sessions")
    screen.presses("Sign out on Firefox on Windows").at("/auth/account").reads("That device is signed out.")
    assert not lives(elsewhere)
    token = next(cookie["value"] for cookie in screen.driver.get_cookies() if cookie["name"] == "moongate")
    assert lives(token)
    screen.presses("Sign out everywhere").at("/auth/account/sign-out").presses("Sign out everywhere").at("/auth/login")
    assert not lives(token)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_the_look(screen, size, dark):
    screen.looks(size, dark)
    for path in (
        "/auth/account",
        "/auth/pin?flow=pin_set",
        "/auth/verify?flow=step_up",
        "/auth/email?flow=change_email",
        "/auth/logout",
    ):
        screen.opens(path).is_sound(path)
        assert screen.errors() == []
    with_pin(screen)
    for path in ("/auth/pin", "/auth/pin?flow=pin_change", "/auth/pin?flow=pin_disable", "/auth/pin?flow=pin_reset"):
        screen.opens(path).is_sound(path)
        assert screen.errors() == []
