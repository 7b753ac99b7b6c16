"""The PROXY protocol, by hand and with the real HAProxy and nginx, set up by the configurations of
Documentation/guides/real-services.md.

Loopback has several addresses, which distinguish the proxy and the clients."""

import csv
import itertools
import json
import os
import re
import socket
import subprocess

import pytest
import requests

from local_gateway import LocalGateway, Program, free_port, wait_for
from manual import block
from proxies import _system
from test_forward import Service, reached
from test_framing import Service as FramingService
from test_framing import compare
from test_http2 import routed
from test_tls import certificate, speak_tls

PAGE = "guides/real-services.md"
PROXY, CLIENT, OTHER = "127.0.0.2", "127.0.0.5", "127.0.0.6"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
REFUSED = "a connection was refused because of the PROXY protocol"


def v1(address=CLIENT):
    return f"PROXY TCP4 {address} 127.0.0.1 56324 443\r\n".encode()


def v2(address=CLIENT, extensions=b"\x02\x00\x01a\x04\xff\xff"):
    addresses = socket.inet_aton(address) + socket.inet_aton("127.0.0.1") + b"\xdc\x04\x01\xbb"
    return SIGNATURE + b"\x21\x11" + len(addresses + extensions).to_bytes(2, "big") + addresses + extensions


LOCAL = SIGNATURE + b"\x20\x00\x00\x00"
UNIX = SIGNATURE + b"\x21\x31\x00\xd8" + b"/" * 216
UNKNOWN = b"PROXY UNKNOWN\r\n"


def takes(gateway):
    """Takes PROXY headers from PROXY."""
    named = f'trusted_proxies = {{ "{PROXY}/32" }}, proxy_protocol = true,\n  region ='
    gateway.edit("gateway.lua", lambda text: text.replace("region =", named, 1))


def connect(gateway, source, port=None):
    return socket.create_connection(("127.0.0.1", port or gateway.ports[0]), 10, source_address=(source, 0))


def request(path, *fields):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *fields, "", ""]).encode()


def answer(gateway, source, *pieces, port=None):
    """All bytes that a connection from the address gets until its end, after these pieces."""
    received = b""
    with connect(gateway, source, port) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                client.sendall(piece)
            while more := client.recv(65536):
                received += more
        except (ConnectionResetError, BrokenPipeError):
            pass
    return received


def forwarded(received):
    """The `X-Forwarded-For` with which a request reached the service."""
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), received
    return dict(reached(body))["x-forwarded-for"]


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.end()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, service):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.access = gateway.config.parent / "access.log"
    takes(gateway)
    routed(gateway, service.port)
    try:
        yield gateway.start(MOONGATE_ACCESS_LOG=str(gateway.access))
    finally:
        gateway.stop()


@pytest.mark.parametrize("header", [v1(), v2()], ids=["v1", "v2"])
def test_the_stated_client_is_the_client(gateway, header):
    path = f"/open/{len(header)}"
    assert forwarded(answer(gateway, PROXY, header + request(path))) == CLIENT
    # In pieces, and with a header that claims another address.
    pieces = [bytes([byte]) for byte in header + request(path, "X-Forwarded-For: 127.0.0.9")]
    assert forwarded(answer(gateway, PROXY, *pieces)) == CLIENT

    def logged():
        lines = [json.loads(line) for line in gateway.access.read_text().splitlines()]
        return [line["client"] for line in lines if line["path"] == path]

    wait_for(lambda: len(logged()) == 2, "two lines of the access log")
    assert logged() == [CLIENT, CLIENT]


def test_the_gateways_own_calls_have_the_stated_client(gateway):
    body = answer(gateway, PROXY, v2(OTHER) + request("/api/auth/session")).partition(b"\r\n\r\n")[2]
    decision = json.loads(body)["decision_id"]
    assert requests.get(f"{gateway.admin}/decisions/{decision}", timeout=10).json()["address"] == OTHER


@pytest.mark.parametrize("header", [LOCAL, UNIX, UNKNOWN], ids=["local", "unix", "unknown"])
def test_a_header_without_a_client_keeps_the_proxy(gateway, header):
    assert forwarded(answer(gateway, PROXY, header + request("/open/a", "X-Forwarded-For: 127.0.0.9"))) == PROXY


