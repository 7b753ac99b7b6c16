"""Services below a prefix, below a path of their own, and with another Host: `strip`, `to` with a path, `host_header`
and `response_headers`, for HTTP/1.1, HTTP/2, WebSockets and forward-auth."""

import asyncio
import functools
import http.client
import http.server
import json
import threading
import urllib.parse

import pytest
import requests
import websockets.asyncio.client
import websockets.asyncio.server

from local_gateway import LocalGateway, wait_for
from services import Handler, HTTPService
from test_tls import certificate, speak_tls
from wire import H2Client

EVIL = "evil.example"


class Service(Handler):
    """Answers with what it has received, and with the header fields that the query names."""

    seen = []

    def do_GET(self):
        Service.seen.append(self.path)
        fields = urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)
        body = json.dumps({"path": self.path, "fields": self.headers.items()}).encode()
        self.send_response(302 if any(name == "Location" for name, _ in fields) else 200)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Socket:
    """Tells each WebSocket client the path and the Host of its handshake."""

    def __init__(self):
        self.ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()
        assert self.ready.wait(10)

    async def _run(self):
        async with websockets.asyncio.server.serve(self._greet, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await server.serve_forever()

    async def _greet(self, socket):
        headers = socket.request.headers
        await socket.send(json.dumps([socket.request.path, headers["Host"], headers["X-Forwarded-Prefix"]]))


@pytest.fixture(scope="module")
def service():
    service = HTTPService(Service)
    yield service
    service.end()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A real service, whose redirects begin with `/`: the file server of Python."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "sub").mkdir()
    (folder / "sub/page.txt").write_text("a page")
    service = HTTPService(functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder)))
    yield service
    service.end()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, service, files):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    to = f"http://127.0.0.1:{service.port}"
    socket = Socket()
    gateway.edit("gateway.lua", lambda text: text.replace("-- trusted_proxies", "trusted_proxies", 1))
    gateway.edit(
        "routes.lua",
        lambda _: f"""return routes {{
          {{ path = "/wiki/admin/**", to = "{to}", strip = "/wiki" }},
          {{ path = "/wiki/**", to = "{to}", strip = "/wiki", allow = true,
            response_headers = {{ ["X-Frame-Options"] = "DENY", ["Server"] = false }} }},
          {{ path = "/app/**", to = "{to}/base", strip = "/app", allow = true }},
          {{ path = "/base/**", to = "{to}/v1", allow = true }},
          {{ path = "/named/**", to = "{to}", host_header = "wiki.internal", allow = true }},
          {{ path = "/own/**", to = "{to}", host_header = "upstream", allow = true }},
          {{ path = "/files/**", to = "http://127.0.0.1:{files.port}", strip = "/files", allow = true }},
          {{ path = "/live/**", to = "http://127.0.0.1:{socket.port}/ws", strip = "/live", host_header = "upstream",
            websocket = true }},
          {{ path = "/**", to = "{to}" }},
        }}""",
    )
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500340")["session"]["token"]
        gateway.socket = socket
        yield gateway
    finally:
        gateway.stop()


def ask(gateway, target, headers=None):
    """Sends the target byte by byte, and returns the response and its body."""
    connection = http.client.HTTPConnection("localhost", gateway.ports[0], timeout=20)
    try:
        connection.request("GET", target, headers=headers or {})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def seen(gateway, target, headers=None):
    """The path and the fields, by lower-case names, that the service has received."""
    answer, body = ask(gateway, target, headers)
    assert answer.status in (200, 302), (target, answer.status, body)
    document = json.loads(body)
    return document["path"], {name.lower(): value for name, value in document["fields"]}


def answered(gateway, path, **fields):
    """The response of the service to a request that asks for these fields."""
    answer, _ = ask(gateway, f"{path}?{urllib.parse.urlencode(fields)}")
    return answer.headers


@pytest.mark.parametrize(
    "target, path",
    [
        ("/wiki", "/"),
        ("/wiki/", "/"),
        ("/wiki?a=/wiki", "/?a=/wiki"),
        ("/wiki/a%20b;c=d/?e=%2F", "/a%20b;c=d/?e=%2F"),
        ("/%77ik%69;x=y/z", "/z"),
        ("/wiki/%2561dmin", "/%2561dmin"),
        ("/app", "/base"),
        ("/app/", "/base/"),
        ("/app/x?y", "/base/x?y"),
        ("/base/x", "/v1/base/x"),
        ("/named/x", "/named/x"),
    ],
)
def test_service_sees_its_own_path(gateway, target, path):
    assert seen(gateway, target)[0] == path


def test_prefix_is_told_and_cannot_be_forged(gateway):
    forged = {"X-Forwarded-Prefix": f"//{EVIL}", "x_forwarded_prefix": f"/{EVIL}", "X-Forwarded-Path": f"/{EVIL}"}
    for target, prefix in [("/wiki/x", "/wiki"), ("/app/x", "/app"), ("/named/x", None), ("/base/x", None)]:
        _, fields = seen(gateway, target, forged)
        assert fields.get("x-forwarded-prefix") == prefix, target
        assert EVIL not in str(fields), target


