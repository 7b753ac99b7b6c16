"""HTTP/2 over TLS: the same rules as for HTTP/1.1, and attacks specific to HTTP/2."""

import hashlib
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import h2.events
import h2.settings
import pytest
import requests
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from local_gateway import wait_for
from processes import Program, free_port
from proxies import packaged
from test_tls import certificate, speak_tls
from wire import H2Client, Upstream

PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 1, 6, 9, 11


def routed(gateway, *ports):
    """Upstreams at these ports, open under /open, and for users under /closed."""
    targets = ", ".join(f'"http://127.0.0.1:{port}"' for port in ports)
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/open/**", to = {{ {targets} }}, allow = true, websocket = true, body = "100MiB" }}, '
            f'{{ path = "/closed/**", to = {{ {targets} }}, websocket = true }},',
            1,
        ),
    )


@pytest.fixture(scope="module")
def upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, upstream):
    from local_gateway import LocalGateway

    folder = tmp_path_factory.mktemp("gateway")
    gateway = LocalGateway(folder)
    cert, key = certificate(folder, "one")
    gateway.certificate = cert
    speak_tls(gateway, cert, key)
    routed(gateway, upstream.port)
    os.environ["REQUESTS_CA_BUNDLE"] = str(cert)
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500100")["session"]["token"]
        yield gateway
    finally:
        del os.environ["REQUESTS_CA_BUNDLE"]
        gateway.stop()


@pytest.fixture
def client(gateway):
    client = H2Client(gateway.ports[0])
    yield client
    client.close()


def curl(gateway, path, *arguments):
    done = subprocess.run(
        [
            "curl",
            "-sS",
            "--http2",
            "--cacert",
            gateway.certificate,
            "-w",
            "\n%{http_version} %{http_code} %{size_download} %{size_upload}",
            *arguments,
            gateway.url + path,
        ],
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    body, _, facts = done.stdout.rpartition(b"\n")
    return body, facts.decode().split()


# Well-behaved clients.


def test_curl_is_served_by_http2(gateway):
    body, facts = curl(gateway, "/open/a")
    assert facts[:2] == ["2", "200"] and body == b"hello"
    body, facts = curl(gateway, "/api/auth/flows", "-H", "Content-Type: application/json", "-d", '{"flow":"login"}')
    assert facts[:2] == ["2", "201"] and b'"fl_' in body
    body, facts = curl(gateway, "/auth/login", "-H", "Accept: text/html")
    assert facts[:2] == ["2", "200"] and b"<html" in body
    body, facts = curl(gateway, "/echo", "-H", f"Cookie: __Host-moongate={gateway.token}")
    assert facts[:2] == ["2", "200"], body
    # HEAD and responses without a body.
    body, facts = curl(gateway, "/open/a", "-I")
    assert facts[:2] == ["2", "200"] and b"content-length: 5" in body


def test_own_requests_have_the_address_of_their_client(gateway):
    """Attack: all clients of HTTP/2 share the limits of one address."""
    body, facts = curl(gateway, "/api/auth/flows/fl_x/begin", "-H", "Content-Type: application/json", "-d", "{}")
    assert facts[:2] == ["2", "404"]
    decision = json.loads(body)["decision_id"]

    def refusal():
        events = requests.get(f"{gateway.admin}/events", timeout=10).json()
        return next((event for event in events if event["id"] == decision), None)

    assert wait_for(refusal, "the refusal")["address"] == "127.0.0.1"


def test_http1_is_still_there(gateway):
    body, facts = curl(gateway, "/open/a", "--http1.1")
    assert facts[:2] == ["1.1", "200"] and body == b"hello"


def test_large_bodies_both_ways(gateway, tmp_path):
    size = 64 * 1024 * 1024
    content = os.urandom(1024 * 1024) * 64
    digest = hashlib.sha256(content).hexdigest()
    got = {}

    def answer(_):
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + content

    upstream = BodyUpstream(got, answer)
    before = gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/large/**", to = "http://127.0.0.1:{upstream.port}", allow = true }},',
            1,
        ),
    )
    try:
        wait_for(lambda: curl(gateway, "/large/down", "-o", "/dev/null")[1][1] == "200", "the route")
        file = tmp_path / "content"
        file.write_bytes(content)
        began = time.monotonic()
        _, facts = curl(gateway, "/large/up", "-T", str(file), "-o", "/dev/null")
        took = time.monotonic() - began
        assert facts[1] == "200" and got["digest"] == digest and got["size"] == size
        # On a real network, a window of 64 KiB would be noticeable; on loopback, this only catches severe slowness.
        assert took < 30, took
        down = tmp_path / "down"
        curl(gateway, "/large/down", "-o", str(down))
        assert hashlib.sha256(down.read_bytes()).hexdigest() == digest
    finally:
        gateway.edit("routes.lua", lambda _: before)
        upstream.close()


class BodyUpstream(Upstream):
    """Reads a body as it arrives and keeps only its digest."""

    def __init__(self, got, answer):
        self.got = got
        super().__init__(answer)

    def _serve(self, connection, kept):
        file = connection.makefile("rb")
        with connection:
            while True:
                head = {}
                line = file.readline()
                if not line:
                    return
                while (field := file.readline()) not in (b"\r\n", b""):
                    name, _, value = field.partition(b":")
                    head[name.strip().lower()] = value.strip()
                digest, size = hashlib.sha256(), 0
                left = int(head.get(b"content-length", 0))
                while left:
                    data = file.read(min(left, 65536))
                    if not data:
                        return
                    digest.update(data)
                    left -= len(data)
                    size += len(data)
                if line.startswith(b"PUT"):
                    self.got.update(digest=digest.hexdigest(), size=size)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                else:
                    try:
                        connection.sendall(self.answer(connection))
                    except OSError:
                        return


def test_h2load_and_nghttp(gateway):
    load = subprocess.run(
        ["h2load", "-n", "3000", "-c", "10", "-m", "50", f"https://127.0.0.1:{gateway.ports[0]}/open/a"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "3000 succeeded, 0 failed, 0 errored" in load.stdout, load.stdout + load.stderr
    fetched = subprocess.run(
        ["nghttp", "-nsy", *[f"https://127.0.0.1:{gateway.ports[0]}/open/{n}" for n in range(20)]],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert fetched.returncode == 0 and fetched.stdout.count(" 200 ") == 20, fetched.stdout + fetched.stderr


def test_streams_share_a_connection_and_do_not_wait_for_each_other(gateway, client):
    streams = [client.ask(client.headers(f"/open/{n}")) for n in range(40)]
    assert all(client.answer(stream).status == 200 for stream in streams)
    assert client.h2.remote_settings.max_concurrent_streams == 128
    assert client.h2.remote_settings.initial_window_size == 64 * 1024


# Heads.


@pytest.mark.parametrize(
    "headers",
    [
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost")],
        [(":method", "GET"), (":path", "/open/x"), (":authority", "localhost")],
        [(":scheme", "https"), (":path", "/open/x"), (":authority", "localhost")],
        [
            (":method", "GET"),
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":authority", "localhost"),
        ],
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":path", "/open/y"),
            (":authority", "localhost"),
        ],
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":authority", "localhost"),
            (":authority", "evil"),
        ],
        [(":method", "GET"), (":scheme", "https"), (":path", ""), (":authority", "localhost")],
        [(":method", "GET"), (":scheme", "https"), (":path", "open/x"), (":authority", "localhost")],
        [(":method", "GET"), (":scheme", "https"), (":path", "*"), (":authority", "localhost")],
        [(":method", "GET"), (":scheme", "https"), (":path", "/open/x y"), (":authority", "localhost")],
        [(":method", "GET"), (":scheme", "ftp"), (":path", "/open/x"), (":authority", "localhost")],
        [(":method", "G T"), (":scheme", "https"), (":path", "/open/x"), (":authority", "localhost")],
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":authority", "localhost"),
            (":status", "200"),
        ],
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":authority", "localhost"),
            (":unknown", "1"),
        ],
        [
            (":method", "GET"),
            (":scheme", "https"),
            ("accept", "*/*"),
            (":path", "/open/x"),
            (":authority", "localhost"),
        ],
        [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":authority", "localhost"),
        ],
        *[
            [(":method", "GET"), (":scheme", "https"), (":path", "/open/x"), (":authority", "localhost"), field]
            for field in [
                ("Accept", "*/*"),
                ("connection", "close"),
                ("keep-alive", "1"),
                ("proxy-connection", "close"),
                ("transfer-encoding", "chunked"),
                ("upgrade", "websocket"),
                ("te", "gzip"),
                ("a b", "1"),
                ("", "1"),
                ("x", "a\r\nremote-user: root"),
                ("x", "a\nb"),
                ("x", "a\0b"),
                ("host", "evil.example"),
                ("host", "a\r\nb"),
                ("cookie", "a=1\r\nremote-user: root"),
                ("content-length", "-1"),
                ("content-length", "5"),
            ]
        ],
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/open/x HTTP/1.1\r\nremote-user: root\r\n\r\nGET /closed/"),
            (":authority", "localhost"),
        ],
        [
            (":method", "GET / HTTP/1.1\r\nx: y\r\n\r\nGET"),
            (":scheme", "https"),
            (":path", "/open/x"),
            (":authority", "localhost"),
        ],
        [(":method", "GET"), (":scheme", "https"), (":path", "/open/x")],
    ],
    ids=lambda headers: (
        "; ".join(
            f"{name}={value!r}"
            for name, value in headers
            if (name, value)
            not in [(":method", "GET"), (":scheme", "https"), (":path", "/open/x"), (":authority", "localhost")]
        )[:70]
        or "missing"
    ),
)
def test_malformed_heads(gateway, upstream, client, headers):
    before = upstream.all
    answer = client.answer(client.ask(headers))
    if ("", "1") in headers:
        # To the library, this is an error of the header compression, after which nothing can be read.
        assert client.goaway(1) == COMPRESSION_ERROR
        return
    assert answer.reset == PROTOCOL_ERROR or answer.status == 400, answer
    assert upstream.all == before
    # Other streams of the connection go on.
    assert client.answer(client.ask(client.headers("/open/next"))).status == 200


