"""Requirements and effects of account changes, and which browser a flow belongs to."""

import concurrent.futures
from urllib.parse import parse_qs, urlsplit

import pytest

import attack
import screens
from authenticator import App
from local_gateway import LocalGateway, problem, wait_for
from mockgoogle import Visitor, choose, pkce
from screens import Screen

PIN = "482915"


@pytest.fixture(scope="module")
def open_gateway(tmp_path_factory):
    """A gateway in which one address may send often."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("policies/phone_otp.lua", screens.many)
    try:
        yield gateway.start()
    finally:
        gateway.stop()


def bearer(token):
    return {"headers": {"Authorization": f"Bearer {token}"}}


def token_of(done):
    return done["session"]["token"]


def passes(gateway, flow, provider, fields, token=None):
    """Runs a flow with one code. Returns the response to its last call."""
    own = bearer(token) if token else {}
    seen = {entry["id"] for entry in gateway.outbox()}
    created = gateway.api("POST", "/flows", {"flow": flow}, **own)
    if created.status_code != 201:
        return created
    path = f"/flows/{created.json()['id']}"
    begun = gateway.api("POST", path + "/begin", {"provider": provider, **fields}, **own)
    if begun.status_code != 200 or begun.json()["status"] == "complete":
        return begun
    to = next(iter(fields.values()), None)
    code = wait_for(
        lambda: next(
            (e["code"] for e in gateway.outbox() if e["id"] not in seen and e["code"] and to in (None, e["to"])), None
        ),
        "a code",
    )
    return gateway.api("POST", path + "/submit", {"code": code}, **own)


def with_pin(gateway, phone):
    """A new account with a PIN. Returns the token of its session, in which the PIN was set but not verified."""
    token = token_of(gateway.register(phone))
    flow = gateway.api("POST", "/flows", {"flow": "pin_set"}, **bearer(token)).json()["id"]
    done = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "pin", "new_pin": PIN}, **bearer(token))
    assert done.status_code == 200, done.text
    return token_of(done.json())


def unlocked(gateway, token):
    flow = gateway.api("POST", "/flows", {"flow": "pin_unlock"}, **bearer(token)).json()["id"]
    return token_of(gateway.api("POST", f"/flows/{flow}/begin", {"provider": "pin", "pin": PIN}, **bearer(token)).json())


# Flows and browsers.


def test_a_flow_of_the_api_does_not_exist_for_pages(open_gateway, number):
    """Attack: an attacker creates a flow and sends its link; the victim enters the code; the attacker completes the
    flow."""
    gateway = open_gateway
    gateway.register(number)
    flow = gateway.flow("login")
    assert gateway.begin(flow, number).status_code == 200
    victim = Visitor(gateway)
    for page in ("verify", "email", "pin", "step", "login"):
        answer = victim.get(f"/auth/{page}?id={flow}")
        # For an invalid flow, the sign-in page shows an empty form.
        assert answer.status_code == (200 if page == "login" else 404), (page, answer.status_code)
        assert number[-4:] not in answer.text
    for page, fields in (("verify", {"code": gateway.code(number)}), ("email", {"code": "123456"})):
        assert victim.post(f"/auth/{page}?id={flow}", **fields).status_code == 404
        assert victim.post(f"/auth/{page}?id={flow}", action="resend").status_code == 404
    assert victim.post("/auth/step", id=flow, code="123456").status_code == 404
    assert victim.post("/auth/pin", id=flow, flow="pin_reset", action="resend").status_code == 404
    assert gateway.submit(flow, gateway.code(number)).json()["status"] == "complete", "the API continues the flow"


def test_the_first_browser_that_opens_an_apps_flow_has_it(new_gateway, number):
    gateway = new_gateway
    gateway.registers_app("https://app.example.com/in")
    gateway.start()
    verifier, challenge = pkce()
    created = gateway.api(
        "POST", "/flows", {"flow": "enter", "code_challenge": challenge, "redirect_to": "https://app.example.com/in"}
    )
    flow = created.json()["id"]
    mine, other = Visitor(gateway), Visitor(gateway)
    assert mine.get(f"/auth/login?id={flow}").status_code == 200
    begun = mine.post("/auth/login", id=flow, phone=number, **{"with": "phone"})
    assert begun.status_code == 303 and flow in begun.headers["Location"], begun.headers
    assert other.get(begun.headers["Location"]).status_code == 404
    # The creator of the flow does not learn the recipient and cannot continue the flow.
    seen = gateway.api("GET", f"/flows/{flow}").json()
    assert seen["status"] == "pending" and seen["step"] is None and seen["passed"] == [] and seen["account"] is None
    assert number[-4:] not in gateway.api("GET", f"/flows/{flow}").text
    for verb, body in (
        ("submit", {"code": gateway.code(number)}),
        ("resend", {}),
        ("skip", {}),
        ("begin", {"provider": "phone_otp", "phone": number}),
    ):
        problem(gateway.api("POST", f"/flows/{flow}/{verb}", body), 409, "step_not_open")
    done = mine.post(f"/auth/verify?id={flow}", code=gateway.code(number))
    back = urlsplit(done.headers["Location"])
    assert done.status_code == 303 and back.netloc == "app.example.com"
    assert gateway.api("GET", f"/flows/{flow}").json()["account"] is None
    redeemed = gateway.api(
        "POST", f"/flows/{flow}/submit", {"code": parse_qs(back.query)["code"][0], "code_verifier": verifier}
    )
    assert redeemed.status_code == 200 and redeemed.json()["account"]["phone"] == number
    assert "Set-Cookie" not in redeemed.headers


# Requirements of changes.


def test_an_account_with_a_passcode_changes_by_its_passcode(open_gateway, number, other_number):
    """Attack: a stolen session or SIM replaces the phone number of an account with a PIN."""
    gateway = open_gateway
    token = with_pin(gateway, number)
    for flow in ("change_phone", "change_email", "totp_set"):
        refused = problem(gateway.api("POST", "/flows", {"flow": flow}, **bearer(token)), 403, "step_up_required")
        assert (refused["provider"], refused["flow"]) == ("pin", "step_up"), refused
    again = token_of(passes(gateway, "step_up", "phone_otp", {}, token).json())
    problem(gateway.api("POST", "/flows", {"flow": "change_phone"}, **bearer(again)), 403, "step_up_required")
    new = other_number()
    done = passes(gateway, "change_phone", "phone_otp", {"phone": new}, unlocked(gateway, again))
    assert done.status_code == 200 and done.json()["account"]["phone"] == new


def test_a_new_number_is_not_a_factor(open_gateway, number, other_number):
    """Attack: with a stolen session, the thief verifies their own number and then counts as the owner."""
    gateway = open_gateway
    email = f"new{number[-5:]}@example.org"
    token = token_of(gateway.register(number))
    done = passes(gateway, "change_email", "email_code", {"email": email}, token).json()
    assert [step["provider"] for step in done["session"]["passed"]] == ["phone_otp"] and done["session"]["aal"] == 1
    changed = passes(gateway, "change_phone", "phone_otp", {"phone": other_number()}, token_of(done)).json()
    # The verified step was a code to a number that no longer belongs to the account, and the address is too new to
    # authorize a change.
    refused = problem(
        gateway.api("POST", "/flows", {"flow": "change_phone"}, **bearer(token_of(changed))), 403, "step_up_required"
    )
    assert refused["provider"] == "phone_otp" or refused["provider"] == "email_code"


def test_an_identifier_that_is_too_new_resets_nothing(open_gateway, number):
    """Attack: an address that was added with a stolen session resets the PIN and the password."""
    gateway = open_gateway
    email = f"fresh{number[-5:]}@example.org"
    token = token_of(gateway.register(number))
    token = token_of(passes(gateway, "change_email", "email_code", {"email": email}, token).json())
    flow = gateway.api("POST", "/flows", {"flow": "pin_reset"}, **bearer(token)).json()
    assert flow["choices"] == ["phone_otp"]
    refused = problem(
        gateway.api("POST", f"/flows/{flow['id']}/begin", {"provider": "email_code"}, **bearer(token)),
        403,
        "identifier_too_new",
    )
    assert 86_000 < refused["retry_after"] <= 86_400
    problem(passes(gateway, "password_reset", "email_code", {"email": email}), 403, "identifier_too_new")
    assert passes(gateway, "login", "email_code", {"email": email}).status_code == 200, "it signs in"


def set_up_app(gateway, token):
    """Sets up an authenticator app. Returns the app and the session's token."""
    flow = gateway.api("POST", "/flows", {"flow": "totp_set"}, **bearer(token)).json()["id"]
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **bearer(token)).json()
    app = App(next(part["text"] for part in begun["step"]["show"] if part["kind"] == "qr"))
    assert gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code(-1)}, **bearer(token)).status_code == 200
    done = gateway.api("POST", f"/flows/{flow}/submit", {}, **bearer(token))
    assert done.json()["status"] == "complete", done.text
    return app, token_of(done.json())


