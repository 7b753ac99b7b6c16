"""The shipped accounts.lua: an account with an authenticator app gets no session without it in any flow (docs: Documentation/guides/second-factors-and-guarantees.md)."""

import pytest

from authenticator import App
from local_gateway import LocalGateway, problem, wait_for
from mockgoogle import Visitor, choose, field, pkce
from screens import many

ASHA = "100000000000000000001"
EMAIL, PASSWORD = "asha@gmail.com", "correct horse battery"


class Person:
    """A user with a number, a verified address, a password, a Google identity and an authenticator app."""

    def __init__(self, gateway, phone):
        self.gateway, self.phone = gateway, phone
        google = Visitor(gateway)
        google.get(choose(google.continues(), account=ASHA))
        self.account = google.account()["id"]
        self.token = google.session.cookies["moongate"]
        self.passes("join_phone", {"phone": phone}, phone)
        flow = self.passes("password_reset", {"email": EMAIL}, EMAIL, owner=False)
        done = gateway.api("POST", f"/flows/{flow['id']}/begin", {"provider": "password", "password": PASSWORD})
        assert done.json()["status"] == "complete", done.text
        self.token = done.json()["session"]["token"]
        self.app, self.recovery = self.sets_up()

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def passes(self, flow, fields, to, owner=True):
        """Completes a code step. Returns the flow after it."""
        headers = self.headers if owner else {}
        id = self.gateway.api("POST", "/flows", {"flow": flow}, headers=headers).json()["id"]
        seen = {entry["id"] for entry in self.gateway.outbox()}
        begun = self.gateway.api("POST", f"/flows/{id}/begin", fields, headers=headers)
        assert begun.status_code == 200, begun.text
        code = wait_for(
            lambda: next(
                (
                    entry["code"]
                    for entry in self.gateway.outbox()
                    if entry["to"] == to and entry["code"] and entry["id"] not in seen
                ),
                None,
            ),
            "a code",
        )
        done = self.gateway.api("POST", f"/flows/{id}/submit", {"code": code}, headers=headers)
        assert done.status_code == 200, done.text
        if owner:
            self.token = done.json()["session"]["token"]
        return done.json()

    def sets_up(self):
        """Sets up the app. Returns it and the recovery codes."""
        id = self.gateway.api("POST", "/flows", {"flow": "totp_set"}, headers=self.headers).json()["id"]
        begun = self.gateway.api("POST", f"/flows/{id}/begin", {"provider": "totp"}, headers=self.headers).json()
        app = App(next(part["text"] for part in begun["step"]["show"] if part["kind"] == "qr"))
        shown = self.gateway.api("POST", f"/flows/{id}/submit", {"code": app.code(-1)}, headers=self.headers).json()
        codes = next(part["items"] for part in shown["step"]["show"] if part["kind"] == "list")
        done = self.gateway.api("POST", f"/flows/{id}/submit", {}, headers=self.headers).json()
        assert done["status"] == "complete"
        self.token = done["session"]["token"]
        return app, codes

    def sessions(self):
        return len(self.gateway.api("GET", "/sessions", headers=self.headers).json())

    def finishes(self, flow, **more):
        """Completes the app's step with a recovery code. Returns the response."""
        self.gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"})
        problem(self.gateway.api("POST", f"/flows/{flow}/submit", {"recovery_code": "AAAAA-AAAAA"}), 401, "invalid_code")
        return self.gateway.api("POST", f"/flows/{flow}/submit", {"recovery_code": self.recovery.pop()})


@pytest.fixture(scope="module")
def person(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: many(text).replace('{ "60s", "120s" }', '"1s"').replace("max = 4,", "max = 100,"),
    )
    gateway.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"1s"').replace("max = 4,", "max = 100,"))
    gateway.edit("policies/totp.lua", lambda text: text.replace("max = 5,", "max = 100,"))
    gateway.registers_app("https://app.example.com/in")
    yield Person(gateway.start(), "+919876512345")
    gateway.stop()


