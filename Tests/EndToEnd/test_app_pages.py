"""The pages of apps in a browser, with and without scripts: consent, devices, and connected apps (docs:
Documentation/guides/people-and-locks.md)."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests

import screens
from attack import Person, arrived, relaxed
from mockgoogle import pkce
from screens import Screen
from test_attack_fixation import Listener

NOTES = """return apps {
  notes = app {
    name = "Notes", public = true,
    redirect_uris = { "http://localhost/in" },
    scopes = { "openid", "profile", "email", "orders" },
    grants = { "authorization_code", "refresh_token", "device_code" },
  },
}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    (gateway.config / "apps.lua").write_text(NOTES)
    pages = gateway.config / "pages"
    pages.mkdir()
    (pages / "en.words").write_text("scope_orders = Read your orders\n")
    with Listener() as app:
        gateway.app = app
        yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module", params=[True, False], ids=["scripts", "no scripts"])
def browser(request, tmp_path_factory):
    driver = screens.start(tmp_path_factory.mktemp("chromium"), scripts=request.param)
    yield driver
    driver.quit()


@pytest.fixture
def screen(browser, gateway):
    return Screen(browser, gateway).forget().looks((320, 568), calm=True)


def begins(gateway, **more):
    """The address at which the app begins, and the verifier."""
    verifier, challenge = pkce()
    fields = {
        "response_type": "code",
        "client_id": "notes",
        "redirect_uri": f"http://localhost:{gateway.app.port}/in",
        "scope": "openid email orders",
        "state": "s t&=",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **more,
    }
    return "/auth/openid/authorize?" + urlencode(fields), verifier


def answered(screen, before):
    """The fields of the app's next answer."""
    app = screen.gateway.app
    screen.waits(lambda: len(app.requested) > before, "the answer at the app")
    split = urlsplit(app.requested[before])
    assert split.path == "/in"
    return {name: values[0] for name, values in parse_qs(split.query).items()}


def asks(gateway):
    answer = requests.post(
        f"{gateway.url}/auth/openid/device", data={"client_id": "notes", "scope": "openid email"}, timeout=20
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def polls(gateway, codes):
    fields = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": codes["device_code"],
        "client_id": "notes",
    }
    return requests.post(f"{gateway.url}/auth/openid/token", data=fields, timeout=20)


def test_a_user_signs_in_and_agrees(gateway, screen, number):
    """Every page of the sign-in names the app, and the last form leads back to it, also without scripts."""
    Person(gateway, phone=number)
    address, verifier = begins(gateway)
    before, seen = len(gateway.app.requested), {entry["id"] for entry in gateway.outbox()}
    screen.opens(address).at("/auth/login").reads("To continue to Notes")
    screen.fills("phone", number).waits(lambda: screen.find("button.main").is_enabled(), "a number that can be sent")
    screen.find("button.main").click()
    screen.at("/auth/verify").reads("To continue to Notes")
    screen.enters(arrived(gateway, number, seen)).at("/auth/openid/consent").reads(
        "Notes asks to use your account",
        "Recognise you when you come back",
        "See your email address",
        "Read your orders",
        f"http://localhost:{gateway.app.port}",
        "You are signed in as",
    ).is_sound("the consent page")
    screen.presses("Allow")
    answer = answered(screen, before)
    assert answer["state"] == "s t&=" and answer["iss"] == gateway.url, answer
    tokens = requests.post(
        f"{gateway.url}/auth/openid/token",
        data={
            "grant_type": "authorization_code",
            "code": answer["code"],
            "code_verifier": verifier,
            "client_id": "notes",
            "redirect_uri": f"http://localhost:{gateway.app.port}/in",
        },
        timeout=20,
    )
    assert tokens.status_code == 200 and tokens.json()["token_type"] == "Bearer", tokens.text
    # The user has agreed: the next time, nothing is asked.
    before = len(gateway.app.requested)
    screen.opens(begins(gateway)[0])
    assert "code" in answered(screen, before)
    # A further scope is asked about.
    screen.opens(begins(gateway, scope="openid email orders profile")[0]).at("/auth/openid/consent").reads(
        "See your name"
    )


def test_a_user_refuses(gateway, screen, number):
    screen.belongs_to(number)
    before = len(gateway.app.requested)
    screen.opens(begins(gateway)[0]).at("/auth/openid/consent").presses("Cancel")
    answer = answered(screen, before)
    assert answer["error"] == "access_denied" and answer["state"] == "s t&=" and "code" not in answer, answer


def test_another_account_is_used(gateway, screen, number):
    screen.belongs_to(number)
    screen.opens(begins(gateway)[0]).at("/auth/openid/consent").presses("Sign in as someone else").at("/auth/logout")
    screen.presses("Sign out").at("/auth/login").reads("To continue to Notes")


def test_a_device_is_connected(gateway, screen, number):
    """Attack: a link with the code of the attacker's device. It fills in the code, and the page names the app, the time
    and the address, and warns."""
    codes = asks(gateway)
    screen.belongs_to(number)
    screen.opens(codes["verification_uri_complete"].removeprefix(gateway.url)).reads("Connect a device")
    assert screen.find("#user_code").get_attribute("value") == codes["user_code"]
    assert polls(gateway, codes).json()["error"] == "authorization_pending"
    screen.is_sound("the field for the code")
    screen.fills("user_code", "BBBBBBBB").presses("Continue").reads("This code is wrong or has expired.")
    screen.is_sound("a wrong code")
    screen.fills("user_code", codes["user_code"].lower()).presses("Continue").reads(
        "Connect Notes?", codes["user_code"], "127.0.0.1", "See your email address", "they would get into your account"
    ).is_sound("the question about a device")
    screen.presses("Allow").reads("You can continue on your device.").is_sound("the end")


def test_connected_apps_are_listed_and_disconnected(gateway, screen, number):
    screen.belongs_to(number)
    before = len(gateway.app.requested)
    screen.opens(begins(gateway)[0]).at("/auth/openid/consent").presses("Allow")
    answered(screen, before)
    screen.opens("/auth/account").reads("Connected apps", "Notes", "Read your orders").is_sound("connected apps")
    screen.presses("Disconnect: Notes").at("/auth/account/apps").reads("Disconnect Notes?").is_sound("the question")
    screen.presses("Disconnect").at("/auth/account").reads("App disconnected.")
    assert "Connected apps" not in screen.text
    screen.opens(begins(gateway)[0]).at("/auth/openid/consent")
