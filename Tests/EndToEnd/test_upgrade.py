"""`moongate upgrade`: the process is replaced without losing a request, flow, lock or sign-out.
Tests/Bench/upgrade.py is the long run."""

import importlib
import json
import os
import queue
import re
import signal
import socket as socket_module
import struct
import subprocess
import sys
import threading

import pytest
import requests
import websockets.sync.client

from local_gateway import BIN, wait_for, wrong
from processes import ROOT, Program
from test_http2 import routed
from test_systemd import Notifications, listening, serve
from test_websocket import EchoService
from upgrades import Load, PersistentConnection, Upgraded, lives


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    made = Upgraded(tmp_path_factory.mktemp("upgrade"))
    made.edit("gateway.lua", lambda text: text.replace("providers = {", 'drain = "40s", providers = {', 1))
    routed(made, EchoService().port)
    yield made.start()
    made.stop()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def home(gateway, token):
    return requests.get(f"{gateway.url}/home", headers=bearer(token), timeout=10, allow_redirects=False).status_code


def socket(gateway, token):
    return websockets.sync.client.connect(
        f"ws://localhost:{gateway.ports[0]}/closed/echo",
        additional_headers=bearer(token),
        open_timeout=20,
        ping_interval=None,
    ).__enter__()


def echoes(opened):
    opened.send("hello")
    return opened.recv(timeout=10) == "hello"


def test_three_upgrades_lose_nothing(gateway):
    token = gateway.register("+919876501001")["session"]["token"]
    # A flow that was only created is in memory; one that was begun is in the store.
    created, begun = gateway.flow("register"), gateway.flow("register")
    assert gateway.begin(begun, "+919876501002").status_code == 200
    load = Load(gateway, "/home", token)
    sockets = [socket(gateway, token)]
    for _ in range(3):
        gateway.upgraded()
        sockets.append(socket(gateway, token))
        assert all(echoes(opened) for opened in sockets), "those of earlier processes too"
    load.end()
    assert load.last >= 3, "kept connections are asked to close"
    for opened in sockets:
        opened.close()
    assert gateway.begin(created, "+919876501003").status_code == 200
    assert gateway.submit(created, gateway.code("+919876501003")).status_code == 200
    assert gateway.submit(begun, gateway.code("+919876501002")).status_code == 200, "the outbox was handed over"
    wait_for(lambda: not any(lives(process) for process in gateway.earlier), "the earlier processes to end", 15)
    assert gateway.server.process.wait(10) == 0, "the first process ends with status 0"
    kinds = [
        event["kind"]
        for event in requests.get(f"{gateway.admin}/events?kind=upgrade_requested,upgrade_ended", timeout=10).json()
    ]
    assert kinds.count("upgrade_requested") == 3 and kinds.count("upgrade_ended") == 3
    by = requests.get(f"{gateway.admin}/events?kind=upgrade_requested&limit=1", timeout=10).json()[0]
    assert by["operator"]


def test_calls_that_name_no_flow_find_it_after_an_upgrade(gateway):
    address = "asha.rao@example.com"
    person = {"email": address, "password": "copper meadow seven", "first_name": "Asha", "last_name": "Rao"}
    made = gateway.api("POST", "/register", person)
    assert made.status_code == 201, made.text
    code = gateway.code(address)
    gateway.upgraded()
    answer = gateway.api("POST", "/verify-email", {"code": code}, headers=bearer(made.json()["token"]))
    assert answer.status_code == 200 and answer.json()["user"]["is_email_verified"], answer.text


def test_signing_out_holds_in_both_processes(gateway):
    """Attack: a user signs out at the new process, and a stolen token is used on a connection of the old one; or the
    other way round."""
    here, there = (gateway.register(number)["session"]["token"] for number in ("+919876501011", "+919876501012"))
    kept, other = PersistentConnection(gateway), PersistentConnection(gateway)
    for connection in (kept, other):
        for token in (here, there):
            assert connection.ask("GET", "/home", token)[0] == 200
    with socket(gateway, here) as tunnel:
        assert echoes(tunnel)
        gateway.upgraded()
        for _ in range(8):
            assert home(gateway, there) == 200, "each event loop of the new process has seen it"
        # In the new process; the old one reads the store.
        assert gateway.api("DELETE", "/session", headers=bearer(here)).status_code == 204
        status, _, is_last = kept.ask("GET", "/home", here)
        assert (status, is_last) == (401, True), "answered by the old process"
        # In the old one; the new one reads the store.
        status, _, is_last = other.ask("DELETE", "/api/auth/session", there)
        assert (status, is_last) == (204, True)
        assert [home(gateway, there) for _ in range(8)] == [401] * 8
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            tunnel.recv(timeout=5)
    kept.close()
    other.close()