def smuggling(client, field, path, hidden):
    """A malformed head and a request as its DATA, in one TLS record."""
    stream = client.h2.get_next_available_stream_id()
    client.h2.send_headers(stream, client.headers(path, "POST", [field]))
    client.h2.send_data(stream, hidden, end_stream=True)
    client.flush()
    return stream


def own_requests(gateway):
    """How many requests for its own paths the gateway has answered."""
    lines = requests.get(f"{gateway.admin}/metrics", timeout=10).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith('moongate_requests_total{route="(own)"'))


@pytest.mark.parametrize("field", [("x", " a"), ("x", "a\t"), ("x", "a\x7f")], ids=["before", "after", "DEL"])
def test_data_of_a_malformed_request_is_not_executed(gateway, upstream, client, field):
    """Attack: request smuggling. The gateway reads the DATA of a malformed request as the next request."""
    host = f"Host: {client.authority}\r\n".encode()
    own = b"POST /api/auth/flows HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\nContent-Length: 16\r\n\r\n"
    before = own_requests(gateway)
    for _ in range(20):
        # An idle connection to the service, so that a hidden request would leave at once.
        assert client.answer(client.ask(client.headers("/open/idle"))).status == 200
        stream = smuggling(client, field, "/open/outer", b"GET /open/hidden HTTP/1.1\r\n" + host + b"\r\n")
        assert client.answer(stream).reset == PROTOCOL_ERROR
        stream = smuggling(client, field, "/api/auth/flows", own + b'{"flow":"login"}')
        assert client.answer(stream).reset == PROTOCOL_ERROR
    assert client.answer(client.ask(client.headers("/open/last"))).status == 200
    assert b"hidden" not in upstream.all and b"outer" not in upstream.all
    assert own_requests(gateway) == before