def test_host_is_the_one_that_the_route_names(gateway, service):
    here = f"localhost:{gateway.ports[0]}"
    for target, host in [("/wiki/x", here), ("/named/x", "wiki.internal"), ("/own/x", f"127.0.0.1:{service.port}")]:
        _, fields = seen(gateway, target)
        assert fields["host"] == host and fields["x-forwarded-host"] == here, target


def test_no_path_walks_around_a_rule(gateway):
    """Attack: a path that reaches the service in another form than the one that its route's rules have judged."""
    Service.seen.clear()
    for target in [
        "/wiki/admin",
        "/wiki/admin/x",
        "/%77iki/admin",
        "/wiki;/admin",
        "/wiki/%61dmin",
        "/wiki%3Bx/admin;y",
    ]:
        answer, _ = ask(gateway, target)
        assert answer.status == 401, target
    for target in [
        "/wiki/../admin",
        "/wiki/%2e%2e/admin",
        "/wiki/.;x/admin",
        "/wiki//admin",
        "/wiki/;/admin",
        "/wiki/%2Fadmin",
        "/wiki%2Fadmin",
        "/wiki/%5Cadmin",
        "/wiki/%0d%0aHost:x",
        "/wiki/%c0%afadmin",
        "//wiki/admin",
    ]:
        answer, _ = ask(gateway, target)
        assert answer.status == 400, target
    # These are no paths of the prefix, but of the last route.
    for target in ["/wikiadmin", "/%2577iki/admin", "/wiki%2525"]:
        answer, _ = ask(gateway, target)
        assert answer.status == 401, target
    assert Service.seen == []


def test_redirects_lead_back_to_the_route(gateway, service):
    to = f"127.0.0.1:{service.port}"
    for path, value, expected in [
        ("/wiki/x", "/login?next=%2Fx#top", "/wiki/login?next=%2Fx#top"),
        ("/wiki/x", "/wiki/login", "/wiki/login"),
        ("/wiki/x", f"http://{to}/login", f"{gateway.url}/wiki/login"),
        ("/wiki/x", f"{gateway.url}/login", f"{gateway.url}/wiki/login"),
        ("/wiki/x", "login", "login"),
        ("/app/x", "/base/login", "/app/login"),
        ("/app/x", "/other", "/other"),
        ("/base/x", "/v1/base/y", "/base/y"),
        ("/base/x", f"http://{to}/v1", f"{gateway.url}/"),
        ("/named/x", "http://wiki.internal/named/y", f"{gateway.url}/named/y"),
        ("/named/x", "https://wiki.internal/named/y", f"{gateway.url}/named/y"),
        ("/own/x", f"http://{to}/own/y", f"{gateway.url}/own/y"),
    ]:
        found = answered(gateway, path, **{"Location": value, "Content-Location": value, "Refresh": f"5; url={value}"})
        assert found["Location"] == expected, (path, value)
        assert found["Content-Location"] == expected and found["Refresh"] == f"5; url={expected}", (path, value)


@pytest.mark.parametrize(
    "value",
    [
        f"https://{EVIL}/x",
        f"//{EVIL}/x",
        f"///{EVIL}/x",
        f"http://127.0.0.1@{EVIL}/",
        f"http://{EVIL}\\@127.0.0.1/",
        f"http://localhost.{EVIL}/",
    ],
)
def test_other_sites_stay_other_sites(gateway, value):
    for path in ["/wiki/x", "/app/x", "/base/x", "/named/x"]:
        assert answered(gateway, path, Location=value)["Location"] == value, path


@pytest.mark.parametrize("rest", [f"//{EVIL}/", f"/\\{EVIL}/", f"/\t/{EVIL}/", f"/\t\\{EVIL}"])
def test_no_redirect_becomes_one_to_another_site(gateway, rest):
    """Attack: without `/v1`, browsers would take the rest of the path for the name of another host."""
    location = answered(gateway, "/base/x", Location="/v1" + rest)["Location"]
    assert location == "/." + rest
    assert urllib.parse.urlsplit(urllib.parse.urljoin(gateway.url, location)).netloc == f"localhost:{gateway.ports[0]}"


def test_cookies_are_for_the_prefix(gateway):
    browser = requests.Session()
    for value in ["plain=1; Path=/", "deep=1; Path=/deep", "none=1"]:
        browser.get(f"{gateway.url}/wiki/set", params={"Set-Cookie": value}, timeout=20)
    browser.get(f"{gateway.url}/app/set", params={"Set-Cookie": "based=1; Path=/base"}, timeout=20)
    paths = {cookie.name: cookie.path for cookie in browser.cookies}
    assert paths == {"plain": "/wiki", "deep": "/wiki/deep", "none": "/wiki", "based": "/app"}
    document = browser.get(f"{gateway.url}/wiki/deep/x", timeout=20).json()
    sent = dict(document["fields"])["Cookie"].split("; ")
    assert sorted(sent) == ["deep=1", "none=1", "plain=1"]
    # Browsers refuse the name with another path, and a Domain that is not theirs.
    host = "__Host-id=1; Secure; Path=/"
    assert answered(gateway, "/wiki/x", **{"Set-Cookie": host})["Set-Cookie"] == host
    cookie = answered(gateway, "/named/x", **{"Set-Cookie": "a=b; Domain=wiki.internal; Path=/named"})["Set-Cookie"]
    assert cookie == "a=b; Path=/named"
    # Attack: the cookie of the gateway, from a service whose cookies are rewritten.
    forged = answered(gateway, "/wiki/x", **{"Set-Cookie": "moongate=evil; Path=/"})
    assert forged["Set-Cookie"] is None


