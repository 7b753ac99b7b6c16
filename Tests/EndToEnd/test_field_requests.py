"""Requests and answers that users of gateways report: old clients, other proxies, scripts, streams, large cookies."""

import json
import re
import socket
import ssl
import threading
import time

import h2.events
import pytest
import requests

from local_gateway import LocalGateway, wait_for
from test_tls import certificate, speak_tls
from wire import H2Client, Upstream

PAGE = "https://spa.example.com"
NAVIGATION = "Accept: text/html\r\n"
# What the client sends, and whether it is redirected to sign-in.
CLIENTS = {
    "browser": ("Accept: text/html\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", True),
    "old browser": (NAVIGATION, True),
    "jQuery": (
        "Accept: text/html, */*; q=0.01\r\nX-Requested-With: XMLHttpRequest\r\nSec-Fetch-Mode: cors\r\n"
        "Sec-Fetch-Dest: empty\r\n",
        False,
    ),
    "htmx": ("Accept: text/html\r\nHX-Request: true\r\n", False),
    "not acceptable": ("Accept: text/html;q=0, application/json\r\n", False),
    "prerender": ("Accept: text/html\r\nSec-Purpose: prefetch;prerender\r\nSec-Fetch-Mode: navigate\r\n", False),
}


@pytest.fixture(scope="module")
def upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


@pytest.fixture(scope="module")
def service():
    """A service whose answer each test sets."""
    service = Upstream()
    yield service
    service.close()


def configured(gateway, upstream, service):
    """A gateway for auth.example.com, which believes a proxy on this machine."""
    to = f'to = "http://127.0.0.1:{upstream.port}"'
    gateway.edit(
        "routes.lua",
        lambda _: f"""return routes {{
  {{ path = "/open/**", {to}, allow = true }},
  {{ path = "/broken/**", to = "http://127.0.0.1:{service.port}", allow = true, timeout = "1s" }},
  {{ host = "auth.example.com", path = "/", {to}, allow = true }},
  {{ host = "app.example.com", path = "/ws", {to}, websocket = true }},
  {{ host = "app.example.com", path = "/**", {to} }},
  {{ path = "/tokens/**", {to}, tokens = true }},
  {{ path = "/**", {to} }},
}}
""",
    )
    ours = f"""public_url = "https://auth.example.com",
  cookie_domain = "example.com",
  cors_origins = {{ "{PAGE}" }},
  trusted_proxies = {{ "127.0.0.1/32" }},"""
    gateway.edit("gateway.lua", lambda text: re.sub(r'public_url = "[^"]*",', ours, text, count=1))
    gateway.edit("gateway.lua", lambda text: text.replace("outbox()", "outbox { allow_public = true }"))
    gateway.edit("gateway.lua", lambda text: re.sub(r"    google_oauth = \{.*?\n    \},\n", "", text, flags=re.DOTALL))
    return gateway


@pytest.fixture(scope="module")
def behind(tmp_path_factory, upstream, service):
    """A gateway behind a proxy that speaks TLS for it."""
    gateway = configured(LocalGateway(tmp_path_factory.mktemp("behind")), upstream, service)
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500700")["session"]["token"]
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def secure(tmp_path_factory, upstream, service):
    """A gateway with TLS, for HTTP/2."""
    folder = tmp_path_factory.mktemp("secure")
    gateway = LocalGateway(folder)
    speak_tls(gateway, *certificate(folder, "one"))
    configured(gateway, upstream, service)
    try:
        yield gateway.start()
    finally:
        gateway.stop()


def exchange(port, request, seconds=10):
    """Sends the bytes and reads until the connection ends or the response is complete."""
    with socket.create_connection(("127.0.0.1", port), seconds) as client:
        client.sendall(request.encode("latin-1"))
        got = b""
        while True:
            try:
                more = client.recv(65536)
            except ConnectionResetError:
                break
            got += more
            if not more:
                break
    return got.decode("latin-1")


def ask(gateway, start, *fields, version="HTTP/1.1"):
    return exchange(gateway.ports[0], "\r\n".join((f"{start} {version}", *fields, "Connection: close")) + "\r\n\r\n")


