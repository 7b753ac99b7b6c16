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

from local_gateway import BIN, LocalGateway, problem, wait_for, wrong
from test_start import refused, run

TOKEN = "0123456789abcdef-the-operators-token"


@pytest.fixture
def new_gateway(tmp_path):
    """Without the folder's test cases, which each check and start would run."""
    gateway = LocalGateway(tmp_path)
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture
def gateway(new_gateway):
    return new_gateway.start()


def told(gateway, *arguments, **env):
    """The output of `check` for the folder."""
    answer = run("check", "--config", gateway.config, *arguments, **env)
    return answer.returncode, answer.stdout


def listen(gateway, address):
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(f'listen = "127.0.0.1:{gateway.ports[0]}"', f'listen = "{address}:{gateway.ports[0]}"'),
    )


def admin(gateway, value):
    gateway.edit("gateway.lua", lambda text: re.sub(r"\n  admin = .*", f"\n  admin = {value},", text))


# Mock Google


def is_refused_everywhere(gateway, pattern, **env):
    """Refused by check, at the start, and at a reload of a running gateway."""
    status, output = told(gateway, **env)
    assert status == 1 and re.search(pattern, output, re.M), output
    status, output = refused(gateway, **env)
    assert status == 1 and re.search(pattern, output), output


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "192.0.2.1"])
def test_mock_google_is_for_this_machine_alone(new_gateway, address):
    """Attack: a demo that listens on all addresses. Any client in the network can send `Host: localhost` and sign in
    as any user."""
    listen(new_gateway, address)
    is_refused_everywhere(
        new_gateway, r"gateway\.lua:\d+: providers\.google_oauth\.issuer: an issuer on this machine .*mock Google .*listen on 127\.0\.0\.1"
    )


