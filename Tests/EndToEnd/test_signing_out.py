"""Signing out takes effect at once on the gateway that answered, for proxying and forward-auth, however the session
ended."""

import pytest
import requests

from local_gateway import LocalGateway, problem, wait_for

MAIL = "zita@example.com"
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A gateway with forward-auth for a local proxy; many sessions of one number."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            '-- trusted_proxies = { "127.0.0.1/32" }', 'trusted_proxies = { "127.0.0.1/32", "::1/128" }'
        ),
    )
    yield gateway.start()
    gateway.stop()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def proxied(gate, token):
    return requests.get(f"{gate.url}/home", headers=bearer(token), timeout=10, allow_redirects=False).status_code


def forwarded(gate, token):
    asked = {"X-Original-Method": "GET", "X-Original-URL": f"{gate.url}/home", **bearer(token)}
    return requests.get(f"{gate.url}/auth/forward/nginx", headers=asked, timeout=10, allow_redirects=False).status_code


def used(gate, token):
    """Uses the token on every event loop, so that each caches it."""
    for _ in range(8):
        assert proxied(gate, token) == 200 and forwarded(gate, token) == 200


def gone(gate, token):
    for _ in range(8):
        assert (proxied(gate, token), forwarded(gate, token)) == (401, 401)


def test_signing_out_holds_at_once(gate, number):
    for _ in range(5):
        own = register(gate, f"out{_}@example.com")[0]
        used(gate, own)
        assert gate.api("DELETE", "/session", headers=bearer(own)).status_code == 204
        gone(gate, own)
    own = gate.register(number)["session"]["token"]
    used(gate, own)
    assert gate.api("POST", "/logout", {}, headers=bearer(own)).status_code == 204
    gone(gate, own)


