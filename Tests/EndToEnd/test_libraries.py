"""The client libraries of Sources/moongate-provider/Templates: one provider, written with each, behaves the same.

`probe/` contains the provider in each language. The test plays the gateway and validates the output with
Plugins/exec.schema.json."""

import json
import os
import shutil
import subprocess

import jsonschema
import pytest

from processes import ROOT

PROBE = ROOT / "Tests" / "EndToEnd" / "probe"
TEMPLATES = ROOT / "Sources" / "moongate-provider" / "Templates"
SCHEMA = json.loads((ROOT / "Plugins" / "exec.schema.json").read_text())
# The methods of this gateway's schema.
METHODS = SCHEMA["$defs"]["results"]["properties"]
IDENTIFIER = {"kind": "email", "value": "asha@example.com", "display": "asha@example.com"}
ACCOUNT = {"id": "a1", "record": "kept", "identifiers": [IDENTIFIER], "names": ["Asha"]}
NEEDS = {"python": "python3", "node": "node", "go": "go"}


def go_environment(cache):
    return {
        **os.environ,
        "GOCACHE": str(cache),
        "GOPATH": str(cache / "path"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GO111MODULE": "on",
    }


def holds(part, value):
    jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]}).validate(value)


@pytest.fixture(scope="module", params=NEEDS)
def command(request, tmp_path_factory):
    """The command that starts the provider in one language."""
    if shutil.which(NEEDS[request.param]) is None:
        pytest.skip(f"{NEEDS[request.param]} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("policy.lua", "cases.lua", "flows", "words"):
        (shutil.copytree if (PROBE / name).is_dir() else shutil.copy)(PROBE / name, folder / name)
    if request.param == "go":
        (folder / "moongate").mkdir()
        shutil.copy(TEMPLATES / "moongate.go", folder / "moongate")
        shutil.copy(PROBE / "probe.go", folder)
        (folder / "go.mod").write_text("module probe\n\ngo 1.19\n")
        cache = tmp_path_factory.getbasetemp() / "go-cache"
        subprocess.run(["go", "vet", "./..."], cwd=folder, check=True, env=go_environment(cache))
        subprocess.run(["go", "build", "-o", "probe", "."], cwd=folder, check=True, env=go_environment(cache))
        return [str(folder / "probe")]
    ending = {"python": "py", "node": "mjs"}[request.param]
    for file in (TEMPLATES / f"moongate.{ending}", PROBE / f"probe.{ending}"):
        shutil.copy(file, folder)
    return [NEEDS[request.param], str(folder / f"probe.{ending}")]


class Gateway:
    """The gateway's answers to a program's requests: a store, and fake hashes."""

    def __init__(self):
        self.values, self.asked = {}, []

    def answer(self, method, params):
        self.asked.append((method, params))
        key = params.get("key")
        if method == "store.set":
            if params.get("once") and key in self.values:
                return {"stored": False}
            self.values[key] = params["value"]
            return {"stored": True}
        if method.startswith("store."):
            value = self.values.get(key) if method == "store.get" else self.values.pop(key, None)
            return {} if method == "store.remove" else {"value": value}
        return (
            {"hash": "hash of " + params["secret"]}
            if method == "hash"
            else {"match": params["hash"] == "hash of " + params["secret"], "upgrade": "newer"}
        )


class Spoken:
    """A program, with the gateway's side played by the test."""

    def __init__(self, command, name="probe"):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.last, self.logged, self.gateway = 0, [], None
        self.introduction = self.call("hello", {"protocols": [1], "name": name})

    def write(self, message):
        line = {"jsonrpc": "2.0", **message}
        if message.get("method") in (*METHODS, "cancel", "shutdown", None):
            holds("fromGateway", line)
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def send(self, method, params):
        self.last += 1
        self.write({"id": self.last, "method": method, "params": params})
        return self.last

    def hear(self):
        """The next answer; log messages before it are collected."""
        while True:
            line = self.process.stdout.readline()
            assert line, f"the program ended: {self.process.stderr.read()}"
            message = json.loads(line)
            holds("fromProgram", message)
            if "method" not in message:
                return message
            if message["method"] == "log":
                self.logged.append(message["params"])
            else:
                result = self.gateway and self.gateway.answer(message["method"], message["params"])
                refusal = {"error": {"code": -32001, "message": "call 3 is not open"}}
                self.write({"id": message["id"], **({"result": result} if self.gateway else refusal)})

    def call(self, method, params):
        number = self.send(method, params)
        answer = self.hear()
        assert answer["id"] == number
        if "result" in answer and method in METHODS:
            holds(f"results/properties/{method}", answer["result"])
        return answer

    @staticmethod
    def step(what, **more):
        fields = {"what": what} if what else {}
        return {
            "flow": "login",
            "flow_purpose": "sign_in",
            "purpose": "prove",
            "identifier": IDENTIFIER,
            "account": ACCOUNT,
            "fields": fields,
            "now": 7,
            **more,
        }

    def submit(self, what, **more):
        return self.call("submit", self.step(what, **more))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def probe(command):
    probe = Spoken(command)
    assert probe.call("configure", {"settings": {"token": "t0ken-of-the-hub", "count": 3}})["result"] == {}
    yield probe
    probe.close()


def test_hello_matches_the_declaration(probe):
    said = probe.introduction["result"]
    assert (
        said["protocol"] == 1
        and said["shape"] == "full"
        and said["identifier"] == "email"
        and said["role"] == ["factor"]
    )
    assert [(field["name"], field.get("required", True)) for field in said["submit"]] == [("what", True)]
    assert [(outcome["reason"], outcome.get("counts", True)) for outcome in said["outcomes"]] == [
        ("wrong", True),
        ("again", False),
    ]
    assert said["settings"][1] == {"name": "count", "kind": "number", "default": 3, "minimum": 1, "maximum": 9} | {
        key: value for key, value in said["settings"][1].items() if key == "required"
    }
    assert said["facts"] == [{"name": "floor", "kind": "number", "of": "email", "help": "Where they work."}]
    assert said["words"]["translations"] == {"hi": {"Probe": "जाँच", "What to do": "क्या = करना है"}}
    assert said["record_version"] == 2 and "hook" not in said and "callback" not in said
    assert 'policy "probe"' in said["policy"] and said["flows"] == {
        "probe_set": (PROBE / "flows" / "probe_set.lua").read_text()
    }
    assert said["cases"] == (PROBE / "cases.lua").read_text()


def test_another_name_is_used_in_its_lua(command):
    probe = Spoken(command, name="second_probe")
    said = probe.introduction["result"]
    assert 'policy "second_probe"' in said["policy"]
    assert said["flows"] == {
        "second_probe_set": (PROBE / "flows" / "probe_set.lua").read_text().replace('"probe', '"second_probe')
    }
    assert said["cases"] == (PROBE / "cases.lua").read_text().replace('"probe', '"second_probe')
    probe.close()


def test_every_answer(probe):
    assert probe.call("begin", probe.step(None))["result"]["ask"]["fields"][0]["name"] == "what"
    assert probe.submit("proved")["result"] == {"proved": {}}
    assert probe.submit("everything")["result"]["proved"] == {
        "identifiers": [{"kind": "email", "value": "asha@example.com", "attributes": {"floor": "3"}}],
        "claimed": [{"kind": "email", "value": "b@example.com"}],
        "first_name": "Asha",
        "last_name": "Rao",
        "record": {"replace": "kept and 3", "once": True},
    }
    assert probe.submit("remove")["result"]["proved"]["record"] == {}
    assert probe.submit("renew")["result"]["proved"]["record"].items() <= {"replace": "newer", "once": False}.items()
    assert probe.submit("wrong")["result"] == {"refused": "wrong"}
    assert probe.submit("malformed")["result"]["malformed"] == {"field": "what", "detail": "Say something."}
    redirect = probe.submit("redirect")["result"]["redirect"]
    assert redirect["to"] == "https://example.com/" and json.loads(redirect["state"]) == [1]
    assert probe.submit("equal")["result"] == {"proved": {}}


def test_rare_answers(probe):
    assert probe.submit("weak")["result"] == {
        "malformed": {"field": "what", "detail": "Say more.", "reason": "weak_pin"}
    }
    assert probe.submit("both")["result"] == {"proved": {"multi_factor": True}}
    field = probe.submit("choose")["result"]["ask"]["fields"][0]
    assert field["kind"] == "choice" and field["choices"] == [
        {"value": "a", "label": "The first"},
        {"value": "b", "label": "The second"},
    ]
    ceremony = probe.submit("ceremony")["result"]["ask"]
    assert (
        ceremony["show"][0]["call"] == "get"
        and json.loads(ceremony["show"][0]["options"]) == {"challenge": "AA"}
        and ceremony["fields"][0]["kind"] == "json"
    )


def test_an_answer_that_waits(probe):
    waiting = probe.submit("wait")["result"]["wait"]
    assert (
        waiting["poll"] == 2500
        and json.loads(waiting["state"]) == {"handle": 1}
        and waiting["show"][0]["text"] == "Look at your phone."
    )


def test_state_comes_back_as_it_was_given(probe):
    first = probe.submit("rounds")["result"]["ask"]
    assert [one["kind"] for one in first["show"]] == ["text", "secret", "qr", "list"] and first["show"][3]["items"] == [
        "a",
        "b",
    ]
    second = probe.submit("rounds", state=first["state"])["result"]
    assert second["refused"] == "again" and json.loads(second["then"]["state"]) == {"round": 2}


def test_granted_capabilities(probe):
    probe.gateway = Gateway()
    heard = json.loads(probe.submit("tools")["result"]["proved"]["record"]["replace"])
    assert heard == ["hash of a word", True, "newer", False, "value", "value", None]
    assert [method for method, _ in probe.gateway.asked] == [
        "hash",
        "verify",
        "store.set",
        "store.set",
        "store.get",
        "store.take",
        "store.take",
        "store.remove",
    ]
    # Each request names its own call, regardless of other open calls.
    assert {params["call"] for _, params in probe.gateway.asked} == {probe.last}
    assert [params["expires_in"] for _, params in probe.gateway.asked if "expires_in" in params] == [60, 1.5]


def test_capability_that_is_not_granted_is_a_fault(probe):
    assert probe.submit("tools")["error"]["message"] == "`hash`: call 3 is not open"


@pytest.mark.parametrize("what, advice", [("undeclared", "outcomes"), ("nothing", "return"), ("long", "131072")])
def test_mistake_raises_an_error_with_advice(probe, what, advice):
    told = probe.submit(what)["error"]["message"]
    assert advice.lower() in told.lower()


def test_a_proof_in_begin_is_an_error(probe):
    """Attack: a step that succeeds without an attempt is not counted by any limit."""
    assert "begin" in probe.call("begin", probe.step(None, flow="mistake"))["error"]["message"]


def test_exception_is_a_fault_without_user_input(probe):
    """Attack: an exception quotes a part of the input, but the gateway redacts only the whole input."""
    told = probe.submit("crash,ninety-nine quiet-pigeons, and more")["error"]["message"]
    assert "probe." in told and "[redacted]" in told, told
    for word in ("ninety", "nine", "quiet", "pigeons"):
        assert word not in told
    assert probe.submit("proved")["result"] == {"proved": {}}


def test_printed_text_is_not_a_message(probe):
    assert probe.submit("print")["result"] == {"proved": {}}
    assert probe.submit("proved")["result"] == {"proved": {}}


def test_calls_run_side_by_side_and_are_cancelled(probe):
    hanging = [probe.send("submit", probe.step("hang", now=number)) for number in range(100)]
    assert probe.submit("proved")["result"] == {"proved": {}}
    for number in hanging:
        probe.write({"method": "cancel", "params": {"id": number}})
    while len(probe.logged) < 100:
        probe.submit("proved")
    assert (
        sorted(line["values"]["call"] for line in probe.logged) == list(range(100))
        and probe.logged[0]["level"] == "warning"
    )


def test_settings_are_refused_with_the_reason(command):
    probe = Spoken(command)
    assert (
        probe.call("configure", {"settings": {"token": "bad", "count": 3}})["error"]["message"]
        == "`token` is not one of the hub's"
    )
    probe.close()


def test_an_unknown_method_is_refused(probe):
    number = probe.last = probe.last + 1
    probe.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "later", "params": {}}) + "\n")
    probe.process.stdin.flush()
    answer = probe.hear()
    assert answer["id"] == number and answer["error"]["code"] == -32601 and "later" in answer["error"]["message"]


