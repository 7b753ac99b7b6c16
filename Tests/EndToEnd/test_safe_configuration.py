"""Unsafe configurations are refused, trusted headers cannot be forged, a crash shows no memory, and account events
are logged."""

import json
import os
import re
import signal
import stat
import subprocess
import time

import pytest
import requests

from house import BIN, House, problem, wait_for, wrong
from test_start import refused, run

TOKEN = "0123456789abcdef-the-operators-token"


@pytest.fixture
def empty_house(tmp_path):
    """Without the folder's test cases, which each check and start would run."""
    house = House(tmp_path)
    try:
        yield house
    finally:
        house.stop()


@pytest.fixture
def house(empty_house):
    return empty_house.start()


def told(house, *arguments, **env):
    """The output of `check` for the folder."""
    answer = run("check", "--config", house.config, *arguments, **env)
    return answer.returncode, answer.stdout


def listen(house, address):
    house.edit(
        "gateway.lua",
        lambda text: text.replace(f'listen = "127.0.0.1:{house.ports[0]}"', f'listen = "{address}:{house.ports[0]}"'),
    )


def admin(house, value):
    house.edit("gateway.lua", lambda text: re.sub(r"\n  admin = .*", f"\n  admin = {value},", text))


# Mock Google


def is_refused_everywhere(house, pattern, **env):
    """Refused by check, at the start, and at a reload of a running gateway."""
    status, output = told(house, **env)
    assert status == 1 and re.search(pattern, output, re.M), output
    status, output = refused(house, **env)
    assert status == 1 and re.search(pattern, output), output


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "192.0.2.1"])
def test_mock_google_is_for_this_machine_alone(empty_house, address):
    """Attack: a demo that listens on all addresses. Any client in the network can send `Host: localhost` and sign in
    as any user."""
    listen(empty_house, address)
    is_refused_everywhere(
        empty_house, r"gateway\.lua:\d+: providers\.google_oauth\.issuer: mock Google .*listen on 127\.0\.0\.1"
    )


