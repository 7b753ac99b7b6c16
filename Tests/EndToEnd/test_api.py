"""The flow API from a client's view, including its responses to bad input."""

import re

import pytest
import requests

from local_gateway import problem, wait_for, wrong

FLOW_FIELDS = {"id", "flow", "status", "expires_at", "choices", "step", "passed", "account", "session", "next"}
STEP_FIELDS = {
    "provider",
    "fields",
    "sent_to",
    "expires_at",
    "resend_at",
    "attempts_left",
    "resends_left",
    "skippable",
    "redirect_to",
}


def test_the_documents_are_as_written(shared, number):
    created = shared.api("POST", "/flows", {"flow": "register"})
    assert created.status_code == 201 and created.headers["Cache-Control"] == "no-store"
    flow = created.json()
    assert set(flow) == FLOW_FIELDS
    assert (flow["flow"], flow["status"], flow["choices"], flow["step"]) == (
        "register",
        "pending",
        ["phone_otp", "google_oauth"],
        None,
    )
    assert re.fullmatch(r"fl_[A-Za-z0-9_-]{43}", flow["id"])

    begun = shared.begin(flow["id"], number).json()
    step = begun["step"]
    assert STEP_FIELDS <= set(step)
    assert step["fields"] == [{"name": "code", "kind": "digits", "length": 6}]
    assert step["sent_to"] == f"+91 {number[3:8]} {number[8:]}"
    assert (step["attempts_left"], step["resends_left"], step["skippable"], step["redirect_to"]) == (5, 3, False, None)

    code = shared.code(number)
    done = shared.submit(
        flow["id"], f"{code[:3]}-{code[3:]} ".translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
    ).json()
    assert done["status"] == "complete" and done["next"] == "/profile-setup"
    assert set(done["account"]) == {
        "id",
        "phone",
        "email",
        "first_name",
        "last_name",
        "is_phone_verified",
        "is_email_verified",
        "has_pin",
        "is_new_user",
    }
    assert (done["account"]["phone"], done["account"]["is_phone_verified"], done["account"]["is_new_user"]) == (
        number,
        True,
        True,
    )
    assert {"token", "expires_at", "aal", "passed"} <= set(done["session"]) and done["session"]["passed"][0][
        "provider"
    ] == "phone_otp"
    # The token is returned only once.
    assert done["session"]["token"] not in shared.api("GET", f"/flows/{flow['id']}").text
    problem(shared.submit(flow["id"], code), 409, "step_not_open")


def test_registered_and_unregistered_identifiers(shared, number):
    refusal = problem(shared.begin(shared.flow(), number), 404, "account_not_found")
    assert refusal["detail"] == "No account found. Create one?"
    assert number not in [entry["to"] for entry in shared.outbox()]
    shared.register(number)
    problem(shared.begin(shared.flow("register"), number), 409, "already_registered")


def test_the_message(shared, number):
    shared.register(number)
    entry = next(entry for entry in shared.outbox() if entry["to"] == number)
    assert entry["channel"] == "sms"
    assert entry["text"] == f"{entry['code']} is your Moongate verification code\n@localhost #{entry['code']}"


@pytest.mark.parametrize(
    "phone, region, field, code",
    [
        ("12345", "IN", "phone", "invalid_phone"),
        ("9" * 300, "IN", "phone", "invalid_phone"),
        ("", "IN", "phone", "invalid_phone"),
        ("9999999999;ext=1", "IN", "phone", "invalid_phone"),
        ("😀", "IN", "phone", "invalid_phone"),
        ("99999 99999", "ZZ", "region", "invalid_input"),
        ("99999 99999", 7, "region", "invalid_input"),
        (9999999999, "IN", "phone", "invalid_input"),
        (None, "IN", "phone", "invalid_input"),
        (["9999999999"], "IN", "phone", "invalid_input"),
    ],
)
def test_metrics_that_are_none(shared, phone, region, field, code):
    refusal = problem(shared.begin(shared.flow(), phone, region=region), 422, code)
    assert refusal["field"] == field
    if code == "invalid_phone":
        assert refusal["detail"] == "Please enter a valid 10-digit mobile number"


