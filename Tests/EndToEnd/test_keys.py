"""The master key is rotated without losing data, and a damaged key file is refused."""

import json
import os
import random
import subprocess
import time

import pytest
import requests
from authenticator import App
from local_gateway import BIN, LocalGateway, problem, wait_for, wrong
from test_accounts import tool


def bearer(token, **more):
    return {"headers": {"Authorization": f"Bearer {token}", **more}}


def password_login(gateway, address, password):
    flow = gateway.flow("login_password")
    return gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "email": address, "password": password})


def keys(gateway):
    status, text, complaint = tool(gateway, "keys", "show", "--json")
    assert status == 0, complaint
    return json.loads(text)


def test_nothing_is_lost_by_a_rotation(gateway, number, other_number):
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: text.replace('"60s", "120s"', '"1s"').replace("max = 4, window", "max = 40, window"),
    )
    gateway.restart(15)
    person = gateway.register(number)
    token, device = person["session"]["token"], person["device_token"]
    secured = gateway.api("POST", "/set-passcode", {"passcode": "739146"}, **bearer(token))
    assert secured.status_code == 200, secured.text
    token = secured.json().get("token", token)
    # Setting up another factor requires a proof of the existing one.
    proved = gateway.api("POST", "/verify-passcode", {"passcode": "739146"}, **bearer(token))
    assert proved.status_code == 200, proved.text
    token = proved.json().get("token", token)
    flow = gateway.api("POST", "/flows", {"flow": "totp_set"}, **bearer(token)).json()["id"]
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **bearer(token)).json()
    app = App(next(text for text in _texts(begun["step"]["show"]) if text.startswith("otpauth:")))
    done = gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code(-1)}, **bearer(token))
    assert done.status_code == 200, done.text
    recovery = next(part["items"] for part in done.json()["step"]["show"] if part["kind"] == "list")
    while done.json()["status"] == "pending":
        done = gateway.api("POST", f"/flows/{flow}/submit", {}, **bearer(token))
        assert done.status_code == 200, done.text
    token = (done.json()["session"] or {}).get("token", token)
    file = gateway.config / "people.jsonl"
    hashed = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
    file.write_text(json.dumps({"identifiers": [{"email": "asha@example.com", "verified": True}], "password": hashed}))
    assert tool(gateway, "account", "import", file)[0] == 0
    assert password_login(gateway, "asha@example.com", "password").json()["status"] == "complete"
    # A pending code, a number that is almost locked, and a locked one.
    waiting = gateway.flow("login")
    assert gateway.begin(waiting, number).status_code == 200
    on_its_way = gateway.code(number)
    nearly, locked = other_number(), other_number()
    for phone, tries in ((nearly, 4), (locked, 5)):
        gateway.register(phone)
        flow = gateway.flow("login")
        assert gateway.begin(flow, phone).status_code == 200
        for _ in range(tries):
            assert gateway.submit(flow, wrong(gateway.code(phone))).status_code in (401, 429)

    before = keys(gateway)
    assert [key["role"] for key in before["keys"]] == ["current"]
    old = before["keys"][0]["name"]
    master = (gateway.config / "data/master.key").read_bytes()
    status, out, told = tool(gateway, "keys", "rotate")
    assert status == 0 and out == "", "the ring is in the file, and nowhere else"
    assert f"{old} is a former key" in told and "reloads it within a second" in told
    ring = keys(gateway)["keys"]
    assert [(key["role"], key["oldest"]) for key in ring] == [("former", True), ("current", False)]
    new = ring[1]["name"]
    # The running gateway reloads it, logs it, reports it in /policy, and continues.
    wait_for(lambda: f"master keys reloaded: former {old}, current {new}" in gateway.log, "the log's line", 5)
    wait_for(lambda: [node["keys"] for node in gateway.policy()["nodes"]] == [[new, old]], "the keys under /policy", 10)
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 200
    assert ring[0]["sealed"] == 3 and ring[0]["hashes"] == {"password": 1, "pin": 1}, ring

    # The session, the pending code, the device, the PIN, the app and the password are still valid.
    assert gateway.api("GET", "/session", **bearer(token)).json()["account"]["phone"] == number
    assert requests.get(f"{gateway.url}/echo", **bearer(token), timeout=10).status_code == 200
    notices = lambda: sum("new device" in entry["text"].lower() for entry in gateway.outbox())
    before = notices()
    assert gateway.submit(waiting, on_its_way).json()["choices"] == ["totp"]
    done = gateway.api("POST", f"/flows/{waiting}/begin", {"provider": "totp"})
    done = gateway.api("POST", f"/flows/{waiting}/submit", {"recovery_code": recovery.pop()})
    assert done.status_code == 200 and done.json()["status"] == "complete", done.text
    strangers = wait_for(lambda: notices() - before and notices(), "the notice")
    assert strangers == before + 1, "the pending code is not from a known device"
    flow = gateway.api("POST", "/flows", {"flow": "login"}, headers={"Moongate-Device": device}).json()["id"]
    again = gateway.api(
        "POST", f"/flows/{flow}/begin", {"provider": "phone_otp", "phone": number}, headers={"Moongate-Device": device}
    )
    assert again.status_code == 200, again.text
    done = gateway.api("POST", f"/flows/{flow}/submit", {"code": gateway.code(number)}, headers={"Moongate-Device": device})
    gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, headers={"Moongate-Device": device})
    done = gateway.api(
        "POST", f"/flows/{flow}/submit", {"recovery_code": recovery.pop()}, headers={"Moongate-Device": device}
    )
    assert done.json()["status"] == "complete", done.text
    assert notices() == strangers, "the device is known by its old token"
    token = done.json()["session"]["token"]
    wrong_pin = gateway.api("POST", "/verify-passcode", {"passcode": "739147"}, **bearer(token))
    problem(wrong_pin, 401, "invalid_pin")
    unlocked = gateway.api("POST", "/verify-passcode", {"passcode": "739146"}, **bearer(token))
    assert unlocked.json()["unlocked"] is True
    token = unlocked.json().get("token", token)
    flow = gateway.api("POST", "/flows", {"flow": "step_up"}, **bearer(token)).json()["id"]
    assert gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **bearer(token)).status_code == 200
    stepped = gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code()}, **bearer(token))
    assert stepped.status_code == 200, stepped.text
    token = stepped.json()["session"]["token"]
    problem(password_login(gateway, "asha@example.com", "passwort"), 401, "invalid_password")
    assert password_login(gateway, "asha@example.com", "password").json()["status"] == "complete"
    # Locks and counters have not changed.
    problem(gateway.begin(gateway.flow(), locked), 429, "too_many_attempts")
    assert json.loads(tool(gateway, "locks", "list", "--json")[1]), "the lock remains"

    # Each success has moved its record to the new key.
    ring = keys(gateway)["keys"]
    assert (ring[0]["sealed"], ring[0]["hashes"]) == (0, {}), ring
    assert (ring[1]["name"], ring[1]["sealed"], ring[1]["hashes"]) == (new, 3, {"password": 1, "pin": 1})
    # Now the old key can be retired, together with its counters, which the command reports.
    status, out, told_last = tool(gateway, "keys", "retire", new)
    assert status == 1 and "is the current key" in told_last
    kept = (gateway.config / "data/master.key").read_bytes()
    late = gateway.flow("login")
    assert gateway.begin(late, number).status_code == 200
    late_code = gateway.code(number)
    # Attack: if retiring the key also removed the locks that it names, an attacker would get all attempts back.
    status, out, told_last = tool(gateway, "keys", "retire", old)
    assert status == 0 and out == "" and "locks and counters stay" in told_last and f"{old} is retired" in told_last, (
        told_last
    )
    rest = (gateway.config / "data/master.key").read_text()
    assert rest.startswith(f"retired {old} ") and kept.decode().split()[2] not in rest
    wait_for(lambda: f"master keys reloaded: retired {old}, current {new}" in gateway.log, "the log's line", 5)
    assert [(key["name"], key["role"]) for key in keys(gateway)["keys"]] == [(old, "retired"), (new, "current")]
    problem(gateway.begin(gateway.flow(), locked), 429, "too_many_attempts")
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 200
    # The owner's device, which was recognized by the old key, must stay known.
    strangers = notices()
    flow = gateway.api("POST", "/flows", {"flow": "login"}, headers={"Moongate-Device": device}).json()["id"]
    known = {"headers": {"Moongate-Device": device}}
    assert (
        gateway.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp", "phone": number}, **known).status_code
        == 200
    )
    assert gateway.api("POST", f"/flows/{flow}/submit", {"code": gateway.code(number)}, **known).status_code == 200
    assert gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}, **known).status_code == 200
    done = gateway.api("POST", f"/flows/{flow}/submit", {"recovery_code": recovery.pop()}, **known)
    assert done.json()["status"] == "complete", done.text
    assert notices() == strangers, "the device is known by its old token"
    # --completely removes it entirely, while no gateway counts by it.
    assert "is already retired" in tool(gateway, "keys", "retire", old)[2]
    status, out, told_last = tool(gateway, "keys", "retire", old, "--completely")
    assert (
        status == 1 and out == "" and "1 gateway serves from this store" in told_last and "double an attacker's guesses" in told_last
    ), told_last
    assert (gateway.config / "data/master.key").read_text() == rest
    gateway.server.end()
    status, out, told_last = tool(gateway, "keys", "retire", old, "--completely")
    assert status == 0 and out == "" and "1 lock ends" in told_last and f"{old} is retired" in told_last, told_last
    gateway.start()
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 200
    assert [key["name"] for key in keys(gateway)["keys"]] == [new]
    assert gateway.begin(gateway.flow(), locked).status_code == 200
    assert password_login(gateway, "asha@example.com", "password").json()["status"] == "complete"
    assert gateway.submit(late, late_code).status_code == 200, "the gateway already created it with the new key"
    # Killed between store and file: the store belongs to the new key, but the file still begins with the old one.
    gateway.server.end()
    (gateway.config / "data/master.key").write_bytes(kept)
    refused = gateway.serve()
    assert refused.process.wait(60) == 1
    refused.reader.join(5)
    assert f"`moongate keys retire {old}` finishes it" in refused.output
    assert f"`moongate keys retire {old}` finishes it" in tool(gateway, "locks", "list")[2]
    status, _, told_last = tool(gateway, "keys", "retire", old)
    assert status == 0 and f"Retiring {old} was interrupted: the store already belongs to {new}." in told_last, (
        told_last
    )
    gateway.start()
    # No key material is shown anywhere.
    shown = "".join(tool(gateway, "keys", "show")[1:]) + told + told_last + gateway.log
    for line in (gateway.config / "data/master.key").read_text().split():
        if len(line) > 40:
            assert line not in shown
    assert master.hex() not in shown