def test_attempts_count_in_both_processes(gateway):
    """Attack: guesses on connections of the old process in addition to the new one, to double the attempts."""
    number = "+919876501021"
    gateway.register(number)
    flow = gateway.flow()
    assert gateway.begin(flow, number).status_code == 200
    code = gateway.code(number)
    kept = [PersistentConnection(gateway) for _ in range(3)]
    for connection in kept:
        assert connection.ask("GET", f"/api/auth/flows/{flow}")[0] == 200
    gateway.upgraded()
    seen = []
    for connection in kept:
        status, text, is_last = connection.ask(
            "POST", f"/api/auth/flows/{flow}/submit", body=f'{{"code":"{wrong(code)}"}}'
        )
        assert is_last, "answered by the old process"
        seen.append(status)
        seen.append(gateway.submit(flow, wrong(code)).status_code)
    assert seen == [401, 401, 401, 401, 429, 429], seen
    assert gateway.submit(flow, code).status_code == 429, "locked, even with the right code"


def test_a_code_is_spent_once(gateway):
    """Attack: the same code at both processes concurrently."""
    number = "+919876501031"
    gateway.register(number)
    flow = gateway.flow()
    assert gateway.begin(flow, number).status_code == 200
    kept = PersistentConnection(gateway)
    assert kept.ask("GET", f"/api/auth/flows/{flow}")[0] == 200
    code = gateway.code(number)
    gateway.upgraded()
    first = kept.ask("POST", f"/api/auth/flows/{flow}/submit", body=f'{{"code":"{code}"}}')
    assert (first[0], first[2]) == (200, True)
    assert gateway.submit(flow, code).status_code == 409
    # A flow created by one process is begun by the other.
    kept = PersistentConnection(gateway)
    created = gateway.flow()
    gateway.upgraded()
    created_later = gateway.flow()
    assert kept.ask("GET", f"/api/auth/flows/{created_later}")[0] == 200
    assert gateway.api("GET", f"/flows/{created}").status_code == 200


BROKEN = [
    (
        "#!/bin/sh\necho 'Error: The store was written by a newer Moongate.' >&2; exit 1\n",
        0o755,
        "ended with status 1 before it was ready. Its last output: Error: The store was written",
    ),
    ("#!/bin/sh\nkill -SEGV $$\n", 0o755, "was killed by signal 11 before it was ready. See the log."),
    ("#!/bin/sh\nexec sleep 60\n", 0o755, "did not get ready within 1s and was stopped."),
    ("#!/bin/sh\necho hello >&3; exec sleep 60\n", 0o755, "uses another upgrade protocol"),
    (
        "#!/bin/sh\nprintf 'prepared 1\\n' >&3; read line <&3; exec sleep 60\n",
        0o755,
        "did not serve within 1s and was stopped.",
    ),
    ("#!/bin/sh\nprintf 'prepared 1\\n' >&3; read line <&3; exit 3\n", 0o755, "ended with status 3 before it was ready."),
    ("no program\n", 0o644, "cannot be started: the file is not executable"),
]


@pytest.mark.parametrize("script, mode, sentence", BROKEN)
def test_a_program_that_does_not_start_changes_nothing(gateway, script, mode, sentence):
    token = gateway.register("+9198765010" + str(41 + [case[2] for case in BROKEN].index(sentence)))["session"]["token"]
    flow = gateway.flow("register")
    load = Load(gateway, "/home", token, 2)
    try:
        gateway.put_script(script, mode)
        status, text = gateway.upgrade("--within", "1s")
    finally:
        gateway.put(BIN / "moongate")
    assert status == 1 and "the old process continues" in text and sentence in text, text
    assert len(text.strip().split("\n")) == 1, text
    load.end()
    assert gateway.api("GET", f"/flows/{flow}").status_code == 200 and home(gateway, token) == 200


