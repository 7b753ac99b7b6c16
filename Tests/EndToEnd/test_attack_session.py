"""Attack: an attacker has a copy of a session token, changes where codes are sent, verifies what they have just
added, and keeps the account. Also: a change that the owner made in response is undone by an older code or flow."""

import time

import pytest
import requests

from attack import PASSWORD, Person, arrived, bearer, log_in_by_password, new_email, prove, relaxed, send, token
from local_gateway import problem, wait_for

PIN = "482915"
WITHIN = 5
"""Seconds that a proof counts for changes in `gateway`."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"), change_within=f"{WITHIN}s")
    port = gateway.ports[2]
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "  -- Everything else",
            f"""\
  {{ path = "/by-mail/**", to = "http://127.0.0.1:{port}", require = {{ passed = "email_code" }} }},
  {{ path = "/by-phone/**", to = "http://127.0.0.1:{port}", require = {{ passed = "phone_otp" }} }},
  {{ path = "/by-pin/**", to = "http://127.0.0.1:{port}", require = {{ passed = "pin" }} }},
  -- Everything else""",
        ),
    )
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def person(gateway, number):
    return Person(gateway, phone=number, email=new_email()).signs_in()


def later():
    """Waits until the session's proofs no longer authorize changes."""
    time.sleep(WITHIN + 0.5)


def tries_to_add(gateway, person, flow, provider, address):
    """Attempts of the thief to add an identifier to the account. Returns the first refusal, or the completed flow."""
    created = gateway.api("POST", "/flows", {"flow": flow}, **person.own)
    if created.status_code != 201:
        return created
    code = send(gateway, created.json()["id"], provider, address, **person.own)
    done = gateway.api("POST", f"/flows/{created.json()['id']}/submit", {"code": code}, **person.own)
    if done.status_code == 200:
        person.takes(done)
    return done


def assert_step_up(answer, provider=None):
    refusal = problem(answer, 403, "step_up_required")
    assert refusal["flow"] and refusal["provider"], refusal
    assert provider is None or refusal["provider"] == provider, refusal


# Changes require an existing factor.


@pytest.mark.parametrize("flow, provider", [("change_phone", "phone_otp"), ("change_email", "email_code")])
def test_old_session_changes_no_identifier(gateway, person, flow, provider, other_number):
    later()
    before = person.identifiers()
    mine = other_number() if provider == "phone_otp" else new_email()
    answer = tries_to_add(gateway, person, flow, provider, mine)
    assert person.identifiers() == before, "the thief's identifier is in the account"
    assert_step_up(answer)
    # The owner passes the required step and makes the change.
    prove_again = person.begins("step_up")
    person.token = token(prove(gateway, prove_again, "phone_otp", person.phone, **person.own))
    assert tries_to_add(gateway, person, flow, provider, mine).json()["status"] == "complete"
    assert mine in person.identifiers()


def test_old_session_adds_no_first_number(gateway, other_number):
    person = Person(gateway, email=new_email()).signs_in()
    later()
    answer = tries_to_add(gateway, person, "join_phone", "phone_otp", other_number())
    assert person.identifiers() == {person.email}
    assert_step_up(answer)


@pytest.mark.parametrize("flow", ["pin_set", "totp_set"])
def test_old_session_adds_no_factor(gateway, person, flow):
    later()
    assert_step_up(gateway.api("POST", "/flows", {"flow": flow}, **person.own))
    assert_step_up(gateway.api("POST", "/set-passcode", {"passcode": PIN}, **person.own))
    assert not gateway.api("GET", "/session", **person.own).json()["account"]["has_pin"]


