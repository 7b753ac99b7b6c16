"""Preview of changes: the gate of a reload, and a candidate in shadow mode."""

import json
import os
import re
import shutil
import subprocess

import pytest
import requests

from house import problem, wrong
from manual import block
from processes import BIN, wait_for

GUIDE = "guides/watching-before-switching.md"

READ, ACT = "the-token-of-the-dashboard", "the-token-of-an-operator"


def tool(house, *words, env=None):
    """Runs the command. Returns exit status, output and errors."""
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", house.config],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | (env or {}),
    )
    return done.returncode, done.stdout, done.stderr


def shadow(house, *words):
    return tool(house, "policy", "shadow", *words)


def stricter(text):
    """One attempt instead of five."""
    changed = re.sub(r"(verify\s*=\s*\{[^}]*max = )\d+", r"\g<1>1", text, count=1)
    assert changed != text
    return changed


def test_gate_refuses_a_large_change(empty_house, number):
    house = empty_house
    gate = re.search(r"^  gate .*\n", block("gateway.lua", GUIDE), re.M)[0]
    house.edit("gateway.lua", lambda text: text.replace("return gateway {\n", "return gateway {\n" + gate, 1))
    house.start()
    # Nothing was recorded yet, so no decision can change.
    house.edit("routes.lua", lambda text: text + "-- a word\n")
    assert tool(house, "reload")[:2] == (0, f"generation {house.policy()['active'][:8]} is active\n")
    before = house.policy()["active"]
    flow = house.flow("register")
    assert house.begin(flow, number).status_code == 200
    house.submit(flow, wrong(house.code(number)))
    assert house.submit(flow, house.code(number)).status_code == 200
    good = house.edit("policies/phone_otp.lua", stricter)
    line = 1 + good[: re.search(r"^ *verify *=", good, re.M).end()].count("\n")
    status, _, told = tool(house, "reload")
    sentence = r"gateway\.lua:\d+: gate: 2 of 3 decisions recorded in the last 24h would change \(66\.7 %\), and `most_flips` allows 0\.5 %"
    assert status == 1 and re.match(sentence, told) and f"policies/phone_otp.lua:{line}" in told, told
    assert house.policy()["active"] == before and house.policy()["candidate_refused"]["problems"][0]["path"] == "gate"
    # The named mark allows exactly this change.
    mark = re.search(r'flips_accepted = "([0-9a-f]{16})"', told).group(1)
    house.edit(
        "gateway.lua",
        lambda text: text.replace('most_flips = "0.5%"', f'most_flips = "0.5%", flips_accepted = "{mark}"'),
    )
    accepted = wait_for(lambda: house.policy()["active"] != before and house.policy(), "the accepted change")
    assert accepted["candidate_refused"] is None
    wait_for(
        lambda: (
            requests.get(f"{house.admin}/events?kind=generation_active&limit=1", timeout=10).json()[0]["detail"]["gate"]
            == "flips_accepted names this change"
        ),
        "the event",
    )
    # It allows no other change, including the reverse.
    house.edit("policies/phone_otp.lua", lambda text: good)
    assert "`flips_accepted` names another change" in tool(house, "reload")[2]
    status, _, told = tool(house, "reload", "--force", "--as", "ravi")
    assert status == 0, told
    asked = requests.get(f"{house.admin}/events?kind=reload_requested&limit=1", timeout=10).json()[0]
    assert asked["operator"] == "ravi" and asked["detail"]["force"] == "1"


