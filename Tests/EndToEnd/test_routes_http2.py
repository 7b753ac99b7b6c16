"""Services of HTTP/2 behind the gateway, in cleartext and by TLS: messages, trailers, back-pressure, and services that
break the protocol."""

import hashlib
import os
import socket
import subprocess
import time

import h2.events
import pytest
import requests
from hyperframe.frame import DataFrame, GoAwayFrame, HeadersFrame, RstStreamFrame

from local_gateway import LocalGateway, wait_for
from service_http2 import HTTP2Service
from test_metrics import metrics, value
from test_tls import certificate, speak_tls
from wire import H2Client, Upstream

MIB = 1024 * 1024


def lines(*routes):
    """The edit of routes.lua that puts these routes first."""
    text = "return routes {\n" + "".join(f"  {{ {route} }},\n" for route in routes)
    return lambda before: before.replace("return routes {\n", text, 1)


class Service(HTTP2Service):
    """Answers by the last part of the path, such as `/open/echo`."""

    def ended(self, stream):
        way = stream.path.rpartition("/")[2].partition("?")[0].replace("-", "_")
        getattr(self, f"answer_{way}", lambda stream: stream.answer(body=b"hello"))(stream)

    def answer_echo(self, stream):
        stream.answer(fields=[("x-sha", hashlib.sha256(stream.body).hexdigest())], body=stream.body)

    def answer_large(self, stream):
        stream.answer(body=b"x" * (20 * MIB))

    def answer_trailers(self, stream):
        trailers = [("x-sum", "1"), ("remote-user", "root"), ("set-cookie", "moongate=x"), ("x-other", "a b")]
        stream.answer(fields=[("trailer", "x-sum")], body=b"body", trailers=trailers)

    def answer_head_only(self, stream):
        stream.head(200, [("grpc-status", "5")], ends=True)

    def answer_interim(self, stream):
        stream.head(103, [("link", "</a>")])
        stream.answer(body=b"after")

    # What breaks the protocol.

    def answer_reset(self, stream):
        stream.raw(RstStreamFrame(stream.number, error_code=2).serialize())

    def answer_refused(self, stream):
        if len(self.asked(stream.path)) == 1:
            stream.raw(RstStreamFrame(stream.number, error_code=7).serialize())
        else:
            stream.answer(body=b"again")

    def answer_goaway(self, stream):
        if len(self.asked(stream.path)) == 1:
            stream.raw(GoAwayFrame(0, last_stream_id=0, error_code=0).serialize())
        else:
            stream.answer(body=b"again")

    def answer_cut(self, stream):
        stream.head()
        stream.send(b"half")
        stream.connection.flush()
        # Otherwise the gateway has not passed anything on, and can still answer with 502.
        time.sleep(0.3)
        stream.raw(RstStreamFrame(stream.number, error_code=0).serialize())

    def answer_split(self, stream):
        block = stream.connection.h2.encoder.encode([(":status", "200"), ("x", "a\r\nset-cookie: b=c")])
        stream.raw(HeadersFrame(stream.number, block, flags=["END_HEADERS", "END_STREAM"]).serialize())

    def answer_longer(self, stream):
        stream.head(200, [("content-length", "1")])
        stream.raw(DataFrame(stream.number, b"HTTP/1.1 200 OK\r\n\r\n").serialize())

    def answer_twice(self, stream):
        stream.answer(body=b"once", trailers=[("x-sum", "1")])
        block = stream.connection.h2.encoder.encode([("x-sum", "2")])
        stream.raw(HeadersFrame(stream.number, block, flags=["END_HEADERS", "END_STREAM"]).serialize())

    def answer_frozen(self, stream):
        stream.connection.is_frozen = True

    def answer_silent(self, stream):
        pass


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.close()
    assert not service.faults


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, service):
    folder = tmp_path_factory.mktemp("gateway")
    gateway = LocalGateway(folder)
    cert, key = certificate(folder, "one")
    gateway.certificate = cert
    speak_tls(gateway, cert, key)
    to = f'to = "h2c://127.0.0.1:{service.port}"'
    gateway.edit(
        "routes.lua",
        lines(
            f'path = "/open/**", {to}, allow = true, body = "100MiB", timeout = "3s"',
            f'path = "/slow/**", {to}, allow = true, timeout = "60s"',
            f'path = "/closed/**", {to}, headers = {{ ["X-Tenant"] = "demo" }}',
        ),
    )
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
    """The body and the status."""
    done = subprocess.run(
        ["curl", "-sS", "--cacert", gateway.certificate, "-w", "\n%{http_code}", *arguments, gateway.url + path],
        capture_output=True,
        timeout=120,
    )
    assert done.returncode in (0, 18, 92), done.stderr
    body, _, status = done.stdout.rpartition(b"\n")
    return body, int(status)


