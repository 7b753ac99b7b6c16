"""Attack: one flow requires a second factor, and the thief of a phone, a mailbox or a password uses another flow. In
the default configuration, no entry point opens a session of an account with an authenticator app without its code."""

import html
import re

import pytest

from attack import PASSWORD, Person, arrived, log_in_by_password, new_email, prove, relaxed
from local_gateway import problem, wait_for
from mockgoogle import Visitor, choose, pkce
from test_google import ASHA, RAVI

NEW_PASSWORD = "violet harbour eleven"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    gateway.registers_app("http://localhost:9/in")
    yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module")
def protected(gateway):
    """An account with a phone number, an email address, a password, an authenticator app, and ten recovery codes.
    Each test uses one of them."""
    person = Person(gateway, phone="+919876543001", email=new_email()).signs_in()
    _, person.recovery_codes = person.sets_up_app()
    return person


def reset(gateway, person):
    flow = gateway.flow("password_reset")
    prove(gateway, flow, "email_code", person.email)
    answer = gateway.api("POST", f"/flows/{flow}/submit", {"password": NEW_PASSWORD})
    if answer.status_code == 409:
        answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": NEW_PASSWORD})
    return answer.json()


ENTRY_POINTS = {
    "login by phone": lambda gateway, person: prove(gateway, gateway.flow("login"), "phone_otp", person.phone),
    "login by email": lambda gateway, person: prove(gateway, gateway.flow("login"), "email_code", person.email),
    "enter": lambda gateway, person: prove(gateway, gateway.flow("enter"), "phone_otp", person.phone),
    "login_password": lambda gateway, person: log_in_by_password(gateway, person.email, PASSWORD).json(),
    "password_reset": reset,
}


def assert_no_session(document):
    assert document["status"] == "pending" and not document["session"], f"one factor opened the account: {document}"
    due = [document["step"]["provider"]] if document["step"] else document["choices"]
    assert due == ["totp"], document


def finish(gateway, flow, person):
    """Completes the flow with a recovery code. Returns its document."""
    gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"})
    done = gateway.api("POST", f"/flows/{flow}/submit", {"recovery_code": person.recovery_codes.pop()})
    assert done.status_code == 200, done.text
    return done.json()


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_every_flow_asks_for_the_app(gateway, protected, entry_point):
    document = ENTRY_POINTS[entry_point](gateway, protected)
    assert_no_session(document)
    # A wrong code of the app does not help, and the right one completes the flow.
    gateway.api("POST", f"/flows/{document['id']}/begin", {"provider": "totp"})
    problem(
        gateway.api("POST", f"/flows/{document['id']}/submit", {"recovery_code": "aaaa-aaaa-aa"}), 401, "invalid_code"
    )
    problem(gateway.api("POST", f"/flows/{document['id']}/skip", {}), 409, "step_not_open")
    done = finish(gateway, document["id"], protected)
    assert done["status"] == "complete" and done["account"]["id"] == protected.id
    assert "totp" in [passed["provider"] for passed in done["session"]["passed"]]


@pytest.mark.parametrize("flow", [None, "login", "enter"])
def test_send_otp_asks_for_the_app(gateway, protected, flow):
    seen = {entry["id"] for entry in gateway.outbox()}

    def sent():
        answer = gateway.api("POST", "/send-otp", {"phone_number": protected.phone, **({"flow": flow} if flow else {})})
        return answer if answer.status_code == 200 else None

    sent = wait_for(sent, "permission to send a code")
    answer = gateway.api(
        "POST",
        "/verify-otp",
        {"verification_id": sent.json()["verification_id"], "code": arrived(gateway, protected.phone, seen)},
    )
    assert "token" not in answer.text, answer.text
    refusal = problem(answer, 403, "step_up_required")
    assert_no_session(gateway.api("GET", f"/flows/{refusal['flow_id']}").json())


def test_app_login_asks_for_the_app(gateway, protected):
    for password in (PASSWORD, NEW_PASSWORD):
        answer = gateway.api("POST", "/login", {"email": protected.email, "password": password})
        assert "token" not in answer.text, answer.text
        if answer.status_code == 403:
            refusal = problem(answer, 403, "step_up_required")
            assert_no_session(gateway.api("GET", f"/flows/{refusal['flow_id']}").json())
            return
    raise AssertionError("neither password was right")


def visitor_with_app(gateway, account):
    """A user from Google with an authenticator app. Returns the recovery codes."""
    visitor = Visitor(gateway)
    visitor.get(choose(visitor.continues(), account=account))
    person = Person.of_session(gateway, visitor.session.cookies["moongate"])
    return person, person.sets_up_app()[1]


@pytest.mark.parametrize("page", ["/auth/login", "/auth/register"])
def test_google_asks_for_the_app(gateway, page):
    person, recovery_codes = visitor_with_app(gateway, ASHA if page == "/auth/login" else RAVI)
    again = Visitor(gateway)
    back = again.get(choose(again.continues(page), account=ASHA if page == "/auth/login" else RAVI))
    assert again.account() is None, "Google alone opened the account"
    assert back.status_code == 303 and back.headers["Location"].startswith("/auth/step?"), back.headers
    shown = again.get(back.headers["Location"])
    assert "Code from the app" in html.unescape(shown.text)
    flow = re.search(r"id=(fl_[\w-]+)", back.headers["Location"])[1]
    done = again.post(
        f"/auth/step?id={flow}", id=flow, **{"field.code": "", "field.recovery_code": recovery_codes.pop()}
    )
    assert done.status_code == 303, done.text
    assert again.account()["id"] == person.id


def test_native_app_gets_nothing_without_the_authenticator(gateway, protected):
    """A flow whose result is redeemed by a one-time code obeys the account's requirements too."""
    _, challenge = pkce()
    created = gateway.api(
        "POST", "/flows", {"flow": "login", "code_challenge": challenge, "redirect_to": "http://localhost:9/in"}
    )
    flow = created.json()["id"]
    browser = Visitor(gateway)
    browser.get(f"/auth/login?id={flow}")
    seen = {entry["id"] for entry in gateway.outbox()}
    wait_for(
        lambda: browser.post("/auth/login", id=flow, phone=protected.phone).status_code == 303, "the page of the code"
    )
    answer = browser.post(f"/auth/verify?id={flow}", id=flow, code=arrived(gateway, protected.phone, seen))
    assert answer.headers["Location"].startswith("/auth/step?id="), answer.headers
    assert gateway.api("GET", f"/flows/{flow}").json()["status"] == "pending"


def test_reset_changes_the_password_only_with_the_app(gateway):
    """Attack: the thief of a mailbox sets a new password before the app's code is required, or without it."""
    person = Person(gateway, phone="+919876543002", email=new_email()).signs_in()
    person.sets_up_app()
    reset(gateway, person)
    problem(log_in_by_password(gateway, person.email, NEW_PASSWORD), 401, "invalid_password")
    assert log_in_by_password(gateway, person.email, PASSWORD).status_code == 200
