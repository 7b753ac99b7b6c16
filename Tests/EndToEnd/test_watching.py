"""Preview of changes: the gate of a reload, and a candidate in shadow mode."""

import json
import os
import re
import shutil
import subprocess

import pytest
import requests

from local_gateway import problem, wrong
from manual import block
from processes import BIN, wait_for

GUIDE = "guides/watching-before-switching.md"

READ, ACT = "the-token-of-the-dashboard", "the-token-of-an-operator"


def tool(gateway, *words, env=None):
    """Runs the command. Returns exit status, output and errors."""
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", gateway.config],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | (env or {}),
    )
    return done.returncode, done.stdout, done.stderr


def shadow(gateway, *words):
    return tool(gateway, "policy", "shadow", *words)


def stricter(text):
    """One attempt instead of five."""
    changed = re.sub(r"(verify\s*=\s*\{[^}]*max = )\d+", r"\g<1>1", text, count=1)
    assert changed != text
    return changed


def test_gate_refuses_a_large_change(new_gateway, number):
    gateway = new_gateway
    gate = re.search(r"^  gate .*\n", block("gateway.lua", GUIDE), re.M)[0]
    gateway.edit("gateway.lua", lambda text: text.replace("return gateway {\n", "return gateway {\n" + gate, 1))
    gateway.start()
    # Nothing was recorded yet, so no decision can change.
    gateway.edit("routes.lua", lambda text: text + "-- a word\n")
    assert tool(gateway, "reload")[:2] == (0, f"generation {gateway.policy()['active'][:8]} is active\n")
    before = gateway.policy()["active"]
    flow = gateway.flow("register")
    assert gateway.begin(flow, number).status_code == 200
    gateway.submit(flow, wrong(gateway.code(number)))
    assert gateway.submit(flow, gateway.code(number)).status_code == 200
    good = gateway.edit("policies/phone_otp.lua", stricter)
    line = 1 + good[: re.search(r"^ *verify *=", good, re.M).end()].count("\n")
    status, _, told = tool(gateway, "reload")
    sentence = r"gateway\.lua:\d+: gate: 2 of 3 decisions recorded in the last 24h would change \(66\.7 %\), and `most_flips` allows 0\.5 %"
    assert status == 1 and re.match(sentence, told) and f"policies/phone_otp.lua:{line}" in told, told
    assert gateway.policy()["active"] == before and gateway.policy()["candidate_refused"]["problems"][0]["path"] == "gate"
    # The named mark allows exactly this change.
    mark = re.search(r'flips_accepted = "([0-9a-f]{16})"', told).group(1)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace('most_flips = "0.5%"', f'most_flips = "0.5%", flips_accepted = "{mark}"'),
    )
    accepted = wait_for(lambda: gateway.policy()["active"] != before and gateway.policy(), "the accepted change")
    assert accepted["candidate_refused"] is None
    wait_for(
        lambda: (
            requests.get(f"{gateway.admin}/events?kind=generation_active&limit=1", timeout=10).json()[0]["detail"]["gate"]
            == "flips_accepted names this change"
        ),
        "the event",
    )
    # It allows no other change, including the reverse.
    gateway.edit("policies/phone_otp.lua", lambda text: good)
    assert "`flips_accepted` names another change" in tool(gateway, "reload")[2]
    status, _, told = tool(gateway, "reload", "--force", "--as", "ravi")
    assert status == 0, told
    asked = requests.get(f"{gateway.admin}/events?kind=reload_requested&limit=1", timeout=10).json()[0]
    assert asked["operator"] == "ravi" and asked["detail"]["force"] == "1"


