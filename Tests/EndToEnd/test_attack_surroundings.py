"""Smaller attacks: unsafe configurations, headers that reach the service, sessions that outlive their end, responses
that reveal something to an attacker, and failures that no operator sees."""

import collections
import re
import signal
import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from attack import PASSWORD, Person, arrived, log_in_by_password, new_email, prove, relaxed, token
from local_gateway import BIN, problem, wait_for
from test_accounts import tool


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    gateway.edit(
        "gateway.lua", lambda text: text.replace("  region =", '  trusted_proxies = { "127.0.0.1/32" },\n  region =', 1)
    )
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "  -- Everything else",
            '  { path = "/broken/**", to = "http://127.0.0.1:%s", decide = function(f) return f.session.age + nil end },\n  -- Everything else'
            % gateway.ports[2],
        ),
    )
    yield gateway.start()
    gateway.stop()


# Unsafe configurations are refused.


def check(gateway):
    done = subprocess.run(
        [BIN / "moongate", "check", "--config", gateway.config], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def without_google(text):
    return re.sub(r"    google_oauth = \{.*?\n    \},\n", "", text, flags=re.S)


def readable_secret(gateway):
    (gateway.config / "mail.password").write_text("hush")
    (gateway.config / "mail.password").chmod(0o644)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "email_code = { mail = outbox() }",
            'email_code = { mail = smtp { url = "smtps://mail.example.com", from = "a@example.com", user = "a", password = file "mail.password" } }',
        ),
    )


def edited(*replacements):
    def edit(gateway):
        for old, new in replacements:
            gateway.edit("gateway.lua", lambda text: text.replace(old, new(gateway) if callable(new) else new, 1))

    return edit


UNSAFE = {
    "mock Google on every interface": (
        lambda gateway: gateway.edit(
            "gateway.lua", lambda text: re.sub(r'listen = "127\.0\.0\.1:', 'listen = "0.0.0.0:', text)
        ),
        r"gateway\.lua:\d+: .*mock",
    ),
    "admin on every interface": (
        lambda gateway: gateway.edit(
            "gateway.lua", lambda text: re.sub(r'admin = "127\.0\.0\.1:', 'admin = "0.0.0.0:', text)
        ),
        r"gateway\.lua:\d+: .*admin",
    ),
    "an outbox on a public site": (
        lambda gateway: gateway.edit(
            "gateway.lua",
            lambda text: without_google(
                re.sub(r'public_url = "[^"]*"', 'public_url = "https://auth.example.com"', text)
            ),
        ),
        r"gateway\.lua:\d+: .*outbox",
    ),
    "a secret that others may read": (readable_secret, r"mail\.password.*chmod|chmod.*mail\.password"),
    "a region that does not exist": (edited(('region = "IN"', 'region = "ZZ"')), r"gateway\.lua:\d+: .*region"),
}


@pytest.mark.parametrize("what", UNSAFE)
def test_unsafe_configuration_is_refused(new_gateway, what):
    make, words = UNSAFE[what]
    before = (new_gateway.config / "gateway.lua").read_text()
    make(new_gateway)
    assert (new_gateway.config / "gateway.lua").read_text() != before, "the configuration was changed"
    status, text = check(new_gateway)
    assert status == 1, f"accepted: {what}\n{text}"
    assert re.search(words, text), text
    server = new_gateway.serve()
    assert server.process.wait(60) == 1, "the gateway serves it"


