"""The command-line tools while a gateway runs and after it has ended."""

import json
import re
import shutil
import subprocess

import pytest
import requests

from local_gateway import BIN, ROOT, wait_for, wrong

CASE = """return tests {
  case "six tries" {
    flow "enter", phone "+919999999999", send(), wrong { times = 6 },
    expect { status = 401 },
  },
}
"""


def tool(gateway, *words):
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", gateway.config], capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert "\x1b" not in done.stdout, "color is for terminals"
    return done.returncode, done.stdout, done.stderr


def test_explain_asks_the_gateway_and_then_the_store(gateway, number):
    flow = gateway.flow("register")
    assert gateway.begin(flow, number).status_code == 200
    refused = gateway.submit(flow, wrong(gateway.code(number)))
    decision = refused.json()["decision_id"]

    status, text, error = tool(gateway, "policy", "explain", decision)
    assert status == 0, error
    assert text.startswith(f"401 invalid_code  {decision}\n")
    assert "limits.verify  policies/phone_otp.lua:" in text and "0 → 1 of 5" in text
    assert number not in text and gateway.code(number) not in text

    status, text, _ = tool(gateway, "policy", "explain", decision, "--json")
    running = json.loads(text)
    assert status == 0 and running["code"] == "invalid_code" and running["detail"]["counter.verify"] == "0 -> 1 of 5"

    before = gateway.edit("routes.lua", lambda text: text.replace("{ path =", "{ pathh =", 1))
    assert tool(gateway, "policy", "explain", decision)[0] == 0, "a mistake in a file does not hide the gateway"
    status, _, error = tool(gateway, "reload")
    assert status == 1 and "routes.lua:" in error and "pathh" in error, error
    gateway.edit("routes.lua", lambda text: before)

    assert tool(gateway, "policy", "explain", "dc_nobodyknowsthis")[0] == 1
    assert tool(gateway, "policy", "explain", "nonsense")[0] == 2
    gateway.server.end()
    status, text, error = tool(gateway, "policy", "explain", decision, "--json")
    assert status == 0, error
    assert json.loads(text) == running


def test_a_case_that_fails_refuses_the_generation(gateway):
    before = gateway.policy()["active"]
    (gateway.config / "tests" / "mine.lua").write_text(CASE)
    refused = wait_for(lambda: gateway.policy()["candidate_refused"], "the candidate to be refused")
    assert [(one["file"], one["line"]) for one in refused["problems"]] == [("tests/mine.lua", 4)]
    assert "six tries" in refused["problems"][0]["message"] and gateway.policy()["active"] == before
    assert requests.post(f"{gateway.admin}/policy/reload", timeout=40).status_code == 422

    status, text, _ = tool(gateway, "check")
    assert status == 1 and "tests/mine.lua:4: case \"six tries\" fails" in text
    status, text, _ = tool(gateway, "policy", "test")
    assert status == 1 and "✗ six tries" in text and "expected 401" in text

    (gateway.config / "tests" / "mine.lua").unlink()
    wait_for(lambda: not gateway.policy()["candidate_refused"], "the folder to be good again")


def test_show_and_test_tell_programs_too(new_gateway):
    status, text, _ = tool(new_gateway, "policy", "show", "phone_otp", "--json")
    values = {one["path"]: one for one in json.loads(text)["values"]}
    assert (
        status == 0
        and values["limits.verify.max"]["value"] == "5"
        and values["limits.verify.max"]["file"] == "policies/phone_otp.lua"
    )
    assert tool(new_gateway, "policy", "show", "carrier_pigeon")[0] == 2
    status, text, _ = tool(new_gateway.with_cases(), "policy", "test", "--json", "--coverage")
    report = json.loads(text)
    assert status == 0 and report["holds"] and all(one["holds"] for one in report["cases"])
    limits = {one["limit"] for one in report["coverage"]["limits"] if one["provider"] == "phone_otp"}
    assert limits == {"send", "send_day", "send_ip", "send_network", "send_prefix", "sms_global", "verify", "hard"}


def test_active_and_stored_configuration(gateway, number):
    show = lambda *words: tool(gateway, "policy", "show", "phone_otp", *words)
    status, text, note = show()
    active = gateway.policy()["active"]
    assert status == 0 and f"active: generation {active[:8]}" in text and note == ""
    assert "guess budget" not in tool(gateway, "check")[1], "nothing changed"
    # A refused folder, which differs from the active configuration.
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("max = 5,", "max = 500,", 1))
    wait_for(lambda: gateway.policy()["candidate_refused"], "the candidate to be refused")
    status, text, note = show("--json")
    values = {one["path"]: one["value"] for one in json.loads(text)["values"]}
    assert status == 0 and values["limits.verify.max"] == "5" and "are not active" in note, note
    status, text, _ = show("--candidate", "--json")
    assert {one["path"]: one["value"] for one in json.loads(text)["values"]}["limits.verify.max"] == "500"
    status, text, _ = tool(gateway, "check")
    assert status == 1 and "by limits.verify (policies/phone_otp.lua:" in text and "guess budget" in text
    # A valid folder that allows other guesses than the running gateway.
    (gateway.config / "tests" / "no.lua").write_text(
        'return tests { case "no" { flow "enter", expect { status = 404 } } }'
    )
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("max = 500,", "max = 4,", 1))
    text = tool(gateway, "check")[1]
    assert 'case "no" fails' in text and "guess budget" in text, text
    # An unreadable folder.
    gateway.edit("policies/phone_otp.lua", lambda text: text + "}")
    status, text, note = show()
    assert status == 0 and f"active: generation {active[:8]}" in text and "has problems" in note
    # The facts of a user who has registered and requested a code.
    gateway.edit("policies/phone_otp.lua", lambda text: text.removesuffix("}"))
    gateway.register(number)
    facts = lambda *words: tool(gateway, "policy", "facts", *words)
    status, text, error = facts(number, "--json")
    told = json.loads(text)
    seen = {one["fact"]: one["value"] for one in told["facts"]}
    assert status == 0 and told["provider"] == "phone_otp" and seen["f.account.id"] == told["account"] != None, error
    assert (
        seen["f.phone.country"] == "IN" and seen["f.account.phone_verified"] is True and seen["f.limits.send.used"] == 1
    )
    assert "f.limits.send_ip.used" not in seen and "f.client.ip" not in seen
    with_address = {one["fact"] for one in json.loads(facts(number, "--ip", "127.0.0.1", "--json")[1])["facts"]}
    assert {"f.limits.send_ip.used", "f.client.ip"} <= with_address
    again = {one["fact"]: one["value"] for one in json.loads(facts(number, "--json")[1])["facts"]}
    assert again["f.limits.send.used"] == 1, "the query charges no limit"
    status, text, _ = facts("nobody@example.com")
    assert (
        status == 0
        and re.search(r'^f\.email\.domain +"example\.com"', text, re.M)
        and re.search(r"^f\.account\.exists +false", text, re.M)
    ), text
    assert (
        facts("nonsense")[0] == 2
        and facts(number, "--ip", "x")[0] == 2
        and facts(number, "--provider", "pigeon")[0] == 2
    )