@pytest.mark.parametrize("has_pin", [True, False])
def test_a_passcode_is_not_reset_past_an_authenticator(open_gateway, number, has_pin):
    """Attack: with a session and a SIM, the thief resets the passcode, which then authorizes what the code may not."""
    gateway = open_gateway
    token = unlocked(gateway, with_pin(gateway, number)) if has_pin else token_of(gateway.register(number))
    app, token = set_up_app(gateway, token)
    refused = problem(gateway.api("POST", "/flows", {"flow": "pin_reset"}, **bearer(token)), 403, "step_up_required")
    assert refused["provider"] == "totp"
    flow = gateway.api("POST", "/flows", {"flow": "step_up"}, **bearer(token)).json()["id"]
    assert gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **bearer(token)).status_code == 200
    proved = gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code()}, **bearer(token))
    assert proved.status_code == 200, proved.text
    assert gateway.api("POST", "/flows", {"flow": "pin_reset"}, **bearer(token_of(proved.json()))).status_code == 201


# Effects of a change.


def test_a_change_ends_codes_flows_and_other_sessions(open_gateway, number, other_number):
    """Attack: a code that was sent before the owner replaced the number restores the old number."""
    gateway = open_gateway
    token = token_of(gateway.register(number))
    other = token_of(passes(gateway, "login", "phone_otp", {"phone": number}).json())
    parked = gateway.flow("login")
    assert gateway.begin(parked, number).status_code == 200
    code = gateway.code(number)
    new = other_number()
    changed = passes(gateway, "change_phone", "phone_otp", {"phone": new}, token)
    assert changed.status_code == 200, changed.text
    problem(gateway.submit(parked, code), 410, "flow_expired")
    problem(gateway.api("GET", "/session", **bearer(other)), 401, "unauthenticated")
    kept = gateway.api("GET", "/session", **bearer(token_of(changed.json()))).json()
    assert kept["account"]["phone"] == new
    problem(passes(gateway, "login", "phone_otp", {"phone": number}), 404, "account_not_found")