def test_shutdown_ends_it_while_calls_wait(command):
    probe = Spoken(command)
    probe.call("configure", {"settings": {"token": "t0ken-of-the-hub", "count": 3}})
    probe.send("submit", probe.step("hang"))
    probe.write({"method": "shutdown"})
    assert probe.process.wait(5) == 0
    probe.close()


def test_codes(command):
    probe = Spoken([*command, "codes"])
    assert probe.introduction["result"]["shape"] == "code" and "submit" not in probe.introduction["result"]
    probe.call("configure", {"settings": {}})
    message = {
        "code": "123456",
        "text": "123456 is your code",
        "domain_bound_line": "@x #123456",
        "service": "Moongate",
        "now": 0,
    }
    person = {"kind": "phone", "value": "+919999999999", "display": "+91 99999 99999"}
    assert probe.call("deliver", {**message, "to": person})["result"] == {}
    assert probe.logged == [{"level": "info", "message": "sent", "values": {"length": 29}}]
    to = lambda value: probe.call("deliver", {**message, "to": {**person, "value": value}})
    assert to("+919999999990")["error"]["message"] == "the hub is down"
    assert to("+918888888888")["result"] == {"failed": "not_there"}
    assert "nobody_knows" in to("+918888888880")["error"]["message"]
    probe.close()