def test_removed_policy_and_needed_restart_are_reported(gateway):
    (gateway.config / "policies" / "phone_otp.lua").unlink()
    wait_for(lambda: gateway.policy()["warnings"], "the warning")
    (warning,) = gateway.policy()["warnings"]
    assert (warning["file"], warning["line"]) == ("policies/phone_otp.lua", None) and "provider's defaults apply" in warning[
        "message"
    ]
    gateway.server.wait_line("policies/phone_otp.lua: does not exist")
    status, text, _ = tool(gateway, "check")
    assert status == 0 and "warning: policies/phone_otp.lua: does not exist" in text

    assert gateway.policy()["restart_needed"] == []
    gateway.edit("gateway.lua", lambda text: text.replace("sqlite:data/moongate.db", "sqlite:data/other.db"))
    wait_for(lambda: gateway.policy()["restart_needed"], "the change to be told")
    (needed,) = gateway.policy()["restart_needed"]
    assert needed["path"] == "store" and needed["file"] == "gateway.lua" and needed["line"] > 0


def test_recorded_requests_are_replayed_with_another_folder(gateway, number, tmp_path):
    flow = gateway.flow("register")
    assert gateway.begin(flow, number).status_code == 200
    for _ in range(3):
        assert gateway.submit(flow, wrong(gateway.code(number))).status_code == 401
    assert gateway.submit(flow, gateway.code(number)).status_code == 200
    log = tmp_path / "day.json"
    log.write_text(requests.get(f"{gateway.admin}/events?limit=100000", timeout=20).text)
    other = tmp_path / "other"
    shutil.copytree(gateway.config, other, ignore=shutil.ignore_patterns("data"))
    policy = other / "policies" / "phone_otp.lua"
    policy.write_text(policy.read_text().replace("max = 5", "max = 2"))

    def diff(*words):
        done = subprocess.run(
            [BIN / "moongate", "policy", "diff", *words], capture_output=True, text=True, timeout=60, cwd="/"
        )
        return done.returncode, done.stdout, done.stderr

    status, text, error = diff(gateway.config, other, "--log", log)
    assert status == 1, error
    assert "wrong  invalid_code → too_many_attempts  policies/phone_otp.lua:" in text
    assert diff(gateway.config, gateway.config, "--log", log)[0] == 0
    assert diff(gateway.config, other, "--log", tmp_path / "nothing")[0] == 2
    status, text, _ = diff(gateway.config, other, "--log", log, "--json")
    assert status == 1 and {one["act"] for one in json.loads(text)["flips"]} == {"wrong", "right"}


def without(text, name):
    """gateway.lua without the entry of a provider."""
    begin = re.search(rf"^    {name} = {{", text, re.M)
    depth, at = 1, begin.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[: begin.start()] + text[at:].removeprefix(",").removeprefix("\n")


def checked(gateway):
    """The exit status of `moongate check`, its problems and its warnings."""
    status, text, error = tool(gateway, "check", "--json")
    told = json.loads(text or "{}")
    assert told, error
    return status, told["problems"], told["warnings"]


PROVIDERS = re.findall(r"^    (\w+) = {", (ROOT / "config/gateway.lua").read_text(), re.M)


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "totp"])
def test_a_provider_is_taken_out(new_gateway, name):
    """Removes one line of gateway.lua: other references to the provider in config/ are ignored with a warning."""
    gateway = new_gateway.with_cases()
    gateway.edit("gateway.lua", lambda text: without(text, name))
    status, problems, warnings = checked(gateway)
    assert status == 0 and problems == [], problems
    # These two occur only as choices of steps.
    if name in ("google_oauth", "passkey"):
        assert warnings == []
    else:
        assert warnings and all("left out" in warning["message"] for warning in warnings), warnings


def test_a_provider_that_accounts_require_is_taken_out(new_gateway):
    gateway = new_gateway.with_cases()
    gateway.edit("gateway.lua", lambda text: without(text, "totp"))
    status, problems, _ = checked(gateway)
    # A rule that protects every account must not be dropped with a warning only.
    assert status == 1 and [problem["file"] for problem in problems] == ["accounts.lua"], problems
    gateway.edit("accounts.lua", lambda text: re.sub(r'^ *\{ "totp".*\n', "", text, flags=re.M))
    status, problems, _ = checked(gateway)
    assert status == 0 and problems == [], problems
