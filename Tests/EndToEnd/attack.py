"""Shared code of the attack tests: old accounts, codes that were sent to them, sessions, and an authenticator app."""

import copy
import json
import re
import secrets

from authenticator import App
from local_gateway import LocalGateway, wait_for
from test_accounts import ARGON2, tool

PASSWORD = "password"
"""What `ARGON2` is a hash of."""

ACCOUNTS = """return accounts {
  sign_in = { { "totp", when = function(f) return f.account.factors.totp end } },
  change_within = "%s",
}
"""


def relaxed(folder, change_within=None):
    """A gateway with the default files, except that one number may be sent codes quickly and often.

    - Parameter change_within: replaces that field of the default accounts.lua.
    """
    gateway = LocalGateway(folder)
    for name in ("phone_otp", "email_code"):
        gateway.edit(
            f"policies/{name}.lua",
            lambda text: re.sub(
                r'(on = "send",[^}]*max = )\d+',
                r"\g<1>10000",
                re.sub(r'resend_after = \{[^}]*\}', 'resend_after = { "1s" }', text),
            ),
        )
    gateway.edit("policies/totp.lua", lambda text: text.replace("max = 5,", "max = 100,"))
    if change_within:
        (gateway.config / "accounts.lua").write_text(ACCOUNTS % change_within)
    return gateway


class Person:
    """A user with an old account, so that none of its identifiers is new."""

    def __init__(self, gateway, phone=None, email=None, verified=True):
        self.gateway, self.phone, self.email, self.token, self.id = gateway, phone, email, None, None
        names = [{"phone": phone, "verified": verified}] * bool(phone) + [
            {"email": email, "verified": verified}
        ] * bool(email)
        line = {"identifiers": names, "created_at": "2024-05-01T12:00:00Z", **({"password": ARGON2} if email else {})}
        status, _, error = tool(gateway, "account", "import", "-", text=json.dumps(line))
        assert status == 0, error
        self.id = self.stored()["id"]

    def elsewhere(self):
        """The same account for another party, without a session yet."""
        other = copy.copy(self)
        other.token = None
        return other

    def stored(self):
        """The account from the admin listener."""
        status, text, error = tool(self.gateway, "account", "show", self.id or self.phone or self.email, "--json")
        assert status == 0, error
        return json.loads(text)

    def identifiers(self):
        """The verified identifiers."""
        return {name["value"] for name in self.stored()["identifiers"] if name["verified_at"]}

    def signs_in(self):
        """Signs in with a code to the phone number, or to the email address if there is no number."""
        flow = self.gateway.flow("login")
        provider, name = ("phone_otp", self.phone) if self.phone else ("email_code", self.email)
        done = prove(self.gateway, flow, provider, name)
        self.token = token(done)
        return self

    @classmethod
    def of_session(cls, gateway, token):
        """The user of a session."""
        self = cls.__new__(cls)
        self.gateway, self.phone, self.email, self.token = gateway, None, None, token
        self.id = gateway.api("GET", "/session", **bearer(token)).json()["account"]["id"]
        return self

    @property
    def own(self):
        return bearer(self.token)

    def begins(self, name):
        """Starts a flow with this session."""
        answer = self.gateway.api("POST", "/flows", {"flow": name}, **self.own)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def takes(self, answer):
        """Uses the new token of the response, if any."""
        document = answer.json()
        new = document.get("token") or (document.get("session") or {}).get("token")
        self.token = new or self.token
        return document

    def sets_pin(self, pin):
        answer = self.gateway.api("POST", "/set-passcode", {"passcode": pin}, **self.own)
        assert answer.status_code == 200, answer.text
        self.takes(answer)
        return self

    def sets_up_app(self):
        """Sets up an authenticator app. Returns the app and its ten recovery codes."""
        flow = self.begins("totp_set")
        begun = self.gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **self.own)
        assert begun.status_code == 200, begun.text
        app = App(next(text for text in texts(begun.json()) if text.startswith("otpauth:")))
        shown = self.gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code(-1)}, **self.own)
        assert shown.status_code == 200, shown.text
        codes = next(part["items"] for part in shown.json()["step"]["show"] if part["kind"] == "list")
        done = self.gateway.api("POST", f"/flows/{flow}/submit", {}, **self.own)
        assert done.status_code == 200 and done.json()["status"] == "complete", done.text
        self.takes(done)
        return app, list(codes)

    def is_signed_in(self):
        return self.gateway.api("GET", "/session", **self.own).status_code == 200


def bearer(token):
    return {"headers": {"Authorization": f"Bearer {token}"}}


def texts(value):
    """All strings of a JSON document."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


def send(gateway, flow, provider, address, **own):
    """Sends a code to the address in a flow and returns it."""
    seen = {entry["id"] for entry in gateway.outbox()}
    kind = "email" if "@" in address else "phone"

    def begin():
        answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": provider, kind: address}, **own)
        if answer.status_code == 429 and answer.json()["code"] == "resend_too_soon":
            return None
        assert answer.status_code == 200, answer.text
        return answer

    wait_for(begin, f"permission to send a code to {address}")
    return arrived(gateway, address, seen)


def arrived(gateway, address, seen):
    """The code that arrived for the address since the outbox had `seen`."""
    return wait_for(
        lambda: next(
            (
                entry["code"]
                for entry in gateway.outbox()
                if entry["id"] not in seen and entry["to"] == address and entry["code"]
            ),
            None,
        ),
        f"a code to {address}",
    )


def prove(gateway, flow, provider, address, **own):
    """Proves an identifier in a flow and returns the flow's document."""
    code = send(gateway, flow, provider, address, **own)
    answer = gateway.api("POST", f"/flows/{flow}/submit", {"code": code}, **own)
    assert answer.status_code == 200, answer.text
    return answer.json()


def token(document):
    """The token of a complete flow."""
    assert document["status"] == "complete", document
    return document["session"]["token"]


def new_email():
    return f"p{secrets.token_hex(6)}@example.com"


def log_in_by_password(gateway, email, password):
    flow = gateway.flow("login_password")
    return gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "email": email, "password": password})
