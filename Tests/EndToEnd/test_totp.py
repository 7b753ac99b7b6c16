"""An authenticator app as a second factor in a real browser: set up by QR code, requested, recovered, removed."""

import pytest
from authenticator import App, scan
from local_gateway import LocalGateway, wait_for
from screens import LAPTOP, PHONE, many

CODE, RECOVERY = '"field.code"', '"field.recovery_code"'


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/phone_otp.lua", lambda text: many(text).replace('{ "60s", "120s" }', '"1s"'))
    gateway.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"1s"'))
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "  -- Everything else",
            '  { path = "/vault/**", to = "http://127.0.0.1:%s", require = { passed = "totp", within = "5m" } },\n  -- Everything else'
            % gateway.ports[2],
        ),
    )
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def screen(screen, number):
    return screen.belongs_to(number)


def set_up(screen, tmp_path):
    """Sets up the app from the account page. Returns it and the recovery codes."""
    screen.opens("/auth/account").reads("Authenticator app").presses("Set up: Authenticator app").at("/auth/step")
    screen.presses("Set up").reads("Scan this with your authenticator app")
    screen.is_sound("the QR code")
    picture = tmp_path / "qr.png"
    screen.driver.save_screenshot(str(picture))
    app = App(scan(picture))
    assert app.issuer == "Moongate" and screen.says(".secret code").replace(" ", "") == app.secret
    wrong = "000000" if app.code() != "000000" else "000001"
    screen.fills(CODE, wrong).reads("Invalid code. Please try again.")
    assert screen.find(".qr").is_displayed()
    screen.is_sound("a wrong code")
    screen.fills(CODE, app.code(-1)).reads("Keep these recovery codes in a safe place.")
    screen.is_sound("recovery codes")
    codes = [item.text for item in screen.all(".codes code")]
    assert len(codes) == 10 and len(set(codes)) == 10
    screen.find(".check input").click()
    screen.presses("Continue").at("/auth/account").reads("Authenticator app is set up.")
    screen.is_sound("the account")
    return app, codes


def signs_in_again(screen):
    screen.forget()
    screen.enters(screen.asks_code(screen.number)).at("/auth/step").reads("Authenticator app", "Code from the app")
    return screen


def test_sign_in_with_the_app(screen, tmp_path):
    app, codes = set_up(screen, tmp_path)
    signs_in_again(screen).is_sound("the app's step")
    code = app.code()
    screen.fills(CODE, code).at("/home")
    # The same code again, as by an observer.
    signs_in_again(screen).fills(CODE, code).reads("This code was already used.")
    screen.find("summary").click()
    screen.is_sound("a recovery code")
    screen.fills(CODE, "").fills(RECOVERY, codes[2].lower()).presses("Continue").at("/home")


def test_every_page_leads_to_the_app(screen, tmp_path):
    """By password and by password reset: accounts.lua requires the app on every path."""
    email = f"asha{screen.number[-5:]}@example.org"
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.forget().opens("/auth/register").presses("Use email instead").fills("first_name", "Asha").fills(
        "last_name", "Rao"
    )
    screen.fills("email", email).fills("password", "correct horse battery").find("button.main").click()
    screen.at("/auth/email").settles()
    screen.find("#code").send_keys(
        wait_for(
            lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen and e["code"]), None),
            "a code",
        )
    )
    screen.at("/profile-setup")
    app, codes = set_up(screen, tmp_path)
    screen.forget().opens("/auth/login?with=email").fills("email", email).fills(
        "password", "correct horse battery"
    ).find("button.main").click()
    screen.at("/auth/step").reads("Authenticator app", "Code from the app")
    # The user is not signed in yet.
    screen.opens("/home").at("/auth/login").forget().opens("/auth/login?with=email").presses("Forgot password?")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.fills("email", email).find("button.main").click()
    screen.at("/auth/email")
    screen.types(
        wait_for(
            lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen and e["code"]), None),
            "a code",
        )
    )
    screen.waits(lambda: "New password" in screen.text, "the new password")
    screen.fills("password", "another horse battery").find("button.main").click()
    screen.at("/auth/step").reads("Authenticator app")
    screen.is_sound("the app behind a forgotten password")
    screen.fills(CODE, app.code()).at("/home")
    # Now the new password is valid and requires the app like the old one.
    screen.forget().opens("/auth/login?with=email").fills("email", email).fills(
        "password", "another horse battery"
    ).find("button.main").click()
    screen.at("/auth/step").find("summary").click()
    screen.fills(RECOVERY, codes[5]).presses("Continue").at("/home")


def test_a_passcode_that_is_required_is_made_on_the_way_in(screen):
    gateway = screen.gateway
    active = gateway.policy()["active"]
    shipped = gateway.edit("accounts.lua", lambda _: 'return accounts { sign_in = { { "pin", enroll = true } } }\n')
    try:
        gateway.wait_generation(active)
        screen.forget()
        screen.enters(screen.asks_code(screen.number)).at("/auth/pin").reads("Set Passcode", "Create a passcode")
        screen.is_sound("a passcode on the way in")
        screen.keys("739154").reads("Confirm passcode").keys("739154").at("/home")
        screen.forget()
        screen.enters(screen.asks_code(screen.number)).at("/auth/pin").reads("Enter Passcode")
        assert "Forgot Passcode?" not in screen.text, "there is no session yet to reset it in"
        screen.is_sound("a passcode that is required")
        screen.keys("739155").reads("Incorrect passcode").keys("739154").at("/home")
    finally:
        active = gateway.policy()["active"]
        gateway.edit("accounts.lua", lambda _: shipped)
        gateway.wait_generation(active)


def test_a_route_asks_for_it(screen, tmp_path):
    # A user without an app sets it up on the way and then proves it.
    screen.opens("/vault/gold").at("/auth/step").reads("Authenticator app").presses("Set up").reads("Scan this")
    picture = tmp_path / "qr.png"
    screen.driver.save_screenshot(str(picture))
    app = App(scan(picture))
    screen.fills(CODE, app.code(-1)).reads("Keep these recovery codes")
    screen.find(".check input").click()
    screen.presses("Continue")
    screen.waits(lambda: "Enter the six digits" in screen.text, "the step-up")
    screen.is_sound("the step-up")
    screen.fills(CODE, app.code()).at("/vault/gold")


def test_new_recovery_codes_and_removal(screen, tmp_path):
    app, codes = set_up(screen, tmp_path)
    screen.presses("New recovery codes: Authenticator app").at("/auth/step").presses("New recovery codes").reads(
        "You get ten new recovery codes"
    )
    screen.fills(CODE, app.code()).reads("Keep these recovery codes")
    new = [item.text for item in screen.all(".codes code")]
    assert not set(new) & set(codes)
    screen.find(".check input").click()
    screen.presses("Continue").at("/auth/account").reads("Authenticator app changed.")
    screen.presses("Turn off: Authenticator app").at("/auth/step").presses("Turn off").reads(
        "After that, no code is asked for"
    )
    screen.find("summary").click()
    screen.fills(RECOVERY, new[0]).presses("Continue")
    screen.at("/auth/account").reads("Authenticator app is turned off.", "Set up")


@pytest.mark.parametrize("look", [{"size": PHONE}, {"size": LAPTOP, "dark": True}], ids=["phone", "laptop, dark"])
def test_it_fits(screen, look, tmp_path):
    set_up(screen.looks(**look), tmp_path)