def test_connect_is_405(gateway, client):
    answer = client.answer(client.ask([(":method", "CONNECT"), (":authority", "localhost:22")]))
    assert answer.status == 405, answer


def test_heads_over_32_kib_are_431(gateway, upstream, client):
    assert (
        client.answer(client.ask(client.headers("/open/x", extra=[(f"x-{n}", "y" * 1000) for n in range(28)]))).status
        == 200
    )
    answer = client.answer(client.ask(client.headers("/open/x", extra=[(f"x-{n}", "y" * 1000) for n in range(40)])))
    assert answer.status == 431, answer
    assert client.answer(client.ask(client.headers("/open/x"))).status == 200
    # Ten thousand addresses.
    answer = client.answer(
        client.ask(client.headers("/open/x", extra=[("x-forwarded-for", ", ".join(["10.0.0.1"] * 10000))]))
    )
    assert answer.status == 431, answer


def test_crumbs_of_cookies_are_one_field(gateway, upstream, client):
    crumbs = [("cookie", "a=1"), ("cookie", f"__Host-moongate={gateway.token}"), ("cookie", "b=2")]
    assert client.answer(client.ask(client.headers("/closed/crumbs", extra=crumbs))).status == 200
    asked = upstream.all[upstream.all.rindex(b"GET /closed/crumbs") :]
    assert b"Cookie: a=1; b=2\r\n" in asked and gateway.token.encode() not in asked and b"Remote-User: " in asked
    # Two session cookies: one may be an attacker's.
    answer = client.answer(
        client.ask(client.headers("/closed/x", extra=crumbs + [("cookie", f"__Host-moongate={gateway.token}")]))
    )
    assert answer.status == 401, answer