def logged(gateway, text, seconds=5):
    """The line about an upstream with the text."""
    return wait_for(
        lambda: next((line for line in gateway.log.splitlines() if text in line and "upstream" in line), None),
        f"a log line with {text}",
        seconds,
    )


# Messages.


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_service_gets_requests_as_they_are_meant(gateway, service, version):
    path = f"/closed/a{version.strip('-')}?b=c"
    cookie = f"Cookie: other=1; __Host-moongate={gateway.token}"
    body, status = curl(gateway, path, version, "-H", cookie, "-H", "Remote-User: root", "-H", "X-Tenant: x")
    assert (body, status) == (b"hello", 200)
    (asked,) = service.asked(path)
    assert asked[":method"] == "GET" and asked[":scheme"] == "http" and asked[":path"] == path
    assert asked[":authority"] == f"localhost:{gateway.ports[0]}" == asked["x-forwarded-host"]
    assert asked["x-forwarded-proto"] == "https" and asked["x-tenant"] == "demo" and asked["cookie"] == "other=1"
    assert asked["remote-phone"] == "+919876500100" and asked["x-moongate-assertion"].count(".") == 2
    names = [name for name, _ in asked.fields]
    assert len(names) == len(set(names)) and all(name == name.lower() for name in names)
    assert not {"connection", "host", "upgrade", "transfer-encoding", "keep-alive", "te"} & set(names)
    assert "root" not in str(asked.fields)


def test_requests_share_connections(gateway, service):
    """One for each event loop, of which there is one for each core."""
    for number in range(40):
        assert curl(gateway, f"/open/shared{number}")[1] == 200
    live = [connection for connection in service.connections if connection.is_alive() and not connection.is_frozen]
    assert len(live) <= (os.cpu_count() or 1) + 2


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_large_bodies_pass_both_ways(gateway, version, tmp_path):
    content = os.urandom(3 * MIB)
    (tmp_path / "body").write_bytes(content)
    for extra in ([], ["-H", "Transfer-Encoding: chunked"] if version == "--http1.1" else []):
        body, status = curl(gateway, "/open/echo", version, "-T", str(tmp_path / "body"), *extra)
        assert status == 200 and body == content


def test_answers_without_a_body(gateway, client):
    answer = client.answer(client.ask(client.headers("/open/head-only")))
    assert answer.status == 200 and answer.body == b"" and answer.headers["grpc-status"] == "5"
    assert curl(gateway, "/open/a", "-I")[1] == 200
    assert curl(gateway, "/open/interim") == (b"after", 200)


# Trailers.


def test_trailers_reach_clients_of_http2(client):
    stream = client.ask(client.headers("/open/trailers"))
    answer = client.answer(stream)
    assert answer.status == 200 and answer.body == b"body" and answer.headers["trailer"] == "x-sum"
    (trailers,) = [event for event in client.events if isinstance(event, h2.events.TrailersReceived)]
    # Attack: the trailers of a service sign users in as another user, or name one.
    assert dict(trailers.headers) == {"x-sum": "1", "x-other": "a b"}


def test_trailers_reach_clients_of_http1_that_ask_for_them(gateway):
    asked, _ = curl(gateway, "/open/trailers", "--http1.1", "-i", "--raw", "-H", "TE: trailers", "-H", "Connection: TE")
    assert asked.endswith(b"4\r\nbody\r\n0\r\nx-sum: 1\r\nx-other: a b\r\n\r\n") and b"\r\ntrailer: x-sum\r\n" in asked
    unasked, _ = curl(gateway, "/open/trailers", "--http1.1", "-i", "--raw")
    assert unasked.endswith(b"4\r\nbody\r\n0\r\n\r\n") and b"trailer" not in unasked


