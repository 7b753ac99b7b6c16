"""Tasks of an operator: locks, the history of a user, who did what, and copies of the audit trail."""

import hashlib
import hmac
import json
import os
import re
import signal
import time

import requests

from local_gateway import problem, wait_for, wrong
from services import Handler, HTTPService
from test_accounts import tool

ACT = "the-token-of-ravi-0123456789abcdef"
READ = "the-token-of-grafana-0123456789abcdef"


def lock_out(gateway, number):
    """Enters five wrong codes."""
    flow = gateway.flow("login")
    begun = gateway.begin(flow, number)
    assert begun.status_code == 200, begun.text
    code = gateway.code(number)
    for _ in range(5):
        gateway.submit(flow, wrong(code))
    return flow, code


def events(gateway, query="", **options):
    answer = requests.get(f"{gateway.admin}/events?{query}", timeout=10, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_who_follows_the_events_does_not_delay_the_end(gateway, number):
    with requests.get(f"{gateway.admin}/events?follow=1", stream=True, timeout=20) as answer:
        lines = answer.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(lines) == ": following"
        gateway.register(number)
        assert any("account_created" in line for line in lines)
        began = time.monotonic()
        gateway.server.process.send_signal(signal.SIGTERM)
        # The answer is complete: requests would report one that is cut.
        for _ in lines:
            pass
    gateway.server.process.wait(20)
    # Other connections would have ten seconds.
    assert time.monotonic() - began < 7


def test_a_lock_names_the_person(gateway, number):
    account = gateway.register(number)["account"]["id"]
    flow, code = lock_out(gateway, number)
    status, line, error = tool(gateway, "locks", "list")
    assert status == 0, error
    assert re.fullmatch(
        rf"phone \{number[:3]} [\d ]+ · account {account} · phone_otp/verify · until (\d{{4}}-\d\d-\d\d )?\d\d:\d\d \(in 15 min\)"
        r" · by policies/phone_otp\.lua:\d+ · 5 of 5 failures from 127\.0\.0\.1 · lock \S+\n",
        line,
    ), line
    listed = json.loads(tool(gateway, "locks", "list", "--json")[1])
    served = requests.get(f"{gateway.admin}/locks", timeout=10).json()
    drop = lambda locks: [{name: value for name, value in lock.items() if name != "remaining"} for lock in locks]
    assert drop(listed) == drop(served) and len(served) == 1, "identical fields"
    assert served[0]["account"] == account and served[0]["identifier"] == {"kind": "phone", "value": number}

    shown = json.loads(tool(gateway, "account", "show", number, "--json")[1])
    asked = requests.get(f"{gateway.admin}/accounts/{account}", timeout=10).json()
    assert shown.keys() == asked.keys() >= {"locks", "factors", "sessions", "devices", "sign_ins"}
    assert len(shown["locks"]) == len(shown["sign_ins"]) == len(shown["sessions"]) == len(shown["devices"]) == 1
    assert "phone_otp/verify" in tool(gateway, "account", "show", number)[1]

    device = shown["devices"][0]["id"]
    assert tool(gateway, "account", "devices", number)[1].startswith(f"{device}  since ")
    assert tool(gateway, "account", "devices", number, "--remove", device, "--as", "ravi")[:2] == (0, "")
    assert tool(gateway, "account", "devices", number, "--remove", device)[0] == 1
    assert events(gateway, "kind=device_removed")[0]["operator"] == "ravi"

    assert tool(gateway, "locks", "clear", "+919000000001")[0] == 1
    spelled = f"{number[3:8]} {number[8:]}"
    status, text, _ = tool(gateway, "locks", "clear", spelled, "--as", "ravi")
    assert status == 0 and text.endswith("1 lock lifted\n"), text
    assert gateway.submit(flow, code).json()["status"] == "complete"
    lifted = events(gateway, "kind=lock_lifted")[0]
    assert (
        lifted["account"] == account
        and lifted["operator"] == "ravi"
        and lifted["detail"]["by"] == "moongate locks clear"
    )


def test_unlocking_ends_every_lock(gateway, number):
    account = gateway.register(number)["account"]["id"]
    flow, code = lock_out(gateway, number)
    assert tool(gateway, "account", "lock", number, "--as", "ravi", "--reason", "reported stolen")[0] == 0
    shown = tool(gateway, "account", "show", number)[1]
    assert re.search(r"^  locked +\S+Z by ravi \(moongate account lock\): reported stolen  dc_\S+$", shown, re.M), shown
    status, text, _ = tool(gateway, "account", "unlock", number)
    assert status == 0 and text.startswith(f"{account} unlocked\nlifted: phone {number[:3]} "), text
    assert tool(gateway, "account", "unlock", number)[:2] == (1, f"{account}: nothing was locked\n")
    assert gateway.begin(gateway.flow("login"), number).status_code in (200, 429), "there is no lock"
    assert json.loads(tool(gateway, "locks", "list", "--json")[1]) == []

    # The events and the operator who caused them.
    status, text, _ = tool(gateway, "account", "history", number, "--since", "1h", "--json")
    kinds = [event["kind"] for event in json.loads(text)]
    acts = [kind for kind in kinds if kind in ("lock_lifted", "account_unlocked", "account_locked")]
    assert status == 0 and acts == ["lock_lifted", "account_unlocked", "account_locked"] and kinds.count("refused") >= 5
    assert all(event["account"] == account for event in json.loads(text) if event["kind"] == "refused")
    assert "account_locked · reason reported stolen · by ravi (moongate account lock)" in tool(gateway, "account", "history", number)[1]
    assert tool(gateway, "account", "history", number, "--since", "yesterday")[0] == 2
    assert "did you mean `locked`" in tool(gateway, "account", "history", number, "--kind", "lockd")[2]
    assert tool(gateway, "account", "history", "+919000000002")[0] == 1

    # The export of the stored data, and the sessions.
    status, text, _ = tool(gateway, "account", "export", number, "--as", "ravi")
    export = json.loads(text)
    assert status == 0 and export["account"]["id"] == account and len(export["events"]) > 5
    served = requests.get(f"{gateway.admin}/accounts/{account}/export", timeout=10).json()
    assert served.keys() == export.keys()
    assert [event["operator"] for event in events(gateway, "kind=account_exported")] == [None, "ravi"]
    assert tool(gateway, "account", "end-sessions", number)[:2] == (0, f"{account} sessions ended\n")
    assert requests.get(f"{gateway.admin}/accounts/{account}/sessions", timeout=10).json() == []
    problem(requests.get(f"{gateway.admin}/events?acount={account}", timeout=10), 400, "bad_request")
    assert "did you mean `account`" in requests.get(f"{gateway.admin}/events?acount=1", timeout=10).json()["detail"]
    for query, sentence in (
        ("account=", "`account` is empty. Give it a value, or leave it out."),
        ("since=", "`since` is empty. Give it a value, or leave it out."),
        ("since=2126-11-20T12:15:00Z", "`since` is in the future. Times are in UTC"),
        ("since=yesterday", "`since` must be a length of time such as"),
        ("decision=1", "`decision` must be the id of a decision"),
        ("limit=0", "`limit` must be a whole number"),
    ):
        answer = requests.get(f"{gateway.admin}/events?{query}", timeout=10)
        assert problem(answer, 400, "bad_request")["detail"].startswith(sentence), (query, answer.text)
    status, _, complaint = tool(gateway, "account", "history", number, "--since", "2126-11-20T12:15:00Z")
    assert status == 2 and "--since is in the future. Times are in UTC" in complaint


def test_tokens_with_names_and_roles(new_gateway, number):
    gateway = new_gateway
    value = (
        f'{{ address = "127.0.0.1:{gateway.ports[1]}", tokens = {{ {{ name = "grafana", role = "read", token = env "READ" }}, '
        '{ name = "ravi", role = "act", token = env "ACT" } } }'
    )
    gateway.edit("gateway.lua", lambda text: re.sub(r"\n  admin = .*", f"\n  admin = {value},", text))
    gateway.start(READ=READ, ACT=ACT)
    acts, reads = ({"Authorization": f"Bearer {token}"} for token in (ACT, READ))
    assert requests.get(f"{gateway.admin}/policy", timeout=10).status_code == 401
    assert requests.get(f"{gateway.admin}/metrics", headers=reads, timeout=10).status_code == 200
    problem(requests.post(f"{gateway.admin}/policy/reload", headers=reads, timeout=10), 403, "denied")
    problem(requests.get(f"{gateway.admin}/outbox", headers=reads, timeout=10), 403, "denied")
    assert requests.post(f"{gateway.admin}/policy/reload", headers=acts, timeout=10).status_code == 200
    assert [event["operator"] for event in events(gateway, "kind=reload_requested", headers=reads)] == ["ravi"]
    # Attack: many wrong tokens. Further requests from the address reveal nothing.
    with requests.Session() as attacker:
        for _ in range(1000):
            problem(
                attacker.get(f"{gateway.admin}/policy", headers={"Authorization": "Bearer no"}, timeout=10),
                401,
                "unauthenticated",
            )
    refused = requests.get(f"{gateway.admin}/policy", headers=acts, timeout=10)
    problem(refused, 429, "rate_limited")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert ACT not in gateway.log and READ not in gateway.log


class Receiver(HTTPService):
    """A site that receives events, verifies their signatures, and answers as configured."""

    def __init__(self, secret):
        self.lines, self.status = [], 500
        receiver = self

        class Answers(Handler):
            protocol_version = "HTTP/1.0"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time_, code = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", self.headers["Moongate-Signature"]).groups()
                right = hmac.new(secret.encode(), time_.encode() + b"." + body, hashlib.sha256).hexdigest()
                assert hmac.compare_digest(code, right) and abs(time.time() - int(time_)) < 60
                # It may fail between accepting and answering.
                receiver.lines += [json.loads(line) for line in body.splitlines()]
                self.send_response(receiver.status)
                self.end_headers()

        super().__init__(Answers)
        self.url = f"http://127.0.0.1:{self.port}/in"


def test_the_audit_trail_goes_out(new_gateway, other_number):
    """One sink is a full disk, another one fails at first; the gateway is killed in between. No event is lost or
    invented, and all are in order."""
    gateway = new_gateway
    secret = "the-key-of-the-signature"
    receiver = Receiver(secret)
    sinks = (
        f'audit = {{ file {{ path = "data/audit.log", rotate = "1GiB" }}, file {{ path = "/dev/full" }}, '
        f'webhook {{ url = "{receiver.url}", secret = env "SECRET" }} }},'
    )
    (gateway.config / "data").mkdir(exist_ok=True)
    gateway.edit("gateway.lua", lambda text: re.sub(r"\n  admin = ", f"\n  {sinks}\n  admin = ", text))
    gateway.start(SECRET=secret)
    for _ in range(3):
        gateway.register(other_number())
    wait_for(lambda: receiver.lines, "the site to be asked")
    # Events that the site accepted without confirmation are sent again.
    gateway.server.end(signal.SIGKILL)
    receiver.status = 200
    before = len(receiver.lines)
    gateway.start(SECRET=secret)
    gateway.register(other_number())
    # The events of the store, without those that are added while reading.
    stored = [event["id"] for event in reversed(events(gateway, "limit=100000"))]

    def at_least_once(ids):
        """Whether each event arrived, with the first arrivals in the order of the trail."""
        firsts = list(dict.fromkeys(ids))
        return [id for id in firsts if id in set(stored)] == stored

    # The lease of the killed gateway expires.
    wait_for(
        lambda: at_least_once(line["metadata"]["uid"] for line in receiver.lines[before:]), "all events at the site", 60
    )
    log = gateway.config / "data/audit.log"
    wait_for(
        lambda: at_least_once(json.loads(line)["metadata"]["uid"] for line in log.read_text().splitlines()),
        "all events in the file",
        60,
    )
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert os.stat(log).st_mode & 0o777 == 0o600
    assert {line["class_uid"] for line in lines} == {3002} and all(line["time"] for line in lines)
    signed_in = [line for line in lines if line["activity_name"] == "session_started"]
    assert len({line["metadata"]["uid"] for line in signed_in}) == 4 and all(
        line["user"]["uid"].startswith("ac_") for line in signed_in
    )
    known = set(stored) | {event["id"] for event in events(gateway, "limit=100000")}
    assert {line["metadata"]["uid"] for line in lines} <= known, "no invented ones"
    assert gateway.log.count("the audit trail cannot be sent") <= 4 and "No space left on device" in gateway.log
    metrics = requests.get(f"{gateway.admin}/metrics", timeout=10).text
    for sink, failures in (
        ("file .*audit.log", "0"),
        ("file /dev/full", r"[1-9]\d*"),
        (f"webhook {re.escape(receiver.url)}", "0"),
    ):
        assert re.search(rf'^moongate_audit_failures_total{{sink="{sink}"}} {failures}$', metrics, re.M), metrics
    assert re.search(r'^moongate_audit_backlog_events{sink="file /dev/full"} [1-9]', metrics, re.M)
    assert secret not in gateway.log and secret not in metrics
