"""Provider programs: start, calls, replacement, kills, and violations."""

import json
import os
import pathlib
import re
import subprocess
import threading
import time

import jsonschema
import pytest
import requests

import programs
from local_gateway import BIN, ROOT, LocalGateway, problem, wait_for, wrong
from test_reload import reload

TOKEN = {"HUB_TOKEN": "t0ken-of-the-hub"}


@pytest.fixture
def hub(tmp_path):
    """A gateway with the provider, not started yet."""
    gateway = LocalGateway(tmp_path)
    yield gateway
    gateway.stop()


def sign_in(gateway, phone):
    flow = gateway.flow("hub")
    begun = programs.begin(gateway, flow, phone)
    assert begun.status_code == 200, begun.text
    assert begun.json()["step"]["fields"][0]["length"] == 6
    code = programs.sent(gateway, phone)[3]
    assert problem(gateway.submit(flow, wrong(code)), 401, "invalid_code")["attempts_left"] == 4
    done = gateway.submit(flow, code)
    assert done.status_code == 200 and done.json()["status"] == "complete", done.text
    return done.json()


def test_a_person_signs_in_by_a_code_that_a_program_delivers(hub, number):
    body = 'old = deliver\ndef deliver(params):\n    print(json.dumps(params), settings["token"], file=sys.stderr, flush=True)\n    return old(params)\n'
    programs.add(hub, body)
    hub.start(**TOKEN)
    done = sign_in(hub, number)
    assert done["account"]["phone"] == number
    assert [passed["provider"] for passed in done["session"]["passed"]] == ["sms_hub"]
    wait_for(lambda: "says:" in hub.log, "the program's own words")
    # The program prints everything that it receives.
    for secret in (TOKEN["HUB_TOKEN"], programs.sent(hub, number)[3], number):
        assert secret not in hub.log
    environment = pathlib.Path(f"/proc/{programs.pid(hub)}/environ").read_bytes()
    # (An interpreter may be a script that adds to it.)
    assert (
        b"LANG=C.UTF-8" in environment
        and b"HUB_TOKEN" not in environment
        and b"HOME=" not in environment
        and b"PYTEST" not in environment
    )


def test_a_changed_program_takes_over_and_flows_go_on(hub, number, other_number):
    programs.add(hub)
    hub.start(**TOKEN)
    flow = hub.flow("hub")
    assert programs.begin(hub, flow, number).status_code == 200
    old, before = programs.pid(hub), hub.policy()["active"]
    programs.write(hub, 'VERSION = "two"')
    assert reload(hub).status_code == 200
    assert hub.policy()["active"] != before
    assert programs.pid(hub) != old
    # A flow of the previous program completes, and the previous program is stopped.
    assert hub.submit(flow, programs.sent(hub, number)[3]).json()["status"] == "complete"
    other = other_number()
    assert programs.begin(hub, hub.flow("hub"), other).status_code == 200
    assert programs.sent(hub, other)[:2] == ["two", "Ours"]
    programs.wait_gone(old, 30)
    # A saved file is noticed without a command.
    programs.write(hub, 'VERSION = "three"')
    wait_for(
        lambda: (
            "three" in (hub.config / "sent.txt").read_text()
            or programs.begin(hub, hub.flow("hub"), other_number()) is None
        ),
        "the third",
        30,
    )
    # Changed settings also start a new program.
    hub.edit("gateway.lua", lambda text: text.replace('sender = "Ours"', 'sender = "Theirs"'))
    assert reload(hub).status_code == 200
    last = other_number()
    assert programs.begin(hub, hub.flow("hub"), last).status_code == 200
    assert programs.sent(hub, last)[:2] == ["three", "Theirs"]