def test_admin_elsewhere_needs_its_token(new_gateway, tmp_path):
    gateway = new_gateway
    gateway.edit(
        "gateway.lua",
        lambda text: re.sub(
            r'admin = "127\.0\.0\.1:(\d+)"', r'admin = { address = "0.0.0.0:\1", token = env "ADMIN_TOKEN" }', text
        ),
    )
    gateway.start(ADMIN_TOKEN="a-token-of-thirty-two-characters")
    for path in ("/outbox", "/policy", "/events", "/locks", "/metrics", "/decisions/dc_x"):
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic YTph"}):
            assert requests.get(gateway.admin + path, headers=headers, timeout=20).status_code == 401, path
    assert requests.post(f"{gateway.admin}/policy/reload", timeout=20).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert requests.get(gateway.admin + path, timeout=20).status_code == 200
    right = {"Authorization": "Bearer a-token-of-thirty-two-characters"}
    assert requests.get(f"{gateway.admin}/policy", headers=right, timeout=20).status_code == 200
    assert "a-token-of-thirty-two-characters" not in gateway.log


# Headers for the service.


def test_headers_that_services_trust_do_not_slip_through(gateway, number):
    session = token(gateway.register(number))
    forged = [
        "X-WEBAUTH-USER",
        "X-WebAuth-Email",
        "X_WEBAUTH_USER",
        "X-Forwarded",
        "X-HTTP-Method",
        "X-Method-Override",
        "X-HTTP-Method-Override",
        "Moongate-Device",
        "HTTP2-Settings",
    ]
    answer = requests.get(
        f"{gateway.url}/echo",
        headers={"Authorization": f"Bearer {session}", "X-Own": "kept", **{name: "forged" for name in forged}},
        timeout=20,
    )
    assert answer.status_code == 200, answer.text
    slipped = [header["name"] for header in answer.json()["headers"] if header["value"] == "forged"]
    assert slipped == [] and "kept" in answer.text


def test_signed_out_is_signed_out_at_once(gateway, number):
    """Attack: a shared computer. The next user's request arrives within the second in which the session is still
    cached."""
    Person(gateway, phone=number)
    for _ in range(3):
        session = token(prove(gateway, gateway.flow("login"), "phone_otp", number))
        own = {"Authorization": f"Bearer {session}"}
        question = {
            **own,
            "X-Forwarded-Method": "GET",
            "X-Forwarded-Proto": "http",
            "X-Forwarded-Host": f"localhost:{gateway.ports[0]}",
            "X-Forwarded-Uri": "/home",
        }
        with requests.Session() as client:
            # Cached in both places.
            assert client.get(f"{gateway.url}/echo", headers=own, timeout=20).status_code == 200
            assert client.get(f"{gateway.url}/auth/forward/traefik", headers=question, timeout=20).status_code == 200
            assert client.delete(f"{gateway.url}/api/auth/session", headers=own, timeout=20).status_code == 204
            assert client.get(f"{gateway.url}/echo", headers=own, timeout=20).status_code == 401
            assert client.get(f"{gateway.url}/auth/forward/traefik", headers=question, timeout=20).status_code == 401


# Information in responses.


def test_account_that_an_operator_locked_looks_like_none(gateway):
    """Attack: responses for locked accounts reveal which addresses have an account."""
    person, stranger = Person(gateway, email=new_email()), new_email()
    assert tool(gateway, "account", "lock", person.id)[0] == 0

    def begins(provider, email, **fields):
        flow = gateway.flow("login_password" if provider == "password" else "login")
        answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": provider, "email": email, **fields})
        return answer.status_code, answer.json().get("code")

    assert begins("email_code", person.email) == begins("email_code", stranger) == (200, None)
    assert (
        begins("password", person.email, password="not this one")
        == begins("password", stranger, password="not this one")
        == (401, "invalid_password")
    )
    # A user who proves the address is told about the lock.
    problem(log_in_by_password(gateway, person.email, PASSWORD), 403, "disabled")


def test_loser_of_a_race_does_not_learn_that_the_account_exists(gateway, other_number):
    """With several concurrent right codes in a registration, one wins, and the others are reported as late, not as
    already registered."""
    for _ in range(5):
        phone = other_number()
        seen = {entry["id"] for entry in gateway.outbox()}
        flow = gateway.flow("enter")
        assert gateway.begin(flow, phone).status_code == 200
        code = arrived(gateway, phone, seen)
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: gateway.submit(flow, code), range(12)))
        assert [answer.status_code for answer in answers].count(200) == 1
        assert {answer.json()["code"] for answer in answers if answer.status_code != 200} <= {"step_not_open"}


