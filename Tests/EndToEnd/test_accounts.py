"""`moongate account` and `moongate locks` beside a running gateway, which sees changes within a second."""

import json
import os
import pty
import re
import subprocess
import time

import pytest
import requests

from local_gateway import BIN, problem, wait_for, wrong

ARGON2 = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"  # of "password"


def tool(gateway, *words, text=None):
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", gateway.config],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )
    return done.returncode, done.stdout, done.stderr


def session_alive(gateway, token):
    return gateway.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.alone
def test_locking_ends_sessions_within_a_second(gateway, number):
    token = gateway.register(number)["session"]["token"]
    assert session_alive(gateway, token)
    status, text, error = tool(gateway, "account", "show", number, "--json")
    assert status == 0, error
    account = json.loads(text)
    assert [name["value"] for name in account["identifiers"]] == [number] and account["locked"] is False

    status, text, _ = tool(gateway, "account", "sessions", number, "--json")
    assert status == 0 and len(json.loads(text)) == 1
    assert tool(gateway, "account", "lock", number)[0] == 0
    locked = time.monotonic()
    wait_for(lambda: not session_alive(gateway, token), "the session's end", 2)
    assert time.monotonic() - locked < 1.5
    flow = gateway.flow("login")
    problem(gateway.begin(flow, number), 403, "disabled")
    assert tool(gateway, "account", "unlock", account["id"])[0] == 0
    assert gateway.begin(gateway.flow("login"), number).status_code == 200


def test_deleting_leaves_nothing(gateway, number):
    """While the gateway runs: nothing remains in the file, the log or the API."""
    address = "zquast@example.com"
    registered = gateway.api(
        "POST",
        "/register",
        {"email": address, "password": "correct horse", "first_name": "Zerlinde", "last_name": "Quast"},
        headers={"User-Agent": "a phone of hers"},
    )
    token = registered.json()["token"]
    wait_for(lambda: [entry for entry in gateway.outbox() if entry["to"] == address], "the mail")
    verified = gateway.api(
        "POST", "/verify-email", {"code": gateway.code(address)}, headers={"Authorization": f"Bearer {token}"}
    )
    owner = {"Authorization": f"Bearer {verified.json()['token']}"}
    flow = gateway.api("POST", "/flows", {"flow": "change_phone"}, headers=owner).json()["id"]
    assert gateway.api("POST", f"/flows/{flow}/begin", {"phone": number}, headers=owner).status_code == 200
    assert (
        gateway.api("POST", f"/flows/{flow}/submit", {"code": gateway.code(number)}, headers=owner).json()["status"]
        == "complete"
    )
    gateway.begin(gateway.flow("login"), number)
    account = json.loads(tool(gateway, "account", "show", number, "--json")[1])
    assert len(account["identifiers"]) == 2 and account["last_name"] == "Quast"
    traces = [address, "zquast", number, "Zerlinde", "Quast", "a phone of hers"]

    def found(*also):
        stored = b"".join(file.read_bytes() for file in (gateway.config / "data").glob("moongate.db*"))
        return [trace for trace in [*traces, *also] if trace.encode() in stored]

    assert found(account["id"]) == [*traces, account["id"]], "the search finds stored values"
    status, text, _ = tool(gateway, "account", "delete", number, "--yes")
    assert status == 0 and text == f"{account['id']} deleted\n"
    assert found() == []
    assert tool(gateway, "account", "show", number)[0] == 1
    assert tool(gateway, "account", "list", "--json")[1] == "[\n\n]\n"
    told = requests.get(f"{gateway.admin}/events?limit=100000", timeout=10).text
    assert "account_deleted" in told and account["id"] not in told and address not in told
    assert gateway.api("GET", "/session", headers=owner).status_code == 401