def test_a_configuration_that_is_refused_changes_nothing(gateway):
    before = gateway.edit("routes.lua", lambda text: text.replace("{ path =", "{ pathh =", 1))
    marks = gateway.server.output.count("This process continues.")
    os.kill(gateway.process, signal.SIGUSR2)
    wait_for(lambda: gateway.server.output.count("This process continues.") > marks, "the upgrade to fail", 30)
    gateway.edit("routes.lua", lambda text: before)
    told = [line for line in gateway.server.output.split("\n") if "This process continues." in line][-1]
    assert re.search(
        r"The new process failed: Not started: the configuration in .* has 1 problem. routes.lua:\d+: .*pathh",
        told,
    ), told
    assert gateway.api("GET", "/openapi.json").status_code == 200
    event = requests.get(f"{gateway.admin}/events?kind=upgrade_requested&limit=1", timeout=10).json()[0]
    assert event["detail"]["by"] == "SIGUSR2", event


def test_the_signal_reports_too_many_earlier_processes(gateway):
    """Each of them still has a WebSocket."""
    token = gateway.register("+919876501099")["session"]["token"]
    sockets = []
    try:
        for _ in range(8):
            sockets.append(socket(gateway, token))
            gateway.upgraded()
        os.kill(gateway.process, signal.SIGUSR2)
        sentence = "upgrade: 8 earlier processes still finish their connections."
        wait_for(lambda: sentence in gateway.server.output, "the reason in the log", 10)
    finally:
        for opened in sockets:
            opened.close()
    wait_for(lambda: not any(lives(process) for process in gateway.earlier), "the earlier processes to end", 15)


MISTAKES = [
    ("routes.lua", "{ path =", "{ pathh =", r"The new process failed: Not started: .* routes\.lua:\d+: .*pathh"),
    ("gateway.lua", "public_url", "publik_url", r"The new process failed: Not started: .* gateway\.lua:\d+: publik"),
    ("gateway.lua", "return gateway {", "return gateway {{", r"`admin` in .*gateway\.lua cannot be read\. gateway\."),
]


@pytest.mark.parametrize("file, right, wrong_text, why", MISTAKES)
def test_the_command_reports_a_mistake_in_a_file(gateway, file, right, wrong_text, why):
    """A mistake keeps the command neither from the gateway nor from its result."""
    before = gateway.edit(file, lambda text: text.replace(right, wrong_text, 1))
    try:
        status, text = gateway.upgrade()
        json_status, json_text = gateway.upgrade("--json")
        # The option names the gateway even if gateway.lua cannot be read.
        named_status, named_text = gateway.upgrade("--admin", f"127.0.0.1:{gateway.ports[1]}")
    finally:
        gateway.edit(file, lambda text: before)
    assert status == 1, text
    assert re.fullmatch(rf"moongate: Not upgraded; the old process continues\. {why}[^\n]*\n", text), text
    document, end = json.JSONDecoder().raw_decode(json_text)
    assert json_status == 1 and list(document) == ["why"] and re.match(why, document["why"]), json_text
    assert json_text[end:].strip() == text.strip(), json_text
    assert named_status == 1 and "continues. The new process failed: Not started: " in named_text, named_text
    assert lives(gateway.process) and gateway.api("GET", "/openapi.json").status_code == 200


def test_a_variable_that_was_left_behind_is_refused(gateway):
    """Attack: an environment variable that refers to unrelated descriptors."""
    server = Program(
        gateway.program,
        "serve",
        "--config",
        gateway.config,
        env={"MOONGATE_UPGRADE": f"{os.getpid()} 0 127.0.0.1:1 127.0.0.1:2"},
    )
    assert server.process.wait(60) == 2
    assert "MOONGATE_UPGRADE is set, but no gateway started this process as its replacement" in server.output


def test_the_next_process_inherits_only_its_sockets(gateway):
    """Attack: a connection that the old process has closed stays open in the new one by inheritance."""
    kept = [PersistentConnection(gateway) for _ in range(5)]
    for connection in kept:
        assert connection.ask("GET", "/api/auth/openapi.json")[0] == 200
    gateway.upgraded()
    ports = {f"{connection.connection.sock.getsockname()[1]:04X}" for connection in kept}
    table = "".join(open(f"/proc/net/tcp{version}").read() for version in ("", "6"))
    inodes = {
        fields[9]
        for fields in (line.split() for line in table.split("\n"))
        if len(fields) > 9 and fields[2].split(":")[-1] in ports
    }
    assert inodes, "the old process serves them"
    held = {os.readlink(f"/proc/{gateway.process}/fd/{name}") for name in os.listdir(f"/proc/{gateway.process}/fd")}
    assert not held & {f"socket:[{inode}]" for inode in inodes}
    environment = open(f"/proc/{gateway.process}/environ").read()
    assert "MOONGATE_UPGRADE" in environment, "what it was started with"
    for connection in kept:
        connection.close()