def test_a_key_stays_while_a_hash_needs_it(gateway, number):
    token = gateway.register(number)["session"]["token"]
    flow = gateway.flow("login")
    secured = gateway.api("POST", "/set-passcode", {"passcode": "739146"}, **bearer(token))
    token = secured.json().get("token", token)
    assert tool(gateway, "keys", "rotate")[0] == 0
    old, new = (key["name"] for key in keys(gateway)["keys"])
    # Data of a former key is refused after the key is retired, here a pending code.
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace('"60s", "120s"', '"1s"'))
    assert gateway.begin(flow, number).status_code in (200, 429)
    before = (gateway.config / "data/master.key").read_bytes()
    gateway.server.end()
    status, _, told = tool(gateway, "keys", "retire", old)
    assert status == 1 and "it still protects hashes (pin 1)" in told and "--force" in told
    assert (gateway.config / "data/master.key").read_bytes() == before
    assert tool(gateway, "keys", "retire", "00000000")[0] == 1
    status, _, told = tool(gateway, "keys", "retire", old, "--force")
    assert status == 0 and "Removed hashes: pin 1." in told, told
    gateway.start()
    problem(gateway.api("POST", "/verify-passcode", {"passcode": "739146"}, **bearer(token)), 409, "no_pin")
    # The session's proof of its number still counts, because the part of the key that names it is kept.
    assert gateway.api("POST", "/set-passcode", {"passcode": "739146"}, **bearer(token)).status_code == 200