@pytest.mark.parametrize(
    "code", ["", "12345", "1234567", "12345a", "1" * 10_000, "😀😀😀😀😀😀", None, 123456, ["1"], {}]
)
def test_input_that_cannot_be_a_code_is_not_a_guess(shared, number, code):
    shared.register(number)
    flow = shared.flow()
    shared.begin(flow, number)
    assert problem(shared.submit(flow, code), 422, "invalid_input")["field"] == "code"
    assert shared.api("GET", f"/flows/{flow}").json()["step"]["attempts_left"] == 5


@pytest.mark.parametrize(
    "body, kind, status, code",
    [
        ("{", "application/json", 400, "bad_request"),
        ("", "application/json", 400, "bad_request"),
        ("[]", "application/json", 400, "bad_request"),
        ('"x"', "application/json", 400, "bad_request"),
        ("{}", "text/plain", 415, "not_json"),
        ("flow=login", "application/x-www-form-urlencoded", 415, "not_json"),
        ('{"flow":"nonsense"}', "application/json", 422, "invalid_input"),
        ('{"flow":7}', "application/json", 422, "invalid_input"),
        ("{}", "application/json", 422, "invalid_input"),
        ('{"flow":"' + "x" * 70_000 + '"}', "application/json", 413, "too_large"),
        ('{"flow":"log\\u0000in"}', "application/json", 400, "bad_request"),
        ("[" * 60_000, "application/json", 400, "bad_request"),
        (b'{"flow":"\xff"}', "application/json", 400, "bad_request"),
    ],
)
def test_bodies(shared, body, kind, status, code):
    answer = requests.post(f"{shared.url}/api/auth/flows", data=body, headers={"Content-Type": kind}, timeout=10)
    assert problem(answer, status, code).get("field") == ("flow" if status == 422 else None)


@pytest.mark.parametrize("flow", ["fl_", "fl_" + "A" * 43, "x", "fl_" + "A" * 4000, "%00", "fl_😀"])
def test_flows_that_do_not_exist(shared, flow):
    for method, verb in [
        ("GET", ""),
        ("POST", "/begin"),
        ("POST", "/submit"),
        ("POST", "/resend"),
        ("POST", "/skip"),
        ("DELETE", ""),
    ]:
        answer = shared.api(method, f"/flows/{flow}{verb}", {} if method == "POST" else None)
        assert answer.status_code in (400, 404), answer.text


def test_steps_out_of_order(shared, number):
    flow = shared.flow()
    problem(shared.submit(flow, "123456"), 409, "step_not_open")
    problem(shared.api("POST", f"/flows/{flow}/resend", {}), 409, "step_not_open")
    problem(shared.api("POST", f"/flows/{flow}/skip", {}), 409, "step_not_open")
    problem(shared.api("POST", f"/flows/{flow}/begin", {"provider": "pin"}), 409, "step_not_open")
    assert shared.api("DELETE", f"/flows/{flow}").status_code == 204
    problem(shared.api("GET", f"/flows/{flow}"), 404, "flow_not_found")
    problem(shared.begin(flow, number), 404, "flow_not_found")