def test_webhooks_and_maintenance(command):
    probe = Spoken([*command, "codes"])
    said = probe.introduction["result"]
    assert (
        said["hook"] is True
        and said["callback"] == []
        and said["maintain"] == 60
        and said["delivery_reasons"][0]["permanent"] is True
    )
    probe.call("configure", {"settings": {}})
    probe.gateway = Gateway()
    webhook = {"headers": {"signature": "right"}, "remote": "192.0.2.1", "now": 5}
    assert probe.call("hook", {**webhook, "body": "{}", "headers": {}})["result"] == {"refused": "unauthenticated"}
    assert probe.gateway.values == {}
    assert probe.call("hook", {**webhook, "body": "{\"é\":1}"})["result"] == {"accepted": {"text": "thanks"}}
    assert probe.gateway.values["approved"] == "{\"é\":1}".encode().decode("latin-1")
    # Signatures cover bytes, so bodies that are not UTF-8 arrive unchanged.
    probe.call("hook", {**webhook, "body_base64": "/wD+"})
    assert probe.gateway.values["approved"] == "\xff\x00\xfe"
    assert probe.call("maintain", {"now": 9})["result"] == {}
    assert probe.gateway.asked[-1][1]["key"] == "old 9"
    probe.close()


def test_rechecks(command):
    probe = Spoken([*command, "rechecks"])
    assert probe.introduction["result"]["recheck"] is True
    person = {"kind": "federated", "value": "probe 1"}

    def asked(state):
        said = {"identity": {**person, "display": "Asha"}, "state": state, "now": 5}
        return probe.call("recheck", said)["result"]

    assert asked("fine") == {"confirmed": {**person, "groups": ["ops"]}, "state": "new 5"}
    assert asked("gone") == {"ended": "invalid_grant"}
    assert asked("down") == {"failed": "no answer", "state": "new 5"}
    probe.close()


