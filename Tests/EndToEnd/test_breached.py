"""Leaked passwords: a service with the range API that is right, slow, broken or down, and a file."""

import hashlib
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from attack import arrived
from local_gateway import BIN, LocalGateway, problem

LEAKED, OWN, OTHER = "correct horse battery", "nineteen quiet pigeons", "another horse 42"


def digest(password):
    return hashlib.sha1(password.encode()).hexdigest().upper()


class Ranges:
    """A small service with the range API."""

    def __init__(self):
        self.known = {digest(LEAKED)}
        self.manner = "right"
        self.asked = []
        self.released = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                service.asked.append((self.path, self.headers.get("Add-Padding")))
                if service.manner == "slow":
                    service.released.wait(30)
                status = 500 if service.manner == "failing" else 200
                body = b"<html>Sign in</html>" if service.manner == "broken" else service.answer(self.path[7:])
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, prefix):
        lines = [f"{each[5:]}:17" for each in self.known if each.startswith(prefix)]
        return "\r\n".join(lines + [f"{number:035X}:0" for number in range(20)]).encode()

    def stop(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def gateway_with(folder, source):
    """A gateway that looks passwords up at the source, as Lua."""
    gateway = LocalGateway(folder)
    gateway.edit("gateway.lua", lambda text: text.replace("password = {},", f"password = {{ breached = {source} }},"))
    return gateway


@pytest.fixture
def ranges():
    service = Ranges()
    yield service
    service.stop()


@pytest.fixture
def gateway(ranges, tmp_path):
    gateway = gateway_with(tmp_path, json.dumps(ranges.url))
    yield gateway.start()
    gateway.stop()


def registers(gateway, address, password):
    body = {"email": address, "password": password, "first_name": "Asha", "last_name": "Rao"}
    return gateway.api("POST", "/register", body)


def has_account(gateway, address, password):
    """Registers and verifies the address."""
    made = registers(gateway, address, password)
    assert made.status_code == 201, made.text
    owner = {"Authorization": f"Bearer {made.json()['token']}"}
    verified = gateway.api("POST", "/verify-email", {"code": gateway.code(address)}, headers=owner)
    assert verified.status_code == 200, verified.text


def signs_in(gateway, address, password):
    flow = gateway.flow("login_password")
    fields = {"provider": "password", "email": address, "password": password}
    return flow, gateway.api("POST", f"/flows/{flow}/begin", fields)


def events(gateway, kind):
    found = requests.get(f"{gateway.admin}/events?limit=1000", timeout=10).json()
    return [event for event in found if event["kind"] == kind]


def test_a_new_password(gateway, ranges):
    refused = registers(gateway, "asha@example.com", LEAKED)
    problem(refused, 422, "weak_password")
    assert refused.json()["detail"] == "This password is known from a data breach. Choose another."
    assert registers(gateway, "asha@example.com", OWN).status_code == 201
    assert ranges.asked == [(f"/range/{digest(each)[:5]}", "true") for each in (LEAKED, OWN)]
    # Attack: somebody who reads the log or the trail learns digits of a password's hash.
    trail = requests.get(f"{gateway.admin}/events?limit=1000", timeout=10).text
    for each in (LEAKED, OWN):
        assert digest(each)[:5] not in trail and digest(each)[:5] not in "".join(gateway.server.lines)


def test_a_password_that_has_leaked_since(gateway, ranges):
    address = "asha@example.com"
    has_account(gateway, address, OWN)
    assert "exposed" not in signs_in(gateway, address, OWN)[1].json()
    ranges.known.add(digest(OWN))
    done = signs_in(gateway, address, OWN)[1].json()
    assert (done["status"], done["exposed"]) == ("complete", ["password"])
    assert [event["detail"]["change"] for event in events(gateway, "secret_exposed")] == ["offered"]
    # A wrong password is not looked up, so nothing tells whether the address is known.
    asked = len(ranges.asked)
    for name in (address, "nobody@example.com"):
        problem(signs_in(gateway, name, LEAKED)[1], 401, "invalid_password")
    assert len(ranges.asked) == asked


@pytest.mark.parametrize("manner", ["slow", "failing", "broken", "down"])
def test_a_service_that_does_not_answer_keeps_nobody_out(gateway, ranges, manner):
    address = "asha@example.com"
    has_account(gateway, address, OWN)
    ranges.manner = manner
    if manner == "down":
        ranges.stop()
    began = time.monotonic()
    assert signs_in(gateway, address, OWN)[1].json()["status"] == "complete"
    assert registers(gateway, "bina@example.com", LEAKED).status_code == 201
    assert time.monotonic() - began < 15, "one waits for the service for two seconds at most"
    assert [event["provider"] for event in events(gateway, "secret_unchecked")] == ["password"]


def test_a_demanded_change(ranges, tmp_path):
    """Attack: a leaked password opens the account, by whichever call, and locks its owner out."""
    gateway = gateway_with(tmp_path, f"{{ {json.dumps(ranges.url)}, refuse = true }}")
    gateway.start()
    try:
        address = "asha@example.com"
        has_account(gateway, address, OWN)
        ranges.known.add(digest(OWN))
        for_app = gateway.api("POST", "/login", {"email": address, "password": OWN})
        problem(for_app, 403, "step_up_required")
        assert "token" not in for_app.json()
        # The service forgets the password, or is down: what was found stays found.
        ranges.known.discard(digest(OWN))
        flow, begun = signs_in(gateway, address, OWN)
        assert (begun.json()["status"], begun.json()["choices"]) == ("pending", ["email_code"])
        known = {entry["id"] for entry in gateway.outbox()}
        assert gateway.api("POST", f"/flows/{flow}/begin", {"provider": "email_code"}).status_code == 200
        due = gateway.submit(flow, arrived(gateway, address, known)).json()
        assert (due["status"], due["session"], due["change_due"]) == ("pending", None, "breached")
        for same in (OWN, LEAKED):
            problem(
                gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": same}),
                422,
                "weak_password",
            )
        done = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": OTHER})
        assert done.json()["status"] == "complete", done.text
        problem(signs_in(gateway, address, OWN)[1], 401, "invalid_password")
        assert signs_in(gateway, address, OTHER)[1].json()["status"] == "complete"
    finally:
        gateway.stop()


def test_a_file(tmp_path):
    gateway = gateway_with(tmp_path, '"leaked.txt"')
    file = gateway.config / "leaked.txt"
    hashes = sorted([digest(LEAKED)] + [digest(str(number)) for number in range(20_000)])

    def check():
        command = [BIN / "moongate", "check", "--config", gateway.config]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    assert "there is no file leaked.txt" in check()[1]
    file.write_text("\r\n".join(f"{each}:2" for each in hashes[:5] + [hashes[0]] + hashes[6:]))
    status, told = check()
    assert status != 0 and "leaked.txt:6: is out of order: sort the file by its hashes" in told, told
    file.write_text("\r\n".join(f"{each}:2" for each in hashes))
    gateway.start()
    try:
        problem(registers(gateway, "asha@example.com", LEAKED), 422, "weak_password")
        assert registers(gateway, "asha@example.com", OWN).status_code == 201
        # Another file takes its place without a reload.
        draft = gateway.config / ".leaked.txt"
        draft.write_text(f"{digest(OTHER).lower()}:1\n")
        draft.rename(file)
        problem(registers(gateway, "bina@example.com", OTHER), 422, "weak_password")
        assert registers(gateway, "bina@example.com", LEAKED).status_code == 201
    finally:
        gateway.stop()