def register(gate, address):
    answer = gate.api(
        "POST", "/register", {"email": address, "password": PASSWORD, "first_name": "Zita", "last_name": "Rao"}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["token"], answer.json()["user"]["id"]


def log_in(gate, address):
    answer = gate.api("POST", "/login", {"email": address, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return answer.json()["token"]


def test_other_sessions_end_at_once(gate):
    own, _ = register(gate, "others@example.com")
    tokens = [log_in(gate, "others@example.com") for _ in range(3)]
    for token in [own, *tokens]:
        used(gate, token)
    entries = gate.api("GET", "/sessions", headers=bearer(own)).json()
    assert len(entries) == 4
    other = next(entry["id"] for entry in entries if not entry["current"])
    assert gate.api("DELETE", f"/sessions/{other}", headers=bearer(own)).status_code == 204
    assert sorted(proxied(gate, token) for token in tokens) == [200, 200, 401]
    assert gate.api("DELETE", "/sessions", headers=bearer(own)).status_code == 204
    for token in tokens:
        gone(gate, token)
    used(gate, own)
    problem(gate.api("DELETE", "/sessions?all=maybe", headers=bearer(own)), 422, "invalid_input")
    answer = gate.api("DELETE", "/sessions?all=true", headers=bearer(own))
    assert answer.status_code == 204
    gone(gate, own)
    problem(gate.api("DELETE", "/sessions", headers=bearer(own)), 401, "unauthenticated")


def test_a_new_token_ends_the_old_one_at_once(gate):
    own, _ = register(gate, "token@example.com")
    used(gate, own)
    answer = gate.api("POST", "/set-passcode", {"passcode": "482915"}, headers=bearer(own))
    assert answer.status_code == 200, answer.text
    gone(gate, own)
    used(gate, answer.json()["token"])


@pytest.mark.parametrize("call", ["api", "app", "page", "everywhere", "everywhere on the page"])
def test_signing_out_with_a_replaced_token_ends_the_session(gate, number, call):
    """Attack: the token was replaced by a flow of a thief. The owner signs out with the one that the browser has."""
    old = gate.register(number)["session"]["token"]
    answer = gate.api("POST", "/set-passcode", {"passcode": "482915"}, headers=bearer(old))
    new = answer.json()["token"]
    used(gate, new)
    if "page" in call:
        cookie = {"Cookie": f"moongate={old}", "Origin": gate.url, "Accept": "text/html"}
        path, form = ("logout", {"return_to": "/"}) if call == "page" else ("account", {"action": "everywhere"})
        answer = requests.post(f"{gate.url}/auth/{path}", form, headers=cookie, allow_redirects=False, timeout=10)
        assert answer.status_code == 303
    elif call == "everywhere":
        assert gate.api("DELETE", "/sessions", headers=bearer(old)).status_code == 204
    elif call == "app":
        assert gate.api("POST", "/logout", {}, headers=bearer(old)).status_code == 204
    else:
        assert gate.api("DELETE", "/session", headers=bearer(old)).status_code == 204
    gone(gate, new)
    problem(gate.api("DELETE", "/session", headers=bearer(old)), 401, "unauthenticated")


def test_trusted_devices_are_listed_and_removed(gate, number):
    first = gate.register(number)
    trusted = {**bearer(first["session"]["token"]), "Moongate-Device": first["device_token"]}
    [own] = gate.api("GET", "/devices", headers=trusted).json()
    assert own["current"] and own["user_agent"].startswith("python-requests") and own["id"].startswith("de_")
    account = first["account"]["id"]
    [listed] = requests.get(f"{gate.admin}/accounts/{account}/devices", timeout=10).json()
    assert listed == {name: value for name, value in own.items() if name != "current"}
    assert requests.delete(f"{gate.admin}/accounts/{account}/devices/de_none", timeout=10).status_code == 404
    assert gate.api("DELETE", f"/devices/{own['id']}", headers=trusted).status_code == 204
    problem(gate.api("DELETE", f"/devices/{own['id']}", headers=trusted), 404, "not_found")
    assert gate.api("GET", "/devices", headers=trusted).json() == []
    used(gate, first["session"]["token"])
    problem(gate.api("GET", "/devices"), 401, "unauthenticated")


def test_an_operators_lock_and_deletion_hold_at_once(gate):
    own, account = register(gate, "locked@example.com")
    used(gate, own)
    assert requests.post(f"{gate.admin}/accounts/{account}/lock", timeout=10).status_code == 204
    gone(gate, own)
    assert requests.post(f"{gate.admin}/accounts/{account}/unlock", timeout=10).status_code == 200
    own = log_in(gate, "locked@example.com")
    used(gate, own)
    assert requests.delete(f"{gate.admin}/accounts/{account}", timeout=10).status_code == 204
    gone(gate, own)


def test_an_account_is_exported_and_deleted_by_its_owner(gate):
    own, account = register(gate, MAIL)
    log_in(gate, MAIL)
    wait_for(lambda: [entry for entry in gate.outbox() if entry["to"] == MAIL], "the mail")
    verified = gate.api("POST", "/verify-email", {"code": gate.code(MAIL)}, headers=bearer(own))
    own = verified.json()["token"]
    answer = gate.api("GET", "/account/export", headers=bearer(own))
    assert answer.status_code == 200 and answer.headers["Content-Disposition"] == 'attachment; filename="account.json"'
    export = answer.json()
    assert export["account"]["id"] == account and export["account"]["last_name"] == "Rao"
    assert [(entry["kind"], entry["value"]) for entry in export["identifiers"]] == [("email", MAIL)]
    assert [entry["provider"] for entry in export["factors"]] == ["password"] and export["factors"][0]["added_at"]
    assert len(export["sessions"]) == 2 and {"account_created", "session_started"} <= {
        entry["kind"] for entry in export["events"]
    }
    for secret in (own, PASSWORD, "$argon2", gate.code(MAIL)):
        assert secret not in answer.text
    used(gate, own)
    answer = gate.api("DELETE", "/account", headers=bearer(own))
    assert answer.status_code == 204, answer.text
    gone(gate, own)
    told = requests.get(f"{gate.admin}/events?limit=100000", timeout=10).text
    assert account not in told
    problem(gate.api("POST", "/login", {"email": MAIL, "password": PASSWORD}), 401, "invalid_password")