# Attack: a client that reaches the gateway past the proxy claims an address.
@pytest.mark.parametrize(
    "header", [v1(), v2(), LOCAL, UNKNOWN, b"PROXY "], ids=["v1", "v2", "local", "unknown", "start"]
)
def test_a_header_of_anybody_else_is_refused(gateway, service, header):
    before = len(service.seen)
    for source in (CLIENT, "127.0.0.1"):
        assert answer(gateway, source, header + request("/open/a")) == b""
        assert answer(gateway, source, header[:3], header[3:] + request("/open/a")) == b""
    assert len(service.seen) == before
    assert forwarded(answer(gateway, CLIENT, request("/open/a"))) == CLIENT, "without one, it is served"
    assert REFUSED in gateway.log and "is not in trusted_proxies" in gateway.log


def test_a_trusted_proxy_must_send_a_header(gateway, service):
    before = len(service.seen)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    for first in (request("/open/a"), b"\r\n\r\n" + request("/open/a"), hello):
        assert answer(gateway, PROXY, first) == b""
    for header in (
        b"PROXY TCP4 127.0.0.5 127.0.0.1 1\r\n",
        b"PROXY TCP4 127.0.0.05 127.0.0.1 1 2\r\n",
        b"PROXY UNKNOWN\n",
        b"PROXY " + b"x" * 102,
        SIGNATURE + b"\x31\x11\x00\x00",
        SIGNATURE + b"\x21\x11\xff\xff",
    ):
        assert answer(gateway, PROXY, header + request("/open/a")) == b""
    assert len(service.seen) == before
    assert "has sent no PROXY header" in gateway.log and "is malformed" in gateway.log


# Attack: a client of the proxy sends a header, which the proxy passes on behind its own.
def test_a_client_of_the_proxy_cannot_send_a_second_header(gateway, service):
    before = len(service.seen)
    for second in (v1("127.0.0.9"), v2("127.0.0.9")):
        assert answer(gateway, PROXY, v2() + second + request("/open/a")) == b""
        assert answer(gateway, PROXY, v1(), second, request("/open/a")) == b""
    assert len(service.seen) == before


def test_the_admin_listener_takes_no_header(gateway):
    received = answer(gateway, PROXY, v1() + request("/healthz"), port=gateway.ports[1])
    assert not received.startswith(b"HTTP/1.1 200"), received


def test_the_setting_applies_after_a_reload(gateway):
    old = gateway.policy()["active"]
    before = gateway.edit("gateway.lua", lambda text: text.replace("proxy_protocol = true", "proxy_protocol = false"))
    changed = gateway.wait_generation(old)["active"]
    try:
        assert answer(gateway, PROXY, v1() + request("/open/a")).startswith(b"HTTP/1.1 400 ")
        # It is a proxy like any other now.
        named = request("/open/a", "X-Forwarded-For: 203.0.113.9")
        assert forwarded(answer(gateway, PROXY, named)) == "203.0.113.9"
    finally:
        gateway.edit("gateway.lua", lambda _: before)
        gateway.wait_generation(changed)
    assert forwarded(answer(gateway, PROXY, v1() + request("/open/a"))) == CLIENT


def test_requests_behind_a_header_are_read_alike_by_other_servers(new_gateway):
    """Attack (request smuggling): the end of the header and the beginning of the request are read differently."""
    service = FramingService()
    try:
        takes(new_gateway)
        routed(new_gateway, service.port)
        new_gateway.start()
        headers = itertools.cycle([v1(), v2(), LOCAL, UNKNOWN])

        def begin():
            client = connect(new_gateway, PROXY)
            client.sendall(next(headers))
            return client

        compare(begin, service)
        assert new_gateway.server.process.poll() is None
    finally:
        service.close()


# The configurations of the page.


