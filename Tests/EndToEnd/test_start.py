"""Start, refused start, and shutdown of the program."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest
import requests

from local_gateway import BIN, wait_for


def run(*arguments, **env):
    return subprocess.run(
        [str(BIN / "moongate"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
        cwd="/",
    )


def refused(gateway, **env):
    """A start that exits by itself. Returns its status and output."""
    server = gateway.serve(**env)
    status = server.process.wait(60)
    server.reader.join(5)
    return status, server.output


def test_the_shipped_configuration_is_good(new_gateway):
    assert run("check", "--config", new_gateway.config).returncode == 0
    told = run("check", "--json", "--config", new_gateway.config)
    assert told.returncode == 0
    document = json.loads(told.stdout)
    assert (
        document["problems"] == [] and isinstance(document["warnings"], list) and isinstance(document["budgets"], list)
    )
    assert not list(new_gateway.config.glob("**/*.key")), "check creates no key"


def test_more_guesses_than_the_operator_accepts_are_refused(new_gateway):
    """The default limits allow 447 guesses at a million codes in 30 days: 0.0447 %."""
    budgets = json.loads(run("check", "--json", "--config", new_gateway.config).stdout)["budgets"]
    granted = {entry["provider"]: entry for entry in budgets}
    phone = granted["phone_otp"]
    assert (
        phone["guesses_per_30d"] == 447
        and abs(phone["probability_30d"] - 447e-6) < 1e-6
        and 0 < phone["guesses_per_day"] < 447
    )
    assert granted["google_oauth"]["guesses_per_30d"] == 0, "a signature cannot be guessed"
    new_gateway.edit("gateway.lua", lambda text: text.replace("0.1% per 30d", "0.01% per 30d", 1))
    told = run("check", "--config", new_gateway.config)
    assert told.returncode == 1 and re.search(r"^gateway\.lua:\d+: risk_budget: .*447 guesses", told.stdout, re.M), (
        told.stdout
    )
    status, output = refused(new_gateway)
    assert status == 1 and "risk_budget" in output


def test_check_reports_every_problem(new_gateway):
    new_gateway.edit("policies/phone_otp.lua", lambda text: text.replace("window =", "windw =", 1))
    new_gateway.edit("routes.lua", lambda text: text.replace("{ path =", "{ pathh =", 1))
    told = run("check", "--config", new_gateway.config)
    assert told.returncode == 1
    assert re.search(r"^policies/phone_otp\.lua:\d+: .*windw.*window", told.stdout + told.stderr, re.M)
    assert re.search(r"^routes\.lua:\d+: .*pathh.*path", told.stdout + told.stderr, re.M)
    document = json.loads(run("check", "--json", "--config", new_gateway.config).stdout)
    assert {entry["file"] for entry in document["problems"]} == {"policies/phone_otp.lua", "routes.lua"}
    for entry in document["problems"]:
        assert entry["line"] > 0 and entry["message"] and "path" in entry
    status, output = refused(new_gateway)
    assert status == 1 and "windw" in output and "pathh" in output


@pytest.mark.parametrize(
    "arguments, status",
    [
        (["check", "--config", "/no/such/folder"], 2),
        (["serve", "--config", "/no/such/folder"], 2),
        (["check", "--nonsense"], 2),
        (["nonsense"], 2),
        (["version"], 0),
        (["--version"], 0),
        (["--help"], 0),
        (["health", "--admin", "nonsense"], 2),
    ],
)
def test_exit_statuses(arguments, status):
    assert run(*arguments).returncode == status


def test_a_folder_without_gateway_lua(tmp_path):
    told = run("check", "--config", tmp_path)
    assert told.returncode == 1 and "gateway.lua" in told.stdout + told.stderr


def test_a_taken_port_is_named(new_gateway):
    with socket.socket() as other:
        other.bind(("127.0.0.1", new_gateway.ports[0]))
        other.listen()
        status, output = refused(new_gateway)
    assert status == 1
    assert str(new_gateway.ports[0]) in output and "in use by another program" in output
    with socket.socket() as other:
        other.bind(("127.0.0.1", new_gateway.ports[1]))
        other.listen()
        status, output = refused(new_gateway)
    assert status == 1 and str(new_gateway.ports[1]) in output


def test_the_key_is_made_once_and_guarded(new_gateway):
    new_gateway.start()
    key = next(new_gateway.config.glob("**/master.key"))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and key.stat().st_size == 32
    for file in key.parent.glob("moongate.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    secret = key.read_bytes()
    new_gateway.restart(signal.SIGTERM)
    assert key.read_bytes() == secret
    new_gateway.server.end()

    key.chmod(0o640)
    status, output = refused(new_gateway)
    assert status == 1 and "chmod 600" in output
    key.chmod(0o600)
    key.write_bytes(b"short")
    status, output = refused(new_gateway)
    assert status == 1 and "too short" in output
    key.write_bytes(bytes(32))
    status, output = refused(new_gateway)
    assert status == 1 and "key" in output, "a key other than the store's"
    # A lost key is not replaced by a new one that opens nothing.
    key.unlink()
    status, output = refused(new_gateway)
    assert status == 1 and not key.exists() and "is missing, and the store" in output, output
    key.write_bytes(secret)
    key.chmod(0o600)
    new_gateway.start()


def test_the_log_level(new_gateway):
    status, output = refused(new_gateway, MOONGATE_LOG="loud")
    assert status == 2 and "trace, debug, info, notice, warning, error" in output
    new_gateway.start(MOONGATE_LOG="trace")
    for line in new_gateway.server.lines:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (trace|debug|info|notice|warning|error) +\S", line), (
            line
        )


@contextlib.contextmanager
def request_at_work(gateway, number):
    """A request that the upstream has received and not answered. Returns the upstream's connection and the clients'
    responses."""
    token = gateway.register(number)["session"]["token"]
    gateway.demo.end()
    gateway.demo = None
    answers = []

    def ask():
        try:
            answers.append(
                requests.get(f"{gateway.url}/echo", headers={"Authorization": f"Bearer {token}"}, timeout=30).text
            )
        except requests.ConnectionError:
            answers.append(None)

    with socket.create_server(("127.0.0.1", gateway.ports[2])) as upstream:
        client = threading.Thread(target=ask)
        client.start()
        peer, _ = upstream.accept()
        with peer:
            assert b"GET /echo" in peer.recv(65536)
            yield peer, answers
            client.join(15)


def test_sigterm_lets_a_request_end(gateway, number):
    """An open request gets its response; the listener accepts no new ones; then the program exits with status 0."""
    with request_at_work(gateway, number) as (peer, answers):
        gateway.server.process.send_signal(signal.SIGTERM)

        def refuses():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", gateway.ports[0])) != 0

        wait_for(refuses, "the listener to close")
        assert gateway.server.process.poll() is None
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")
        assert gateway.server.process.wait(12) == 0
    assert answers == ["last"]


def test_sigterm_waits_ten_seconds_and_no_longer(gateway, number):
    with request_at_work(gateway, number) as (_, answers):
        began = time.monotonic()
        gateway.server.process.send_signal(signal.SIGTERM)
        assert gateway.server.process.wait(14) == 0
        assert 9 < time.monotonic() - began
    assert answers == [None]


def test_sigterm_while_idle_exits_soon(gateway):
    assert gateway.server.end(seconds=5) == 0


def test_needed_restart_is_reported(gateway):
    before = gateway.policy()["active"]
    gateway.edit("gateway.lua", lambda text: text.replace(f"127.0.0.1:{gateway.ports[1]}", "127.0.0.1:1"))
    gateway.wait_generation(before)
    wait_for(
        lambda: re.search(r"gateway\.lua:\d+: admin: .*after a restart", gateway.server.output),
        "the word that it needs a restart",
    )
    assert requests.get(f"{gateway.admin}/healthz", timeout=10).status_code == 200


def test_health_asks_the_gateway_that_runs(new_gateway):
    admin = f"127.0.0.1:{new_gateway.ports[1]}"
    ill = run("health", "--admin", admin)
    assert ill.returncode == 1 and ill.stderr == f"moongate: No gateway listens at {admin}.\n"
    new_gateway.start()
    well = run("health", "--config", new_gateway.config)
    assert well.returncode == 0 and well.stdout == f"The gateway at {admin} is ready.\n"
    assert run("health", "--alive", "--admin", admin).stdout == f"The gateway at {admin} is alive.\n"
    # A mistake in a file must not make a container's health check kill a running gateway.
    new_gateway.edit("gateway.lua", lambda text: text.replace("public_url", "publik_url", 1))
    assert run("health", "--admin", admin).returncode == 0
    assert run("health", "--config", new_gateway.config).returncode == 0
    # The command without --admin needs this one setting.
    new_gateway.edit("gateway.lua", lambda text: text.replace("return gateway {", "return gateway {{", 1))
    hidden = run("health", "--config", new_gateway.config)
    assert hidden.returncode == 1 and hidden.stderr.startswith("moongate: `admin` in "), hidden.stderr
    assert "name the admin listener with --admin HOST:PORT." in hidden.stderr, hidden.stderr
    assert run("health", "--admin", admin).returncode == 0


def test_health_of_a_listener_that_is_not_a_gateway():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        told = run("health", "--admin", address)
    assert told.returncode == 1 and told.stderr == f"moongate: The server at {address} does not answer.\n"