def asks_for_the_app(flow, person, before):
    assert (flow["status"], flow["choices"], flow["session"], flow["account"], flow["next"]) == (
        "pending",
        ["totp"],
        None,
        None,
        None,
    ), flow
    assert person.sessions() == before


@pytest.mark.parametrize(
    "entry_point, fields",
    [
        ("login", {"provider": "phone_otp", "phone": "+919876512345"}),
        ("login", {"provider": "email_code", "email": EMAIL}),
        ("enter", {"provider": "phone_otp", "phone": "+919876512345"}),
    ],
    ids=["login by number", "login by address", "enter"],
)
def test_a_code_alone_opens_nothing(person, entry_point, fields):
    before = person.sessions()
    flow = wait_for(lambda: open_by_code(person, entry_point, fields), "a code")
    asks_for_the_app(flow, person, before)
    problem(person.gateway.api("POST", f"/flows/{flow['id']}/skip", {}), 409, "step_not_open")
    done = person.finishes(flow["id"])
    assert done.json()["status"] == "complete" and done.json()["account"]["id"] == person.account, done.text
    # The number was added today: a code to it signs in, and counts for nothing else.
    counted = {"totp"} if "phone" in fields else {fields["provider"], "totp"}
    session = done.json()["session"]
    assert {step["provider"] for step in session["passed"]} == counted and session["aal"] == len(counted), session


def open_by_code(person, entry_point, fields):
    """The flow after the code; None while the timer of the previous code runs."""
    id = person.gateway.flow(entry_point)
    seen = {entry["id"] for entry in person.gateway.outbox()}
    if person.gateway.api("POST", f"/flows/{id}/begin", fields).status_code == 429:
        return None
    to = fields.get("phone") or fields["email"]
    code = wait_for(
        lambda: next(
            (
                entry["code"]
                for entry in person.gateway.outbox()
                if entry["to"] == to and entry["code"] and entry["id"] not in seen
            ),
            None,
        ),
        "a code",
    )
    done = person.gateway.submit(id, code)
    assert done.status_code == 200, done.text
    return done.json()


def test_the_password_alone_opens_nothing(person):
    before = person.sessions()
    id = person.gateway.flow("login_password")
    flow = person.gateway.api(
        "POST", f"/flows/{id}/begin", {"provider": "password", "email": EMAIL, "password": PASSWORD}
    ).json()
    asks_for_the_app(flow, person, before)
    assert person.finishes(id).json()["status"] == "complete"


def test_a_reset_opens_nothing_and_changes_nothing(person):
    before = person.sessions()
    flow = wait_for(
        lambda: open_by_code(person, "password_reset", {"provider": "email_code", "email": EMAIL}), "a code"
    )
    reset = person.gateway.api(
        "POST", f"/flows/{flow['id']}/begin", {"provider": "password", "password": "another horse battery"}
    ).json()
    asks_for_the_app(reset, person, before)
    id = person.gateway.flow("login_password")
    problem(
        person.gateway.api(
            "POST", f"/flows/{id}/begin", {"provider": "password", "email": EMAIL, "password": "another horse battery"}
        ),
        401,
        "invalid_password",
    )


def test_google_alone_opens_nothing(person):
    before = person.sessions()
    for page in ("/auth/login", "/auth/register"):
        visitor = Visitor(person.gateway)
        back = visitor.get(choose(visitor.continues(page), account=ASHA))
        assert back.status_code == 303 and back.headers["Location"].startswith("/auth/step?id=fl_"), back.headers
        assert (
            visitor.account() is None
            and "moongate" not in visitor.session.cookies
            and visitor.get("/home").status_code != 200
        )
    assert person.sessions() == before
    id = field("id", back.headers["Location"])
    assert "Authenticator app" in visitor.get(back.headers["Location"]).text
    done = visitor.post("/auth/step", id=id, **{"field.recovery_code": person.recovery.pop()})
    assert (done.status_code, done.headers["Location"]) == (303, "/home"), done.text
    assert visitor.account()["id"] == person.account