def _texts(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def test_a_key_is_known_to_all_before_one_uses_it(new_gateway):
    gateway = new_gateway
    gateway.start()
    gateway.server.end()
    path = gateway.config / "data/master.key"
    assert tool(gateway, "keys", "add")[0] == 0
    copy = path.read_bytes()
    assert copy.startswith(b"current ") and b"\ncoming " in copy
    status, _, told = tool(gateway, "keys", "add")
    assert status == 1 and "is already the next key" in told
    gateway.start()
    # The file differs from what this gateway knows until its next check.
    key = copy.splitlines()[1].split()[1].decode()
    # A gateway announces its keys with its first heartbeat.
    wait_for(lambda: any(key in node["keys"] for node in gateway.policy()["nodes"]), "the first heartbeat")
    assert tool(gateway, "keys", "rotate")[0] == 0
    assert path.read_bytes().splitlines()[1].split()[1] == copy.splitlines()[1].split()[1], "the one that was coming"
    assert [line.split()[0] for line in path.read_bytes().splitlines()] == [b"former", b"current"]
    gateway.restart(15)


def test_rotation_killed_at_any_point_leaves_a_whole_ring(new_gateway):
    gateway = new_gateway
    gateway.start()
    gateway.server.end()
    path = gateway.config / "data/master.key"
    generator = random.Random(8)
    ended = 0
    for turn in range(24):
        before = path.read_bytes()
        process = subprocess.Popen(
            [BIN / "moongate", "keys", "rotate", "--config", gateway.config],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(generator.uniform(0.0, 0.35))
        process.kill()
        ended += process.wait() == 0
        after = path.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600
        if after != before:
            assert after.splitlines()[-1].startswith(b"current ")
        # Too many keys are refused, which another test covers.
        if len(after.splitlines()) > 12:
            path.write_bytes(before)
    shown = tool(gateway, "keys", "show")
    assert shown[0] == 0, shown
    assert tool(gateway, "keys", "rotate")[0] == 0
    assert [file.name for file in path.parent.iterdir() if file.name.startswith("master.key")] == ["master.key"]


@pytest.mark.parametrize(
    "spoil, sentence",
    [
        (lambda ring: ring[:-30], "line 2: its key does not match its name"),
        (lambda ring: ring[: ring.index(b"\n") + 1], "line 2: it ends without a current key"),
        (lambda ring: ring.replace(b"current", b"former"), "it ends without a current key"),
        (lambda ring: ring.replace(b"former", b"current"), "line 2: a second current key"),
        (
            lambda ring: ring.splitlines()[1] + b"\n" + ring.splitlines()[1].replace(b"current", b"coming") + b"\n",
            "line 2: it has the same key as line 1",
        ),
        (lambda ring: b"x" * 8 + ring[8:], "line 1: a line of a ring is"),
    ],
    ids=["cut", "a line is missing", "no current key", "two current keys", "two alike", "overwritten"],
)
def test_a_damaged_ring_is_refused_and_nothing_is_made(ring_gateway, spoil, sentence):
    gateway, ring = ring_gateway
    path = gateway.config / "data/master.key"
    spoiled = spoil(ring)
    path.write_bytes(spoiled)
    program = gateway.serve()
    assert program.process.wait(60) == 1
    program.reader.join(5)
    told = [line for line in program.output.splitlines() if "master.key" in line]
    assert len(told) == 1 and sentence in told[0], program.output
    assert path.read_bytes() == spoiled
    status, out, told = tool(gateway, "keys", "rotate")
    assert status == 1 and out == "" and sentence in told
    assert path.read_bytes() == spoiled
    path.chmod(0o640)
    path.write_bytes(ring)
    refused = tool(gateway, "keys", "show")
    path.chmod(0o600)
    assert refused[0] == 1 and "mode 640" in refused[2]


@pytest.fixture(scope="module")
def ring_gateway(tmp_path_factory):
    """A gateway that has run once, and whose key was rotated. Returns it and its keys."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.start()
    gateway.stop()
    assert tool(gateway, "keys", "rotate")[0] == 0
    yield gateway, (gateway.config / "data/master.key").read_bytes()


def test_a_ring_may_come_from_the_environment(ring_gateway):
    gateway, ring = ring_gateway
    (gateway.config / "data/master.key").write_bytes(ring)
    before = gateway.edit("gateway.lua", lambda text: text.replace('file "data/master.key"', 'env "MOONGATE_TEST_KEY"'))
    try:
        assert 'env "MOONGATE_TEST_KEY"' in (gateway.config / "gateway.lua").read_text()
        run = lambda *words, key=ring.decode(): subprocess.run(
            [BIN / "moongate", "keys", *words, "--config", gateway.config],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "MOONGATE_TEST_KEY": key},
        )
        rotated = run("rotate")
        assert rotated.returncode == 0, rotated.stderr
        lines = rotated.stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["former", "former", "current"]
        assert "Set its variable to all of these lines" in rotated.stderr and lines[2].split()[2] not in rotated.stderr
        # Without the last newline, as `$(…)` returns it.
        shown = run("show", key=rotated.stdout.rstrip("\n"))
        assert shown.returncode == 0 and shown.stdout.count("\n") == 3, shown.stderr
    finally:
        gateway.edit("gateway.lua", lambda _: before)