def test_candidate_runs_in_shadow_mode(gateway, number, tmp_path):
    candidate = tmp_path / "candidate"
    shutil.copytree(gateway.config, candidate, ignore=shutil.ignore_patterns("data"))
    for folder, _, files in os.walk(candidate):
        for name in [folder, *(os.path.join(folder, file) for file in files)]:
            os.chmod(name, 0o755 if name == folder else 0o644)
    policies = candidate / "policies/phone_otp.lua"
    good = policies.read_text()
    active = gateway.policy()["active"]

    # A candidate that does not load: one clear message and no other effect.
    policies.write_text(good.replace("window =", "windw =", 1))
    status, _, told = shadow(gateway, candidate)
    assert status == 1 and re.match(
        r"policies/phone_otp\.lua:\d+: limits\.\w+\.windw: unknown field; did you mean `window`", told
    ), told
    assert (
        gateway.policy()["active"] == active
        and gateway.policy()["shadow"] is None
        and gateway.policy()["candidate_refused"] is None
    )
    assert shadow(gateway, "status")[0] == 2 and shadow(gateway, "stop")[0] == 2 and shadow(gateway, "promote")[0] == 2

    # The same files are the same configuration, even in another folder.
    policies.write_text(good)
    assert "is the same as the active configuration" in shadow(gateway, candidate)[2]

    policies.write_text(stricter(good))
    routes = candidate / "routes.lua"
    routes.write_text(re.sub(r'path = "/\*\*"', 'path = "/nothing/**"', routes.read_text()))
    status, told, complaint = shadow(gateway, candidate, "--as", "asha")
    assert status == 0 and "is the candidate" in told, complaint
    assert gateway.policy()["restart_needed"] == []
    flow = gateway.flow("register")
    assert gateway.begin(flow, number).status_code == 200
    code = gateway.code(number)
    refused = gateway.submit(flow, wrong(code)).json()["decision_id"]
    answer = gateway.submit(flow, code)
    # Users are not affected.
    assert answer.status_code == 200, answer.text
    token = answer.json()["session"]["token"]
    assert (
        requests.get(f"{gateway.url}/?secret=1", headers={"Authorization": f"Bearer {token}"}, timeout=20).status_code
        == 200
    )
    seen = wait_for(
        lambda: (gateway.policy()["shadow"] or {}).get("differing", {}).get("request") and gateway.policy()["shadow"],
        "what it sees",
    )
    differences = {(one["about"], one["active"], one["candidate"]): one for one in seen["differences"]}
    tries = differences["verify phone_otp", "ok", "too_many_attempts"]
    assert (
        re.match(r"policies/phone_otp\.lua:\d+", tries["rule"])
        and tries["decisions"][0] != refused
        and len(tries["decisions"]) == 1
    )
    assert differences["request", "pass", "no_route"]["rule"] == "routes.lua"
    assert (
        seen["by"] == "asha"
        and seen["folder"] == str(candidate.resolve())
        and seen["dropped"] == {"step": 0, "condition": 0, "flow": 0, "request": 0}
    )
    assert number not in json.dumps(seen) and "secret" not in json.dumps(seen)
    status, told, _ = shadow(gateway, "status")
    assert status == 1 and "verify phone_otp: ok → too_many_attempts" in told and tries["decisions"][0] in told, told
    metrics = requests.get(f"{gateway.admin}/metrics", timeout=10).text
    assert "moongate_shadow 1" in metrics and re.search(
        r'moongate_shadow_differing_total\{kind="step"\} [1-9]', metrics
    )

    # Attack: the folder is changed after its effect was reviewed.
    policies.write_text(good)
    status, _, told = shadow(gateway, "promote")
    assert status == 1 and "has changed since it was loaded" in told and gateway.policy()["active"] == active
    policies.write_text(stricter(good))
    status, told, complaint = shadow(gateway, "promote", "--as", "asha")
    assert status == 0 and "copy its files" in told, complaint
    promoted = gateway.policy()
    assert (
        promoted["active"] == seen["id"]
        and promoted["shadow"] is None
        and "was promoted" in promoted["restart_needed"][0]["message"]
    )
    # The previous contents of the folder do not count as a change; only an explicit reload restores them.
    assert tool(gateway, "reload")[0] == 0 and gateway.policy()["active"] == seen["id"]
    assert (
        tool(gateway, "reload", "--force")[0] == 0
        and gateway.policy()["active"] == active
        and gateway.policy()["restart_needed"] == []
    )
    kinds = [
        (event["kind"], event["operator"])
        for event in requests.get(
            f"{gateway.admin}/events?kind=shadow_begun,shadow_promoted,shadow_ended", timeout=10
        ).json()
    ]
    assert kinds.count(("shadow_promoted", "asha")) == 1 and ("shadow_begun", "asha") in kinds

    assert shadow(gateway, candidate)[0] == 0 and shadow(gateway, "stop")[:2] == (0, "candidate removed\n")
    assert gateway.policy()["shadow"] is None


@pytest.mark.parametrize(
    "path", ["/etc", "config", "/tmp", "/proc/self/cwd/../../etc/passwd", "/no/such/folder", "/" + "x" * 5000]
)
def test_path_outside_the_allowed_folders(shared, path):
    """Attack: a client of the admin listener makes the gateway read and activate any folder."""
    answer = requests.post(f"{shared.admin}/policy/shadow", params={"folder": path}, timeout=30)
    assert (
        answer.status_code == 422
        and len(answer.json()["problems"]) == 1
        and answer.json()["problems"][0]["line"] is None
    ), answer.text
    assert shared.policy()["shadow"] is None


def test_permissions_for_shadow_mode(new_gateway, tmp_path):
    gateway = new_gateway
    value = (
        f'{{ address = "127.0.0.1:{gateway.ports[1]}", tokens = {{ {{ name = "grafana", role = "read", token = env "READ" }}, '
        '{ name = "ravi", role = "act", token = env "ACT" } } }'
    )
    gateway.edit("gateway.lua", lambda text: re.sub(r"\n  admin = .*", f"\n  admin = {value},", text))
    gateway.start(READ=READ, ACT=ACT)
    acts, reads = ({"Authorization": f"Bearer {token}"} for token in (ACT, READ))
    for method, path in [
        ("POST", "/policy/shadow?folder=/x"),
        ("POST", "/policy/shadow/promote"),
        ("DELETE", "/policy/shadow"),
    ]:
        assert requests.request(method, gateway.admin + path, timeout=10).status_code == 401
        problem(requests.request(method, gateway.admin + path, headers=reads, timeout=10), 403, "denied")
        # A page of another site in the operator's browser.
        problem(
            requests.request(method, gateway.admin + path, headers=acts | {"Origin": "http://evil.example"}, timeout=10),
            403,
            "origin_refused",
        )
    problem(requests.post(f"{gateway.admin}/policy/shadow", headers=acts, timeout=10), 400, "bad_request")
    # Attack: a token holder acts in the name of another operator.
    requests.post(f"{gateway.admin}/policy/shadow", params={"folder": "/no", "as": "root"}, headers=acts, timeout=10)
    (event,) = wait_for(
        lambda: requests.get(f"{gateway.admin}/events?kind=shadow_begun&limit=1", headers=reads, timeout=10).json(),
        "the event",
    )
    assert event["operator"] == "ravi" and event["detail"]["as"] == "root" and event["detail"]["folder"] == "/no"
    done = tool(gateway, "policy", "shadow", "status", env={"READ": READ, "ACT": ACT})
    assert done[0] == 2 and "There is no candidate" in done[2], done