def test_mock_google_and_an_address_on_the_command_line(new_gateway):
    """Attack: the same with --listen, which no file shows."""
    server = subprocess.run(
        [BIN / "moongate", "serve", "--config", new_gateway.config, "--listen", f"0.0.0.0:{new_gateway.ports[0]}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert server.returncode == 1 and re.search(
        r"gateway\.lua:\d+: providers\.google_oauth\.issuer: an issuer on this machine .*mock Google", server.stderr
    ), server.stderr


def test_a_reload_to_a_listener_for_all_keeps_the_old_one(gateway):
    before = gateway.policy()["active"]
    listen(gateway, "0.0.0.0")
    candidate = wait_for(lambda: gateway.policy()["candidate_refused"], "the refusal")
    assert any("mock Google" in entry["message"] and entry["line"] > 0 for entry in candidate["problems"]), candidate
    assert gateway.policy()["active"] == before


# The admin listener


def test_an_admin_listener_for_all_is_refused(new_gateway):
    """Attack: any client that reaches it can read all codes of the outbox and delete all accounts."""
    admin(new_gateway, f'"0.0.0.0:{new_gateway.ports[1]}"')
    is_refused_everywhere(new_gateway, r'gateway\.lua:\d+: admin: other hosts can reach .*token = env')
    admin(new_gateway, f'{{ address = "0.0.0.0:{new_gateway.ports[1]}", token = env "ADMIN_TOKEN" }}')
    status, output = told(new_gateway, ADMIN_TOKEN="too-short")
    assert (
        status == 1 and re.search(r"gateway\.lua:\d+: admin\.token: is too short", output) and "too-short" not in output
    ), output
    assert told(new_gateway, ADMIN_TOKEN=TOKEN)[0] == 0


def test_an_admin_address_on_the_command_line_needs_the_token_too(new_gateway):
    server = subprocess.run(
        [BIN / "moongate", "serve", "--config", new_gateway.config, "--admin", f"0.0.0.0:{new_gateway.ports[1]}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert server.returncode == 1 and re.search(
        r"gateway\.lua:\d+: admin: other machines can reach .*--admin", server.stderr
    ), server.stderr


def test_each_admin_call_asks_for_the_token(new_gateway):
    gateway = new_gateway
    admin(gateway, f'{{ address = "0.0.0.0:{gateway.ports[1]}", token = env "ADMIN_TOKEN" }}')
    gateway.start(ADMIN_TOKEN=TOKEN)
    for path in ("/healthz", "/readyz"):
        assert requests.get(gateway.admin + path, timeout=10).status_code == 200
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
                method, gateway.admin + path, headers={"Authorization": given} if given else {}, timeout=10
            )
            problem(answer, 401, "unauthenticated")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert requests.request(
            method, gateway.admin + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10
        ).status_code in (200, 204, 404)
    # The command-line tool reads it from gateway.lua and uses it.
    refusal = problem(gateway.api("GET", "/session"), 401, "unauthenticated")
    explained = run("policy", "explain", refusal["decision_id"], "--config", gateway.config, ADMIN_TOKEN=TOKEN)
    assert explained.returncode == 0 and "unauthenticated" in explained.stdout, explained
    other = run("policy", "explain", refusal["decision_id"], "--config", gateway.config, ADMIN_TOKEN=TOKEN + "x")
    assert other.returncode == 2 and "refuses the tokens of gateway.lua" in other.stderr, other
    assert TOKEN not in gateway.log + explained.stdout + other.stderr


# Outbox, secrets, region


def test_an_outbox_behind_a_public_address_is_refused(new_gateway):
    """Attack: the demo's outbox in production. Users get no codes, and the admin listener shows all of them."""
    gateway = new_gateway
    gateway.edit(
        "gateway.lua",
        lambda text: re.sub(
            r"\n    google_oauth = \{.*?\n    \},",
            "",
            text.replace(f'public_url = "{gateway.url}"', 'public_url = "https://auth.example.com"'),
            flags=re.S,
        ),
    )
    pattern = (
        r"gateway\.lua:\d+: providers\.phone_otp\.sms: outbox\(\) .*https://auth\.example\.com.*allow_public = true"
    )
    is_refused_everywhere(gateway, pattern)
    gateway.edit("gateway.lua", lambda text: text.replace("outbox()", "outbox { allow_public = true }"))
    status, output = told(gateway)
    assert status == 0 and re.search(r"^warning: gateway\.lua:\d+: providers\.phone_otp\.sms: outbox ", output, re.M), (
        output
    )
    warnings = json.loads(told(gateway, "--json")[1])["warnings"]
    assert any(entry["path"] == "providers.email_code.mail" for entry in warnings), warnings


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_secret_that_others_may_read_is_refused(gateway, mode):
    """Attack: another user of the machine reads the client secret and can sign in as any user."""
    secret = next(gateway.config.glob("**/google.secret"))
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    gateway.server.end()
    secret.chmod(mode)
    is_refused_everywhere(
        gateway, rf"gateway\.lua:\d+: providers\.google_oauth\.client_secret: .*chmod 600 {re.escape(str(secret))}"
    )
    secret.chmod(0o600)
    assert told(gateway)[0] == 0


def test_a_region_that_does_not_exist(new_gateway):
    new_gateway.edit("gateway.lua", lambda text: text.replace('region = "IN"', 'region = "ZZ"'))
    is_refused_everywhere(new_gateway, r'gateway\.lua:\d+: region: "ZZ" is not a country')


# Memory


def crash(gateway, number):
    gateway.server.process.send_signal(number)
    began = time.monotonic()
    status = gateway.server.process.wait(30)
    took = time.monotonic() - began
    gateway.server.reader.join(5)
    return status, took


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE]
)
def test_a_crash_ends_at_once_and_shows_nothing(new_gateway, tmp_path, number):
    """Attack: after a provoked crash, a core file or report contains keys and codes, and no request is served while
    it is written."""
    gateway = new_gateway
    before = gateway.serve
    # With an unlimited core size: the program itself must disable core files.
    gateway.serve = lambda **env: _with_cores(gateway, tmp_path, env)
    try:
        gateway.start()
    finally:
        gateway.serve = before
    secret = next(gateway.config.glob("**/master.key")).read_bytes()
    lines = len(gateway.server.lines)
    status, took = crash(gateway, number)
    assert status == -number and took < 1, f"{status} after {took:.1f} s"
    report = "".join(gateway.server.lines[lines:])
    assert "0x" not in report and "Registers" not in report and "Backtrace" not in report and len(report) < 500, report
    assert secret.hex() not in report
    assert [name for name in os.listdir(tmp_path) if name.startswith("core")] == []


def _with_cores(gateway, folder, env):
    from processes import Program

    def allow():
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    return Program(BIN / "moongate", "serve", "--config", gateway.config, env=env, cwd=folder, preexec_fn=allow)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run the gateway as another user")
def test_another_process_of_the_same_user_reads_no_memory(new_gateway):
    """Attack: a compromised service of the same user reads keys and tokens from the gateway's memory or environment."""
    gateway = new_gateway
    nobody = 65534
    for path in [gateway.config, *gateway.config.rglob("*")]:
        os.chown(path, nobody, nobody)
    top = gateway.config
    while top != top.parent:
        top.chmod(top.stat().st_mode | 0o755)
        top = top.parent
    from processes import Program

    gateway.serve = lambda **env: Program(
        BIN / "moongate", "serve", "--config", gateway.config, env=env, user=nobody, group=nobody, extra_groups=[]
    )
    gateway.start(SECRET_OF_A_TEST="s3cret")
    for name in ("environ", "mem", "maps"):
        read = subprocess.run(
            ["/usr/bin/head", "-c", "1", f"/proc/{gateway.server.process.pid}/{name}"],
            capture_output=True,
            text=True,
            timeout=20,
            user=nobody,
            group=nobody,
            extra_groups=[],
        )
        assert read.returncode == 1 and "Permission denied" in read.stderr, f"{name}: {read}"
    assert os.stat(f"/proc/{gateway.server.process.pid}/environ").st_uid == 0
    limits = open(f"/proc/{gateway.server.process.pid}/limits").read()
    assert re.search(r"Max core file size +0 +0 ", limits), limits
    # The process's own metrics still work.
    metrics = requests.get(f"{gateway.admin}/metrics", timeout=10).text
    assert re.search(r"^process_open_fds [1-9]", metrics, re.M) and re.search(
        r"^process_resident_memory_bytes [1-9]", metrics, re.M
    )


