"""An authenticator app as a second factor, in a real browser: set up by its QR code, asked for, recovered, removed."""

import pytest
from authenticator import App, scan
from house import House
from screens import LAPTOP, PHONE, many

CODE, RECOVERY = '"field.code"', '"field.recovery_code"'
LOGIN = ('any_of { "phone_otp", "email_code", "google_oauth" },\n', 'any_of { "phone_otp", "email_code", "google_oauth" },\n'
         '    { "totp", when = function(f) return f.account.factors.totp end },\n')


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("house"))
    house.edit("policies/phone_otp.lua", many)
    house.edit("flows/login.lua", lambda text: text.replace(*LOGIN))
    assert "factors.totp" in (house.config / "flows/login.lua").read_text()
    house.edit("routes.lua", lambda text: text.replace(
        "  -- Everything else", '  { path = "/vault/**", to = "http://127.0.0.1:%s", require = { passed = "totp", within = "5m" } },\n  -- Everything else'
        % house.ports[2]))
    yield house.start()
    house.stop()


@pytest.fixture
def screen(screen, number):
    return screen.belongs_to(number)


def set_up(screen, tmp_path):
    """Sets the app up from the account page; the app, and the recovery codes."""
    screen.opens("/auth/account").reads("Authenticator app").presses("Set up: Authenticator app").at("/auth/step")
    screen.presses("Set up").reads("Scan this with your authenticator app")
    screen.is_sound("the QR code")
    picture = tmp_path / "qr.png"
    screen.driver.save_screenshot(str(picture))
    app = App(scan(picture))
    assert app.issuer == "Moongate" and screen.find(".secret code").text.replace(" ", "") == app.secret
    wrong = "000000" if app.code() != "000000" else "000001"
    screen.fills(CODE, wrong).presses("Continue").reads("Invalid code. Please try again.")
    assert screen.find(".qr").is_displayed()
    screen.is_sound("a wrong code")
    screen.fills(CODE, app.code(-1)).presses("Continue").reads("Keep these recovery codes in a safe place.")
    screen.is_sound("recovery codes")
    codes = [item.text for item in screen.all(".codes code")]
    assert len(codes) == 10 and len(set(codes)) == 10
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
    screen.fills(CODE, code).presses("Continue").at("/home")
    # The same code again: somebody has looked over a shoulder.
    signs_in_again(screen).fills(CODE, code).presses("Continue").reads("This code was used already.")
    screen.find("summary").click()
    screen.is_sound("a recovery code")
    screen.fills(CODE, "").fills(RECOVERY, codes[2].lower()).presses("Continue").at("/home")


def test_a_route_asks_for_it(screen, tmp_path):
    # Who has none sets it up on the way, and then proves it.
    screen.opens("/vault/gold").at("/auth/step").reads("Authenticator app").presses("Set up").reads("Scan this")
    picture = tmp_path / "qr.png"
    screen.driver.save_screenshot(str(picture))
    app = App(scan(picture))
    screen.fills(CODE, app.code(-1)).presses("Continue").reads("recovery codes").presses("Continue")
    screen.waits(lambda: "Enter the six digits" in screen.text, "the step-up")
    screen.is_sound("the step-up")
    screen.fills(CODE, app.code()).presses("Continue").at("/vault/gold")


def test_new_recovery_codes_and_removal(screen, tmp_path):
    app, codes = set_up(screen, tmp_path)
    screen.presses("New recovery codes: Authenticator app").at("/auth/step").presses("New recovery codes").reads("You get ten new recovery codes")
    screen.fills(CODE, app.code()).presses("Continue").reads("Keep these recovery codes")
    new = [item.text for item in screen.all(".codes code")]
    assert not set(new) & set(codes)
    screen.presses("Continue").at("/auth/account").reads("Authenticator app changed.")
    screen.presses("Turn off: Authenticator app").at("/auth/step").presses("Turn off").reads("From then on it is not asked for")
    screen.find("summary").click()
    screen.fills(RECOVERY, new[0]).presses("Continue")
    screen.at("/auth/account").reads("Authenticator app is turned off.", "Set up")


@pytest.mark.parametrize("look", [{"size": PHONE}, {"size": LAPTOP, "dark": True}], ids=["phone", "laptop, dark"])
def test_it_fits(screen, look, tmp_path):
    set_up(screen.looks(**look), tmp_path)