def test_systemd_follows_the_process(tmp_path):
    """With sockets held by systemd: it learns of the new process from the old one, and afterwards accepts messages
    only from the new one."""
    own = Upgraded(tmp_path)
    notified = Notifications(tmp_path)
    notified.socket.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_PASSCRED, 1)
    public, operator = listening(own.ports[0]), listening(own.ports[1])
    own.server = serve(
        own, [("listen", public), ("admin", operator)], NOTIFY_SOCKET=notified.path, WATCHDOG_USEC="900000"
    )
    own.server.wait_line(" ready ", 90)
    own.process = first = own.server.process.pid

    # Read messages as they arrive, like systemd: a full socket blocks its senders.
    messages = queue.Queue()

    def read():
        while True:
            message, credentials, _, _ = notified.socket.recvmsg(4096, 64)
            messages.put(
                (
                    struct.unpack("iII", credentials[0][2])[0],
                    dict(line.split("=", 1) for line in message.decode().split("\n")),
                )
            )

    threading.Thread(target=read, daemon=True).start()
    own.upgraded()
    while True:
        sender, fields = messages.get(timeout=60)
        if "MAINPID" in fields:
            break
    assert (
        sender == first and fields["MAINPID"] == str(own.process) and fields["STATUS"].startswith("Serving generation")
    ), fields
    assert own.server.process.wait(30) == 0
    beats = 0
    while beats < 2:
        sender, fields = messages.get(timeout=60)
        assert sender == own.process and "STOPPING" not in fields, fields
        beats += "WATCHDOG" in fields
    assert requests.get(f"{own.url}/api/auth/openapi.json", timeout=10).status_code == 200
    # During a restart of the service, new connections wait.
    os.kill(own.process, signal.SIGTERM)
    wait_for(lambda: not lives(own.process), "the gateway to end", 30)
    with socket_module.create_connection(("127.0.0.1", own.ports[0]), timeout=60) as early:
        early.sendall(b"GET /api/auth/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        own.server = serve(own, [("listen", public), ("admin", operator)])
        assert early.recv(64).startswith(b"HTTP/1.1 200")
    own.process = own.server.process.pid
    own.stop()


def test_no_program_is_left_behind(gateway, tmp_path):
    """Attack: a gateway that is stopped while a new process gets ready must not continue in that process."""
    own = Upgraded(tmp_path)
    own.start()
    own.put_script("#!/bin/sh\nexec sleep 60\n")
    asked = subprocess.Popen(
        [str(BIN / "moongate"), "upgrade", "--config", str(own.config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    sleeper = wait_for(
        lambda: (
            open(f"/proc/{own.process}/task/{own.process}/children").read().split()
            or subprocess.run(["pgrep", "-P", str(own.process)], capture_output=True, text=True).stdout.split()
        ),
        "the program to be started",
        30,
    )
    own.stop()
    asked.wait(30)
    assert not lives(int(sleeper[0]))


def test_the_long_run_judges_failed_requests():
    """Only requests that were in flight in a killed process may fail, at most one for each kill."""
    sys.path.append(str(ROOT / "Tests/Bench"))
    try:
        excess = importlib.import_module("upgrade").excess
    finally:
        sys.path.remove(str(ROOT / "Tests/Bench"))
    killed = [(10.0, 10.001), (20.0, 20.001)]
    assert excess([], []) == []
    assert excess([(9.99, 10.02, "reset"), (20.05, 20.06, "reset")], killed) == []
    (quiet,) = excess([(15.0, 15.1, "b'HTTP/1.1 503'")], killed)
    assert "while no process was killed: b'HTTP/1.1 503'" in quiet
    (many,) = excess([(9.9, 10.02, "reset"), (9.95, 10.03, "reset")], killed[:1])
    assert many.startswith("2 requests failed, more than the 1 ")
