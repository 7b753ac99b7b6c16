"""`moongate account` and `moongate locks` beside a gateway that runs: what they change is seen there within a second."""

import json
import subprocess
import time

import pytest
import requests

from house import BIN, problem, wait_for, wrong

ARGON2 = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"  # of "password"


def tool(house, *words, text=None):
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", house.config], input=text, capture_output=True, text=True, timeout=60, cwd="/")
    return done.returncode, done.stdout, done.stderr


def session_alive(house, token):
    return house.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.alone
def test_locking_ends_sessions_within_a_second(house, number):
    token = house.register(number)["session"]["token"]
    assert session_alive(house, token)
    status, text, error = tool(house, "account", "show", number, "--json")
    assert status == 0, error
    account = json.loads(text)
    assert [name["value"] for name in account["identifiers"]] == [number] and account["locked"] is False

    status, text, _ = tool(house, "account", "sessions", number, "--json")
    assert status == 0 and len(json.loads(text)) == 1
    assert tool(house, "account", "lock", number)[0] == 0
    locked = time.monotonic()
    wait_for(lambda: not session_alive(house, token), "the session's end", 2)
    assert time.monotonic() - locked < 1.5
    flow = house.flow("login")
    problem(house.begin(flow, number), 403, "disabled")
    assert tool(house, "account", "unlock", account["id"])[0] == 0
    assert house.begin(house.flow("login"), number).status_code == 200


def test_deleting_leaves_nothing(house, number):
    """While the gateway runs: neither in the file nor in its log, nor in what the gateway tells."""
    address = "zquast@example.com"
    registered = house.api(
        "POST", "/register", {"email": address, "password": "correct horse", "first_name": "Zerlinde", "last_name": "Quast"},
        headers={"User-Agent": "a phone of hers"})
    token = registered.json()["token"]
    wait_for(lambda: [entry for entry in house.outbox() if entry["to"] == address], "the mail")
    verified = house.api("POST", "/verify-email", {"code": house.code(address)}, headers={"Authorization": f"Bearer {token}"})
    owner = {"Authorization": f"Bearer {verified.json()['token']}"}
    flow = house.api("POST", "/flows", {"flow": "change_phone"}, headers=owner).json()["id"]
    assert house.api("POST", f"/flows/{flow}/begin", {"phone": number}, headers=owner).status_code == 200
    assert house.api("POST", f"/flows/{flow}/submit", {"code": house.code(number)}, headers=owner).json()["status"] == "complete"
    house.begin(house.flow("login"), number)
    account = json.loads(tool(house, "account", "show", number, "--json")[1])
    assert len(account["identifiers"]) == 2 and account["last_name"] == "Quast"
    traces = [address, "zquast", number, "Zerlinde", "Quast", "a phone of hers"]

    def found(*also):
        stored = b"".join(file.read_bytes() for file in (house.config / "data").glob("moongate.db*"))
        return [trace for trace in [*traces, *also] if trace.encode() in stored]

    assert found(account["id"]) == [*traces, account["id"]], "they are looked for where they are"
    status, text, _ = tool(house, "account", "delete", number)
    assert status == 0 and text == f"{account['id']} deleted\n"
    assert found() == []
    assert tool(house, "account", "show", number)[0] == 1
    assert tool(house, "account", "list", "--json")[1] == "[\n\n]\n"
    told = requests.get(f"{house.admin}/events?limit=100000", timeout=10).text
    assert "account_deleted" in told and account["id"] not in told and address not in told
    assert house.api("GET", "/session", headers=owner).status_code == 401