@pytest.mark.parametrize(
    "body, words",
    [
        ("sys.exit(3)", "the program ./sms_hub.py ended with status 3"),
        ("time.sleep(100)", "did not answer `hello` within 10s"),
        (
            "old = introduce\ndef introduce(params): return {**old(params), 'protocol': 9}",
            "speaks version 9 of the protocol, and this gateway version 1: update the gateway",
        ),
        (
            "old = introduce\ndef introduce(params): return {**old(params), 'settings': []}",
            "sms_hub.sender: unknown field",
        ),
        ("def configure(params): raise SystemExit(4)", "ended with status 4"),
    ],
)
def test_a_program_that_does_not_start_refuses_the_candidate(hub, number, body, words):
    programs.add(hub)
    hub.start(**TOKEN)
    before = hub.policy()["active"]
    programs.write(hub, body)
    told = reload(hub)
    assert told.status_code == 422, told.text
    shown = hub.policy()
    assert shown["active"] == before
    found = [
        one
        for one in shown["candidate_refused"]["problems"]
        if words in f"{one['path'].removeprefix('providers.')}: {one['message']}"
    ]
    assert found and found[0]["file"] == "gateway.lua" and found[0]["line"], shown["candidate_refused"]
    wait_for(
        lambda: re.search(rf"gateway\.lua:{found[0]['line']}: providers\.sms_hub", hub.log), "the problem in the log"
    )
    sign_in(hub, number)


def test_a_program_that_is_killed_in_mid_flow_comes_back(hub, number, other_number):
    programs.add(hub)
    hub.start(**TOKEN)
    flow = hub.flow("hub")
    assert programs.begin(hub, flow, number).status_code == 200
    killed = programs.pid(hub)
    os.kill(killed, programs.KILL)
    # Its code does not need the program any more.
    assert hub.submit(flow, programs.sent(hub, number)[3]).json()["status"] == "complete"
    wait_for(lambda: programs.pid(hub) != killed, "its next start")
    sign_in(hub, other_number())
    assert "was killed by signal 9; it is started again" in hub.log


def test_a_call_that_its_program_dies_over_is_a_fault_and_not_charged(hub, number):
    programs.add(hub, "def deliver(params):\n    os._exit(1)\n")
    hub.start(**TOKEN)
    flow = hub.flow("hub")
    for _ in range(3):
        problem(programs.begin(hub, flow, number), 503, "delivery_failed")
    # Nothing was charged, and no timer runs.
    programs.write(hub)
    assert reload(hub).status_code == 200
    assert programs.begin(hub, flow, number).status_code == 200


UNREACHED = '''
first_introduction = introduce
def introduce(params):
    return {**first_introduction(params), "delivery_reasons": [{"reason": "not_there", "sentence": "This number is not at the hub.", "permanent": True}]}
def deliver(params): return {"failed": "not_there"}
'''


def test_failed_delivery_falls_back_to_the_next_provider(hub, number, other_number):
    # A busy machine must not look like a declared reason.
    programs.add(
        hub, UNREACHED, entry='exec { "./sms_hub.py", timeout = "20s", sender = "Ours", token = env "HUB_TOKEN" }'
    )
    hub.start(**TOKEN)
    told = problem(programs.begin(hub, hub.flow("hub"), number), 503, "delivery_failed")
    assert (told["reason"], told["permanent"], told["provider"], told["detail"]) == (
        "not_there",
        True,
        "sms_hub",
        "This number is not at the hub.",
    )
    serving = hub.policy()["active"]
    (hub.config / "flows" / "hub.lua").write_text(
        programs.FLOW.replace('{ "sms_hub" }', '{ fallback { "sms_hub", "phone_otp" } }')
    )
    hub.wait_generation(serving)
    flow, other = hub.flow("hub"), other_number()
    begun = programs.begin(hub, flow, other)
    assert begun.status_code == 200, begun.text
    done = hub.submit(flow, hub.code(other))
    assert done.status_code == 200 and [passed["provider"] for passed in done.json()["session"]["passed"]] == [
        "phone_otp"
    ], done.text
    metrics = requests.get(f"{hub.admin}/metrics", timeout=10).text
    assert 'moongate_provider_calls_total{provider="sms_hub",call="deliver",outcome="undeliverable"} 2' in metrics
    assert re.search(r'moongate_provider_call_seconds_count\{provider="sms_hub",call="deliver"\} 2$', metrics, re.M), (
        metrics
    )