def test_old_session_on_the_pages(gateway, person, other_number):
    """The form itself and its POST request."""
    later()
    browser = requests.Session()
    browser.cookies.set("moongate", person.token)
    mine = other_number()
    shown = browser.get(f"{gateway.url}/auth/verify?flow=change_phone", headers={"Accept": "text/html"}, timeout=20)
    browser.post(
        f"{gateway.url}/auth/verify",
        data={"flow": "change_phone", "phone": mine},
        headers={"Accept": "text/html", "Origin": gateway.url},
        timeout=20,
    )
    assert mine not in [entry["to"] for entry in gateway.outbox()], "a code went to the thief's number"
    assert 'action="/auth/verify"' not in shown.text or 'name="phone"' not in shown.text


@pytest.mark.parametrize("method, path", [("GET", "/account/export"), ("DELETE", "/account")])
def test_old_session_neither_exports_nor_deletes(gateway, person, method, path):
    later()
    assert_step_up(gateway.api(method, path, **person.own))
    assert person.is_signed_in() and person.stored()["id"] == person.id


def test_code_to_the_phone_is_not_enough_for_an_account_with_a_pin(gateway, person, other_number):
    """Attack: the thief has the SIM. The PIN was set for this case."""
    person.sets_pin(PIN)
    thief = person.elsewhere().signs_in()
    mine = other_number()
    answer = tries_to_add(gateway, thief, "change_phone", "phone_otp", mine)
    assert mine not in person.identifiers()
    assert_step_up(answer, "pin")
    assert_step_up(gateway.api("POST", "/flows", {"flow": "totp_set"}, **thief.own), "pin")
    # With the PIN, it is the owner.
    unlocked = gateway.api("POST", "/verify-passcode", {"passcode": PIN}, **thief.own)
    thief.takes(unlocked)
    assert gateway.api("POST", "/flows", {"flow": "change_phone"}, **thief.own).status_code == 201


def test_new_address_is_not_a_factor(gateway, person):
    """Attack: verifying an address that was just added satisfies `require`, raises `aal` and opens what the PIN
    protects."""
    before = gateway.api("GET", "/session", **person.own).json()["session"]
    done = tries_to_add(gateway, person, "change_email", "email_code", new_email())
    assert done.json()["status"] == "complete", done.text
    after = gateway.api("GET", "/session", **person.own).json()["session"]
    assert [passed["provider"] for passed in after["passed"]] == ["phone_otp"] and after["aal"] == before["aal"]
    problem(requests.get(f"{gateway.url}/by-mail/x", timeout=20, **person.own), 403, "step_up_required")


def test_new_number_is_not_a_factor(gateway, other_number):
    person = Person(gateway, email=new_email()).signs_in()
    before = gateway.api("GET", "/session", **person.own).json()["session"]
    done = tries_to_add(gateway, person, "join_phone", "phone_otp", other_number())
    assert done.json()["status"] == "complete", done.text
    after = gateway.api("GET", "/session", **person.own).json()["session"]
    assert [passed["provider"] for passed in after["passed"]] == ["email_code"] and after["aal"] == before["aal"]
    problem(requests.get(f"{gateway.url}/by-phone/x", timeout=20, **person.own), 403, "step_up_required")


def test_new_number_resets_no_pin(gateway, other_number):
    """Attack: a number is added, and then the PIN is reset by a code to it."""
    person = Person(gateway, email=new_email()).signs_in().sets_pin(PIN)
    person.takes(gateway.api("POST", "/verify-passcode", {"passcode": PIN}, **person.own))
    mine = other_number()
    assert tries_to_add(gateway, person, "join_phone", "phone_otp", mine).json()["status"] == "complete"
    created = gateway.api("POST", "/flows", {"flow": "pin_reset"}, **person.own)
    answer = created
    if created.status_code == 201:
        flow = created.json()["id"]
        answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp"}, **person.own)
    assert answer.status_code == 403, f"a code goes to the new number: {answer.text}"
    refusal = problem(answer, 403, answer.json()["code"])
    assert refusal["code"] in ("identifier_too_new", "step_up_required"), refusal
    if refusal["code"] == "identifier_too_new":
        assert 86_000 < refusal["retry_after"] <= 86_400
    # It can sign in, but the PIN has not changed.
    again = token(prove(gateway, gateway.flow("login"), "phone_otp", mine))
    assert gateway.api("POST", "/verify-passcode", {"passcode": PIN}, **bearer(again)).status_code == 200