def test_an_addition_ends_nothing(open_gateway, number):
    gateway = open_gateway
    token = token_of(gateway.register(number))
    other = token_of(passes(gateway, "login", "phone_otp", {"phone": number}).json())
    assert (
        passes(gateway, "change_email", "email_code", {"email": f"more{number[-5:]}@example.org"}, token).status_code
        == 200
    )
    assert gateway.api("GET", "/session", **bearer(other)).status_code == 200


def test_the_loser_of_a_race_learns_nothing(open_gateway, number):
    gateway = open_gateway
    flow = gateway.flow("enter")
    assert gateway.begin(flow, number).status_code == 200
    code = gateway.code(number)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: gateway.submit(flow, code), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"step_not_open"}


# Google.


@pytest.mark.parametrize(
    "mail, domain, joins", [("corp.example", "", False), ("corp.example", "corp.example", False), ("gmail.com", "", True)]
)
def test_an_address_that_google_does_not_vouch_for_joins_by_the_accounts_own_proof(
    open_gateway, number, mail, domain, joins
):
    """Attack: a former employee's Google account with an address that now belongs to another user. The mock is trusted
    for gmail.com only, and `hd` of an issuer other than Google says nothing."""
    gateway = open_gateway
    email = f"person{number[-5:]}{len(domain)}@{mail}"
    account = attack.Person(gateway, number, email).id
    visitor = Visitor(gateway)
    seen = {entry["id"] for entry in gateway.outbox()}
    back = visitor.get(
        choose(visitor.continues(), account="other", name="Dora Fox", email=email, verified="1", hd=domain)
    )
    if joins:
        assert visitor.account()["id"] == account
        return
    assert visitor.account() is None
    assert back.status_code == 303 and back.headers["Location"].startswith("/auth/email?id="), back.headers
    assert "6-digit" in visitor.get(back.headers["Location"]).text
    done = visitor.post(back.headers["Location"], code=attack.arrived(gateway, email, seen))
    assert done.status_code == 303, done.text
    assert visitor.account()["id"] == account


# In a browser.


@pytest.mark.parametrize("scripts", [True, False])
def test_user_confirms_once_and_is_redirected_back(open_gateway, number, other_number, tmp_path, scripts):
    """Adding a passcode right after the sign-in needs no confirmation; then the number changes with the passcode,
    which is requested once."""
    gateway = open_gateway
    driver = screens.start(tmp_path / "chromium", scripts=scripts)
    try:
        screen = Screen(driver, gateway)
        screen.opens("/auth/register").fills("phone", number)
        seen = {entry["id"] for entry in gateway.outbox()}
        screen.presses("Send OTP").at("/auth/verify").enters(attack.arrived(gateway, number, seen)).at("/profile-setup")
        screen.opens("/auth/account").presses("Set up: Passcode").at("/auth/pin")
        if scripts:
            screen.keys(PIN).reads("Confirm passcode").keys(PIN)
        else:
            screen.fills("new_pin", PIN).fills("confirm", PIN).presses("Save passcode")
        screen.at("/auth/account").reads("Passcode saved.")
        screen.presses("Change: Phone").at("/auth/verify").reads("Please confirm that it's you.")
        assert screen.all(".problem.calm"), "a request, not an error"
        screen.presses("Confirm it's you").at("/auth/pin")
        if scripts:
            screen.keys(PIN)
        else:
            screen.fills("pin", PIN).presses("Unlock")
        new = other_number()
        screen.at("/auth/verify").fills("phone", new)
        seen = {entry["id"] for entry in gateway.outbox()}
        screen.presses("Send code").reads("Verify Phone Number").enters(attack.arrived(gateway, new, seen))
        screen.at("/auth/account").reads("Phone number changed.", "Your other devices are signed out.")
    finally:
        driver.quit()