def test_trailers_of_requests_reach_the_service(service, client):
    stream = client.ask(client.headers("/open/trailed", "POST"), b"12345", end=False)
    forged = [("remote-user", "root"), ("x-forwarded-for", "1.2.3.4"), ("cookie", "a=b"), ("x-moongate-assertion", "x")]
    client.h2.send_headers(stream, [*forged, ("x-sum", "2")], end_stream=True)
    client.flush()
    assert client.answer(stream).status == 200
    (asked,) = service.asked("/open/trailed")
    assert asked.body == b"12345" and asked.trailers == [("x-sum", "2")]


# Back-pressure.


def test_a_slow_client_does_not_fill_the_memory(gateway, service):
    """Attack: clients ask for large responses and read nothing."""
    service.sent = 0
    clients = []
    for _ in range(4):
        client = H2Client(gateway.ports[0], settings={4: 0})
        clients.append(client)
        client.ask(client.headers("/open/large"))
    time.sleep(2)
    # A window of each stream is 64 KiB at first.
    assert service.sent < 4 * MIB
    assert curl(gateway, "/open/a") == (b"hello", 200)
    for client in clients:
        client.close()


def test_a_large_answer_arrives_whole(gateway):
    body, status = curl(gateway, "/open/large")
    assert status == 200 and len(body) == 20 * MIB


def test_a_service_that_reads_nothing_stops_one_upload_only(tmp_path):
    """Attack: uploads that a service does not read take the window of the connection, which all users share."""
    service = Service(reads=False)
    gateway = LocalGateway(tmp_path)
    to = f'to = "h2c://127.0.0.1:{service.port}"'
    gateway.edit("routes.lua", lines(f'path = "/open/**", {to}, allow = true, body = "100MiB", body_rate = false'))
    try:
        gateway.start()
        stuck = []
        for number in range(3):
            raw = socket.create_connection(("127.0.0.1", gateway.ports[0]))
            head = f"POST /open/stuck{number} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {50 * MIB}\r\n\r\n"
            raw.sendall(head.encode())
            raw.settimeout(1)
            sent = 0
            try:
                while sent < 50 * MIB:
                    sent += raw.send(b"x" * 65536)
            except TimeoutError:
                pass
            assert sent < 20 * MIB
            stuck.append(raw)
        # A body that fits into the window that is left for a new connection.
        answer = requests.post(f"{gateway.url}/open/echo", data=b"small", timeout=5)
        assert answer.status_code == 200 and answer.content == b"small"
        for raw in stuck:
            raw.close()
    finally:
        gateway.stop()
        service.close()


# Services that end streams and connections.