def test_mock_google_and_an_address_on_the_command_line(empty_house):
    """Attack: the same with --listen, which no file shows."""
    gateway = subprocess.run(
        [BIN / "moongate", "serve", "--config", empty_house.config, "--listen", f"0.0.0.0:{empty_house.ports[0]}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert gateway.returncode == 1 and re.search(
        r"gateway\.lua:\d+: providers\.google_oauth\.issuer: mock Google", gateway.stderr
    ), gateway.stderr


def test_a_reload_to_a_listener_for_all_keeps_the_old_one(house):
    before = house.policy()["active"]
    listen(house, "0.0.0.0")
    candidate = wait_for(lambda: house.policy()["candidate_refused"], "the refusal")
    assert any("mock Google" in entry["message"] and entry["line"] > 0 for entry in candidate["problems"]), candidate
    assert house.policy()["active"] == before


# The admin listener


def test_an_admin_listener_for_all_is_refused(empty_house):
    """Attack: any client that reaches it can read all codes of the outbox and delete all accounts."""
    admin(empty_house, f'"0.0.0.0:{empty_house.ports[1]}"')
    is_refused_everywhere(empty_house, r'gateway\.lua:\d+: admin: other hosts can reach .*token = env')
    admin(empty_house, f'{{ address = "0.0.0.0:{empty_house.ports[1]}", token = env "ADMIN_TOKEN" }}')
    status, output = told(empty_house, ADMIN_TOKEN="too-short")
    assert (
        status == 1 and re.search(r"gateway\.lua:\d+: admin\.token: is too short", output) and "too-short" not in output
    ), output
    assert told(empty_house, ADMIN_TOKEN=TOKEN)[0] == 0


def test_an_admin_address_on_the_command_line_needs_the_token_too(empty_house):
    gateway = subprocess.run(
        [BIN / "moongate", "serve", "--config", empty_house.config, "--admin", f"0.0.0.0:{empty_house.ports[1]}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert gateway.returncode == 1 and re.search(
        r"gateway\.lua:\d+: admin: other machines can reach .*--admin", gateway.stderr
    ), gateway.stderr


def test_each_admin_call_asks_for_the_token(empty_house):
    house = empty_house
    admin(house, f'{{ address = "0.0.0.0:{house.ports[1]}", token = env "ADMIN_TOKEN" }}')
    house.start(ADMIN_TOKEN=TOKEN)
    for path in ("/healthz", "/readyz"):
        assert requests.get(house.admin + path, timeout=10).status_code == 200
    calls = [
        ("GET", "/policy"),
        ("POST", "/policy/reload"),
        ("GET", "/metrics"),
        ("GET", "/locks"),
        ("DELETE", "/locks/x"),
        ("GET", "/events"),
        ("GET", "/outbox"),
        ("GET", "/decisions/dc_x"),
        ("GET", "/accounts"),
        ("DELETE", "/accounts/ac_x"),
    ]
    for method, path in calls:
        for given in (None, "Bearer", "Bearer x", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
            answer = requests.request(
                method, house.admin + path, headers={"Authorization": given} if given else {}, timeout=10
            )
            problem(answer, 401, "unauthenticated")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert requests.request(
            method, house.admin + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10
        ).status_code in (200, 204, 404)
    # The command-line tool reads it from gateway.lua and uses it.
    refusal = problem(house.api("GET", "/session"), 401, "unauthenticated")
    explained = run("policy", "explain", refusal["decision_id"], "--config", house.config, ADMIN_TOKEN=TOKEN)
    assert explained.returncode == 0 and "unauthenticated" in explained.stdout, explained
    other = run("policy", "explain", refusal["decision_id"], "--config", house.config, ADMIN_TOKEN=TOKEN + "x")
    assert other.returncode == 2 and "refuses the tokens of gateway.lua" in other.stderr, other
    assert TOKEN not in house.log + explained.stdout + other.stderr


# Outbox, secrets, region


def test_an_outbox_behind_a_public_address_is_refused(empty_house):
    """Attack: the demo's outbox in production. Users get no codes, and the admin listener shows all of them."""
    house = empty_house
    house.edit(
        "gateway.lua",
        lambda text: re.sub(
            r"\n    google_oauth = \{.*?\n    \},",
            "",
            text.replace(f'public_url = "{house.url}"', 'public_url = "https://auth.example.com"'),
            flags=re.S,
        ),
    )
    pattern = (
        r"gateway\.lua:\d+: providers\.phone_otp\.sms: outbox\(\) .*https://auth\.example\.com.*allow_public = true"
    )
    is_refused_everywhere(house, pattern)
    house.edit("gateway.lua", lambda text: text.replace("outbox()", "outbox { allow_public = true }"))
    status, output = told(house)
    assert status == 0 and re.search(r"^warning: gateway\.lua:\d+: providers\.phone_otp\.sms: outbox ", output, re.M), (
        output
    )
    warnings = json.loads(told(house, "--json")[1])["warnings"]
    assert any(entry["path"] == "providers.email_code.mail" for entry in warnings), warnings


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_secret_that_others_may_read_is_refused(house, mode):
    """Attack: another user of the machine reads the client secret and can sign in as any user."""
    secret = next(house.config.glob("**/google.secret"))
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    house.gateway.end()
    secret.chmod(mode)
    is_refused_everywhere(
        house, rf"gateway\.lua:\d+: providers\.google_oauth\.client_secret: .*chmod 600 {re.escape(str(secret))}"
    )
    secret.chmod(0o600)
    assert told(house)[0] == 0


def test_a_region_that_does_not_exist(empty_house):
    empty_house.edit("gateway.lua", lambda text: text.replace('region = "IN"', 'region = "ZZ"'))
    is_refused_everywhere(empty_house, r'gateway\.lua:\d+: region: "ZZ" is not a country')


# Memory


def crash(house, number):
    house.gateway.process.send_signal(number)
    began = time.monotonic()
    status = house.gateway.process.wait(30)
    took = time.monotonic() - began
    house.gateway.reader.join(5)
    return status, took


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE]
)
def test_a_crash_ends_at_once_and_shows_nothing(empty_house, tmp_path, number):
    """Attack: after a provoked crash, a core file or report contains keys and codes, and no request is served while
    it is written."""
    house = empty_house
    before = house.serve
    # With an unlimited core size: the program itself must disable core files.
    house.serve = lambda **env: _with_cores(house, tmp_path, env)
    try:
        house.start()
    finally:
        house.serve = before
    secret = next(house.config.glob("**/master.key")).read_bytes()
    lines = len(house.gateway.lines)
    status, took = crash(house, number)
    assert status == -number and took < 1, f"{status} after {took:.1f} s"
    report = "".join(house.gateway.lines[lines:])
    assert "0x" not in report and "Registers" not in report and "Backtrace" not in report and len(report) < 500, report
    assert secret.hex() not in report
    assert [name for name in os.listdir(tmp_path) if name.startswith("core")] == []


def _with_cores(house, folder, env):
    from processes import Program

    def allow():
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    return Program(BIN / "moongate", "serve", "--config", house.config, env=env, cwd=folder, preexec_fn=allow)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run the gateway as another user")
def test_another_process_of_the_same_user_reads_no_memory(empty_house):
    """Attack: a compromised service of the same user reads keys and tokens from the gateway's memory or environment."""
    house = empty_house
    nobody = 65534
    for path in [house.config, *house.config.rglob("*")]:
        os.chown(path, nobody, nobody)
    top = house.config
    while top != top.parent:
        top.chmod(top.stat().st_mode | 0o755)
        top = top.parent
    from processes import Program

    house.serve = lambda **env: Program(
        BIN / "moongate", "serve", "--config", house.config, env=env, user=nobody, group=nobody, extra_groups=[]
    )
    house.start(SECRET_OF_A_TEST="s3cret")
    for name in ("environ", "mem", "maps"):
        read = subprocess.run(
            ["/usr/bin/head", "-c", "1", f"/proc/{house.gateway.process.pid}/{name}"],
            capture_output=True,
            text=True,
            timeout=20,
            user=nobody,
            group=nobody,
            extra_groups=[],
        )
        assert read.returncode == 1 and "Permission denied" in read.stderr, f"{name}: {read}"
    assert os.stat(f"/proc/{house.gateway.process.pid}/environ").st_uid == 0
    limits = open(f"/proc/{house.gateway.process.pid}/limits").read()
    assert re.search(r"Max core file size +0 +0 ", limits), limits
    # The process's own metrics still work.
    metrics = requests.get(f"{house.admin}/metrics", timeout=10).text
    assert re.search(r"^process_open_fds [1-9]", metrics, re.M) and re.search(
        r"^process_resident_memory_bytes [1-9]", metrics, re.M
    )


# The log


def events(house, kind):
    return [line for line in house.log.split("\n") if re.search(rf" notice +security: {kind} ", line)]


def field(name, line):
    found = re.search(rf"\b{name}=(\S+)", line)
    return found and found[1]


def test_account_events_are_logged(house, number, other_number):
    done = house.register(number)
    account, token = done["account"]["id"], done["session"]["token"]
    line = wait_for(lambda: events(house, "session_started"), "the sign-in")[0]
    assert (
        field("account", line) == account
        and field("flow", line) == "register"
        and field("address", line) == "127.0.0.1"
    )
    decision = requests.get(f"{house.admin}/decisions/{field('decision', line)}", timeout=10)
    assert decision.status_code == 200 and decision.json()["kind"] == "session_started"

    # A lock, and its end by an operator who finds its name in the line.
    second = other_number()
    house.register(second)
    requests.post(f"{house.admin}/policy/reload", timeout=10)
    house.edit("policies/phone_otp.lua", lambda text: text.replace("60s", "1s", 1))
    wait_for(lambda: "is active" in house.log, "the new policy")
    time.sleep(1.2)
    flow = house.flow("login")
    begun = house.begin(flow, second)
    assert begun.status_code == 200, begun.text
    code = house.code(second)
    for _ in range(5):
        house.submit(flow, wrong(code))
    line = wait_for(lambda: events(house, "locked"), "the lock")[0]
    assert field("limit", line) and int(field("until", line)) > time.time() and field("provider", line) == "phone_otp"
    assert requests.delete(f"{house.admin}/locks/{field('lock', line)}", timeout=10).status_code == 204
    assert wait_for(lambda: events(house, "lock_lifted"), "its end")

    # An operator's action, by the admin listener and by the command line.
    assert requests.post(f"{house.admin}/accounts/{account}/lock", timeout=10).status_code == 204
    assert field("account", wait_for(lambda: events(house, "account_locked"), "the lock")[0]) == account
    unlocked = run("account", "unlock", account, "--config", house.config)
    assert unlocked.returncode == 0 and re.search(
        rf"notice +security: account_unlocked account={account} .*decision=dc_", unlocked.stderr
    ), unlocked

    # Identifiers are logged only as keyed hashes.
    for secret in (number, number[3:], second, second[3:], token, code):
        assert secret not in house.log


def test_a_changed_factor_is_in_the_log(house, number):
    token = house.register(number)["session"]["token"]
    answer = house.api("POST", "/set-passcode", {"passcode": "582931"}, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    line = wait_for(lambda: events(house, "factor_set"), "the passcode")[0]
    assert field("provider", line) == "pin" and field("flow", line) == "pin_set"
    assert "582931" not in house.log


def test_errors_of_decide_are_in_the_log_once(house, number):
    """Attack: a failing `decide` refuses users without an explanation in the log, or fills the disk with log lines."""
    token = house.register(number)["session"]["token"]
    before = house.policy()["active"]
    house.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f"""return routes {{
  {{ path = "/broken", to = "http://127.0.0.1:{house.ports[2]}", decide = function(f)
    return f.request.query.x.y
  end }},""",
            1,
        ),
    )
    house.wait_generation(before)
    decisions = set()
    for index in range(20):
        answer = requests.get(
            f"{house.url}/broken?code=1234{index}", headers={"Authorization": f"Bearer {token}"}, timeout=10
        )
        refusal = problem(answer, 503, "policy_error")
        # With the id from the client, the operator finds it at once.
        found = requests.get(f"{house.admin}/decisions/{refusal['decision_id']}", timeout=10)
        assert found.status_code == 200 and re.match(r"routes\.lua:\d+: ", found.json()["detail"]["fault"]), found.text
        decisions.add(refusal["decision_id"])
    lines = [line for line in house.log.split("\n") if "a policy failed" in line]
    assert len(lines) == 1 and re.search(r" error +serve: a policy failed .*fault=\"routes\.lua:\d+: ", lines[0]), lines
    assert "rule=routes[1].decide" in lines[0] and re.search(r"decision=(\S+)", lines[0])[1] in decisions
    assert "1234" not in lines[0]


# Headers


def test_trusted_headers_from_clients_are_removed(house, number):
    """Attack: forged user, method or address headers in any spelling."""
    token = house.register(number)["session"]["token"]
    names = [
        "X-Forwarded",
        "X-HTTP-Method",
        "X-Method-Override",
        "X-WEBAUTH-USER",
        "X-WEBAUTH-ROLE",
        "Moongate-Device",
        "HTTP2-Settings",
    ]
    spelled = [
        shape for name in names for shape in (name, name.lower(), name.replace("-", "_"), name.replace("-", "."))
    ]
    headers = {name: "forged" for name in spelled}
    answer = requests.get(f"{house.url}/echo", headers={"Authorization": f"Bearer {token}", **headers}, timeout=10)
    assert answer.status_code == 200 and "forged" not in answer.text, answer.text
