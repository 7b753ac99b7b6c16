"""The gateway as a systemd service: notifications, socket activation, watchdog, credentials, and the units of
Packaging/systemd."""

import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess

import pytest
import requests

from local_gateway import BIN, LocalGateway
from processes import ROOT, Program, free_port

UNITS = ROOT / "Packaging/systemd"


class Notifications:
    """The notification socket of systemd."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(60)
        self.seen = []

    def until(self, field):
        """Waits for a message with the field and returns all its fields."""
        while True:
            message = self.socket.recv(4096).decode()
            fields = dict(line.split("=", 1) for line in message.split("\n"))
            self.seen.append(fields)
            if field in fields:
                return fields


def listening(port):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(128)
    return made


def serve(gateway, sockets, **env):
    """Starts the gateway with the sockets as descriptors from 3 on, like systemd: [(name, socket)]."""
    taken = [made.fileno() for _, made in sockets]
    moves = " ".join(f"{3 + index}<&{9}{index}" for index in range(len(taken)))
    script = f'export LISTEN_PID=$$ LISTEN_FDS={len(taken)} LISTEN_FDNAMES={":".join(name for name, _ in sockets)}; exec "$@" {moves}'
    places = [90 + index for index in range(len(taken))]
    for source, place in zip(taken, places):
        os.dup2(source, place)
    try:
        return Program(
            "bash", "-c", script, "bash", BIN / "moongate", "serve", "--config", gateway.config, env=env, pass_fds=places
        )
    finally:
        for place in places:
            os.close(place)


def for_one_user(file):
    """Sets the permissions of a systemd credential: r--r-----, readable only by the service's user through an ACL."""
    entries = [
        (0x01, 4, 0xFFFFFFFF),
        (0x02, 4, os.getuid()),
        (0x04, 0, 0xFFFFFFFF),
        (0x10, 4, 0xFFFFFFFF),
        (0x20, 0, 0xFFFFFFFF),
    ]
    file.chmod(0o400)
    os.setxattr(
        file,
        "system.posix_acl_access",
        struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries),
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o440


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("systemd")


@pytest.fixture(scope="module")
def gateway(folder):
    """A gateway whose key is a credential."""
    made = LocalGateway(folder)
    made.edit("gateway.lua", lambda text: text.replace('file "data/master.key"', 'credential "master.key"'))
    yield made
    made.stop()


def test_notifications_sockets_and_credentials_together(gateway, folder):
    credentials = folder / "credentials"
    credentials.mkdir(mode=0o700)
    key = credentials / "master.key"
    key.write_bytes(os.urandom(32))
    for_one_user(key)
    notified = Notifications(folder)
    (public, operator) = (listening(gateway.ports[0]), listening(gateway.ports[1]))
    env = {"NOTIFY_SOCKET": notified.path, "CREDENTIALS_DIRECTORY": str(credentials), "WATCHDOG_USEC": "900000"}
    gateway.server = serve(gateway, [("admin", operator), ("listen", public)], **env)

    ready = notified.until("READY")
    assert re.fullmatch(r"Serving generation [0-9a-f]{8}", ready["STATUS"]), ready
    assert requests.get(f"{gateway.admin}/readyz", timeout=10).status_code == 200
    assert requests.get(f"{gateway.url}/api/auth/openapi.json", timeout=10).status_code == 200
    assert not list(gateway.config.glob("**/master.key")), "no key is created beside the credential"
    notified.until("WATCHDOG")
    notified.until("WATCHDOG")

    # Programs that it starts get neither the variables nor the sockets.
    environment = open(f"/proc/{gateway.server.process.pid}/environ").read()
    assert "LISTEN_FDS" in environment, "what it was started with"

    gateway.server.process.send_signal(signal.SIGHUP)
    reloading = notified.until("RELOADING")
    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert notified.until("READY")["STATUS"] == ready["STATUS"]
    before = gateway.edit("routes.lua", lambda text: text.replace("{ path =", "{ pathh =", 1))
    gateway.server.process.send_signal(signal.SIGHUP)
    notified.until("RELOADING")
    assert "are refused (problems: 1)" in notified.until("READY")["STATUS"]
    gateway.edit("routes.lua", lambda text: before)

    # A restart refuses no connections: new ones wait in the socket, which systemd holds.
    gateway.server.process.send_signal(signal.SIGTERM)
    assert "STATUS" in notified.until("STOPPING")
    assert gateway.server.process.wait(30) == 0, gateway.server.output
    with socket.create_connection(("127.0.0.1", gateway.ports[0]), timeout=60) as early:
        early.sendall(b"GET /api/auth/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        gateway.server = serve(gateway, [("listen", public), ("admin", operator)], **env)
        assert early.recv(64).startswith(b"HTTP/1.1 200")
    gateway.server.end()
    public.close()
    operator.close()


def test_failed_start_is_reported_to_systemd(gateway, folder, tmp_path):
    notified = Notifications(tmp_path)
    server = gateway.serve(NOTIFY_SOCKET=notified.path)
    assert server.process.wait(60) == 1
    assert "CREDENTIALS_DIRECTORY is not set" in notified.until("STATUS")["STATUS"]
    assert not any("READY" in fields for fields in notified.seen)


def test_unnamed_socket_is_refused(gateway, tmp_path):
    with listening(free_port()) as made:
        server = serve(gateway, [("moongate.socket", made)])
        assert server.process.wait(60) == 2
        assert "Set FileDescriptorName=listen or FileDescriptorName=admin" in server.output


def test_the_unit_is_confined():
    """Below 2.0 of 10 in systemd's security analysis."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(UNITS / "moongate.service")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    level = re.search(r"Overall exposure level for moongate.service: ([0-9.]+)", told.stdout)
    assert level and float(level[1]) < 2.0, told.stdout + told.stderr


def test_the_units_use_known_options():
    unit = (UNITS / "moongate.service").read_text()
    assert "Type=notify-reload" in unit and "WatchdogSec=" in unit
    # systemd 252 uses the last type that it knows, and reloads only by ExecReload.
    types = re.findall(r"^Type=(.*)$", unit, re.M)
    assert types == ["notify", "notify-reload"]
    assert re.findall(r"^ExecReload=(.*)$", unit, re.M) == ["/bin/sh -c 'kill -HUP $MAINPID'"]
    sockets = re.search(r"^Sockets=(.*)$", unit, re.M)[1].split()
    names = [re.search(r"^FileDescriptorName=(.*)$", (UNITS / name).read_text(), re.M)[1] for name in sockets]
    assert names == ["listen", "admin"]
    for name in sockets:
        text = (UNITS / name).read_text()
        assert "Service=moongate.service" in text and "Accept" not in text