def status(answer):
    return int(answer.split(" ", 2)[1])


def told(upstream, start):
    """The last head that the service received with this start."""
    received = upstream.all
    place = received.rfind(start.encode())
    assert place >= 0, received
    return received[place:].partition(b"\r\n\r\n")[0].decode() + "\r\n"


# What proxies write.


@pytest.mark.parametrize(
    "value,address",
    [
        ("203.0.113.7:61598", "203.0.113.7"),
        ('"[2001:db8::1]:4711"', "2001:db8::1"),
        ("198.51.100.4,", "198.51.100.4"),
    ],
)
def test_the_client_is_the_address_that_the_proxy_names(behind, upstream, value, address):
    path = f"/open/{address}"
    named = (f"X-Forwarded-For: {value}", "X-Forwarded-Proto: https")
    answer = ask(behind, f"GET {path}", "Host: app.example.com", *named)
    assert status(answer) == 200
    assert f"\r\nX-Forwarded-For: {address}\r\n" in told(upstream, f"GET {path}")
    refused = ask(behind, "GET /auth/nothing", "Host: auth.example.com", f"X-Forwarded-For: {value}")
    decision = json.loads(refused.partition("\r\n\r\n")[2])["decision_id"]
    assert requests.get(f"{behind.admin}/decisions/{decision}", timeout=10).json()["address"] == address


def test_each_client_of_a_proxy_has_its_own_limits(behind):
    """Azure's proxies add the port of the client to its address."""
    for number in range(1, 34):
        headers = {"X-Forwarded-For": f"203.0.113.{number}:{50_000 + number}", "X-Forwarded-Proto": "https"}
        flow = behind.api("POST", "/flows", {"flow": "register"}, headers=headers).json()["id"]
        begun = behind.api(
            "POST",
            f"/flows/{flow}/begin",
            {"provider": "phone_otp", "phone": f"+9198765007{number:02}"},
            headers=headers,
        )
        assert begun.status_code == 200, f"{number}: {begun.text}"


def test_an_address_that_cannot_be_read_is_in_the_log(behind, upstream):
    for _ in range(3):
        answer = ask(behind, "GET /open/unread", "Host: app.example.com", "X-Forwarded-For: 198.51.100.4, unknown")
        assert status(answer) == 200
    assert "\r\nX-Forwarded-For: 127.0.0.1\r\n" in told(upstream, "GET /open/unread")
    line = lambda: [line for line in behind.log.splitlines() if "X-Forwarded-For" in line]  # noqa: E731
    wait_for(line, "the log")
    assert len(line()) == 1 and "unknown" in line()[0] and "127.0.0.1" in line()[0], line()


def test_a_websocket_by_wss_is_one_by_https(behind, upstream):
    """RFC 6455 section 10.2: the Origin of such a page is that of https."""
    upstream.answer, before = (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        upstream.answer,
    )
    try:
        for origin, expected in ((b"https://app.example.com", b"101"), (b"https://evil.example", b"403")):
            with socket.create_connection(("127.0.0.1", behind.ports[0]), 10) as client:
                client.sendall(
                    b"GET /ws HTTP/1.1\r\nHost: app.example.com\r\nX-Forwarded-Proto: wss\r\nOrigin: %b\r\n"
                    b"Cookie: __Secure-moongate=%b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                    % (origin, behind.token.encode())
                )
                assert client.recv(65536).startswith(b"HTTP/1.1 %b " % expected)
    finally:
        upstream.answer = before
    assert "\r\nX-Forwarded-Proto: https\r\n" in told(upstream, "GET /ws")


@pytest.mark.parametrize("scheme,expected", [("https, https", "https"), ("http, WSS,", "https"), ("ws", "http")])
def test_the_last_scheme_counts(behind, scheme, expected):
    answer = ask(behind, "GET /x", "Host: app.example.com", f"X-Forwarded-Proto: {scheme}", "Accept: text/html")
    assert status(answer) == 302 and f"return_to={expected}%3A%2F%2Fapp.example.com%2Fx\r\n" in answer, answer