def test_the_session(shared, number):
    token = shared.register(number)["session"]["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    session = shared.api("GET", "/session", headers=bearer)
    assert session.status_code == 200 and token not in session.text
    assert session.json()["account"]["phone"] == number
    assert shared.api("GET", "/session", headers={"Cookie": f"moongate={token}"}).status_code == 200
    problem(shared.api("GET", "/session", headers={"Cookie": "moongate=other", **bearer}), 400, "bad_request")
    assert len(shared.api("GET", "/sessions", headers=bearer).json()) == 1
    assert shared.api("DELETE", "/session", headers=bearer).status_code == 204
    problem(shared.api("GET", "/session", headers=bearer), 401, "unauthenticated")
    wait_for(
        lambda: requests.get(f"{shared.url}/echo", headers=bearer, timeout=10).status_code == 401,
        "the proxy to forget the session",
        2,
    )


@pytest.mark.parametrize("cookie", ["", "x", "A" * 43, "A" * 7000, "\"", "a; moongate=b", "é"])
def test_damaged_cookies_are_not_a_session(shared, cookie):
    headers = {"Cookie": f"moongate={cookie}".encode()}
    problem(shared.api("GET", "/session", headers=headers), 401, "unauthenticated")
    problem(requests.get(f"{shared.url}/home", headers=headers, timeout=10), 401, "unauthenticated")


def test_the_service_gets_our_headers_and_no_forged_ones(shared, number):
    done = shared.register(number)
    forged = {
        "Remote-User": "root",
        "remote_user": "root",
        "REMOTE.USER": "root",
        "X-Moongate-Assertion": "x.y.z",
        "X-Forwarded-For": "1.2.3.4",
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "for=1.2.3.4",
        "X-Remote-User": "root",
        "X-Original-URL": "/admin",
        "Remote-Phone": "+1",
    }
    answer = requests.get(
        f"{shared.url}/echo?q=1",
        headers={**forged, "Cookie": f"a=1; moongate={done['session']['token']}; b=2"},
        timeout=10,
    )
    assert answer.status_code == 200
    echo = answer.json()
    got = {}
    for header in echo["headers"]:
        got.setdefault(header["name"].lower(), []).append(header["value"])
    assert got["remote-user"] == [done["account"]["id"]]
    assert got["remote-phone"] == [number]
    assert got["x-forwarded-for"] == ["127.0.0.1"]
    assert len(got["x-moongate-assertion"]) == 1 and got["x-moongate-assertion"] != ["x.y.z"]
    assert not {"remote_user", "remote.user", "x-remote-user", "forwarded", "x-original-url"} & set(got)
    assert "moongate" not in " ".join(got.get("cookie", [""]))
    assert echo["path"] == "/echo?q=1"


def test_without_a_session(shared):
    refusal = requests.get(f"{shared.url}/home?a=1&b=2", timeout=10)
    problem(refusal, 401, "unauthenticated")
    page = requests.get(
        f"{shared.url}/home?a=1&b=2", headers={"Accept": "text/html"}, allow_redirects=False, timeout=10
    )
    assert page.status_code == 302 and page.headers["Location"] == "/auth/login?return_to=%2Fhome%3Fa%3D1%26b%3D2"
    assert requests.get(f"{shared.url}/assets/demo.css", timeout=10).status_code == 200, "public in routes.lua"


def test_nothing_secret_is_written_down(gateway, number):
    """Attack: a reader of logs or of a database copy learns codes, tokens or who signs in."""
    gateway.server.end()
    gateway.start(MOONGATE_LOG="trace")
    flow = gateway.flow("register")
    gateway.begin(flow, number)
    code = gateway.code(number)
    gateway.submit(flow, wrong(code))
    token = gateway.submit(flow, code).json()["session"]["token"]
    requests.get(f"{gateway.url}/echo?secret=hush", headers={"Authorization": f"Bearer {token}"}, timeout=10)
    events = requests.get(f"{gateway.admin}/events", timeout=10).text
    gateway.server.end()
    stored = b"".join(file.read_bytes() for file in gateway.config.glob("data/*") if "key" not in file.name)
    for what, secret in {"code": f'"{code}"', "token": token, "flow id": flow, "number": number}.items():
        for place, text in {"the log": gateway.log, "the events": events}.items():
            assert secret not in text, f"{what} in {place}"
        if what != "number":
            assert secret.encode() not in stored, f"{what} in the database"
    assert not re.search(rf"(?<!\d){code}(?!\d)", gateway.log), "code in the log"
    assert "hush" not in gateway.log, "query strings are not logged"
