"""Attacks across flows: one flow enables an attack on another."""

import html
import re

import pytest

from attack import PASSWORD, Person, arrived, bearer, log_in_by_password, new_email, relaxed, send
from local_gateway import problem, wait_for
from mockgoogle import Visitor, choose, field, pkce
from test_accounts import tool

APP = "http://localhost:9/in"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    gateway.registers_app("http://localhost:9/in")
    yield gateway.start()
    gateway.stop()


def by_google(gateway, name):
    """A new user from Google. Returns the session's token."""
    visitor = Visitor(gateway)
    visitor.get(
        choose(visitor.continues("/auth/register"), account="other", name=name, email=new_email(), verified="1")
    )
    return visitor.session.cookies["moongate"]


def test_joining_a_number_opens_no_account_past_its_authenticator(gateway, number):
    """Attack: the thief of a SIM signs in with their own Google account and adds the victim's number, which would
    join the two accounts."""
    victim = Person(gateway, phone=number).signs_in()
    victim.sets_up_app()
    thief = bearer(by_google(gateway, "Mallory M"))
    flow = gateway.api("POST", "/flows", {"flow": "join_phone"}, **thief).json()["id"]
    code = send(gateway, flow, "phone_otp", number, **thief)
    answer = gateway.api("POST", f"/flows/{flow}/submit", {"code": code}, **thief)
    session = answer.json().get("session") or {}
    if session.get("token"):
        thief = bearer(session["token"])
    opened = gateway.api("GET", "/session", **thief)
    assert opened.status_code != 200 or opened.json()["account"]["id"] != victim.id, "one factor opened the account"
    kinds = {name["kind"] for name in victim.stored()["identifiers"]}
    assert kinds == {"phone"}, "the thief's identity is in the account"
    problem(answer, 409, "already_registered")


def app_sign_in(gateway, phone):
    """A sign-in that an app started and a browser completed. Returns the flow, the app's code, and the verifier."""
    verifier, challenge = pkce()
    flow = gateway.api("POST", "/flows", {"flow": "login", "code_challenge": challenge, "redirect_to": APP}).json()["id"]
    browser = Visitor(gateway)
    browser.get(f"/auth/login?id={flow}")
    seen = {entry["id"] for entry in gateway.outbox()}
    wait_for(
        lambda: browser.post("/auth/login", id=flow, phone=phone, flow="login").status_code == 303,
        "the page of the code",
    )
    back = browser.post(f"/auth/verify?id={flow}", id=flow, code=arrived(gateway, phone, seen))
    address = back.headers.get("Location") or html.unescape(re.search(r'url=([^"]+)"', back.text)[1])
    assert address.startswith(APP), address
    return flow, field("code", address), verifier


def test_result_of_an_app_is_dead_after_signing_out_everywhere(gateway, number):
    """Attack: the app's code is redeemed a minute later, after the owner has signed out everywhere."""
    person = Person(gateway, phone=number).signs_in()
    flow, code, verifier = app_sign_in(gateway, number)
    assert gateway.api("DELETE", "/sessions?all=true", **person.own).status_code == 204
    answer = gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": verifier})
    assert "token" not in answer.text, "a session after all were ended"
    problem(answer, 410, "flow_expired")


def test_result_of_an_app_is_dead_after_an_operators_lock(gateway, number):
    person = Person(gateway, phone=number)
    flow, code, verifier = app_sign_in(gateway, number)
    assert tool(gateway, "account", "lock", person.id)[0] == 0
    answer = gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": verifier})
    assert answer.status_code >= 400 and "token" not in answer.text, answer.text


def test_lock_by_an_operator_stops_running_flows(gateway, number):
    person = Person(gateway, phone=number, email=new_email())
    flow = gateway.flow("login")
    code = send(gateway, flow, "phone_otp", number)
    assert tool(gateway, "account", "lock", person.id)[0] == 0
    answer = gateway.submit(flow, code)
    assert answer.status_code >= 400 and "token" not in answer.text, answer.text
    assert log_in_by_password(gateway, person.email, PASSWORD).status_code == 403


