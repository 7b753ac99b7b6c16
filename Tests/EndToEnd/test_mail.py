"""Real delivery: mail to a real server, SMS to a webhook. The messages are parsed by independent programs."""

import http.server
import json
import re
import threading

import pytest
import requests

from local_gateway import problem, wait_for
from mail_server import PASSWORD, USER, MailServer


def mail_by(gateway, server, **more):
    fields = {
        "url": f'"{server.url}"',
        "from": '"Größe \\"Wallet\\" <no-reply@example.com>"',
        "user": f'"{USER}"',
        "password": 'env "MAIL_PASSWORD"',
        **more,
    }
    if server.tls:
        fields.setdefault("ca", f'"{server.certificate}"')
    if server.tls == "starttls":
        fields.setdefault("starttls", "true")
    smtp = "smtp { " + ", ".join(f"{name} = {value}" for name, value in fields.items() if value) + " }"
    gateway.edit(
        "gateway.lua",
        lambda text: re.sub(
            r"email_code = \{ mail = outbox\(\) \}", lambda _: f"email_code = {{ mail = {smtp} }}", text
        ),
    )


def change_email(gateway, token, address):
    """Begins to add an address to an account. Returns the response to `begin` and the flow."""
    own = {"headers": {"Authorization": f"Bearer {token}"}}
    flow = gateway.api("POST", "/flows", {"flow": "change_email"}, **own).json()["id"]
    return gateway.api("POST", f"/flows/{flow}/begin", {"provider": "email_code", "email": address}, **own), flow


@pytest.mark.parametrize("tls", ["implicit", "starttls", None])
def test_sign_in_by_a_code_that_came_by_mail(new_gateway, tmp_path, number, tls):
    with MailServer(tmp_path, tls) as server:
        mail_by(new_gateway, server)
        new_gateway.start(MAIL_PASSWORD=PASSWORD)
        address = "o'neill+test@example.com"
        token = new_gateway.register(number)["session"]["token"]
        begun, flow = change_email(new_gateway, token, "O'Neill+Test@Example.com")
        assert begun.status_code == 200, begun.text
        envelope, mail = server.mail(1)
        assert server.logins[0] == (USER, PASSWORD)
        assert envelope.mail_from == "no-reply@example.com"
        assert envelope.rcpt_tos == [address]
        assert mail["To"] == address
        assert mail["From"].addresses[0].display_name == 'Größe "Wallet"'
        assert mail["From"].addresses[0].addr_spec == "no-reply@example.com"
        assert mail["Subject"] == "Your Moongate verification code"
        assert mail["Auto-Submitted"] == "auto-generated"
        assert re.fullmatch(r"<[\w-]{24}@example\.com>", mail["Message-ID"])
        assert mail["Date"].datetime.tzinfo is not None
        assert not [name for name in mail.keys() if name.lower().startswith("list-")]
        assert mail.get_content_type() == "multipart/alternative"
        assert not mail.defects
        text = mail.get_body(("plain",)).get_content()
        page = mail.get_body(("html",)).get_content()
        code = re.search(r"\b\d{6}\b", text).group()
        assert code in page and code not in mail["Subject"]
        assert '<html lang="en" dir="ltr">' in page
        done = new_gateway.api(
            "POST", f"/flows/{flow}/submit", {"code": code}, headers={"Authorization": f"Bearer {token}"}
        )
        assert done.status_code == 200, done.text
        assert done.json()["account"]["is_email_verified"] is True

        # A sign-in with it.
        flow = new_gateway.flow("login")
        begun = new_gateway.api("POST", f"/flows/{flow}/begin", {"provider": "email_code", "email": address})
        if begun.status_code == 429:
            # The timer of the address is running for every flow.
            problem(begun, 429, "resend_too_soon")
        else:
            code = re.search(r"\b\d{6}\b", server.mail(2)[1].get_body(("plain",)).get_content()).group()
            done = new_gateway.submit(flow, code).json()
            assert done["status"] == "complete" and done["account"]["email"] == address
    assert PASSWORD not in new_gateway.log and code not in new_gateway.log


@pytest.mark.parametrize(
    "case", ["wrong password", "unknown authority", "another name", "no starttls", "refused", "gone"]
)
def test_mail_that_cannot_leave(new_gateway, tmp_path, number, case):
    with MailServer(
        tmp_path, None if case in ("no starttls", "refused", "gone") else "implicit", auth=case == "wrong password"
    ) as server:
        more = {"unknown authority": {"ca": None}, "no starttls": {"starttls": "true"}}.get(case, {})
        if case == "another name":
            more = {"url": f'"{server.url.replace("localhost", "127.0.0.1")}"'}
        if case == "refused":
            server.refuse = "550 nobody here"
        mail_by(new_gateway, server, **more)
        new_gateway.edit(
            "policies/email_code.lua",
            lambda text: re.sub(r'unknown_account = "\w+"', 'unknown_account = "reveal"', text),
        )
        if case == "gone":
            server.stop()
        new_gateway.start(MAIL_PASSWORD="wrong" if case == "wrong password" else PASSWORD)
        token = new_gateway.register(number)["session"]["token"]
        # Failed sends are not charged and start no timer: the response stays the same for more than the policy's four
        # sends.
        for _ in range(5):
            begun, _ = change_email(new_gateway, token, "a@example.com")
            problem(begun, 503, "delivery_failed")
        assert not server.envelopes
        if case in ("unknown authority", "another name", "no starttls"):
            assert not server.logins
    assert "a code could not be delivered" in new_gateway.log
    assert "a@example.com" not in new_gateway.log and PASSWORD not in new_gateway.log