def test_all_of_a_file_or_nothing(gateway):
    good = [
        {
            "identifiers": [{"phone": "98765 00001", "verified": True}, {"email": "Asha@Example.com"}],
            "first_name": "Asha",
            "password": ARGON2,
        },
        {
            "identifiers": [{"email": "rao@example.com", "verified": True}],
            "created_at": "2024-05-01T12:00:00Z",
            "locked": True,
        },
    ]
    bad = [
        "not json",
        '{"identifiers":[]}',
        '{"identifiers":[{"phone":"12"}]}',
        '{"identifiers":[{"email":"a@example.com"}],"password":"hunter2"}',
        '{"identifiers":[{"email":"b@example.com"}],"passwort":"x","locked":"no"}',
    ]
    lines = [json.dumps(line) for line in good]
    status, text, _ = tool(gateway, "account", "import", "-", text="\n".join(lines[:1] + bad + lines[1:]))
    assert status == 1
    assert [line.split(":")[1] for line in text.splitlines() if line.startswith("-:")] == [
        "2",
        "3",
        "4",
        "5",
        "6",
        "6",
    ], text
    assert "hunter2" not in text, "a bad hash is often a good password"
    assert tool(gateway, "account", "list", "--json")[1] == "[\n\n]\n", "nothing is imported partially"

    file = gateway.config / "people.jsonl"
    file.write_text("\n".join(lines) + "\n\n")
    assert tool(gateway, "account", "import", file, "--dry-run")[1] == "2 accounts would be taken in\n"
    assert tool(gateway, "account", "import", file)[:2] == (0, "2 accounts taken in\n")
    status, text, _ = tool(gateway, "account", "import", file, "--json")
    assert status == 1 and json.loads(text)["problems"][0]["line"] == 1, text

    # The imported password works in a gateway with another store.
    def login(password):
        flow = gateway.flow("login_password")
        return gateway.api(
            "POST", f"/flows/{flow}/begin", {"provider": "password", "email": "asha@example.com", "password": password}
        )

    problem(login("passwort"), 401, "invalid_password")
    assert login("password").json()["status"] == "complete"

    status, text, _ = tool(gateway, "account", "export", "--hashes")
    exported = [json.loads(line) for line in text.splitlines()]
    assert status == 0 and len(exported) == 2
    assert {name["email"] for line in exported for name in line["identifiers"] if "email" in name} == {
        "asha@example.com",
        "rao@example.com",
    }
    kept = next(line["password"] for line in exported if "password" in line)
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1,keyid="), "hashed again, with the pepper"
    plain = tool(gateway, "account", "export")[1]
    assert "password" not in plain

    # Migration: an export is imported by another gateway, including an account that has lost its only address.
    moved = [json.loads(line) for line in plain.splitlines()] + [
        {"id": "ac_lost", "identifiers": [], "locked": False, "created_at": "2024-05-01T12:00:00Z"}
    ]
    moved[0]["last_seen_at"] = "2031-01-01T00:00:00Z"
    for line in moved:
        assert tool(gateway, "account", "delete", line["id"], "--yes")[0] == (1 if line["id"] == "ac_lost" else 0)
    file.write_text("\n".join(json.dumps(line) for line in moved))
    assert tool(gateway, "account", "import", file)[:2] == (0, "3 accounts taken in\n")
    again = {line["id"]: line for line in map(json.loads, tool(gateway, "account", "export")[1].splitlines())}
    assert again[moved[0]["id"]]["last_seen_at"] == "2031-01-01T00:00:00Z" and again["ac_lost"]["identifiers"] == []
    lone = [{"email": "b@example.com"}]
    for bad in (
        {"identifiers": []},
        {"identifiers": lone, "first_name": "A\u202eb"},
        {"identifiers": [{"federated": "https://x \x1b[31m"}]},
    ):
        assert tool(gateway, "account", "import", "-", text=json.dumps(bad))[0] == 1


def pin_set(gateway, owner, pin):
    flow = gateway.api("POST", "/flows", {"flow": "pin_set"}, headers=owner).json()["id"]
    done = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "pin", "new_pin": pin}, headers=owner)
    assert done.json()["status"] == "complete", done.text


def pin_holds(gateway, owner, pin):
    flow = gateway.api("POST", "/flows", {"flow": "pin_unlock"}, headers=owner).json()["id"]
    return gateway.api("POST", f"/flows/{flow}/begin", {"provider": "pin", "pin": pin}, headers=owner)