def test_hanging_program_does_not_delay_others(hub, other_number):
    programs.add(hub, "def deliver(params):\n    time.sleep(1000)\n")
    hub.start(**TOKEN)
    answers = []
    hanging = [
        threading.Thread(
            target=lambda phone=other_number(): answers.append(programs.begin(hub, hub.flow("hub"), phone).status_code)
        )
        for _ in range(40)
    ]
    for thread in hanging:
        thread.start()
    started = time.monotonic()
    for _ in range(5):
        hub.register(other_number())
    assert time.monotonic() - started < 10
    for thread in hanging:
        thread.join(60)
    assert set(answers) == {503}
    assert hub.log.count("no answer within 2s") <= 60


@pytest.mark.parametrize("how", [programs.KILL, 15])
def test_no_program_outlives_the_gateway(hub, how):
    # The program neither reads its input nor reacts to SIGTERM.
    programs.add(hub, "def deliver(params):\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(1000)\n")
    hub.start(**TOKEN)
    flow = hub.flow("hub")
    thread = threading.Thread(
        target=lambda: (
            pytest.raises(Exception, programs.begin, hub, flow, "+919876500001")
            if how == 9
            else programs.begin(hub, flow, "+919876500001")
        )
    )
    thread.start()
    own = programs.pid(hub)
    wait_for(
        lambda: (
            "SigIgn:\t0000000000004" in pathlib.Path(f"/proc/{own}/status").read_text()
            or int(re.search(r"SigIgn:\s+(\w+)", pathlib.Path(f"/proc/{own}/status").read_text()).group(1), 16)
            & (1 << 14)
        ),
        "it to hang",
    )
    hub.server.end(how)
    programs.wait_gone(own)
    thread.join(20)


def test_check_starts_programs_and_reports_it(hub):
    programs.add(hub)

    def check(*options):
        return subprocess.run(
            [BIN / "moongate", "check", "--config", hub.config, *options],
            capture_output=True,
            text=True,
            env={**os.environ, **TOKEN},
            timeout=60,
        )

    told = check()
    assert told.returncode == 0 and "started for the handshake and stopped again: sms_hub" in told.stdout, told.stdout
    assert json.loads(check("--json").stdout)["programs"] == ["sms_hub"]
    programs.wait_gone(programs.pid(hub))
    hub.edit("gateway.lua", lambda text: text.replace('sender = "Ours"', "sender = 7"))
    told = check()
    assert told.returncode == 1 and re.search(
        r'^gateway\.lua:\d+: providers\.sms_hub\.sender: must be a text in quotes, not the number 7$', told.stdout, re.M
    ), told.stdout
    hub.edit(
        "gateway.lua",
        lambda text: text.replace("sender = 7", 'sender = "Ours"').replace("sms_hub = exec", "password = exec"),
    )
    told = check().stdout
    assert re.search(r"^gateway\.lua:\d+: password: is set twice in one table", told, re.M), told
    hub.edit("gateway.lua", lambda text: text.replace("    password = {},", ""))
    told = check().stdout
    assert re.search(r"^gateway\.lua:\d+: providers\.password: duplicate name", told, re.M), told