def test_identity_is_the_gateways_to_say(gateway, upstream, client):
    fields = [
        ("remote-user", "root"),
        ("remote_user", "root"),
        ("x-moongate-assertion", "x"),
        ("x-forwarded-for", "1.2.3.4"),
        ("te", "trailers"),
    ]
    assert client.answer(client.ask(client.headers("/open/strip", extra=fields))).status == 200
    asked = upstream.all[upstream.all.rindex(b"GET /open/strip") :].lower()
    assert (
        b"root" not in asked
        and b"1.2.3.4" not in asked
        and b"\r\nte:" not in asked
        and b"x-forwarded-proto: https" in asked
    )


# Bodies.


def test_bodies_with_and_without_a_length(gateway, upstream, client):
    assert (
        client.answer(client.ask(client.headers("/open/b1", "POST", [("content-length", "5")]), b"12345")).status == 200
    )
    assert client.answer(client.ask(client.headers("/open/b2", "POST"), b"12345")).status == 200
    one = upstream.all[upstream.all.rindex(b"POST /open/b1") :]
    two = upstream.all[upstream.all.rindex(b"POST /open/b2") :]
    assert b"Content-Length: 5\r\n" in one and b"\r\n\r\n12345" in one
    assert b"Transfer-Encoding: chunked\r\n" in two and b"\r\n\r\n5\r\n12345\r\n0\r\n\r\n" in two


@pytest.mark.parametrize("length,body", [("5", b"1234"), ("5", b"123456"), ("0", b"1"), ("99999999999999999999", b"1")])
def test_a_length_that_is_a_lie(gateway, upstream, client, length, body):
    answer = client.answer(client.ask(client.headers("/open/lie", "POST", [("content-length", length)]), body))
    assert answer.reset == PROTOCOL_ERROR or answer.status == 400, answer
    assert b"123456" not in upstream.all[upstream.all.rfind(b"POST /open/lie") :]


def test_two_lengths(gateway, client):
    answer = client.answer(
        client.ask(client.headers("/open/x", "POST", [("content-length", "1"), ("content-length", "1")]), b"1")
    )
    assert answer.status == 400 or answer.reset == PROTOCOL_ERROR, answer


def test_trailers_end_here(gateway, upstream, client):
    stream = client.ask(client.headers("/open/trailers", "POST"), b"12345", end=False)
    client.h2.send_headers(stream, [("remote-user", "root")], end_stream=True)
    client.flush()
    assert client.answer(stream).status == 200
    assert b"root" not in upstream.all[upstream.all.rindex(b"POST /open/trailers") :]


def test_a_stream_that_is_reset_midway_leaves_nothing_whole(gateway, upstream, client):
    stream = client.ask(client.headers("/open/midway", "POST", [("content-length", "100")]), b"half", end=False)
    wait_for(lambda: b"half" in upstream.all, "the first half")
    client.h2.reset_stream(stream)
    client.flush()
    assert client.answer(client.ask(client.headers("/open/after"))).status == 200
    kept = next(bytes(kept) for kept in upstream.received if b"/open/midway" in kept)
    assert kept.endswith(b"half")


def test_too_large_body_is_413_and_the_connection_stays_open(gateway, client):
    answer = client.answer(
        client.ask(
            client.headers("/open/x", "POST", [("content-length", str(101 * 1024 * 1024))]), b"x" * 1000, end=False
        )
    )
    assert answer.status == 413, answer
    assert client.answer(client.ask(client.headers("/open/x"))).status == 200