def test_a_record_of_an_older_version_is_upgraded(probe):
    assert probe.call("upgrade", {"record": "kept", "version": 1})["result"] == {"record": "kept of 1"}


@pytest.mark.parametrize(
    "what, advice",
    [("no-upgrade", "converts the records of older versions"), ("no-interval", "says how often it is called")],
)
def test_half_a_declaration_is_an_error(command, what, advice):
    probe = Spoken([*command, what])
    said = probe.introduction.get("error", {}).get("message", "")
    assert said.startswith("define ") and advice in said, probe.introduction
    probe.close()


def test_program_without_its_policy_is_reported(command, tmp_path):
    if command[0].endswith("/probe"):
        pytest.skip("the Go compiler says so")
    for file in os.listdir(os.path.dirname(command[-1])):
        if file.endswith((".py", ".mjs")):
            shutil.copy(os.path.join(os.path.dirname(command[-1]), file), tmp_path)
    probe = Spoken([command[0], str(tmp_path / os.path.basename(command[-1]))])
    assert "policy.lua is missing" in probe.introduction["error"]["message"]
    probe.close()


@pytest.mark.parametrize("library", ["moongate.py", "moongate.mjs", "moongate.go"])
def test_a_library_is_one_file_of_the_standard_library(library):
    text = (TEMPLATES / library).read_text()
    if library.endswith(".mjs"):
        assert all(line.split('"')[-2].startswith("node:") for line in text.splitlines() if line.startswith("import "))
    if library.endswith(".go"):
        imports = text.split("import (", 1)[1].split(")", 1)[0].split()
        assert all("." not in one for one in imports)