def test_an_app_gets_no_code_for_google_alone(person):
    verifier, challenge = pkce()
    created = person.gateway.api(
        "POST", "/flows", {"flow": "login", "code_challenge": challenge, "redirect_to": "https://app.example.com/in"}
    )
    id = created.json()["id"]
    browser = Visitor(person.gateway)
    browser.get(f"/auth/login?id={id}")
    back = browser.get(choose(browser.continues(id=id), account=ASHA))
    assert back.status_code == 303 and back.headers["Location"].startswith("/auth/step?id="), back.headers
    # The flow is bound to that browser. Its creator learns nothing about it until the app receives the code.
    problem(
        person.gateway.api("POST", f"/flows/{id}/submit", {"code": "x", "code_verifier": verifier}), 409, "step_not_open"
    )


def test_the_calls_of_apps_ask_for_it(person):
    """`login` and `verify-otp` answer 403 with the flow, which the app continues."""
    before = person.sessions()
    answer = problem(
        person.gateway.api("POST", "/login", {"email": EMAIL, "password": PASSWORD}), 403, "step_up_required"
    )
    assert "token" not in answer and person.finishes(answer["flow_id"]).json()["session"]["token"]

    sent = wait_for(
        lambda: (lambda sent: sent.json() if sent.status_code == 200 else None)(
            person.gateway.api("POST", "/send-otp", {"phone_number": person.phone})
        ),
        "the resend timer",
    )
    code = person.gateway.code(person.phone)
    answer = problem(
        person.gateway.api("POST", "/verify-otp", {"verification_id": sent["verification_id"], "code": code}),
        403,
        "step_up_required",
    )
    assert "token" not in answer and answer["flow_id"] == sent["verification_id"]
    assert person.sessions() == before + 1
    # The flow lists the required step, and a code of the app works like a recovery code.
    assert person.gateway.api("GET", f"/flows/{answer['flow_id']}").json()["choices"] == ["totp"]
    done = person.gateway.api(
        "POST", f"/flows/{answer['flow_id']}/begin", {"provider": "totp", "code": person.app.code()}
    )
    if done.json().get("status") == "pending":
        done = person.gateway.api("POST", f"/flows/{answer['flow_id']}/submit", {"code": person.app.code()})
    assert done.json()["status"] == "complete" and done.json()["session"]["token"], done.text


def test_it_holds_as_soon_as_it_is_saved(person):
    """A flow that began before the operator's change completes under the new rules."""
    gateway = person.gateway
    id = gateway.flow("login_password")
    file = gateway.config / "accounts.lua"
    shipped = file.read_text()
    active = gateway.policy()["active"]
    try:
        gateway.edit("accounts.lua", lambda _: 'return accounts { sign_in = { { "totp" }, { "phone_otp" } } }\n')
        gateway.wait_generation(active)
        flow = gateway.api(
            "POST", f"/flows/{id}/begin", {"provider": "password", "email": EMAIL, "password": PASSWORD}
        ).json()
        assert flow["choices"] == ["totp"]
        assert person.finishes(id).json()["choices"] == ["phone_otp"]
        # A user without an app is refused, but only after their own step.
        other = gateway.register("+919876512346")
        refused = wait_for(lambda: refusal_by_code(gateway, "+919876512346"), "the resend timer")[0]
        problem(refused, 403, "denied")
        assert (
            len(gateway.api("GET", "/sessions", headers={"Authorization": f"Bearer {other['session']['token']}"}).json())
            == 1
        )
        # An invalid file changes nothing.
        active = gateway.policy()["active"]
        gateway.edit("accounts.lua", lambda _: 'return accounts { sign_inn = {} }\n')
        told = wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal")
        assert [(one["file"], one["line"], one["path"]) for one in told["problems"]] == [
            ("accounts.lua", 1, "sign_inn")
        ], told
        assert "did you mean `sign_in`?" in told["problems"][0]["message"]
        assert gateway.policy()["active"] == active
    finally:
        gateway.edit("accounts.lua", lambda _: shipped)


def refusal_by_code(gateway, phone):
    flow = gateway.flow("login")
    if gateway.begin(flow, phone).status_code == 429:
        return None
    answer = gateway.submit(flow, gateway.code(phone))
    # In a list, because a refusal counts as false.
    return [answer]