def test_a_client_that_takes_nothing_holds_its_upstream(gateway):
    """Back-pressure: the response waits at the upstream, not in the gateway."""
    sent = {"bytes": 0}

    def pour(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 268435456\r\n\r\n")
        connection.settimeout(1)
        try:
            while sent["bytes"] < 268435456:
                sent["bytes"] += connection.send(b"x" * 65536)
        except OSError:
            pass
        return b""

    upstream = Upstream(pour)
    before = gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/pour/**", to = "http://127.0.0.1:{upstream.port}", allow = true }},',
            1,
        ),
    )
    try:
        wait_for(
            lambda: curl(gateway, "/pour/x", "-o", "/dev/null", "--max-filesize", "1", "-I")[1][1] == "200", "the route"
        )
    except AssertionError:
        pass
    sent["bytes"] = 0
    client = H2Client(gateway.ports[0], {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1024})
    stream = client.ask(client.headers("/pour/x"))
    client.listen(
        lambda event: isinstance(event, h2.events.DataReceived) and event.stream_id == stream, 5, credit=False
    )
    time.sleep(1.5)
    assert sent["bytes"] < 16 * 1024 * 1024, sent
    # Other streams do not wait for it.
    assert client.answer(client.ask(client.headers("/open/x"))).status == 200
    client.close()
    gateway.edit("routes.lua", lambda _: before)
    upstream.close()


# Large response heads.


def test_heads_of_several_frames(gateway, tmp_path):
    """Attack: one request whose response head is larger than a frame ends the connection with all its streams, such as
    the downloads of other users of a proxy in front. RFC 9113 section 6.10."""

    def answer(_):
        return b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + b"X-Large: " + b"0a1B~^" * 8000 + b"\r\n\r\nhello"

    large = Upstream(answer)
    before = gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/large/**", to = "http://127.0.0.1:{large.port}", allow = true }},',
            1,
        ),
    )
    try:
        wait_for(lambda: curl(gateway, "/large/a")[1][:2] == ["2", "200"], "the route")
        head = tmp_path / "head"
        body, facts = curl(gateway, "/large/a", "-D", str(head))
        assert body == b"hello" and b"0a1B~^" * 8000 in head.read_bytes()
        # The gateway's own response: the path is in the address to which the user returns.
        client = H2Client(gateway.ports[0])
        other = client.ask(client.headers("/open/slow", "POST"), b"1", end=False)
        path = "/closed/" + "%7E" * 7000
        found = client.answer(client.ask(client.headers(path, extra=[("accept", "text/html")])))
        assert found.status == 302 and len(found.headers["location"]) > 21000, found
        client.h2.send_data(other, b"2", end_stream=True)
        client.flush()
        assert client.answer(other).status == 200
        client.close()
    finally:
        gateway.edit("routes.lua", lambda _: before)
        large.close()


# Behind a proxy that speaks HTTP/2 to the gateway.


@pytest.fixture
def caddy(gateway, tmp_path):
    port = free_port()
    (tmp_path / "Caddyfile").write_text(
        f"{{\n admin off\n auto_https off\n}}\nhttps://localhost:{port} {{\n"
        f" tls {gateway.certificate} {gateway.certificate.with_name('one.key')}\n respond /open/secret* 403\n"
        f" reverse_proxy https://localhost:{gateway.ports[0]} {{\n"
        f"  transport http {{\n   versions 2\n   tls_trust_pool file {gateway.certificate}\n  }}\n }}\n}}\n"
    )
    environment = {"HOME": str(tmp_path)}
    command = [packaged("caddy"), "run", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"]
    caddy = Program(*command, env=environment)

    def answers():
        try:
            return requests.get(f"https://localhost:{port}/open/a", timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

    try:
        wait_for(answers, "Caddy")
        yield port
    finally:
        caddy.end()


def test_a_proxy_in_front_cannot_be_bypassed(gateway, upstream, caddy):
    """Attack: Caddy passes a field value with a blank on, which makes the request malformed in HTTP/2. Its DATA is a
    request that Caddy forbids, with an `X-Forwarded-For` that Caddy would not send."""
    host = f"localhost:{gateway.ports[0]}"
    hidden = f"GET /open/secret HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n".encode()
    client = H2Client(caddy)
    for text in [" a", "a\t", "a "] * 10:
        answer = client.answer(smuggling(client, ("x", text), "/open/outer", hidden))
        assert answer.status == 502, answer
    assert client.answer(client.ask(client.headers("/open/a"))).status == 200
    client.close()
    assert requests.get(f"https://localhost:{caddy}/open/secret", timeout=10).status_code == 403
    assert b"GET /open/secret" not in upstream.all


def test_downloads_behind_a_proxy_are_not_cut(gateway, caddy):
    """Attack: a stranger's request with a large response head, or a malformed one, cuts the downloads of others,
    because the proxy in front sends all requests on one connection."""
    release = threading.Event()
    release.set()

    def half(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + b"a" * 200000)
        release.wait(20)
        return b"b" * 200000

    slow = Upstream(half)
    before = gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/slow/**", to = "http://127.0.0.1:{slow.port}", allow = true }},',
            1,
        ),
    )
    try:
        wait_for(lambda: requests.get(f"https://localhost:{caddy}/slow/x", timeout=5).status_code == 200, "the route")
        release.clear()
        downloads = [requests.get(f"https://localhost:{caddy}/slow/{n}", timeout=20, stream=True) for n in range(3)]
        client = H2Client(caddy)
        # Caddy takes at most 16 KiB of a request. The response is larger, because the path is encoded once more.
        path = "/closed/" + "%7E" * 4600
        found = client.answer(client.ask(client.headers(path, extra=[("accept", "text/html")])))
        assert found.status == 302 and len(found.headers["location"]) > 23000, found
        assert client.answer(client.ask(client.headers("/open/x", extra=[("x", " a")]))).status == 502
        client.close()
        release.set()
        assert [len(download.content) for download in downloads] == [400000] * 3
    finally:
        release.set()
        gateway.edit("routes.lua", lambda _: before)
        slow.close()


# Floods.


def test_rapid_reset(gateway, upstream):
    """CVE-2023-44487."""
    client = H2Client(gateway.ports[0])
    for _ in range(2000):
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, client.headers("/open/rapid"), end_stream=True)
        client.h2.reset_stream(stream, 8)
    client.flush()
    client.listen(lambda event: False, 5)
    assert client.ended or client.goaway(1) == ENHANCE_YOUR_CALM
    assert upstream.all.count(b"/open/rapid") <= 400
    assert curl(gateway, "/open/a")[1][1] == "200"


def test_requests_that_one_user_cancels_cut_nothing_of_others(gateway, caddy):
    """Attack: through a proxy in front, a stranger begins requests and cancels them, without a session. The proxy resets
    their streams on the connection on which the downloads of others are."""
    release = threading.Event()
    release.set()

    def half(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + b"a" * 200000)
        release.wait(30)
        return b"b" * 200000

    slow, silent = Upstream(half), Upstream(lambda _: time.sleep(60))
    before = gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/slow/**", to = "http://127.0.0.1:{slow.port}", allow = true }}, '
            f'{{ path = "/silent/**", to = "http://127.0.0.1:{silent.port}", allow = true }},',
            1,
        ),
    )
    try:
        wait_for(lambda: requests.get(f"https://localhost:{caddy}/slow/x", timeout=5).status_code == 200, "the route")
        release.clear()
        downloads = [requests.get(f"https://localhost:{caddy}/slow/{n}", timeout=40, stream=True) for n in range(3)]
        client = H2Client(caddy)
        for _ in range(8):
            begun = silent.all.count(b"GET /silent/")
            streams = [client.ask(client.headers("/silent/x")) for _ in range(40)]
            wait_for(lambda: silent.all.count(b"GET /silent/") >= begun + 20, "the requests")
            for stream in streams:
                client.h2.reset_stream(stream, 8)
            client.flush()
            client.listen(lambda event: False, 0.1)
        client.close()
        assert requests.get(f"https://localhost:{caddy}/open/a", timeout=10).status_code == 200
        release.set()
        assert [len(download.content) for download in downloads] == [400000] * 3
        wait_for(lambda: "an HTTP/2 connection takes no more requests" in gateway.log, "the log")
    finally:
        release.set()
        gateway.edit("routes.lua", lambda _: before)
        slow.close()
        silent.close()


@pytest.mark.parametrize("kind", ["head", "trailers"])
def test_requests_that_the_gateway_itself_refuses(gateway, upstream, kind):
    """CVE-2025-8671: what the library accepts and the gateway refuses, so that the gateway resets the stream."""
    client = H2Client(gateway.ports[0])
    path = f"/open/refused-{kind}"
    for _ in range(1000):
        extra = [("x", " a")] if kind == "head" else ()
        stream = client.ask(client.headers(path, "POST", extra=extra), end=False)
        if kind == "trailers":
            client.h2.send_headers(stream, [("x", " a")], end_stream=True)
            client.flush()
        if client.ended:
            break
    client.listen(lambda event: False, 3)
    assert client.ended or client.goaway(1) == ENHANCE_YOUR_CALM
    assert upstream.all.count(path.encode()) <= 400
    assert curl(gateway, "/open/a")[1][1] == "200"


def flood(gateway, frames):
    """Sends frames until the gateway closes the connection. Returns whether it did."""
    client = H2Client(gateway.ports[0])
    client.listen(lambda event: isinstance(event, h2.events.RemoteSettingsChanged), 5)
    for frame in frames:
        client.raw(frame)
        if client.ended:
            break
    client.listen(lambda event: isinstance(event, h2.events.ConnectionTerminated), 5)
    code = client.goaway(0.1)
    client.close()
    return client.ended or code is not None


def test_continuation_flood(gateway):
    head = HeadersFrame(1)
    head.data = b"\x82"

    def frames():
        yield head.serialize()
        for _ in range(10_000):
            frame = ContinuationFrame(1)
            frame.data = b"\x00\x01a\x01b" * 100
            yield frame.serialize()

    assert flood(gateway, frames())


def test_empty_continuations(gateway):
    head = HeadersFrame(1)
    head.data = b"\x82"
    assert flood(gateway, [head.serialize()] + [ContinuationFrame(1).serialize()] * 10_000)


def test_streams_that_we_are_made_to_reset(gateway, upstream):
    """CVE-2025-8671: the client breaks a rule on each stream, so that the gateway resets it."""
    client = H2Client(gateway.ports[0])
    before = upstream.all.count(b"/open/made")
    for number in range(2000):
        stream = client.ask(client.headers("/open/made"))
        nothing = WindowUpdateFrame(stream)
        nothing.window_increment = 1
        client.raw(nothing.serialize()[:-4] + b"\0\0\0\0")
        if client.ended:
            break
    client.listen(lambda event: False, 3)
    assert client.ended or client.goaway(1) == ENHANCE_YOUR_CALM
    assert upstream.all.count(b"/open/made") - before <= 1000
    assert curl(gateway, "/open/a")[1][1] == "200"


def test_empty_data_frames(gateway, upstream):
    client = H2Client(gateway.ports[0])
    stream = client.ask(client.headers("/open/empty", "POST"), b"1", end=False)
    empty = DataFrame(stream).serialize()
    for _ in range(100):
        client.raw(empty * 100)
        if client.ended:
            break
    client.listen(lambda event: isinstance(event, h2.events.ConnectionTerminated), 5)
    assert client.ended or client.goaway(1) is not None


def test_priorities_are_ignored(gateway, client):
    """RFC 9113 section 5.3.2. One of a wrong length is an error of its stream (section 6.3)."""
    frame = PriorityFrame(1)
    frame.depends_on, frame.stream_weight, frame.exclusive = 3, 1, False
    for _ in range(100):
        client.raw(frame.serialize() * 100)
    stream = client.ask(client.headers("/open/x", "POST"), b"1", end=False)
    client.raw(b"\0\0\4\2\0" + struct.pack(">I", stream) + b"\0" * 4)
    assert client.answer(stream).reset == FRAME_SIZE_ERROR
    assert client.answer(client.ask(client.headers("/open/x"))).status == 200


@pytest.mark.parametrize("frame", [PingFrame(0, b"12345678"), SettingsFrame(0)], ids=["ping", "settings"])
def test_floods_of_frames_that_require_a_reply(gateway, frame):
    assert flood(gateway, [frame.serialize() * 100] * 100)


def test_a_reset_of_a_stream_that_is_not_there(gateway):
    reset = RstStreamFrame(99)
    reset.error_code = 8
    assert flood(gateway, [reset.serialize()])


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x00\x00\x00\x00\x00\x80\x00\x00\x00",
        struct.pack(">I", 0xFFFFFF00 | 0) + b"\0" * 60,
        os.urandom(500),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["reserved bit", "huge frame", "noise", "http/1.1"],
)
def test_rubbish_ends_the_connection_only(gateway, rubbish):
    client = H2Client(gateway.ports[0])
    client.raw(rubbish)
    client.listen(lambda event: isinstance(event, h2.events.ConnectionTerminated), 3)
    client.close()
    assert curl(gateway, "/open/a")[1][1] == "200"


# Ends of connections.


@pytest.mark.parametrize("first", [b"G", b"PRI * HTTP/2.0\r\n\r\nXM", b"\0", b"PRI * HTTP/1.1\r\n"])
def test_a_wrong_preface_is_refused_at_its_first_wrong_byte(gateway, first):
    """Attack: a client of another protocol occupies a connection with bytes that can never become a request."""
    context = ssl.create_default_context(cafile=str(gateway.certificate))
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(
        socket.create_connection(("127.0.0.1", gateway.ports[0])), server_hostname="localhost"
    ) as connection:
        connection.sendall(first)
        connection.settimeout(3)
        got = b""
        while data := connection.recv(65536):
            got += data
    # Our settings, then GOAWAY with PROTOCOL_ERROR, then the end.
    assert got.endswith(b"\0\0\x08\x07" + b"\0" * 5 + b"\0" * 4 + b"\0\0\0\x01"), got


@pytest.mark.parametrize("value", [" a", "a ", "\ta", "a\t", " ", "\t"])
@pytest.mark.parametrize("name", ["x-blank", "cookie", "host"])
def test_values_with_blanks_at_their_ends_are_refused(gateway, upstream, client, name, value):
    """RFC 9113 section 8.2.1; the connection stays open."""
    answer = client.answer(client.ask(client.headers("/open/blank", extra=[(name, value)])))
    assert answer.reset == PROTOCOL_ERROR, answer
    assert (
        client.answer(client.ask(client.headers("/open/fine", extra=[("x-inner", "a b\tc"), ("x-empty", "")]))).status
        == 200
    )
    assert b"/open/blank" not in upstream.all


@pytest.mark.parametrize(
    "number,field", list(enumerate([("x-trailer", "a "), ("X-Upper", "a"), (":path", "/"), ("x-trailer", "a\r\nb")]))
)
def test_malformed_trailers_leave_nothing_whole(gateway, upstream, client, number, field):
    stream = client.ask(client.headers("/open/trailed", "POST"), end=False)
    body = b"trailed body %d" % number
    client.h2.send_data(stream, body)
    client.flush()
    kept = wait_for(lambda: next((kept for kept in upstream.received if body in kept), None), "the body upstream", 5)
    frame = HeadersFrame(stream, client.h2.encoder.encode([field]), flags=["END_HEADERS", "END_STREAM"])
    client.raw(frame.serialize())
    client.listen(
        lambda event: isinstance(event, h2.events.StreamReset) or isinstance(event, h2.events.ConnectionTerminated), 5
    )
    resets = [
        event for event in client.events if isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated))
    ]
    assert resets and int(resets[0].error_code) == PROTOCOL_ERROR, client.events
    assert b"0\r\n\r\n" not in kept.partition(body)[2]


def test_a_drain_says_goaway_and_lets_streams_end(tmp_path, monkeypatch):
    from local_gateway import LocalGateway

    release = threading.Event()

    def late(connection):
        release.wait(10)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate"

    upstream = Upstream(late)
    gateway = LocalGateway(tmp_path)
    cert, key = certificate(tmp_path, "one")
    speak_tls(gateway, cert, key)
    routed(gateway, upstream.port)
    try:
        gateway.start()
        gateway.certificate = cert
        idle = H2Client(gateway.ports[0])
        served = []
        asking = threading.Thread(target=lambda: served.append(curl(gateway, "/open/late")))
        asking.start()
        wait_for(lambda: b"/open/late" in upstream.all, "the request")
        gateway.server.process.send_signal(signal.SIGTERM)
        assert idle.goaway() == 0
        time.sleep(0.5)
        release.set()
        asking.join(10)
        assert served == [(b"late", ["2", "200", "4", "0"])]
        assert gateway.server.process.wait(15) == 0
    finally:
        release.set()
        gateway.stop()
        upstream.close()
