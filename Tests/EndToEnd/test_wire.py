"""The gateway on the wire: Date fields, empty lines before a request, slow bodies."""

import email.utils
import socket
import threading
import time

import pytest
import requests

from local_gateway import LocalGateway, wait_for
from test_http2 import routed
from test_metrics import metrics, value
from wire import Upstream

pytestmark = pytest.mark.alone

DATED = b"Date: Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.fixture(scope="module")
def upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


@pytest.fixture(scope="module")
def wired(tmp_path_factory, upstream):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    routed(gateway, upstream.port)
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/fast/**", to = "http://127.0.0.1:{upstream.port}", allow = true, body_rate = "100B/2s" }}, '
            f'{{ path = "/unbound/**", to = "http://127.0.0.1:{upstream.port}", allow = true, body_rate = false }}, '
            f'{{ path = "/gone/**", to = "http://127.0.0.1:1", allow = true }},',
            1,
        ),
    )
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace("return gateway {", 'return gateway {\n  trusted_proxies = { "127.0.0.1/32" },', 1),
    )
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500900")["session"]["token"]
        yield gateway
    finally:
        gateway.stop()


def dates(raw):
    return [line for line in raw.partition(b"\r\n\r\n")[0].split(b"\r\n") if line.lower().startswith(b"date:")]


def whole(data):
    """The number of complete responses at the start of these bytes."""
    count = 0
    while (end := data.find(b"\r\n\r\n")) >= 0:
        head = data[:end].lower()
        data = data[end + 4 :]
        if b"\r\ntransfer-encoding: chunked" in head:
            last = data.find(b"0\r\n\r\n")
            if last < 0:
                return count
            data = data[last + 5 :]
        elif b"\r\ncontent-length: " in head:
            length = int(head.split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
            if len(data) < length:
                return count
            data = data[length:]
        count += 1
    return count


def ask(gateway, data, answers=1):
    """Sends the bytes on a new connection and reads until the number of responses is complete or the connection
    ends."""
    with socket.create_connection(("127.0.0.1", gateway.ports[0])) as client:
        client.settimeout(10)
        client.sendall(data)
        got = b""
        while whole(got) < answers and (more := client.recv(65536)):
            got += more
        return got


@pytest.mark.parametrize(
    "path,fields,status",
    [
        ("/open/a", "", 200),
        ("/closed/a", "", 401),
        ("/closed/a", "Accept: text/html\r\n", 302),
        ("//", "", 400),
        ("/gone/a", "", 502),
        ("/auth/forward/nginx", "X-Original-URL: http://localhost/open/a\r\nX-Original-Method: GET\r\n", 200),
        ("/auth/forward/nginx", "X-Original-URL: http://localhost/closed/a\r\nX-Original-Method: GET\r\n", 401),
        ("/auth/login", "Accept: text/html\r\n", 200),
        ("/api/auth/session", "", 401),
        ("/auth/nothing", "", 404),
    ],
)
@pytest.mark.parametrize("connection", ["", "Connection: close\r\n"])
def test_every_answer_has_one_date(wired, path, fields, status, connection):
    """RFC 9110 section 6.6.1: for the gateway's own responses, and those of a service without a clock."""
    before = int(time.time())
    raw = ask(wired, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}{connection}\r\n".encode())
    assert raw.startswith(f"HTTP/1.1 {status} ".encode()), raw[:300]
    found = dates(raw)
    assert len(found) == 1, raw[:600]
    text = found[0].split(b": ", 1)[1].decode()
    told = email.utils.parsedate_to_datetime(text)
    assert email.utils.format_datetime(told, usegmt=True) == text
    assert before - 1 <= told.timestamp() <= time.time() + 1


def test_an_unreadable_request_is_answered_with_a_date(wired):
    raw = ask(wired, b"rubbish\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 400 ") and len(dates(raw)) == 1, raw[:300]


@pytest.mark.parametrize(
    "answer,kept",
    [
        (b"HTTP/1.1 200 OK\r\n" + DATED + b"\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n", True),
        # A Date field that belongs to the upstream's connection is dropped.
        (b"HTTP/1.1 200 OK\r\nConnection: date\r\n" + DATED + b"\r\nContent-Length: 0\r\n\r\n", False),
    ],
)
def test_a_services_own_date_is_kept(wired, upstream, answer, kept):
    before = upstream.answer
    upstream.answer = answer
    try:
        raw = ask(wired, b"GET /open/dated HTTP/1.1\r\nHost: localhost\r\n\r\n")
    finally:
        upstream.answer = before
    found = dates(raw)
    assert len(found) == 1 and (b"1994" in found[0]) == kept, raw


def test_an_empty_line_before_a_request_is_ignored(wired, upstream):
    """RFC 9112 section 2.2, on a new connection and after a body, in any pieces."""
    head = b"POST /open/%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"
    raw = ask(wired, b"\r\n" + head % 1 + b"\r\n" + head % 2 + head % 3, answers=3)
    assert raw.count(b"HTTP/1.1 200 ") == 3, raw
    with socket.create_connection(("127.0.0.1", wired.ports[0])) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.settimeout(5)
        for byte in b"\r\n" + head % 4:
            client.sendall(bytes([byte]))
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    # No empty line reaches the service.
    for number in (1, 2, 3, 4):
        sent = [bytes(kept) for kept in upstream.received if b"POST /open/%d " % number in kept]
        assert len(sent) == 1 and b"ab\r\n" not in sent[0] and b"\r\n\r\n\r\n" not in sent[0]


@pytest.mark.parametrize("before", [b"\r\n\r\n", b"\n", b"\r", b" \r\n", b"\r\r\n", b"\n\r\n", b"\r\n\n", b"\r\n "])
def test_nothing_else_before_a_request_is_ignored(wired, upstream, before):
    """Attack: bytes that this gateway skips but another program of the chain interprets as part of a request, or
    endless lines."""
    raw = ask(wired, before + b"GET /open/skipped HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 400 "), raw
    assert b"/open/skipped" not in upstream.all


def drip(gateway, path, pieces, pause, fields="", seconds=30):
    """Sends a request's head and then pieces of its body at intervals. Returns the response and its duration."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", gateway.ports[0])) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n{fields}\r\n".encode())
        ended = threading.Event()

        def send():
            for piece in pieces:
                if ended.wait(pause):
                    return
                try:
                    client.sendall(piece)
                except OSError:
                    return

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        client.settimeout(seconds)
        try:
            raw = client.recv(65536)
        except TimeoutError:
            raw = b""
        ended.set()
        sender.join(5)
    return raw, time.monotonic() - began


def test_bodies_that_drip_do_not_hold_a_service(wired, upstream):
    """Attack: slow bodies on an open route, each of which occupies a connection to the service."""
    outcomes = []
    attackers = [
        threading.Thread(target=lambda: outcomes.append(drip(wired, "/open/drip", [b"x"] * 40, 0.5))) for _ in range(20)
    ]
    for attacker in attackers:
        attacker.start()
    busy = lambda: value(
        metrics(wired), "moongate_upstream_connections", upstream=f"http://127.0.0.1:{upstream.port}", state="busy"
    )  # noqa: E731
    wait_for(lambda: busy() >= 20, "the connections of slow bodies", 8)
    for attacker in attackers:
        attacker.join()
    assert len(outcomes) == 20
    for raw, took in outcomes:
        assert raw.startswith(b"HTTP/1.1 408 ") and b'"code":"timeout"' in raw, raw
        assert 9 < took < 14
    wait_for(lambda: busy() == 0, "the service to be free", 5)


def test_a_routes_own_rate(wired):
    raw, took = drip(wired, "/fast/drip", [b"x" * 10] * 20, 0.5)
    assert raw.startswith(b"HTTP/1.1 408 ") and 1.5 < took < 4, (raw, took)
    # A fast start does not compensate for a later stall.
    raw, took = drip(wired, "/fast/drip", [b"x" * 50_000] + [b"x"] * 20, 0.5)
    assert raw.startswith(b"HTTP/1.1 408 ") and took < 6, (raw, took)
    # Chunk extensions are not part of the body.
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", wired.ports[0])) as client:
        client.sendall(b"POST /fast/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.settimeout(0.4)
        raw = b""
        while not raw and time.monotonic() - began < 8:
            try:
                client.sendall(b"1;" + b"a" * 200 + b"\r\nx\r\n")
                raw = client.recv(65536)
            except TimeoutError:
                pass
    assert raw.startswith(b"HTTP/1.1 408 "), raw


def test_client_that_sends_fast_enough_is_served(wired):
    raw, took = drip(wired, "/fast/steady", [b"x" * 5000] * 20, 0.3)
    assert raw.startswith(b"HTTP/1.1 200 ") and took > 5, (raw, took)
    raw, took = drip(wired, "/unbound/slow", [b"x"] * 8 + [b"x" * 99_992], 0.5)
    assert raw.startswith(b"HTTP/1.1 200 ") and took > 4, (raw, took)


def test_connections_to_a_service_are_counted_down_when_they_end_as_they_begin(wired, upstream):
    """A request that turns out to be malformed at the moment when its connection is established."""
    busy = lambda: value(
        metrics(wired), "moongate_upstream_connections", upstream=f"http://127.0.0.1:{upstream.port}", state="busy"
    )  # noqa: E731
    wait_for(lambda: busy() == 0, "a quiet service", 10)
    for _ in range(20):
        raw = ask(wired, b"POST /open/broken HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert raw.startswith(b"HTTP/1.1 400 "), raw
    wait_for(lambda: busy() == 0, "the count of busy connections", 3)
    assert requests.get(f"{wired.url}/open/after", timeout=10).status_code == 200