def test_records_go_along_sealed(gateway, number):
    """A PIN is imported with its account. A changed line, a foreign key and an existing account are refused."""
    owner = {"Authorization": f"Bearer {gateway.register(number)['session']['token']}"}
    pin_set(gateway, owner, "835173")
    status, exported, error = tool(gateway, "account", "export", "--records")
    assert status == 0, error
    line = json.loads(exported)
    assert (
        "argon2" not in exported
        and re.fullmatch(r"[\w-]{40,}", line["records"])
        and re.fullmatch(r"[0-9a-f]{8}", line["records_key"])
    )
    assert tool(gateway, "account", "export", "--records", "--hashes")[0] == 2

    # An existing account keeps its records.
    status, text, _ = tool(gateway, "account", "import", "-", "--records", text=exported)
    assert status == 1 and "an account with its id" in text
    assert tool(gateway, "account", "delete", line["id"], "--yes")[0] == 0

    def refused(change, *words):
        status, text, _ = tool(
            gateway, "account", "import", "-", *(words or ["--records"]), text=json.dumps({**line, **change})
        )
        assert status == 1 and "nothing was imported" in text
        return text

    # Attack: the records of one account on the line of another.
    assert "was changed after its export" in refused({"id": "ac_another"})
    assert "was changed after its export" in refused({"identifiers": [{"phone": "+919812345678", "verified": True}]})
    assert "was changed after its export" in refused({"records": "A" + line["records"][1:]})
    # Attack: a line without its second factor.
    assert "it has no `records`" in refused({"records": None})
    assert "use --records" in refused({}, "--dry-run")
    assert "sealed with the key 00000000" in refused({"records_key": "00000000"})
    assert tool(gateway, "account", "list", "--json")[1] == "[\n\n]\n"

    assert tool(gateway, "account", "import", "-", "--records", text=exported)[:2] == (0, "1 account taken in\n")
    assert json.loads(tool(gateway, "account", "show", number, "--json")[1])["credentials"] == ["pin"]
    flow = gateway.flow("login")
    assert gateway.begin(flow, number).status_code == 200
    token = gateway.submit(flow, gateway.code(number)).json()["session"]["token"]
    owner = {"Authorization": f"Bearer {token}"}
    problem(pin_holds(gateway, owner, "835174"), 401, "invalid_pin")
    assert pin_holds(gateway, owner, "835173").json()["status"] == "complete"

    # With the operator's own key.
    key = gateway.config / "export.key"
    key.write_text("k" * 40)
    key.chmod(0o644)
    assert "chmod 600" in tool(gateway, "account", "export", "--key", key)[2]
    key.chmod(0o600)
    own = tool(gateway, "account", "export", "--key", key)[1]
    assert json.loads(own)["records_key"] != line["records_key"]
    tool(gateway, "account", "delete", line["id"], "--yes")
    assert "use --key with its file" in tool(gateway, "account", "import", "-", "--records", text=own)[1]
    assert tool(gateway, "account", "import", "-", "--key", key, text=own)[:2] == (0, "1 account taken in\n")


def test_a_factor_is_reset(gateway, number):
    token = gateway.register(number)["session"]["token"]
    owner = {"Authorization": f"Bearer {token}"}
    pin_set(gateway, owner, "835173")
    account = json.loads(tool(gateway, "account", "show", number, "--json")[1])["id"]
    assert tool(gateway, "account", "reset", number, "--provider", "totp")[:2] == (
        0,
        f"{account} has no totp: nothing to reset. It has these factors: pin.\n",
    )
    status, _, error = tool(gateway, "account", "reset", number, "--provider", "pim")
    assert status == 1 and f"There is no provider pim. {account} has these factors: pin." in error
    assert tool(gateway, "account", "reset", "+919000000009", "--provider", "pin")[0] == 1
    status, text, _ = tool(gateway, "account", "reset", number, "--provider", "pin", "--dry-run")
    assert status == 0 and "pin would be removed" in text
    assert json.loads(tool(gateway, "account", "show", number, "--json")[1])["credentials"] == ["pin"]

    status, text, error = tool(gateway, "account", "reset", number, "--provider", "pin", "--json")
    assert status == 0 and json.loads(text) == {"account": account, "provider": "pin", "done": "reset"}, error
    assert json.loads(tool(gateway, "account", "show", number, "--json")[1])["credentials"] == []
    wait_for(lambda: gateway.api("GET", "/session", headers=owner).status_code == 401, "the session's end", 2)
    events = requests.get(f"{gateway.admin}/events?limit=1000", timeout=10).text
    assert "factor_removed" in events and "moongate account reset" in events
    status, text, _ = tool(gateway, "account", "reset", number, "--provider", "pin", "--json")
    assert status == 0 and json.loads(text)["done"] == "none"

    # Through the admin listener, which notifies the user by the gateway's outbox.
    flow = gateway.flow("login")
    assert gateway.begin(flow, number).status_code == 200
    owner = {"Authorization": f"Bearer {gateway.submit(flow, gateway.code(number)).json()['session']['token']}"}
    pin_set(gateway, owner, "835173")
    assert requests.delete(f"{gateway.admin}/accounts/{account}/factors/pin", timeout=10).status_code == 204
    assert requests.delete(f"{gateway.admin}/accounts/{account}/factors/pin", timeout=10).status_code == 404
    wait_for(
        lambda: [
            m for m in gateway.outbox() if m["to"] == number and "passcode" in m["text"].lower() and "off" in m["text"]
        ],
        "the message",
    )