@pytest.mark.parametrize("way", ["goaway", "refused"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_a_service_has_not_handled_is_sent_again(gateway, service, way, method):
    assert curl(gateway, f"/open/{method}/{way}", "-X", method) == (b"again", 200)
    assert len(service.asked(f"/open/{method}/{way}")) == 2


@pytest.mark.parametrize(
    "way,text",
    [
        ("reset", "INTERNAL_ERROR"),
        ("split", "a malformed head"),
        ("longer", "the body is longer than its Content-Length"),
    ],
)
def test_a_broken_answer_is_502_and_told(gateway, service, way, text):
    body, status = curl(gateway, f"/open/{way}", "-X", "POST", "-d", "x")
    assert status == 502 and b"upstream_unavailable" in body and b"set-cookie" not in body
    line = logged(gateway, text)
    assert f"h2c://127.0.0.1:{service.port}" in line
    assert curl(gateway, "/open/a") == (b"hello", 200)


def test_a_cut_answer_looks_cut(gateway, client):
    answer = client.answer(client.ask(client.headers("/open/cut")))
    assert answer.reset == 2 and answer.body == b"half"
    logged(gateway, "NO_ERROR")


def test_second_trailers_end_the_connection(gateway, service, client):
    """The response is complete. What else is open on the connection fails, and the operator learns why."""
    answer = client.answer(client.ask(client.headers("/open/twice")))
    assert answer.status == 200 and answer.body == b"once" and not answer.reset
    logged(gateway, "it sends on after the end of a response")
    assert curl(gateway, "/open/a") == (b"hello", 200)


def test_a_connection_that_died_is_not_used_again(gateway, service):
    began = time.monotonic()
    assert curl(gateway, "/open/frozen")[1] == 504
    assert curl(gateway, "/open/a") == (b"hello", 200)
    assert time.monotonic() - began < 6


def test_a_client_that_gives_up_resets_its_stream_only(gateway, service, client):
    # Each event loop has connections of its own, and the last test has killed some.
    wait_for(lambda: client.answer(client.ask(client.headers("/open/a"))).body == b"hello", "the service", 20)
    before = len(service.connections)
    stream = client.ask(client.headers("/open/silent?given-up"))
    wait_for(lambda: service.asked("/open/silent?given-up"), "the request", 5)
    client.h2.reset_stream(stream, 8)
    client.flush()
    asked = service.asked("/open/silent?given-up")[0]
    assert wait_for(lambda: asked.reset is not None and [asked.reset], "the reset", 5) == [8]
    assert client.answer(client.ask(client.headers("/open/a"))).body == b"hello"
    assert len(service.connections) == before


def test_many_clients_that_give_up_do_not_end_the_connection(gateway, service):
    """Attack: cancelled requests, which the service counts (CVE-2023-44487), so that the requests of others end too."""
    other = H2Client(gateway.ports[0])
    waiting = other.ask(other.headers("/slow/silent?waits"))
    wait_for(lambda: service.asked("/slow/silent?waits"), "the request", 5)
    for _ in range(3):
        client = H2Client(gateway.ports[0])
        for _ in range(60):
            stream = client.ask(client.headers("/open/silent?many"))
            client.h2.reset_stream(stream, 8)
            client.flush()
        client.answer(client.ask(client.headers("/open/a")))
        client.close()
    resets = [
        sum(stream.reset is not None for stream in connection.streams.values()) for connection in service.connections
    ]
    assert max(resets) <= 110
    asked = service.asked("/slow/silent?waits")[0]
    with asked.connection.lock:
        asked.answer(body=b"late")
        asked.connection.flush()
    assert other.answer(waiting).body == b"late"
    other.close()


# Other services.


def test_a_service_of_http1_is_told_apart(tmp_path):
    service = Upstream()
    gateway = LocalGateway(tmp_path)
    gateway.edit("routes.lua", lines(f'path = "/open/**", to = "h2c://127.0.0.1:{service.port}", allow = true'))
    try:
        gateway.start()
        assert requests.get(f"{gateway.url}/open/a", timeout=10).status_code == 502
        logged(gateway, "it does not speak HTTP/2 here")
        assert b"/open/a" not in service.all
    finally:
        gateway.stop()
        service.close()


def test_http2_by_tls(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    cert = certificate(folder, "service")
    good = Service(cert=cert)
    # It accepts connections, and does not agree to HTTP/2.
    old = Service(cert=cert, alpn=("http/1.1",))
    gateway = LocalGateway(tmp_path)
    trust = f'http2 = true, upstream_tls = {{ ca = "{cert[0]}" }}, allow = true'
    gateway.edit(
        "routes.lua",
        lines(
            f'path = "/open/**", to = "https://localhost:{good.port}", {trust}',
            f'path = "/old/**", to = "https://localhost:{old.port}", {trust}',
        ),
    )
    try:
        gateway.start()
        answer = requests.post(f"{gateway.url}/open/echo", data=b"x" * 100_000, timeout=10)
        assert answer.status_code == 200 and answer.content == b"x" * 100_000
        (asked,) = good.asked("/open/echo")
        assert asked[":scheme"] == "https" and asked.connection.socket.selected_alpn_protocol() == "h2"
        assert requests.get(f"{gateway.url}/old/a", timeout=10).status_code == 502
        line = logged(gateway, "it does not agree to HTTP/2 by ALPN")
        assert f"https://localhost:{old.port}" in line and not old.streams
    finally:
        gateway.stop()
        good.close()
        old.close()


def test_connections_are_counted(gateway, service):
    curl(gateway, "/open/a")
    upstream = f"h2c://127.0.0.1:{service.port}"
    assert value(metrics(gateway), "moongate_upstream_connections", upstream=upstream) >= 1