def test_code_of_a_deleted_account_opens_no_other(gateway, number):
    """The number has a new owner. A code that was sent for the old account proves nothing for the new one."""
    old = Person(gateway, phone=number)
    flow = gateway.flow("login")
    code = send(gateway, flow, "phone_otp", number)
    assert tool(gateway, "account", "delete", old.id, "--yes")[0] == 0
    new = wait_for(lambda: registers(gateway, number), "permission to send a code")
    answer = gateway.submit(flow, code)
    assert answer.status_code in (404, 410) and "token" not in answer.text, answer.text
    assert gateway.api("GET", "/session", **bearer(new)).status_code == 200


def registers(gateway, phone):
    flow = gateway.flow("register")
    seen = {entry["id"] for entry in gateway.outbox()}
    if gateway.begin(flow, phone).status_code != 200:
        return None
    return gateway.submit(flow, arrived(gateway, phone, seen)).json()["session"]["token"]


def test_address_that_an_identity_provider_does_not_speak_for_joins_only_by_the_accounts_own_proof(gateway, number):
    """Attack: Google is authoritative only for its own users. It verified an address at example.com only once."""
    victim = Person(gateway, phone=number, email=new_email()).signs_in()
    thief = Visitor(gateway)
    thief.get(choose(thief.continues(), account="other", name="Mallory M", email=victim.email, verified="1"))
    account = thief.account()
    assert account is None or account["id"] != victim.id, "the identity provider opened another user's account"
    assert {name["kind"] for name in victim.stored()["identifiers"]} == {"phone", "email"}
    assert (
        thief.account() is None or thief.account()["email"] != victim.email or not thief.account()["is_email_verified"]
    )


def test_pin_reset_by_a_stolen_sim_does_not_give_the_right_to_change(gateway, number, other_number):
    """Attack: with a session and a SIM, the PIN is reset by a code, and the new PIN then authorizes what the code
    alone may not."""
    person = Person(gateway, phone=number).signs_in()
    person.sets_up_app()
    person.sets_pin("482915") if gateway.api(
        "POST", "/flows", {"flow": "pin_set"}, **person.own
    ).status_code == 201 else None
    thief = person.elsewhere()
    thief.token = person.token
    created = gateway.api("POST", "/flows", {"flow": "pin_reset"}, **thief.own)
    if created.status_code != 201:
        return
    flow = created.json()["id"]
    code = send_own(gateway, flow, number, thief)
    reset = gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "new_pin": "739146"}, **thief.own)
    if reset.status_code == 200:
        thief.takes(reset)
    thief.takes(gateway.api("POST", "/verify-passcode", {"passcode": "739146"}, **thief.own))
    answer = gateway.api("POST", "/flows", {"flow": "change_phone"}, **thief.own)
    assert problem(answer, 403, "step_up_required")["provider"] == "totp"


def send_own(gateway, flow, phone, person):
    """Sends a code to the account's own number."""
    seen = {entry["id"] for entry in gateway.outbox()}
    wait_for(
        lambda: gateway.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp"}, **person.own).status_code == 200,
        "permission to send a code",
    )
    return arrived(gateway, phone, seen)


def test_account_of_another_person_is_not_taken_by_changing_to_its_number(gateway, number, other_number):
    """Attack: the thief of a session changes to another account's number. No accounts are joined, and none changes
    hands."""
    other = Person(gateway, phone=number)
    person = Person(gateway, phone=other_number()).signs_in()
    flow = person.begins("change_phone")
    answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp", "phone": number}, **person.own)
    if answer.status_code == 200:
        wait_for(lambda: [entry for entry in gateway.outbox() if entry["to"] == number and entry["code"]], "a code")
        answer = gateway.api("POST", f"/flows/{flow}/submit", {"code": gateway.code(number)}, **person.own)
    problem(answer, 409, "already_registered")
    assert other.identifiers() == {number} and number not in person.identifiers()