def test_locks_are_listed_and_lifted(gateway, number):
    gateway.register(number)
    flow = gateway.flow("login")
    assert gateway.begin(flow, number).status_code == 200
    code = gateway.code(number)
    for _ in range(5):
        gateway.submit(flow, wrong(code))
    locks = json.loads(tool(gateway, "locks", "list", "--json")[1])
    assert [lock["limit"] for lock in locks] == ["verify"]
    assert tool(gateway, "locks", "clear", "nothing")[0] == 1
    assert tool(gateway, "locks", "clear")[0] == 2
    assert tool(gateway, "locks", "clear", "--all")[1] == "1 lock lifted\n"
    assert gateway.submit(flow, code).json()["status"] == "complete"


def test_there_must_be_a_store(new_gateway):
    status, _, error = tool(new_gateway, "account", "list")
    assert status == 2 and "There is no store" in error
    assert not (new_gateway.config / "data").exists(), "reading creates nothing"


def test_deletion_asks_first(gateway, number):
    """Attack: on the operator. A mistyped number, or a script that was never tried, deletes somebody for good."""
    account = gateway.register(number)["account"]["id"]
    status, out, told = tool(gateway, "account", "delete", number)
    assert status == 2 and out == "" and "add --yes" in told, "no terminal, no answer"
    command = [BIN / "moongate", "account", "delete", number, "--config", gateway.config]
    for answer, expected in ((number, 2), ("", 2), (account, 0)):
        leader, follower = pty.openpty()
        with subprocess.Popen(
            command, stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            os.write(leader, f"{answer}\n".encode())
            out, told = running.communicate(timeout=60)
        os.close(leader), os.close(follower)
        assert running.returncode == expected, (answer, out, told)
        assert number in told and f"Type {account}" in told, "it shows whom it is about"
        assert tool(gateway, "account", "show", account)[0] == (1 if expected == 0 else 0)


def test_exports_and_imports_are_events(gateway, number):
    """Attack: an operator copies every account, or adds one of their own, and the trail names nobody."""
    gateway.register(number)
    assert tool(gateway, "account", "export", "--as", "asha", "--hashes")[0] == 0
    line = json.dumps({"identifiers": [{"phone": "98765 00001", "verified": True}]})
    assert tool(gateway, "account", "import", "-", "--as", "rao", text=line)[0] == 0
    events = requests.get(f"{gateway.admin}/events?kind=account_exported,accounts_imported", timeout=10).json()
    assert [(event["kind"], event["operator"]) for event in events] == [
        ("accounts_imported", "rao"),
        ("account_exported", "asha"),
    ]
    assert events[0]["detail"]["count"] == "1"
    assert events[1]["detail"] | {"accounts": "all", "with": "hashes"} == events[1]["detail"]


def test_costs_of_imported_hashes(gateway):
    def dry_run(*hashes):
        lines = [
            {"identifiers": [{"email": f"cost{number}@example.com", "verified": True}], "password": each}
            for number, each in enumerate(hashes)
        ]
        return tool(
            gateway, "account", "import", "-", "--dry-run", text="\n".join(json.dumps(line) for line in lines)
        )

    def bcrypt(rounds):
        return f"$2b${rounds}$" + "C" * 53

    large = "$argon2id$v=19$m=262144,t=3,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
    status, text, error = dry_run(bcrypt(10), bcrypt(12), bcrypt(12))
    assert (status, text) == (0, "3 accounts would be taken in\n"), error
    # The policy conceals who has an account, so the operator learns what a wrong password costs from now on.
    assert re.search(r"note: password conceals .* bcrypt 10, bcrypt 12: \d+ ms on this machine", error), error
    status, text, _ = dry_run(bcrypt(14))
    assert status == 1 and "-:1: `password` is not a valid hash: it costs too much to check" in text, text
    status, text, error = dry_run(bcrypt(13), bcrypt(12), large)
    assert status == 1 and "3 kinds of hash" in error and "more work than a store may have" in error, (text, error)