def test_unverified_address_locks_no_owner_out(gateway):
    """Attack: an attacker registers with a user's unverified address and their own password, and the user's password
    no longer works."""
    email = new_email()
    for password in ("violet harbour eleven", "copper meadow seven"):
        answer = gateway.api(
            "POST", "/register", {"email": email, "password": password, "first_name": "A", "last_name": "B"}
        )
        assert answer.status_code == 201, answer.text
    opened = [
        log_in_by_password(gateway, email, password) for password in ("violet harbour eleven", "copper meadow seven")
    ]
    assert [answer.status_code for answer in opened] == [200, 200], [answer.text for answer in opened]
    assert len({answer.json()["account"]["id"] for answer in opened}) == 2
    # Two passwords do not double the guesses.
    for _ in range(4):
        problem(log_in_by_password(gateway, email, "not this one"), 401, "invalid_password")
    problem(log_in_by_password(gateway, email, "nor this one"), 429, "too_many_attempts")
    problem(log_in_by_password(gateway, email, "violet harbour eleven"), 429, "too_many_attempts")


def test_account_registered_in_the_victims_name_keeps_no_data_of_the_attacker(gateway):
    """Attack: an account is registered with the victim's address before the victim does, and contains the attacker's
    PIN."""
    email = new_email()
    made = gateway.api(
        "POST", "/register", {"email": email, "password": "copper meadow seven", "first_name": "A", "last_name": "B"}
    )
    attacker = Person.of_session(gateway, made.json()["token"])
    app, _ = attacker.sets_up_app()
    flow = attacker.begins("step_up")
    attacker.takes(gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **attacker.own))
    stepped = gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code()}, **attacker.own)
    assert stepped.status_code == 200, stepped.text
    attacker.takes(stepped)
    attacker.sets_pin("482915")
    flow = gateway.flow("password_reset")
    assert prove(gateway, flow, "email_code", email)["status"] == "pending"
    done = gateway.api("POST", f"/flows/{flow}/submit", {"password": "violet harbour eleven"})
    if done.status_code == 409:
        done = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": "violet harbour eleven"})
    assert done.status_code == 200 and done.json()["status"] == "complete", done.text
    account = done.json()["account"]
    assert not account["has_pin"], "the attacker's PIN is still there"
    assert not attacker.is_signed_in()
    again = log_in_by_password(gateway, email, "violet harbour eleven").json()
    assert again["status"] == "complete", "the attacker's authenticator app is asked for"


def test_proof_of_a_shared_address_offers_the_accounts(gateway):
    """Attack: an attacker also registers with the victim's address, and recovery gives the victim the attacker's
    account."""
    email = new_email()
    claimed = []
    for password in ("violet harbour eleven", "copper meadow seven"):
        made = gateway.api(
            "POST", "/register", {"email": email, "password": password, "first_name": "A", "last_name": "B"}
        )
        assert made.status_code == 201, made.text
        claimed.append(Person.of_session(gateway, made.json()["token"]))
        claimed[-1].sets_pin("482915")
    flow = gateway.flow("password_reset")
    choice = prove(gateway, flow, "email_code", email)
    assert choice["status"] == "pending", choice
    field = next(field for field in choice["step"]["fields"] if field["name"] == "account")
    assert field["kind"] == "choice" and len(field["choices"]) == 2
    assert all(set(option) == {"value", "created_at", "last_used_at"} for option in field["choices"]), (
        "nothing that tells who else has it"
    )
    problem(gateway.api("POST", f"/flows/{flow}/submit", {"account": claimed[0].id}), 422, "invalid_input")
    chosen = gateway.api("POST", f"/flows/{flow}/submit", {"account": field["choices"][1]["value"]})
    assert chosen.status_code == 200 and not (chosen.json()["session"] or {}).get("token"), chosen.text
    done = gateway.api("POST", f"/flows/{flow}/submit", {"password": "amber station nine"})
    if done.status_code == 409:
        done = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": "amber station nine"})
    account = done.json()["account"]
    won, lost = claimed if account["id"] == claimed[0].id else reversed(claimed)
    assert (account["id"], account["email"], account["is_email_verified"], account["has_pin"]) == (
        won.id,
        email,
        True,
        False,
    ), done.text
    assert not won.is_signed_in(), "a session from before the choice"
    assert email not in {name["value"] for name in lost.stored()["identifiers"]}, "the other account keeps the address"
    for password in ("violet harbour eleven", "copper meadow seven"):
        problem(log_in_by_password(gateway, email, password), 401, "invalid_password")
    assert log_in_by_password(gateway, email, "amber station nine").status_code == 200