# The account must still have what was verified.


@pytest.mark.parametrize("name", ["login", "enter"])
def test_code_sent_before_the_change_is_dead(gateway, person, name, other_number):
    """Attack: the owner gave up the number because it was stolen. A code that was sent before attaches it again as
    verified."""
    flow = gateway.flow(name)
    code = send(gateway, flow, "phone_otp", person.phone)
    person.signs_in()
    new = other_number()
    assert tries_to_add(gateway, person, "change_phone", "phone_otp", new).json()["status"] == "complete"
    answer = gateway.submit(flow, code)
    assert person.phone not in person.identifiers() and new in person.identifiers(), "the old number is back"
    problem(answer, 410, "flow_expired")


def test_reset_parked_after_its_code_is_dead(gateway, person):
    """Attack: the code to the old address is verified, and the new password is set a day after the owner has changed
    the address."""
    flow = gateway.flow("password_reset")
    assert prove(gateway, flow, "email_code", person.email)["status"] == "pending"
    new = new_email()
    person.signs_in()
    assert tries_to_add(gateway, person, "change_email", "email_code", new).json()["status"] == "complete"
    answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": "the thief's choice"})
    assert "token" not in answer.text, "the thief has a session"
    problem(answer, 410, "flow_expired")
    problem(log_in_by_password(gateway, new, "the thief's choice"), 401, "invalid_password")
    assert log_in_by_password(gateway, new, PASSWORD).status_code == 200


def changes_phone(gateway, person, other_number):
    return tries_to_add(gateway, person, "change_phone", "phone_otp", other_number())


def changes_email(gateway, person, _):
    return tries_to_add(gateway, person, "change_email", "email_code", new_email())


def changes_pin(gateway, person, _):
    return gateway.api("POST", "/change-passcode", {"current_passcode": PIN, "new_passcode": "593026"}, **person.own)


def removes_pin(gateway, person, _):
    return gateway.api("POST", "/disable-passcode", {"passcode": PIN}, **person.own)


@pytest.mark.parametrize("change", [changes_phone, changes_email, changes_pin, removes_pin])
def test_change_ends_the_thiefs_session(gateway, person, change, other_number):
    if "pin" in change.__name__:
        person.sets_pin(PIN)
    thief, person = person, person.elsewhere().signs_in()
    assert thief.is_signed_in() and person.is_signed_in()
    changed = change(gateway, person, other_number)
    assert changed.status_code == 200, changed.text
    person.takes(changed)
    wait_for(lambda: not thief.is_signed_in(), "the end of the other session", 2)
    assert person.is_signed_in(), "the session that made the change stays"


def test_addition_ends_no_session(gateway, other_number):
    person = Person(gateway, email=new_email()).signs_in()
    other, person = person, person.elsewhere().signs_in()
    assert tries_to_add(gateway, person, "join_phone", "phone_otp", other_number()).json()["status"] == "complete"
    time.sleep(1.5)
    assert other.is_signed_in() and person.is_signed_in()


def test_codes_of_a_flow_that_began_before_sign_out_everywhere_are_dead(gateway, person):
    """The owner notices an intruder and ends all sessions. A sign-in that the intruder has started must not survive."""
    flow = gateway.flow("login")
    seen = {entry["id"] for entry in gateway.outbox()}
    wait_for(lambda: gateway.begin(flow, person.phone).status_code == 200, "permission to send a code")
    code = arrived(gateway, person.phone, seen)
    assert gateway.api("DELETE", "/sessions", **person.own).status_code == 204
    problem(gateway.submit(flow, code), 410, "flow_expired")