def test_concealed_mail_failure_is_reported_to_the_operator(new_gateway, tmp_path, number):
    with MailServer(tmp_path, None, auth=False) as server:
        server.refuse = "550 nobody here"
        mail_by(new_gateway, server)
        new_gateway.start(MAIL_PASSWORD=PASSWORD)
        token = new_gateway.register(number)["session"]["token"]
        begun, _ = change_email(new_gateway, token, "a@example.com")
        assert begun.status_code == 200, begun.text
        failed = wait_for(
            lambda: [
                event
                for event in requests.get(f"{new_gateway.admin}/events", timeout=10).json()
                if event["kind"] == "delivery_failed"
            ],
            "an event",
        )
        assert failed[0]["provider"] == "email_code" and "(550 nobody here)" in failed[0]["detail"]["fault"]
        assert "a@example.com" not in json.dumps(failed)


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_sms_by_a_webhook(new_gateway, number, other_number):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.taken, server.status = [], 202
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        hook = f'webhook {{ url = "http://127.0.0.1:{server.server_port}/sms", headers = {{ Authorization = env "SMS_TOKEN" }} }}'
        new_gateway.edit("gateway.lua", lambda text: text.replace("sms = outbox()", f"sms = {hook}"))
        new_gateway.start(SMS_TOKEN="Bearer s3cret")
        flow = new_gateway.flow("register")
        assert new_gateway.begin(flow, number).status_code == 200
        path, headers, body = server.taken[0]
        assert (
            path == "/sms"
            and headers["Authorization"] == "Bearer s3cret"
            and headers["Content-Type"] == "application/json"
        )
        assert set(body) == {"to", "text"} and body["to"] == number
        code = re.search(r"@localhost #(\d{6})$", body["text"]).group(1)
        done = new_gateway.submit(flow, code)
        assert done.json()["status"] == "complete", done.text

        server.status = 500
        flow = new_gateway.flow("register")
        problem(new_gateway.begin(flow, other_number()), 503, "delivery_failed")
    finally:
        server.shutdown()
    assert "s3cret" not in new_gateway.log


def test_a_changed_secret_file_is_used(new_gateway, number, other_number):
    """A file whose mode was refused is tried again after chmod."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.taken, server.status = [], 202
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secret = new_gateway.config / "sms.secret"

    def write(text):
        draft = secret.with_name(".sms.secret")
        draft.write_text(text)
        draft.chmod(0o600)
        draft.rename(secret)

    def authorization():
        """What the next message carries."""
        flow = new_gateway.flow("register")
        assert new_gateway.begin(flow, other_number()).status_code == 200
        return server.taken[-1][1]["Authorization"]

    try:
        write("Bearer first\n")
        hook = f'webhook {{ url = "http://127.0.0.1:{server.server_port}/", headers = {{ Authorization = file "sms.secret" }} }}'
        new_gateway.edit("gateway.lua", lambda text: text.replace("sms = outbox()", f"sms = {hook}"))
        new_gateway.start()
        assert authorization() == "Bearer first"
        active = new_gateway.policy()["active"]
        write("Bearer second\n")
        wait_for(lambda: "sms.secret" in new_gateway.log, "the changed secret to be active", 5)
        assert authorization() == "Bearer second"
        # The id of a generation is public.
        assert new_gateway.policy()["active"] == active
        secret.chmod(0o644)
        refused = wait_for(lambda: new_gateway.policy()["candidate_refused"], "the mode to be refused", 5)
        assert "chmod 600" in json.dumps(refused)
        write("Bearer third\n")
        wait_for(lambda: not new_gateway.policy()["candidate_refused"], "the file to be tried again", 5)
        assert authorization() == "Bearer third"
        secret.chmod(0o644)
        wait_for(lambda: new_gateway.policy()["candidate_refused"], "the mode to be refused", 5)
        secret.chmod(0o600)
        wait_for(lambda: not new_gateway.policy()["candidate_refused"], "the file to be tried again", 5)
        # `reload` at once, without waiting for the watcher.
        write("Bearer fourth\n")
        assert requests.post(f"{new_gateway.admin}/policy/reload", timeout=60).status_code == 200
        assert authorization() == "Bearer fourth"
    finally:
        server.shutdown()
    assert "Bearer" not in new_gateway.log