def test_candidate_runs_in_shadow_mode(house, number, tmp_path):
    candidate = tmp_path / "candidate"
    shutil.copytree(house.config, candidate, ignore=shutil.ignore_patterns("data"))
    for folder, _, files in os.walk(candidate):
        for name in [folder, *(os.path.join(folder, file) for file in files)]:
            os.chmod(name, 0o755 if name == folder else 0o644)
    policies = candidate / "policies/phone_otp.lua"
    good = policies.read_text()
    active = house.policy()["active"]

    # A candidate that does not load: one clear message and no other effect.
    policies.write_text(good.replace("window =", "windw =", 1))
    status, _, told = shadow(house, candidate)
    assert status == 1 and re.match(
        r"policies/phone_otp\.lua:\d+: limits\.\w+\.windw: unknown field; did you mean `window`", told
    ), told
    assert (
        house.policy()["active"] == active
        and house.policy()["shadow"] is None
        and house.policy()["candidate_refused"] is None
    )
    assert shadow(house, "status")[0] == 2 and shadow(house, "stop")[0] == 2 and shadow(house, "promote")[0] == 2

    # The same files are the same configuration, even in another folder.
    policies.write_text(good)
    assert "is the same as the active configuration" in shadow(house, candidate)[2]

    policies.write_text(stricter(good))
    routes = candidate / "routes.lua"
    routes.write_text(re.sub(r'path = "/\*\*"', 'path = "/nothing/**"', routes.read_text()))
    status, told, complaint = shadow(house, candidate, "--as", "asha")
    assert status == 0 and "is the candidate" in told, complaint
    assert house.policy()["restart_needed"] == []
    flow = house.flow("register")
    assert house.begin(flow, number).status_code == 200
    code = house.code(number)
    refused = house.submit(flow, wrong(code)).json()["decision_id"]
    answer = house.submit(flow, code)
    # Users are not affected.
    assert answer.status_code == 200, answer.text
    token = answer.json()["session"]["token"]
    assert (
        requests.get(f"{house.url}/?secret=1", headers={"Authorization": f"Bearer {token}"}, timeout=20).status_code
        == 200
    )
    seen = wait_for(
        lambda: (house.policy()["shadow"] or {}).get("differing", {}).get("request") and house.policy()["shadow"],
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
    status, told, _ = shadow(house, "status")
    assert status == 1 and "verify phone_otp: ok → too_many_attempts" in told and tries["decisions"][0] in told, told
    metrics = requests.get(f"{house.admin}/metrics", timeout=10).text
    assert "moongate_shadow 1" in metrics and re.search(
        r'moongate_shadow_differing_total\{kind="step"\} [1-9]', metrics
    )

    # Attack: the folder is changed after its effect was reviewed.
    policies.write_text(good)
    status, _, told = shadow(house, "promote")
    assert status == 1 and "has changed since it was loaded" in told and house.policy()["active"] == active
    policies.write_text(stricter(good))
    status, told, complaint = shadow(house, "promote", "--as", "asha")
    assert status == 0 and "copy its files" in told, complaint
    promoted = house.policy()
    assert (
        promoted["active"] == seen["id"]
        and promoted["shadow"] is None
        and "was promoted" in promoted["restart_needed"][0]["message"]
    )
    # The previous contents of the folder do not count as a change; only an explicit reload restores them.
    assert tool(house, "reload")[0] == 0 and house.policy()["active"] == seen["id"]
    assert (
        tool(house, "reload", "--force")[0] == 0
        and house.policy()["active"] == active
        and house.policy()["restart_needed"] == []
    )
    kinds = [
        (event["kind"], event["operator"])
        for event in requests.get(
            f"{house.admin}/events?kind=shadow_begun,shadow_promoted,shadow_ended", timeout=10
        ).json()
    ]
    assert kinds.count(("shadow_promoted", "asha")) == 1 and ("shadow_begun", "asha") in kinds

    assert shadow(house, candidate)[0] == 0 and shadow(house, "stop")[:2] == (0, "candidate removed\n")
    assert house.policy()["shadow"] is None


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


def test_permissions_for_shadow_mode(empty_house, tmp_path):
    house = empty_house
    value = (
        f'{{ address = "127.0.0.1:{house.ports[1]}", tokens = {{ {{ name = "grafana", role = "read", token = env "READ" }}, '
        '{ name = "ravi", role = "act", token = env "ACT" } } }'
    )
    house.edit("gateway.lua", lambda text: re.sub(r"\n  admin = .*", f"\n  admin = {value},", text))
    house.start(READ=READ, ACT=ACT)
    acts, reads = ({"Authorization": f"Bearer {token}"} for token in (ACT, READ))
    for method, path in [
        ("POST", "/policy/shadow?folder=/x"),
        ("POST", "/policy/shadow/promote"),
        ("DELETE", "/policy/shadow"),
    ]:
        assert requests.request(method, house.admin + path, timeout=10).status_code == 401
        problem(requests.request(method, house.admin + path, headers=reads, timeout=10), 403, "denied")
        # A page of another site in the operator's browser.
        problem(
            requests.request(method, house.admin + path, headers=acts | {"Origin": "http://evil.example"}, timeout=10),
            403,
            "origin_refused",
        )
    problem(requests.post(f"{house.admin}/policy/shadow", headers=acts, timeout=10), 400, "bad_request")
    # Attack: a token holder acts in the name of another operator.
    requests.post(f"{house.admin}/policy/shadow", params={"folder": "/no", "as": "root"}, headers=acts, timeout=10)
    (event,) = wait_for(
        lambda: requests.get(f"{house.admin}/events?kind=shadow_begun&limit=1", headers=reads, timeout=10).json(),
        "the event",
    )
    assert event["operator"] == "ravi" and event["detail"]["as"] == "root" and event["detail"]["folder"] == "/no"
    done = tool(house, "policy", "shadow", "status", env={"READ": READ, "ACT": ACT})
    assert done[0] == 2 and "There is no candidate" in done[2], done