def test_response_headers_are_set_and_removed(gateway):
    found = answered(gateway, "/wiki/x", **{"X-Frame-Options": "ALLOWALL", "x-other": "kept"})
    assert found.get_all("X-Frame-Options") == ["DENY"] and found["X-Other"] == "kept" and found["Server"] is None
    assert len(found.get_all("Date")) == 1
    assert answered(gateway, "/app/x")["Server"], "the service sends it"
    # The refusals of the gateway on the same route are its own.
    answer, _ = ask(gateway, "/wiki//x")
    assert answer.status == 400 and answer.headers["X-Frame-Options"] != "DENY"


def test_real_file_server_below_a_prefix(gateway):
    answer = requests.get(f"{gateway.url}/files/sub", timeout=20)
    assert answer.url == f"{gateway.url}/files/sub/" and [step.status_code for step in answer.history] == [301]
    assert 'href="page.txt"' in answer.text
    assert requests.get(f"{gateway.url}/files/sub/page.txt", timeout=20).text == "a page"


def test_websocket_below_a_prefix(gateway):
    async def greet(path):
        headers = {"Cookie": f"moongate={gateway.token}"}
        address = gateway.url.replace("http", "ws", 1) + path
        async with websockets.asyncio.client.connect(
            address, additional_headers=headers, origin=gateway.url, open_timeout=20
        ) as socket:
            return json.loads(await asyncio.wait_for(socket.recv(), 20))

    host = f"127.0.0.1:{gateway.socket.port}"
    assert asyncio.run(greet("/live/chat?room=1")) == ["/ws/chat?room=1", host, "/live"]
    assert asyncio.run(greet("/live")) == ["/ws", host, "/live"]


def test_forward_auth_is_not_rewritten(gateway):
    """The proxy forwards the request itself, and has its own settings for paths and Host."""
    for path, status in [
        ("/wiki/x", 200),
        ("/app/x", 200),
        ("/named/x", 200),
        ("/wiki/admin", 401),
        ("/%77iki/admin", 401),
    ]:
        answer, _ = ask(
            gateway, "/auth/forward/nginx", {"X-Original-URL": f"{gateway.url}{path}", "X-Original-Method": "GET"}
        )
        assert answer.status == status, path
        assert answer.headers["X-Forwarded-Prefix"] is None and answer.headers["X-Frame-Options"] != "DENY", path


def test_service_that_leaves_its_path_is_logged(gateway, service):
    for _ in range(5):
        answered(gateway, "/app/x", Location="/elsewhere?token=tk8Zq4")

    def lines():
        found = [line for line in gateway.log.splitlines() if "a response names a path outside of the one in" in line]
        return [line for line in found if "Location" in line and "Content-Location" not in line]

    wait_for(lines, "the log line")
    assert len(lines()) == 1 and f"http://127.0.0.1:{service.port}" in lines()[0] and "/base" in lines()[0]
    assert "tk8Zq4" not in gateway.log


def test_http2_clients_see_the_same(tmp_path, service, monkeypatch):
    gateway = LocalGateway(tmp_path)
    cert, key = certificate(tmp_path, "one")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    speak_tls(gateway, cert, key)
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f'return routes {{ {{ path = "/wiki/**", to = "http://127.0.0.1:{service.port}", strip = "/wiki", '
            'host_header = "wiki.internal", response_headers = { ["Server"] = false }, allow = true }, ',
            1,
        ),
    )
    try:
        gateway.start()
        client = H2Client(gateway.ports[0])
        fields = urllib.parse.urlencode({"Location": "http://wiki.internal/y", "Set-Cookie": "a=b; Path=/"})
        answer = client.answer(client.ask(client.headers(f"/wiki/x?{fields}", extra=[("x-forwarded-prefix", "/evil")])))
        assert answer.status == 302, answer
        assert answer.headers["location"] == f"https://{client.authority}/wiki/y", answer.headers
        assert answer.headers["set-cookie"] == "a=b; Path=/wiki" and "server" not in answer.headers
        document = json.loads(answer.body)
        received = {name.lower(): value for name, value in document["fields"]}
        assert document["path"] == f"/x?{fields}" and received["host"] == "wiki.internal"
        assert received["x-forwarded-host"] == client.authority and received["x-forwarded-prefix"] == "/wiki"
        for path in ["/wiki//x", "/wiki/../x", "/wiki%2Fx", "/wiki/%2Fx"]:
            assert client.answer(client.ask(client.headers(path))).status == 400, path
        client.close()
    finally:
        gateway.stop()