def test_other_sites_neither_end_sessions_nor_delete_accounts(gateway, number):
    """Attack: a page of another site makes the victim's browser call the API of the account page."""
    session = token(gateway.register(number))
    for method, path in (
        ("DELETE", "/account"),
        ("DELETE", "/sessions"),
        ("DELETE", "/sessions?all=true"),
        ("DELETE", "/session"),
    ):
        for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            problem(gateway.api(method, path, headers={"Cookie": f"moongate={session}", **origin}), 403, "origin_refused")
    assert gateway.api("GET", "/session", headers={"Authorization": f"Bearer {session}"}).status_code == 200


# Information for operators.


def test_error_of_a_route_is_in_the_log(gateway, number):
    session = token(gateway.register(number))
    line = next(
        at for at, text in enumerate((gateway.config / "routes.lua").read_text().splitlines(), 1) if "/broken/" in text
    )
    answer = requests.get(f"{gateway.url}/broken/x", headers={"Authorization": f"Bearer {session}"}, timeout=20)
    problem(answer, 503, "policy_error")
    wait_for(lambda: f"routes.lua:{line}" in gateway.log, "the error's file and line in the log", 5)


def test_clients_that_close_at_once_have_their_address(gateway):
    """Attack: guess from connections that are reset before the gateway reads their address."""
    for number in range(300):
        with socket.create_connection(("127.0.0.1", gateway.ports[0]), 10) as client:
            if number % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(f"GET /api/auth/reset-{number} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    last = requests.get(f"{gateway.url}/api/auth/last", timeout=10)
    assert last.status_code == 404

    def addresses():
        events = requests.get(f"{gateway.admin}/events?limit=1000", timeout=10).json()
        found = [event["address"] for event in events if event.get("code") == "not_found"]
        return found if any(event["id"] == last.json()["decision_id"] for event in events) else None

    found = wait_for(addresses, "the refusals")
    assert len(found) > 1 and set(found) == {"127.0.0.1"}, collections.Counter(found)


def test_decision_is_found_as_soon_as_its_id_is_sent(gateway):
    for _ in range(20):
        told = requests.get(f"{gateway.url}/home", timeout=20).json()["decision_id"]
        assert requests.get(f"{gateway.admin}/decisions/{told}", timeout=20).status_code == 200


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGILL])
def test_crash_ends_at_once_and_prints_no_memory(new_gateway, how):
    """Attack: keys and codes in a core dump or crash report, and a process that occupies its port while writing one."""
    server = new_gateway.server = new_gateway.serve()
    server.wait_line(" ready ", 90)
    limits = open(f"/proc/{server.process.pid}/limits").read()
    assert re.search(r"Max core file size\s+0\s+0\s", limits), limits
    printed = len(server.output)
    server.process.send_signal(how)
    begun = time.monotonic()
    assert server.process.wait(30) == -how
    assert time.monotonic() - begun < 2, "it took its time"
    server.reader.join(5)
    assert not re.search(r"registers|backtrace|0x[0-9a-f]{8}", server.output[printed:], re.I), server.output[
        printed:
    ][:2000]