@pytest.mark.parametrize("path", ["/open/x", "/auth/login", "/api/auth/session", "/auth/forward/traefik"])
@pytest.mark.parametrize("scheme", ["gopher", "https, ftp", ","])
def test_another_scheme_is_refused_and_in_the_log(behind, path, scheme):
    question = ["X-Forwarded-Method: GET", "X-Forwarded-Uri: /open/x", "X-Forwarded-Host: app.example.com"]
    answer = ask(behind, f"GET {path}", "Host: auth.example.com", f"X-Forwarded-Proto: {scheme}", *question)
    assert status(answer) == 400, answer
    wait_for(lambda: any("X-Forwarded-Proto" in line for line in behind.log.splitlines()), "the log")


def test_the_host_of_the_proxys_own_request_does_not_count(behind):
    host = "X-Forwarded-Host: app.example.com, app.example.com"
    answer = ask(behind, "GET /x", "Host: proxy.internal", host, "X-Forwarded-Proto: https", "Accept: text/html")
    assert status(answer) == 302 and "return_to=https%3A%2F%2Fapp.example.com%2Fx\r\n" in answer
    answer = ask(behind, "GET /open/x", "Host: app.example.com", "X-Forwarded-Host: a b", "X-Forwarded-Proto: https")
    assert status(answer) == 400


QUESTIONS = {
    "nginx": lambda scheme: (
        "GET /auth/forward/nginx",
        ["Host: auth.example.com", f"X-Original-URL: {scheme}://app.example.com/x", "X-Original-Method: GET"],
    ),
    "envoy": lambda scheme: (
        "GET /auth/forward/envoy/x",
        ["Host: app.example.com", f"X-Forwarded-Proto: {scheme}"],
    ),
    **{
        name: lambda scheme, name=name: (
            f"GET /auth/forward/{name}",
            [
                "Host: auth.example.com",
                "X-Forwarded-Method: GET",
                f"X-Forwarded-Proto: {scheme}",
                "X-Forwarded-Host: app.example.com",
                "X-Forwarded-Uri: /x",
            ],
        )
        for name in ("traefik", "caddy", "haproxy")
    },
}


@pytest.mark.parametrize("dialect", QUESTIONS)
def test_forward_auth_knows_the_schemes_of_websockets(behind, dialect):
    for scheme in ("https", "wss"):
        start, fields = QUESTIONS[dialect](scheme)
        assert status(ask(behind, start, *fields, f"Cookie: __Secure-moongate={behind.token}")) == 200
        answer = ask(behind, start, *fields, "Accept: text/html")
        assert "return_to=https%3A%2F%2Fapp.example.com%2Fx\r\n" in answer, answer


# Old and odd requests.