def test_testing_a_configuration_sends_no_messages(hub):
    programs.add(hub)
    (hub.config / "tests" / "hub.lua").write_text("""return tests {
      case "in by the hub" { flow "hub", phone "+919999999999", send(), right(), expect { status = "complete" } },
    }""")
    told = subprocess.run(
        [BIN / "moongate", "policy", "test", "--config", hub.config],
        capture_output=True,
        text=True,
        env={**os.environ, **TOKEN},
        timeout=60,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert not (hub.config / "sent.txt").exists()


def test_a_module_beside_the_program_counts(hub, number, other_number):
    (hub.config / "hub").mkdir()
    (hub.config / "hub" / "words.py").write_text('VERSION = "one"\n')
    programs.add(hub, entry='exec { "./hub/sms_hub.py", timeout = "2s", sender = "Ours", token = env "HUB_TOKEN" }')
    programs.write(hub, 'import sys; sys.dont_write_bytecode = True\nfrom words import VERSION', name="hub/sms_hub.py")
    hub.start(**TOKEN)
    assert programs.begin(hub, hub.flow("hub"), number).status_code == 200
    assert programs.sent(hub, number)[0] == "one"
    serving = hub.policy()["active"]
    (hub.config / "hub" / "words.py").write_text('VERSION = "two"\n')
    hub.wait_generation(serving)
    other = other_number()
    assert programs.begin(hub, hub.flow("hub"), other).status_code == 200
    assert programs.sent(hub, other)[0] == "two"
    # A module is saved after the file that imports it: the program cannot start until then.
    serving = hub.policy()["active"]
    programs.write(hub, 'import sys; sys.dont_write_bytecode = True\nfrom later import VERSION', name="hub/sms_hub.py")
    refused = wait_for(lambda: hub.policy()["candidate_refused"], "the refusal")
    assert "No module named 'later'" in refused["problems"][0]["message"], refused
    (hub.config / "hub" / "later.py").write_text('VERSION = "three"\n')
    hub.wait_generation(serving)


BADGE = '''
def introduce(params):
    return {"protocol": 1, "shape": "full", "federated": True, "submit": [{"name": "badge", "kind": "text"}],
            "settings": [{"name": "sender", "kind": "text"}, {"name": "token", "kind": "secret"}],
            "outcomes": [{"reason": "no_badge", "sentence": "That is no badge."}],
            "facts": [{"name": "floor", "kind": "number", "help": "where their desk is"}],
            "policy": "return policy \\"%s\\" { limits = { verify = { on = \\"verify\\", per = \\"ip\\", max = 50, window = \\"1h\\" } } }" % params["name"]}

def begin(params): return {"ask": {"fields": [{"name": "badge", "kind": "text"}]}}

def submit(params):
    person, floor = params["fields"]["badge"].split()
    return {"proved": {"identifiers": [{"kind": "federated", "value": "sms_hub " + person, "attributes": {"floor": floor, "clearance": "all"}}]}}

def answer(message):
    method = {"hello": introduce, "configure": configure, "begin": begin, "submit": submit}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": method(message["params"])}), flush=True)
'''


def test_a_fact_that_a_program_declares_is_read_by_policies(hub):
    programs.add(hub, BADGE)
    flow = hub.config / "flows" / "hub.lua"
    rule = '{ "email_code", when = function(f) return f.federated.floor == 3 end }'
    flow.write_text(programs.FLOW.replace('{ "sms_hub" }', '{ "sms_hub" }, ' + rule))
    hub.start(**TOKEN)
    for badge, status in [("ann 3", "pending"), ("bob 4", "complete"), ("eve x", "complete")]:
        id = hub.flow("hub")
        assert hub.api("POST", f"/flows/{id}/begin", {"provider": "sms_hub"}).status_code == 200
        told = hub.api("POST", f"/flows/{id}/submit", {"badge": badge})
        assert told.status_code == 200 and told.json()["status"] == status, told.text

    # The editor's types contain it, and misspelled or undeclared names are reported with their line.
    def tool(*words):
        return subprocess.run(
            [BIN / "moongate", *words, "--config", hub.config],
            capture_output=True,
            text=True,
            env={**os.environ, **TOKEN},
            timeout=60,
        ).stdout

    assert "---@field floor number? where their desk is" in tool("policy", "types")
    for wrong_name in ("flor", "clearance"):
        flow.write_text(programs.FLOW.replace('{ "sms_hub" }', '{ "sms_hub" }, ' + rule.replace("floor", wrong_name)))
        told = tool("check")
        assert re.search(rf"^flows/hub\.lua:\d+: .*f\.federated\.{wrong_name}", told, re.M), told


GROUPED = BADGE.replace(
    '"attributes": {"floor": floor, "clearance": "all"}', '"groups": floor.strip("-").split(",") if floor != "-" else []'
)


def test_groups_are_renewed_by_every_sign_in(hub):
    """Attack: somebody who was removed from a group in the directory keeps it in a live session."""
    programs.add(hub, GROUPED)
    (hub.config / "accounts.lua").write_text(
        "return accounts { groups = { ops = function(f)\n"
        "  local hub = f.account.identities.sms_hub\n"
        '  return hub and hub.groups["grafana-admins"] end } }\n'
    )
    (hub.config / "routes.lua").write_text(
        'return routes {\n  { path = "/ops/**", to = "http://127.0.0.1:1", require = { group = "ops" } },\n'
        '  { path = "/**", to = "http://127.0.0.1:1" },\n}\n'
    )
    hub.start(**TOKEN)

    def signs_in(badge):
        flow = hub.flow("hub")
        assert hub.api("POST", f"/flows/{flow}/begin", {"provider": "sms_hub"}).status_code == 200
        done = hub.api("POST", f"/flows/{flow}/submit", {"badge": badge})
        assert done.status_code == 200 and done.json()["status"] == "complete", done.text
        return done.json()["session"]["token"]

    def status(token):
        answer = requests.get(hub.url + "/ops/x", headers={"Authorization": f"Bearer {token}"}, timeout=20)
        return answer.status_code

    live = signs_in("ann dev,grafana-admins")
    assert status(live) == 502, "the route is open, and its service is not there"
    for badge, expected in (("ann dev", 403), ("ann grafana-admins", 502), ("ann -", 403)):
        began = time.monotonic()
        signs_in(badge)
        wait_for(lambda: status(live) == expected, f"{expected} after {badge}")
        assert time.monotonic() - began < 5
    # More groups than can be stored are refused, and the earlier ones stay.
    signs_in("ann grafana-admins")
    flow = hub.flow("hub")
    hub.api("POST", f"/flows/{flow}/begin", {"provider": "sms_hub"})
    problem(
        hub.api("POST", f"/flows/{flow}/submit", {"badge": "ann " + ",".join(f"g{number}" for number in range(501))}),
        503,
        "busy",
    )
    assert status(live) == 502 and "more than 500 groups" in hub.log


# The first steps of an author.


def moongate(*words, folder=None):
    return subprocess.run(
        [BIN / "moongate", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "MOONGATE": str(BIN / "moongate")},
    )


def test_a_new_program_signs_a_person_in(hub):
    assert moongate("provider", "new", "pigeon_post", "--language", "python", "--into", hub.config).returncode == 0
    readme = (hub.config / "pigeon_post" / "README.md").read_text()
    assert "Copy this folder" not in readme, "the program is already in the folder"
    (hub.config / "flows" / "pigeon.lua").write_text(
        programs.FLOW.replace('"hub"', '"pigeon"').replace("sms_hub", "pigeon_post")
    )
    (hub.config / "policies" / "pigeon_post.lua").write_text('return policy "pigeon_post" {}\n')
    hub.edit(
        "gateway.lua",
        lambda text: text.replace(
            "providers = {", 'providers = { pigeon_post = exec { "./pigeon_post/pigeon_post.py" },', 1
        ).replace('"0.1% per 30d"', '"1% per 30d"'),
    )
    hub.start()
    flow = hub.flow("pigeon")
    begun = hub.api("POST", f"/flows/{flow}/begin", {"provider": "pigeon_post", "email": "Asha@Example.com"})
    assert begun.status_code == 200, begun.text
    line = wait_for(lambda: (hub.config / "codes.txt").exists() and (hub.config / "codes.txt").read_text(), "the code")
    assert line.startswith("asha@example.com ")
    done = hub.submit(flow, re.search(r"\b\d{6}\b", line).group())
    assert done.json()["status"] == "complete" and done.json()["account"]["email"] == "asha@example.com"
    # The hosted pages use the program's texts.
    page = requests.get(f"{hub.url}/auth/step?flow=pigeon", headers={"Accept": "text/html"}, timeout=20)
    assert page.status_code == 200 and "Pigeon post" in page.text and "We send you a code." in page.text


@pytest.mark.parametrize(
    "change, words",
    [
        (
            lambda text: text.replace(
                "    def deliver",
                '    def hello(self, name):\n        return {**super().hello(name), "protocol": 2}\n\n    def deliver',
            ),
            "speaks version 2 of the protocol, and this gateway version 1: update the gateway",
        ),
        (lambda text: text.replace("        try:", "        return None\n        try:"), "✗ delivery"),
        (
            lambda text: text.replace("    def deliver", "    deliver = None\n\n    def send"),
            "define `deliver` to send codes, or `begin` and `submit` to verify",
        ),
        (lambda text: "#!/usr/bin/env python3\nimport time\ntime.sleep(100)\n", "did not answer `hello` within 10s"),
        # The line as reported by Python.
        (
            lambda text: text.replace("def deliver(self, message):", "def deliver(self, message"),
            "pigeon_post.py\", line ",
        ),
        (
            lambda text: text.replace("def deliver(self, message):", "def deliver(self, message"),
            "ended with status 1, after it wrote \"SyntaxError: ",
        ),
    ],
)
def test_a_broken_program_does_not(tmp_path, change, words):
    assert moongate("provider", "new", "pigeon_post", "--language", "python", "--into", tmp_path).returncode == 0
    file = tmp_path / "pigeon_post" / "pigeon_post.py"
    file.write_text(change(file.read_text()))
    told = moongate("provider", "test", "./pigeon_post.py", folder=tmp_path / "pigeon_post")
    assert told.returncode == 1 and words in told.stdout + told.stderr, told.stdout + told.stderr


def test_a_program_without_a_limit_per_person_does_not(tmp_path):
    assert moongate("provider", "new", "pigeon_post", "--language", "python", "--into", tmp_path).returncode == 0
    policy = tmp_path / "pigeon_post" / "policy.lua"
    policy.write_text(policy.read_text().replace('per = "email"', 'per = "ip"'))
    told = moongate("provider", "test", "./pigeon_post.py", folder=tmp_path / "pigeon_post")
    assert told.returncode == 1 and "no limit on verify per identifier" in told.stdout, told.stdout


def test_words_beside_a_program_count(hub):
    """A translation that is saved while the gateway runs is loaded, and the program still has the same introduction
    at its next start."""
    assert moongate("provider", "new", "pigeon_post", "--language", "python", "--into", hub.config).returncode == 0
    (hub.config / "flows" / "pigeon.lua").write_text(
        programs.FLOW.replace('"hub"', '"pigeon"').replace("sms_hub", "pigeon_post")
    )
    (hub.config / "policies" / "pigeon_post.lua").write_text('return policy "pigeon_post" {}\n')
    hub.edit(
        "gateway.lua",
        lambda text: text.replace(
            "providers = {", 'providers = { pigeon_post = exec { "./pigeon_post/pigeon_post.py" },', 1
        ).replace('"0.1% per 30d"', '"1% per 30d"'),
    )
    hub.start()
    page = lambda: (
        requests.get(
            f"{hub.url}/auth/step?flow=pigeon", headers={"Accept": "text/html", "Accept-Language": "hi"}, timeout=20
        ).text
    )
    assert "हम आपको एक कोड भेजेंगे।" in page()
    serving = hub.policy()["active"]
    words = hub.config / "pigeon_post" / "words" / "hi.words"
    words.write_text(words.read_text().replace("हम आपको एक कोड भेजेंगे।", "कबूतर कोड लाता है।"))
    hub.wait_generation(serving)
    assert "कबूतर कोड लाता है।" in page()


# The schema file, compared with real messages.

SCHEMA = json.loads((ROOT / "Plugins" / "exec.schema.json").read_text())

FULL = '''
def introduce(params):
    return {"protocol": 1, "shape": "full", "identifier": "phone", "federated": True,
            "begin": [{"name": "nickname", "kind": "text", "required": False}], "submit": [{"name": "word", "kind": "password", "length": 8}],
            "settings": [{"name": "sender", "kind": "text", "required": True, "help": "who"}, {"name": "token", "kind": "secret"},
                         {"name": "tries", "kind": "number", "minimum": 1, "maximum": 9, "default": 3},
                         {"name": "mode", "kind": "choice", "choices": ["soft", "hard"], "default": "soft"},
                         {"name": "loud", "kind": "flag", "default": True}, {"name": "hosts", "kind": "list", "default": ["a", "b"]}],
            "outcomes": [{"reason": "wrong_word", "sentence": "That is not the word."}, {"reason": "asleep", "sentence": "Try later.", "counts": False}],
            "facts": [{"name": "floor", "kind": "number", "of": "federated", "help": "where"}, {"name": "carrier", "kind": "text"}],
            "words": {"title": "The word", "instruction": "Say it.", "labels": {"word": "Word"}},
            "policy": "return policy \\"%s\\" { limits = { verify = { on = \\"verify\\", per = \\"phone\\", max = 50, window = \\"24h\\", lock = \\"15m\\" } }, unknown_account = \\"conceal\\" }" % params["name"]}

def begin(params):
    return {"ask": {"fields": [{"name": "word", "kind": "password"}], "state": "begun",
                    "show": [{"kind": "text", "text": "Look"}, {"kind": "qr", "text": "otpauth://x"}, {"kind": "list", "items": ["a", "b"]}]}}

def submit(params):
    word = params["fields"]["word"]
    if word == "late": time.sleep(3)
    if word == "sleep": return {"refused": "asleep"}
    if word == "bad": return {"malformed": {"field": "word", "detail": "Say a word."}}
    if word == "open": return {"proved": {"identifiers": [params["identifier"]], "first_name": "Ann", "record": {"replace": "r"}}}
    return {"refused": "wrong_word"}

def answer(message):
    print(json.dumps({"jsonrpc": "2.0", "method": "log", "params": {"level": "info", "message": "asked", "values": {"n": 1}}}), flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": "x", "method": "what"}), flush=True)
    method = {"hello": introduce, "configure": configure, "deliver": deliver, "begin": begin, "submit": submit}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": method(message["params"])}), flush=True)
'''

# Records all messages in both directions.
TAPE = '''
class Tape:
    def __init__(self, stream, name): self.stream, self.name = stream, name
    def write(self, text):
        with open("tape.txt", "a") as file: file.write(self.name + text if text != "\\n" else text)
        return self.stream.write(text)
    def flush(self): self.stream.flush()
    def __iter__(self):
        for line in self.stream:
            with open("tape.txt", "a") as file: file.write(self.name + line)
            yield line
sys.stdin, sys.stdout = Tape(sys.stdin, "gateway "), Tape(sys.stdout, "program ")
'''


def schema(name):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def tape(gateway):
    return [line.split(" ", 1) for line in (gateway.config / "tape.txt").read_text().splitlines()]


def test_the_schema_matches_the_messages(hub, number, other_number):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    programs.add(hub, FULL + TAPE)
    hub.start(**TOKEN)
    flow = hub.flow("hub")
    begun = programs.begin(hub, flow, number)
    assert begun.status_code == 200, begun.text
    assert [shown["kind"] for shown in begun.json()["step"]["show"]] == ["text", "qr", "list"]
    submit = lambda word: hub.api("POST", f"/flows/{flow}/submit", {"word": word})
    assert problem(submit("no"), 401, "wrong_word")["detail"] == "That is not the word."
    problem(submit("sleep"), 401, "asleep")
    problem(submit("bad"), 422, "invalid_input")
    assert submit("late").status_code == 503
    # It answers the earlier call first.
    wait_for(lambda: submit("open").json()["status"] == "complete", "the right word")
    programs.write(hub, TAPE)
    assert reload(hub).status_code == 200
    assert programs.begin(hub, hub.flow("hub"), other_number()).status_code == 200
    hub.server.end()

    asked, methods = {}, set()
    for who, line in tape(hub):
        message = json.loads(line)
        assert (
            not list(schema("fromGateway" if who == "gateway" else "fromProgram").iter_errors(message))
            or message.get("method") == "what"
        ), line
        if who == "gateway" and "method" in message:
            methods.add(message["method"])
            asked[message.get("id")] = message["method"]
        elif who == "program" and "result" in message:
            schema("results").validate({asked[message["id"]]: message["result"]})
    assert methods == {"hello", "configure", "deliver", "begin", "submit", "cancel", "shutdown"}


# Messages that the gateway refuses must also violate the schema. (The schema cannot know which identifiers and outcomes
# are allowed.)
@pytest.mark.parametrize(
    "name, message",
    [
        ("hello", {"protocol": 9, "shape": "code", "identifier": "phone", "policy": "x"}),
        ("hello", {"protocol": 1, "shape": "code", "policy": "x"}),
        ("hello", {"protocol": 1, "shape": "full", "policy": "", "federated": True}),
        ("hello", {"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "A b", "kind": "text"}]}),
        ("hello", {"protocol": 1, "shape": "full", "policy": "x", "submit": [{"name": "a", "kind": "html"}]}),
        (
            "hello",
            {
                "protocol": 1,
                "shape": "full",
                "policy": "x",
                "federated": True,
                "settings": [{"name": "env", "kind": "text"}],
            },
        ),
        (
            "hello",
            {
                "protocol": 1,
                "shape": "full",
                "policy": "x",
                "federated": True,
                "settings": [{"name": "a", "kind": "choice"}],
            },
        ),
        (
            "hello",
            {
                "protocol": 1,
                "shape": "full",
                "policy": "x",
                "federated": True,
                "outcomes": [{"reason": "No!", "sentence": "x"}],
            },
        ),
        (
            "hello",
            {"protocol": 1, "shape": "full", "policy": "x", "federated": True, "facts": [{"name": "a", "kind": "age"}]},
        ),
        (
            "hello",
            {
                "protocol": 1,
                "shape": "code",
                "identifier": "phone",
                "policy": "x",
                "facts": [{"name": "a", "kind": "text"}],
            },
        ),
        ("begin", {"proved": {}}),
        ("submit", {"proved": {}, "refused": "a"}),
        ("submit", {"accepted": True}),
        ("submit", "proved"),
        ("submit", {"redirect": {"to": "javascript:alert(1)"}}),
        ("submit", {"ask": {"fields": [{"name": "<b>", "kind": "text"}]}}),
        ("submit", {"malformed": {"field": "word", "reason": "made_up", "detail": "no"}}),
        ("submit", {"proved": {"record": {"replace": "x" * 20000}}}),
        ("submit", {"proved": {"first_name": "A\x1b[2J"}}),
        ("submit", {"proved": {"claimed": [{"kind": "phone", "value": "+91"}]}}),
        ("submit", {"ask": {"fields": [], "show": [{"kind": "qr"}]}}),
        ("deliver", "done"),
        ("configure", None),
        ("submit", {"ask": {"fields": []}, "then": {"fields": []}}),
        (
            "hello",
            {"protocol": 1, "shape": "code", "identifier": "phone", "policy": "x", "presentation": {"kind": "boxes"}},
        ),
        (
            "hello",
            {
                "protocol": 1,
                "shape": "code",
                "identifier": "phone",
                "policy": "x",
                "entrance": {"kind": "field", "identifier": "name"},
            },
        ),
        ("hello", {"protocol": 1, "shape": "code", "identifier": "phone", "policy": "x", "role": ["owner"]}),
    ],
)
def test_the_schema_and_the_gateway_refuse_the_same_messages(name, message):
    assert not schema("results").is_valid({name: message})