def test_all_of_a_file_or_nothing(house):
    good = [
        {"identifiers": [{"phone": "98765 00001", "verified": True}, {"email": "Asha@Example.com"}], "first_name": "Asha", "password": ARGON2},
        {"identifiers": [{"email": "rao@example.com", "verified": True}], "created_at": "2024-05-01T12:00:00Z", "locked": True},
    ]
    bad = [
        "not json", '{"identifiers":[]}', '{"identifiers":[{"phone":"12"}]}', '{"identifiers":[{"email":"a@example.com"}],"password":"hunter2"}',
        '{"identifiers":[{"email":"b@example.com"}],"passwort":"x","locked":"no"}',
    ]
    lines = [json.dumps(line) for line in good]
    status, text, _ = tool(house, "account", "import", "-", text="\n".join(lines[:1] + bad + lines[1:]))
    assert status == 1
    assert [line.split(":")[1] for line in text.splitlines() if line.startswith("-:")] == ["2", "3", "4", "5", "6", "6"], text
    assert "hunter2" not in text, "a bad hash is often a good password"
    assert tool(house, "account", "list", "--json")[1] == "[\n\n]\n", "nothing is half imported"

    file = house.config / "people.jsonl"
    file.write_text("\n".join(lines) + "\n\n")
    assert tool(house, "account", "import", file, "--dry-run")[1] == "2 accounts would be taken in\n"
    assert tool(house, "account", "import", file)[:2] == (0, "2 accounts taken in\n")
    status, text, _ = tool(house, "account", "import", file, "--json")
    assert status == 1 and json.loads(text)["problems"][0]["line"] == 1, text

    # The imported password opens, in a gateway that knew nothing of it.
    def login(password):
        flow = house.flow("login_password")
        return house.api("POST", f"/flows/{flow}/begin", {"provider": "password", "email": "asha@example.com", "password": password})

    problem(login("passwort"), 401, "invalid_password")
    assert login("password").json()["status"] == "complete"

    status, text, _ = tool(house, "account", "export", "--hashes")
    exported = [json.loads(line) for line in text.splitlines()]
    assert status == 0 and len(exported) == 2
    assert {name["email"] for line in exported for name in line["identifiers"] if "email" in name} == {"asha@example.com", "rao@example.com"}
    kept = next(line["password"] for line in exported if "password" in line)
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1,keyid="), "made anew, with the pepper"
    plain = tool(house, "account", "export")[1]
    assert "password" not in plain

    # Moving house: what was exported is taken in elsewhere, one who has lost their only address and all.
    moved = [json.loads(line) for line in plain.splitlines()] + [{"id": "ac_lost", "identifiers": [], "locked": False, "created_at": "2024-05-01T12:00:00Z"}]
    moved[0]["last_seen_at"] = "2031-01-01T00:00:00Z"
    for line in moved:
        assert tool(house, "account", "delete", line["id"])[0] == (1 if line["id"] == "ac_lost" else 0)
    file.write_text("\n".join(json.dumps(line) for line in moved))
    assert tool(house, "account", "import", file)[:2] == (0, "3 accounts taken in\n")
    again = {line["id"]: line for line in map(json.loads, tool(house, "account", "export")[1].splitlines())}
    assert again[moved[0]["id"]]["last_seen_at"] == "2031-01-01T00:00:00Z" and again["ac_lost"]["identifiers"] == []
    lone = [{"email": "b@example.com"}]
    for bad in ({"identifiers": []}, {"identifiers": lone, "first_name": "A\u202eb"}, {"identifiers": [{"federated": "https://x \x1b[31m"}]}):
        assert tool(house, "account", "import", "-", text=json.dumps(bad))[0] == 1


def test_locks_are_listed_and_lifted(house, number):
    house.register(number)
    flow = house.flow("login")
    assert house.begin(flow, number).status_code == 200
    code = house.code(number)
    for _ in range(5):
        house.submit(flow, wrong(code))
    locks = json.loads(tool(house, "locks", "list", "--json")[1])
    assert [lock["limit"] for lock in locks] == ["verify"]
    assert tool(house, "locks", "clear", "nothing")[0] == 1
    assert tool(house, "locks", "clear")[0] == 2
    assert tool(house, "locks", "clear", "--all")[1] == "1 lock lifted\n"
    assert house.submit(flow, code).json()["status"] == "complete"


def test_there_must_be_a_store(empty_house):
    status, _, error = tool(empty_house, "account", "list")
    assert status == 2 and "There is no store" in error
    assert not (empty_house.config / "data").exists(), "nothing is made by looking"