def test_a_health_check_by_http_1_0_is_answered(behind, upstream):
    """HAProxy's `option httpchk` sends no Host."""
    assert status(exchange(behind.ports[0], "OPTIONS / HTTP/1.0\r\n\r\n")) == 200
    assert told(upstream, "OPTIONS /").startswith("OPTIONS / HTTP/1.1\r\nHost: auth.example.com\r\n")
    assert status(exchange(behind.ports[0], "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400
    admin = behind.ports[1]
    assert status(exchange(admin, "GET /healthz HTTP/1.0\r\n\r\n")) == 200
    assert status(exchange(admin, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400
    # Attack: a page of another site points its name at this machine (DNS rebinding).
    assert status(exchange(admin, "GET /outbox HTTP/1.0\r\nHost: evil.example\r\n\r\n")) == 403


def test_a_request_about_the_server_reaches_no_service(behind, upstream):
    for target in ("*", "http://app.example.com"):
        answer = ask(behind, f"OPTIONS {target}", "Host: app.example.com")
        assert status(answer) == 204 and "\r\nAllow: " in answer and "Content-Length" not in answer
    admin = exchange(behind.ports[1], "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert status(admin) == 204
    assert b"OPTIONS *" not in upstream.all and b"app.example.com\r\nOPTIONS" not in upstream.all


def test_an_empty_port_is_no_port(behind, upstream):
    assert status(ask(behind, "GET /open/port", "Host: localhost:")) == 200
    assert "\r\nHost: localhost\r\n" in told(upstream, "GET /open/port")
    assert status(ask(behind, "GET http://localhost:/open/port", "Host: localhost")) == 200
    page = ask(behind, "GET /auth/login?return_to=https%3A%2F%2Fapp.example.com%3A%2Fx", "Host: auth.example.com:")
    assert status(page) == 200 and "https://app.example.com:/x" in page


# Who is redirected to sign in.


@pytest.mark.parametrize("name", CLIENTS)
def test_only_navigations_are_redirected(behind, name):
    fields, is_redirected = CLIENTS[name]
    fields = fields.rstrip("\r\n").split("\r\n")
    asked = [ask(behind, "GET /x", "Host: app.example.com", "X-Forwarded-Proto: https", *fields)]
    asked += [ask(behind, "GET /auth/account", "Host: auth.example.com", "X-Forwarded-Proto: https", *fields)]
    for dialect, question in QUESTIONS.items():
        start, own = question("https")
        asked.append(ask(behind, start, *own, *fields))
    for answer in asked:
        if is_redirected:
            assert re.search("\r\n[Ll]ocation: (https://auth.example.com)?/auth/login", answer), answer
        else:
            assert status(answer) == 401 and "\r\nlocation:" not in answer.lower(), answer


# Refusals before the API or a page is reached.


def test_pages_of_other_origins_can_read_early_refusals(behind):
    early = {
        413: ("POST /api/auth/flows", "Content-Length: 99999999"),
        431: ("GET /api/auth/session", "X: " + "a" * 40_000),
        400: ("GET /api/auth//session", "X: y"),
    }
    for code, (start, field) in early.items():
        own = ["Host: auth.example.com", "Content-Type: application/json"]
        answer = ask(behind, start, *own, f"Origin: {PAGE}", field)
        assert status(answer) == code and f"\r\nAccess-Control-Allow-Origin: {PAGE}\r\n" in answer, answer
        # Attack: another origin, or another path.
        assert "Access-Control" not in ask(behind, start, *own, "Origin: https://evil.example", field)
        assert "Access-Control" not in ask(behind, start.replace("/api/auth", "/auth"), *own, f"Origin: {PAGE}", field)


def test_a_browser_with_too_many_cookies_learns_what_to_do(behind):
    answer = ask(behind, "GET /auth/login", "Host: auth.example.com", "Accept: text/html", "Cookie: a=" + "b" * 40_000)
    assert status(answer) == 431 and "\r\nContent-Type: text/html" in answer
    assert "delete the cookies of this site" in answer, answer
    answer = ask(behind, "GET /auth/login", "Host: auth.example.com", "Accept: */*", "Cookie: a=" + "b" * 40_000)
    assert status(answer) == 431 and "\r\nContent-Type: application/problem+json" in answer


def test_the_challenges_are_one_line_and_basic_is_first(behind):
    """nginx passes on only one line, and git needs Basic."""
    start = "GET /tokens/repo.git/info/refs?service=git-upload-pack"
    answer = ask(behind, start, "Host: auth.example.com", "User-Agent: git/2.39.5", "Accept: */*")
    lines = [line for line in answer.split("\r\n") if line.lower().startswith("www-authenticate")]
    assert status(answer) == 401
    assert lines == ['WWW-Authenticate: Basic realm="auth.example.com", charset="UTF-8", Bearer']


# What services send.

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def in_parts(*parts):
    """An answer whose parts follow each other after a pause."""

    def send(connection):
        for pause, part in parts:
            time.sleep(pause)
            connection.sendall(part)

    return send


def failures(gateway):
    return [line for line in gateway.log.splitlines() if "an upstream failed" in line]


def broken(gateway, service, answer, path="/broken/x"):
    service.answer = answer
    return ask(gateway, f"GET {path}", "Host: localhost")


def test_spaces_behind_a_chunks_size_are_accepted(behind, service):
    answer = broken(behind, service, CHUNKED + b"2   \r\nok\r\n0\r\n\r\n")
    assert status(answer) == 200 and answer.endswith("\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    # Attack (request smuggling): never in requests.
    refused = exchange(
        behind.ports[0],
        "POST /open/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2   \r\nok\r\n0\r\n\r\n",
    )
    assert status(refused) == 400


def test_a_chunk_without_a_size_is_502(behind, service):
    answer = broken(behind, service, CHUNKED + b"two\r\nok\r\n0\r\n\r\n")
    assert status(answer) == 502
    decision = json.loads(answer.partition("\r\n\r\n")[2])["decision_id"]
    found = requests.get(f"{behind.admin}/decisions/{decision}", timeout=10).json()
    assert "a chunk's size" in found["detail"]["reason"]
    wait_for(lambda: any("a chunk's size" in line for line in failures(behind)), "the log")


@pytest.mark.parametrize(
    "answer,good,reason",
    [
        (
            in_parts((0, CHUNKED + b"2\r\nok\r\n"), (0.3, b"4\r\nmore\r\n9z\r\n")),
            "2\r\nok\r\n4\r\nmore\r\n",
            "a chunk's size",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", "hal", "silent"),
    ],
)
def test_what_was_good_goes_out_and_the_log_names_the_fault(tmp_path, upstream, service, answer, good, reason):
    """On a gateway of its own, because the log has one line a minute for each cause."""
    gateway = configured(LocalGateway(tmp_path), upstream, service)
    try:
        gateway.start()
        got = broken(gateway, service, answer)
        assert status(got) == 200 and got.endswith("\r\n\r\n" + good), got
        wait_for(lambda: failures(gateway), "the log")
        assert reason in failures(gateway)[0] and "closed the connection" not in failures(gateway)[0]
    finally:
        gateway.stop()


def ending(gateway, version):
    """The body of /broken/x, and how the connection ended."""
    client = socket.create_connection(("127.0.0.1", gateway.ports[0]), 10)
    if gateway.url.startswith("https"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = context.wrap_socket(client, suppress_ragged_eofs=False)
    with client:
        client.sendall(f"GET /broken/x HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
        got = b""
        try:
            while more := client.recv(65536):
                got += more
        except (ConnectionResetError, ssl.SSLEOFError):
            return got.partition(b"\r\n\r\n")[2], "cut"
    return got.partition(b"\r\n\r\n")[2], "complete"


def closing(answer):
    """Sends the answer and closes the connection."""

    def send(connection):
        connection.sendall(answer)
        time.sleep(0.3)
        connection.shutdown(socket.SHUT_RDWR)

    return send


@pytest.mark.parametrize("wire", ["behind", "secure"])
@pytest.mark.parametrize(
    "answer",
    [
        in_parts((0, CHUNKED + b"2\r\nok\r\n"), (0.3, b"9z\r\n")),
        closing(CHUNKED + b"2\r\nok\r\n"),
        CHUNKED + b"2\r\nok\r\n",
    ],
    ids=["broken", "closed", "silent"],
)
def test_a_truncated_answer_looks_truncated_to_http_1_0(request, service, wire, answer):
    """Attack, or accident: to a client of HTTP/1.0, the end of the connection is the end of the response."""
    gateway = request.getfixturevalue(wire)
    service.answer = answer
    assert ending(gateway, "1.0") == (b"ok", "cut")
    service.answer = CHUNKED + b"2\r\nok\r\n0\r\n\r\n"
    assert ending(gateway, "1.0") == (b"ok", "complete")


def test_heads_have_a_bounded_number_of_fields(behind, service):
    """Attack: thousands of tiny fields, for each of which HTTP/2 searches its tables."""
    assert status(ask(behind, "GET /open/x", "Host: localhost", *["A: b"] * 900)) == 200
    assert status(ask(behind, "GET /open/x", "Host: localhost", *["A: b"] * 1100)) == 431
    answer = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 5000 + b"Content-Length: 2\r\n\r\nok"
    assert status(broken(behind, service, answer)) == 502
    wait_for(lambda: any("too many fields" in line for line in failures(behind)), "the log")


def test_an_event_stream_may_be_silent(behind, service):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n"
    service.answer = in_parts(
        (0, head + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"), (2.5, b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")
    )
    answers = []
    streams = [
        threading.Thread(target=lambda: answers.append(ask(behind, "GET /broken/events", "Host: localhost")))
        for _ in range(2)
    ]
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.join(10)
    assert len(answers) == 2 and all("data: 1" in answer and "data: 2" in answer for answer in answers), answers


# The same by HTTP/2.


@pytest.fixture
def http2(secure):
    client = H2Client(secure.ports[0])
    yield client
    client.close()


def fields(text):
    return [tuple(line.lower().split(": ", 1)) if ":" in line else None for line in text.rstrip("\r\n").split("\r\n")]


@pytest.mark.parametrize("name", CLIENTS)
def test_only_navigations_are_redirected_by_http2(http2, name):
    text, is_redirected = CLIENTS[name]
    answer = http2.answer(http2.ask(http2.headers("/x", extra=fields(text))))
    assert answer.status == (302 if is_redirected else 401) and ("location" in answer.headers) == is_redirected


def test_forwarding_headers_by_http2(http2, upstream, secure):
    named = [("x-forwarded-for", '"[2001:db8::1]:4711"'), ("x-forwarded-proto", "http, wss")]
    assert http2.answer(http2.ask(http2.headers("/open/h2", extra=named))).status == 200
    head = told(upstream, "GET /open/h2")
    assert "\r\nX-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n" in head
    refused = http2.answer(http2.ask(http2.headers("/open/h2", extra=[("x-forwarded-proto", "gopher")])))
    assert refused.status == 400


def test_odd_requests_by_http2(http2, upstream):
    assert http2.answer(http2.ask(http2.headers("*", method="OPTIONS"))).status == 204
    http2.authority = "localhost:"
    assert http2.answer(http2.ask(http2.headers("/open/empty"))).status == 200
    assert "\r\nHost: localhost\r\n" in told(upstream, "GET /open/empty")


def test_early_refusals_by_http2(http2):
    origin = [("origin", PAGE), ("content-type", "application/json")]
    for path, own, code in (
        ("/api/auth/flows", [*origin, ("content-length", "99999999")], 413),
        ("/api/auth//session", origin, 400),
    ):
        answer = http2.answer(http2.ask(http2.headers(path, "POST", extra=own), end=False))
        assert answer.status == code and answer.headers["access-control-allow-origin"] == PAGE


def test_a_broken_answer_by_http2(http2, service):
    service.answer = CHUNKED + b"two\r\nok\r\n0\r\n\r\n"
    assert http2.answer(http2.ask(http2.headers("/broken/x"))).status == 502
    service.answer = CHUNKED + b"2 \r\nok\r\n0\r\n\r\n"
    answer = http2.answer(http2.ask(http2.headers("/broken/x")))
    assert answer.status == 200 and answer.body == b"ok"
    service.answer = in_parts((0, CHUNKED + b"2\r\nok\r\n"), (0.3, b"9z\r\n"))
    answer = http2.answer(http2.ask(http2.headers("/broken/x")))
    assert answer.body == b"ok" and answer.reset is not None, "a cut response must look cut"


def test_what_was_good_reaches_a_slow_client_by_http2(http2, service):
    """The window of the client is used up when the answer breaks."""
    good = b"g" * 80_000
    service.answer = in_parts((0, CHUNKED + b"%x\r\n" % len(good) + good + b"\r\n"), (0.3, b"9z\r\n"))
    stream = http2.ask(http2.headers("/broken/x"))
    http2.listen(lambda event: isinstance(event, h2.events.StreamReset), 1, credit=False)
    for event in list(http2.events):
        if isinstance(event, h2.events.DataReceived):
            http2.h2.acknowledge_received_data(event.flow_controlled_length, stream)
    http2.flush()
    answer = http2.answer(stream)
    assert answer.body == good and answer.reset is not None
