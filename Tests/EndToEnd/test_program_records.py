"""A provider program: the cost of its refusals, its records, and explanations of its faults."""

import json

import pytest

from local_gateway import LocalGateway, problem, wait_for
from presentations import MOTTO, add
from test_accounts import tool

# Uncounted refusals and a fault, selected by the input.
BODY = (
    MOTTO
    + '''
first_hello, first_submit = hello, submit

def hello(params):
    told = first_hello(params)
    told["outcomes"].append({"reason": "worn_out", "sentence": "That motto is worn out.", "counts": False})
    return told

def submit(step):
    if list(step["fields"]) != ["motto"]:
        return {"refused": "unasked"}
    special = {"worn": "worn_out", "odd": "undeclared"}.get(step["fields"]["motto"])
    if special:
        return {"refused": special}
    return first_submit(step)
'''
)
MINE = "steady as an oak"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    add(gateway, "motto", BODY)
    gateway.edit("gateway.lua", lambda text: text.replace('"0.1% per 30d"', '"1% per 30d"'))
    (gateway.config / "policies/motto.lua").write_text('return policy "motto" {}\n')
    (gateway.config / "flows/prove_motto.lua").write_text(
        'return flow "prove_motto" { purpose = "step_up", account = "existing", steps = { { "motto" } }, next = { returning = "/home" } }\n'
    )
    yield gateway.start()
    gateway.stop()


def owner(gateway, number):
    """The headers of a new account with a motto."""
    headers = {"Authorization": f"Bearer {gateway.register(number)['session']['token']}"}
    flow = begun(gateway, headers, "motto_set")
    done = gateway.api("POST", f"/flows/{flow}/submit", {"motto": MINE}, headers=headers)
    assert done.status_code == 200 and done.json()["status"] == "complete", done.text
    return {"Authorization": f"Bearer {done.json()['session']['token']}"}


def begun(gateway, headers, name="prove_motto"):
    created = gateway.api("POST", "/flows", {"flow": name}, headers=headers)
    assert created.status_code == 201, created.text
    flow = created.json()["id"]
    answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "motto"}, headers=headers)
    assert answer.status_code == 200, answer.text
    return flow


def says(gateway, headers, flow, motto):
    return gateway.api("POST", f"/flows/{flow}/submit", {"motto": motto}, headers=headers)


def signs_in(gateway, number):
    flow = gateway.flow("login")
    assert gateway.begin(flow, number).status_code == 200
    done = gateway.submit(flow, gateway.code(number))
    assert done.status_code == 200, done.text
    return {"Authorization": f"Bearer {done.json()['session']['token']}"}


def test_program_receives_the_requested_fields(gateway, number):
    """Attack: fields that no round asks for, and a round without its field."""
    headers = owner(gateway, number)
    flow = begun(gateway, headers)
    submit = lambda fields: gateway.api("POST", f"/flows/{flow}/submit", fields, headers=headers)
    # Otherwise the program would refuse with an undeclared reason, which gives 503.
    more = {"record": "x", "purpose": "set", "phone": number, "role": "admin", "new_motto": MINE}
    assert problem(submit({"motto": "quick as a hare", **more}), 401, "wrong_motto")["attempts_left"] == 4
    for fields in ({}, more, {"motto": 7}, {"motto": [MINE]}):
        assert problem(submit(fields), 422, "invalid_input")["field"] == "motto"
    assert problem(submit({"motto": "quick as a hare"}), 401, "wrong_motto")["attempts_left"] == 3, (
        "those were not counted"
    )
    assert submit({"motto": MINE, **more}).json()["status"] == "complete"


def test_uncounted_refusals_are_given_back_twenty_times(gateway, number):
    """Attack: a program declares wrong answers as uncounted, so that an attacker could guess without limit; a new
    flow must not help."""
    headers = owner(gateway, number)
    for _ in range(2):
        flow = begun(gateway, headers)
        for _ in range(10):
            refused = problem(says(gateway, headers, flow, "worn"), 401, "worn_out")
            assert refused["detail"] == "That motto is worn out." and "attempts_left" not in refused
    assert [problem(says(gateway, headers, flow, "worn"), 401, "worn_out")["attempts_left"] for _ in range(4)] == [
        4,
        3,
        2,
        1,
    ]
    problem(says(gateway, headers, flow, "worn"), 429, "too_many_attempts")
    # The lock is like any other: the right answer is refused too.
    problem(says(gateway, headers, flow, MINE), 429, "too_many_attempts")


def test_a_programs_record_is_reset(gateway, number):
    headers = owner(gateway, number)
    account = json.loads(tool(gateway, "account", "show", number, "--json")[1])
    assert account["credentials"] == ["motto"]
    status, text, _ = tool(gateway, "account", "reset", number, "--provider", "motto", "--dry-run")
    assert status == 0 and "motto would be removed" in text
    status, text, error = tool(gateway, "account", "reset", number, "--provider", "motto", "--json")
    assert status == 0 and json.loads(text) == {"account": account["id"], "provider": "motto", "done": "reset"}, error
    assert json.loads(tool(gateway, "account", "show", number, "--json")[1])["credentials"] == []
    wait_for(lambda: gateway.api("GET", "/session", headers=headers).status_code == 401, "the session's end", 5)
    assert json.loads(tool(gateway, "account", "reset", number, "--provider", "motto", "--json")[1])["done"] == "none"


def test_a_programs_record_goes_along_sealed(gateway, number):
    owner(gateway, number)
    status, exported, error = tool(gateway, "account", "export", "--records")
    assert status == 0, error
    line = next(
        line
        for line in map(json.loads, exported.splitlines())
        if {"phone": number, "verified": True}.items() <= line["identifiers"][0].items()
    )
    # A record is a salted hash, and the export does not show it.
    assert line["records"] and ":" not in line["records"] and MINE not in exported
    assert tool(gateway, "account", "delete", line["id"], "--yes")[0] == 0
    # Attack: without its records, the account would lose its factor.
    other = "B" if line["records"][0] == "A" else "A"
    status, text, _ = tool(
        gateway, "account", "import", "-", "--records", text=json.dumps({**line, "records": other + line["records"][1:]})
    )
    assert status == 1 and "was changed after its export" in text
    assert tool(gateway, "account", "import", "-", "--records", text=json.dumps(line))[:2] == (0, "1 account taken in\n")
    assert json.loads(tool(gateway, "account", "show", number, "--json")[1])["credentials"] == ["motto"]
    headers = signs_in(gateway, number)
    flow = begun(gateway, headers)
    problem(says(gateway, headers, flow, "quick as a hare"), 401, "wrong_motto")
    assert says(gateway, headers, flow, MINE).json()["status"] == "complete"


def test_explain_shows_a_programs_fault(gateway, number):
    headers = owner(gateway, number)
    flow = begun(gateway, headers)
    fault = says(gateway, headers, flow, "odd")
    assert fault.status_code == 503, fault.text
    # Only the operator can read the program's message, and nothing was charged.
    assert "undeclared" not in fault.text
    status, text, error = tool(gateway, "policy", "explain", fault.json()["decision_id"])
    assert status == 0, error
    assert "motto" in text and "submit" in text and "undeclared" in text, text
    detail = json.loads(tool(gateway, "policy", "explain", fault.json()["decision_id"], "--json")[1])["detail"]
    assert (detail["fault_provider"], detail["fault_call"]) == ("motto", "submit") and "undeclared" in detail[
        "fault"
    ], detail
    assert int(detail["fault_count"]) >= 1
    assert problem(says(gateway, headers, flow, "quick as a hare"), 401, "wrong_motto")["attempts_left"] == 4