class Guide:
    """A gateway with TLS, and the two proxies in front of it."""

    def __init__(self, folder, service):
        self.cert, key = certificate(folder, "one")
        self.gateway = LocalGateway(folder)
        takes(self.gateway)
        routed(self.gateway, service.port)
        speak_tls(self.gateway, self.cert, key)
        self.ports = {"haproxy": free_port(), "nginx": free_port()}
        self.statistics = free_port()
        self.programs = []
        try:
            self.gateway.start()
            self.programs = [self._haproxy(folder), self._nginx(folder)]
            for name, port in self.ports.items():
                wait_for(lambda port=port: self._listens(port), f"{name} to listen", 30)
        except BaseException:
            self.end()
            raise

    def _here(self, text, name):
        text = text.replace("10.0.0.3:443", f"127.0.0.1:{self.gateway.ports[0]}")
        return re.sub(r"(bind |listen ):?443\b", rf"\g<1>127.0.0.1:{self.ports[name]}", text)

    def _haproxy(self, folder):
        text = self._here(block("haproxy-tcp.cfg", PAGE), "haproxy")
        # The address of the proxy in this test.
        text = text.replace("send-proxy-v2", f"source {PROXY} send-proxy-v2")
        text += f"\nlisten statistics\n  mode http\n  bind 127.0.0.1:{self.statistics}\n"
        file = folder / "haproxy-tcp.cfg"
        file.write_text(f"{text}  stats enable\n  stats uri /\n")
        return Program(_system("haproxy"), "-db", "-f", file)

    def _nginx(self, folder):
        text = self._here(block("nginx-stream.conf", PAGE), "nginx")
        text = text.replace("proxy_protocol on;", f"proxy_protocol on; proxy_bind {PROXY};")
        user = "user root;" if os.geteuid() == 0 else ""
        head = "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n"
        head += f"daemon off; pid nginx.pid; {user} worker_processes 1; error_log stderr error;\n"
        (folder / "nginx-stream.conf").write_text(f"{head}events {{ worker_connections 256; }}\n{text}")
        return Program(_system("nginx"), "-p", folder, "-c", "nginx-stream.conf", "-e", "stderr")

    def _listens(self, port):
        for program in self.programs:
            assert program.runs, program.output
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def check_status(self):
        """The result of HAProxy's last check of the gateway, such as L4OK."""
        table = requests.get(f"http://127.0.0.1:{self.statistics}/;csv", timeout=10).text.removeprefix("# ")
        return next(row["check_status"] for row in csv.DictReader(table.splitlines()) if row["svname"] == "moongate")

    def curl(self, name, source, path, *options):
        """A request through a proxy, or to the gateway. Returns the version of HTTP and the body."""
        port = self.ports.get(name, self.gateway.ports[0])
        told = subprocess.run(
            ["curl", "-sS", "-4", "--cacert", self.cert, "--interface", source, "-w", "\n%{http_version}", *options,
             f"https://localhost:{port}{path}"],
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        body, _, version = told.stdout.rpartition("\n")
        return told.returncode, version, body

    def end(self):
        for program in self.programs:
            program.process.kill()
            program.process.wait(10)
        self.gateway.stop()


@pytest.fixture(scope="module")
def guide(tmp_path_factory, service):
    guide = Guide(tmp_path_factory.mktemp("guide"), service)
    yield guide
    guide.end()


@pytest.mark.parametrize("option,version", [("--http1.1", "1.1"), ("--http2", "2")])
@pytest.mark.parametrize("name", ["haproxy", "nginx"])
def test_the_proxies_of_the_page_tell_the_client(guide, name, option, version):
    for source in (CLIENT, OTHER):
        status, used, body = guide.curl(name, source, "/open/a", option, "-H", "X-Forwarded-For: 127.0.0.9")
        assert (status, used) == (0, version), body
        fields = dict(reached(body))
        assert fields["x-forwarded-for"] == source and fields["x-forwarded-proto"] == "https"
        refused = json.loads(guide.curl(name, source, "/api/auth/session", option)[2])
        told = requests.get(f"{guide.gateway.admin}/decisions/{refused['decision_id']}", timeout=10).json()
        assert told["address"] == source


def test_the_health_checks_of_haproxy_succeed(guide):
    wait_for(lambda: guide.check_status() == "L4OK", "HAProxy to find the gateway")
    refused = [line for line in guide.gateway.log.splitlines() if REFUSED in line and PROXY in line]
    assert refused == []


# Attack: a client of HAProxy sends a header; a client sends one to the gateway.
def test_a_client_of_the_page_cannot_claim_an_address(guide):
    for name in ("haproxy", "nginx", "gateway"):
        status, _, body = guide.curl(name, CLIENT, "/open/a", "--haproxy-protocol")
        assert status != 0 and body == "", name
    status, _, body = guide.curl("gateway", CLIENT, "/open/a")
    assert status == 0 and dict(reached(body))["x-forwarded-for"] == CLIENT