# The log


def events(gateway, kind):
    return [line for line in gateway.log.split("\n") if re.search(rf" notice +security: {kind} ", line)]


def field(name, line):
    found = re.search(rf"\b{name}=(\S+)", line)
    return found and found[1]


def test_account_events_are_logged(gateway, number, other_number):
    done = gateway.register(number)
    account, token = done["account"]["id"], done["session"]["token"]
    line = wait_for(lambda: events(gateway, "session_started"), "the sign-in")[0]
    assert (
        field("account", line) == account
        and field("flow", line) == "register"
        and field("address", line) == "127.0.0.1"
    )
    decision = requests.get(f"{gateway.admin}/decisions/{field('decision', line)}", timeout=10)
    assert decision.status_code == 200 and decision.json()["kind"] == "session_started"

    # A lock, and its end by an operator who finds its name in the line.
    second = other_number()
    gateway.register(second)
    requests.post(f"{gateway.admin}/policy/reload", timeout=10)
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("60s", "1s", 1))
    wait_for(lambda: "is active" in gateway.log, "the new policy")
    time.sleep(1.2)
    flow = gateway.flow("login")
    begun = gateway.begin(flow, second)
    assert begun.status_code == 200, begun.text
    code = gateway.code(second)
    for _ in range(5):
        gateway.submit(flow, wrong(code))
    line = wait_for(lambda: events(gateway, "locked"), "the lock")[0]
    assert field("limit", line) and int(field("until", line)) > time.time() and field("provider", line) == "phone_otp"
    assert requests.delete(f"{gateway.admin}/locks/{field('lock', line)}", timeout=10).status_code == 204
    assert wait_for(lambda: events(gateway, "lock_lifted"), "its end")

    # An operator's action, by the admin listener and by the command line.
    assert requests.post(f"{gateway.admin}/accounts/{account}/lock", timeout=10).status_code == 204
    assert field("account", wait_for(lambda: events(gateway, "account_locked"), "the lock")[0]) == account
    unlocked = run("account", "unlock", account, "--config", gateway.config)
    assert unlocked.returncode == 0 and re.search(
        rf"notice +security: account_unlocked account={account} .*decision=dc_", unlocked.stderr
    ), unlocked

    # Identifiers are logged only as keyed hashes.
    for secret in (number, number[3:], second, second[3:], token, code):
        assert secret not in gateway.log


def test_a_changed_factor_is_in_the_log(gateway, number):
    token = gateway.register(number)["session"]["token"]
    answer = gateway.api("POST", "/set-passcode", {"passcode": "582931"}, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    line = wait_for(lambda: events(gateway, "factor_set"), "the passcode")[0]
    assert field("provider", line) == "pin" and field("flow", line) == "pin_set"
    assert "582931" not in gateway.log


def test_errors_of_decide_are_in_the_log_once(gateway, number):
    """Attack: a failing `decide` refuses users without an explanation in the log, or fills the disk with log lines."""
    token = gateway.register(number)["session"]["token"]
    before = gateway.policy()["active"]
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f"""return routes {{
  {{ path = "/broken", to = "http://127.0.0.1:{gateway.ports[2]}", decide = function(f)
    return f.request.query.x.y
  end }},""",
            1,
        ),
    )
    gateway.wait_generation(before)
    decisions = set()
    for index in range(20):
        answer = requests.get(
            f"{gateway.url}/broken?code=1234{index}", headers={"Authorization": f"Bearer {token}"}, timeout=10
        )
        refusal = problem(answer, 503, "policy_error")
        # With the id from the client, the operator finds it at once.
        found = requests.get(f"{gateway.admin}/decisions/{refusal['decision_id']}", timeout=10)
        assert found.status_code == 200 and re.match(r"routes\.lua:\d+: ", found.json()["detail"]["fault"]), found.text
        decisions.add(refusal["decision_id"])
    lines = [line for line in gateway.log.split("\n") if "a policy failed" in line]
    assert len(lines) == 1 and re.search(r" error +serve: a policy failed .*fault=\"routes\.lua:\d+: ", lines[0]), lines
    assert "rule=routes[1].decide" in lines[0] and re.search(r"decision=(\S+)", lines[0])[1] in decisions
    assert "1234" not in lines[0]


# Headers


def test_trusted_headers_from_clients_are_removed(gateway, number):
    """Attack: forged user, method or address headers in any spelling."""
    token = gateway.register(number)["session"]["token"]
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
    answer = requests.get(f"{gateway.url}/echo", headers={"Authorization": f"Bearer {token}", **headers}, timeout=10)
    assert answer.status_code == 200 and "forged" not in answer.text, answer.text
