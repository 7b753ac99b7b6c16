"""`moongate account` and `moongate locks` beside a running gateway, which sees changes within a second."""

import json
import os
import pty
import re
import subprocess
import time

import pytest
import requests

from authenticator import App
from local_gateway import BIN, LocalGateway, problem, wait_for, wrong
from passkeys import Passkey, cbor, options
from passkeys import text as base64url

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
    assert status == 1 and [each["line"] for each in json.loads(text)["problems"]] == [1, 2], text
    # A dry run looks into the store too.
    status, text, _ = tool(gateway, "account", "import", file, "--dry-run")
    assert status == 1 and text.count("already exists") == 2, text
    assert text.endswith("2 problems; nothing was imported\n")

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


def test_a_killed_import_opens_nothing(tmp_path):
    """Attack: somebody signs in to the part of the accounts that an import had stored when it was killed."""
    gateway = LocalGateway(tmp_path)
    gateway.start()
    try:
        file = tmp_path / "many.jsonl"
        phones = [f"+9198100{number:05d}" for number in range(6_000)]
        with file.open("w") as lines:
            lines.writelines(json.dumps({"identifiers": [{"phone": it, "verified": True}]}) + "\n" for it in phones)
        importing = subprocess.Popen(
            [BIN / "moongate", "account", "import", file, "--config", gateway.config],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        show = ("account", "show", phones[0], "--json")
        wait_for(lambda: tool(gateway, *show)[0] == 0, "the first account")
        importing.kill()
        importing.wait()
        assert json.loads(tool(gateway, *show)[1])["locked"] is True
        problem(gateway.begin(gateway.flow("login"), phones[0]), 403, "disabled")
        # Attack: an operator unlocks an account that is going to be deleted.
        status, out, error = tool(gateway, "account", "unlock", phones[0])
        assert status == 1 and "is part of an import that is under way, or was stopped" in error, (out, error)
        # Attack: an export made meanwhile has accounts that are going to be deleted.
        for words in ([], ["--records"]):
            status, out, error = tool(gateway, "account", "export", *words)
            assert status == 0 and out == "", (out, error)
        problem(gateway.begin(gateway.flow("login"), phones[0]), 403, "disabled")
        status, _, error = tool(gateway, "account", "import", file)
        assert status == 2 and "another import is under way, or was stopped" in error, error
    finally:
        gateway.stop()


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


FOREIGN = {
    "django": "pbkdf2_sha256$1000$aBcDeFgHiJkLmNoPqRsTuV$sBhz6SiQZR6f4FpeVTDdVpW1T+zS7A1qNhK4pS4OU1w=",
    "keycloak": "$pbkdf2-sha256$27500$AAECAwQFBgcICQoLDA0ODw==$qnA427fe69fAjkevcHZvnm7vp3MewnxKL4g2WLfI7U6teQVH1eR2L5DfcV0psPIfjGPtlZbkpnogYX+2TaSl6w==",
    "aspnet": "AQAAAAEAACcQAAAAEAABAgMEBQYHCAkKCwwNDg/lFQcOA1On2wE5YZhLh7q7ntzP9Krf9NCBoM//wxbovw==",
    "passlib": "$scrypt$ln=10,r=8,p=1$lHLOWYtRqjWGEMIY47wXQg$2HzzKVA9yUX94yJSw0PO2/KUJYhQmcJXQqIxK0GbCyA",
    "node": "$scrypt$ln=14,r=8,p=1$AAECAwQFBgcICQoLDA0ODw==$JbN2hANm9NOw4h5BRHZnbjzQ6Jr0QwNWojTOC2WgIbViM+ewsk8HvJNAGV8ZyQodp1YlFO0HYqba48J/9bB9Yg==",
    "firebase": "$firebase-scrypt$ln=10,r=8$Bw==$jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$42xEC+ixf3L2lw==$tm34/go+iWJJV9JUbbiyfO9fF6yfO/o71kdU4jZ3MrwhpmgzJLmIsaDwiiHV97yTIXx3nUrVen71smZcm35BrQ==",
    "flask": "pbkdf2:sha256:1000$3ke46vHt8NKL9Of9$64c9b9a6a90e2759a9720a21f84f244b80983f2d37639c0bfc0d411f52219dd0",
    "unix5": "$5$abcdefgh$ruMep1ijHnJPZbETDNiumskxcX3kN4lzZd5VlsqE7eB",
    "unix6": "{CRYPT}$6$4EL9DVSUZkAB$RnyhgNDCRdjVmNkVbMhECsRhLpLtOSx6Lgn7AWvaS7AqVSG7TrHqw/uMV1LYpVA4kLJL7lcNSyylaj/Ocz7.s.",
    "ssha": "{SSHA}45t+zCEyMYRqQvOJu7mAKpQLKklC9sfq",
    "ssha512": "{SSHA512}f3gYv3ecW2iwL0epO7Q5Dni2oaJ8YaYDsiJUDEYX6gQQH6sEhl33wK2u9uunXTN8GbYTNf+SbKpqhSMMa8vGOGHsThL3iDXF",
}
WEAK = {"md5crypt": "$1$abcdefgh$y6iHhJNbuC0xpbk0w9pm80", "md5": "{MD5}PLTnMmMfR+brlh80VUt83g=="}


def people(hashes):
    return "\n".join(
        json.dumps({"identifiers": [{"email": f"{name}@example.com", "verified": True}], "password": each})
        for name, each in hashes.items()
    )


def signs_in(gateway, name, password):
    flow = gateway.flow("login_password")
    answer = {"provider": "password", "email": f"{name}@example.com", "password": password}
    return gateway.api("POST", f"/flows/{flow}/begin", answer), flow


def replaces(gateway, address, begun, flow, why, password="another horse 42"):
    """Replaces a password after a code, which the sign-in demands."""
    answer = begun.json()
    assert (answer["status"], answer["choices"], answer["session"]) == ("pending", ["email_code"], None), begun.text
    assert gateway.api("POST", f"/flows/{flow}/begin", {"provider": "email_code"}).status_code == 200
    due = gateway.submit(flow, gateway.code(address)).json()
    assert (due["status"], due["choices"], due["change_due"]) == ("pending", ["password"], why), due
    done = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": password})
    assert done.json()["status"] == "complete", done.text


def test_moving_in_with_hashes_of_other_programs(gateway):
    """The hashes are those that the programs made of "correct horse"; ForeignHashTests says which versions."""
    # Attack: an imported hash with 2^40 iterations stops the gateway.
    huge = "pbkdf2_sha256$1099511627776$aBcDeFgHiJkLmNoPqRsTuV$sBhz6SiQZR6f4FpeVTDdVpW1T+zS7A1qNhK4pS4OU1w="
    bad = {"huge": huge, "cut": FOREIGN["firebase"][:-9], **WEAK}
    status, text, _ = tool(gateway, "account", "import", "-", text=people(FOREIGN | bad))
    lines = [line for line in text.splitlines() if line.startswith("-:")]
    assert status == 1 and len(lines) == 4, text
    first = len(FOREIGN) + 1
    assert lines[0].startswith(f"-:{first}: `password` is not a valid hash: it costs too much to check"), text
    assert lines[1] == f"-:{first + 1}: `password` is not a valid hash: it is not well formed", text
    assert "`password` is a weak hash" in lines[2] and "--weak" in lines[3], text

    status, text, error = tool(gateway, "account", "import", "-", text=people(FOREIGN))
    assert (status, text) == (0, f"{len(FOREIGN)} accounts taken in\n"), (text, error)
    status, text, error = tool(gateway, "account", "import", "-", "--weak", text=people(WEAK))
    assert status == 0 and "2 accounts have a weak hash of a password" in error, (text, error)

    # An export is imported again by a gateway without these accounts, with the same hashes.
    exported = tool(gateway, "account", "export", "--hashes")[1]
    everyone = [json.loads(line) for line in exported.splitlines()]
    assert {line["identifiers"][0]["email"]: line["password"] for line in everyone} == {
        f"{name}@example.com": each for name, each in (FOREIGN | WEAK).items()
    }
    for line in everyone:
        assert tool(gateway, "account", "delete", line["id"], "--yes")[0] == 0
    assert tool(gateway, "account", "import", "-", "--weak", text=exported)[0] == 0
    again = tool(gateway, "account", "export", "--hashes")[1]
    assert sorted(again.splitlines()) == sorted(exported.splitlines())

    problem(signs_in(gateway, "django", "correct hors")[0], 401, "invalid_password")
    for name in FOREIGN:
        assert signs_in(gateway, name, "correct horse")[0].json()["status"] == "complete", name
    for name in WEAK:
        replaces(gateway, f"{name}@example.com", *signs_in(gateway, name, "correct horse"), "weak")
    kept = [json.loads(line)["password"] for line in tool(gateway, "account", "export", "--hashes")[1].splitlines()]
    assert all(each.startswith("$argon2id$v=19$m=19456,t=2,p=1,keyid=") for each in kept), kept
    assert signs_in(gateway, "firebase", "correct horse")[0].json()["status"] == "complete", "by the new hash"


def test_moving_in_with_second_factors(gateway):
    app = App("otpauth://totp/Old:asha?secret=JBSWY3DPEHPK3PXP&issuer=Old&algorithm=SHA1&digits=6&period=30")
    key = Passkey(gateway.url)
    key.handle = base64url(b"user 17 of the old system")
    numbers = key.key.public_key().public_numbers()
    cose = cbor({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
    asha = {
        "identifiers": [{"email": "asha@example.com", "verified": True}],
        "password": FOREIGN["django"],
        "totp": {"secret": app.secret},
        "passkeys": [{"id": base64url(key.id), "public_key": base64url(cose), "counter": 0, "name": "Old phone"}],
    }
    for change, told in (
        ({"totp": {"secret": "JBSW"}}, "`totp` must have a `secret` of 16 to 103 letters"),
        ({"totp": app.secret}, "`totp` must be an object with `secret`"),
        ({"passkeys": [{"id": "AAAA", "public_key": "AAAA"}]}, "`passkeys` has a `public_key` in passkey 1"),
        ({"passkeys": {}}, "`passkeys` must be a list"),
    ):
        status, out, _ = tool(gateway, "account", "import", "-", text=json.dumps(asha | change))
        assert status == 1 and f"-:1: {told}" in out and app.secret not in out, out
    assert tool(gateway, "account", "import", "-", text=json.dumps(asha))[:2] == (0, "1 account taken in\n")

    begun, flow = signs_in(gateway, "asha", "correct horse")
    assert begun.json()["status"] == "pending" and not begun.json()["session"], begun.text
    assert gateway.api("POST", f"/flows/{flow}/begin", {"provider": "totp"}).status_code == 200
    wrong_code = "000000" if app.code() not in ("000000", "000001") else "000002"
    problem(gateway.api("POST", f"/flows/{flow}/submit", {"code": wrong_code}), 401, "invalid_code")
    done = gateway.api("POST", f"/flows/{flow}/submit", {"code": app.code()})
    assert done.json()["status"] == "complete", done.text
    owner = {"Authorization": f"Bearer {done.json()['session']['token']}"}

    flow = gateway.api("POST", "/flows", {"flow": "passkey_unlock"}, headers=owner).json()["id"]
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "passkey"}, headers=owner)
    shown = options(begun)
    assert [each["id"] for each in shown["allowCredentials"]] == [base64url(key.id)], shown
    done = gateway.api("POST", f"/flows/{flow}/submit", {"credential": key.get(shown)}, headers=owner)
    assert done.json()["status"] == "complete", done.text

    # Everything that the import made goes along with --records.
    exported = tool(gateway, "account", "export", "--records")[1]
    assert app.secret not in exported
    assert tool(gateway, "account", "delete", json.loads(exported)["id"], "--yes")[0] == 0
    assert tool(gateway, "account", "import", "-", "--records", text=exported)[:2] == (0, "1 account taken in\n")
