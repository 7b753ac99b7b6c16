"""Forward-auth with the real proxies, set up by the configurations of Documentation/guides/nginx.md and its neighbours."""

import base64
import hashlib
import json
import re
import socket
import socketserver
import threading
import urllib.parse

import pytest
import requests

from local_gateway import LocalGateway, free_port
from processes import wait_for
from proxies import CLOSED, OPEN, FrontProxy
from test_accounts import tool

IDENTITY = {"remote-user", "remote-email", "remote-phone", "remote-name", "remote-groups", "x-moongate-assertion"}
PHONE = "+919876500321"
ROUTES = """return routes {
  { host = "free.example", path = "/**", to = "http://127.0.0.1:1", allow = true },
  { host = "auth.example.com", path = "/**", to = "http://127.0.0.1:1", allow = true },
  { host = "open.localhost", path = "/**", to = "http://127.0.0.1:1", allow = true },
  { path = "/sw.js", to = "http://127.0.0.1:1", allow = true },
  { path = "/open/**", to = "http://127.0.0.1:1", allow = true },
  { path = "/mail/**", to = "http://127.0.0.1:1", require = { email_verified = true } },
  { path = "/ops/**", to = "http://127.0.0.1:1", require = { group = "ops" } },
  { path = "/phones/**", to = "http://127.0.0.1:1", require = { group = "phones" } },
  { path = "/no/**", to = "http://127.0.0.1:1", decide = function(f) return deny "not_today" end },
  { path = "/in/**", to = "http://127.0.0.1:1" },
  { path = "/programs/**", to = "http://127.0.0.1:1", tokens = true },
}
"""


ACCOUNTS = """return accounts {
  groups = { ops = members(), ["a,b"] = members(), phones = function(f) return f.account.phone_verified end },
}
"""


class Service:
    """The service behind the proxies: responds with the received head, line by line, and counts requests."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            while line := self.rfile.readline():
                lines = [line.decode("latin-1").rstrip("\r\n")]
                while (line := self.rfile.readline()).rstrip(b"\r\n"):
                    lines.append(line.decode("latin-1").rstrip("\r\n"))
                length = next(
                    (int(field.split(":")[1]) for field in lines if field.lower().startswith("content-length:")), 0
                )
                chunked = any("chunked" in field for field in lines if field.lower().startswith("transfer-encoding:"))
                body = self.rfile.read(length)
                while chunked and (size := int(self.rfile.readline(), 16)):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                if chunked:
                    self.rfile.readline()
                if any(re.match("upgrade:.*h2c", field, re.I) for field in lines):
                    # A service that speaks HTTP/2 on the same port, such as hypercorn.
                    self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
                    return
                if any(field.lower() == "upgrade: websocket" for field in lines):
                    self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n")
                    key = next((field.partition(": ")[2] for field in lines if field.lower().startswith("sec-websocket-key")), "")
                    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
                    self.wfile.write(f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}\r\n".encode())
                    self.wfile.write(b"Upgrade: websocket\r\n\r\nhello")
                    return
                more = "".join(f"Set-Cookie: c{index}={'c' * 1024}\r\n" for index in range(6 if "/cookies" in lines[0] else 0))
                if ".js" in lines[0]:
                    more += "Service-Worker-Allowed: /\r\n"
                answer = json.dumps({"line": lines[0], "fields": lines[1:], "body": len(body)}).encode()
                head = b"" if lines[0].startswith("HEAD ") else answer
                self.server.seen.append(lines[0])
                length = f"Content-Length: {len(answer)}\r\n\r\n"
                self.wfile.write(f"HTTP/1.1 200 OK\r\n{more}{length}".encode() + head)

    def __init__(self):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self.Handler, bind_and_activate=True)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # a proxy may close its connection
        server.seen = self.seen = []
        self.server, self.port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Setting:
    def __init__(self, folder):
        self.service = Service()
        self.gateway = LocalGateway(folder)
        ports = {name: free_port() for name in FrontProxy.NAMES}
        hosts = ", ".join(f'"{host}:{port}"' for port in ports.values() for host in ("localhost", "127.0.0.1"))
        self.gateway.edit(
            "gateway.lua",
            lambda text: text.replace(
                "  region =",
                f'  trusted_proxies = {{ "127.0.0.1/32" }}, redirect_hosts = {{ {hosts} }},\n  region =',
                1,
            ),
        )
        self.gateway.edit("routes.lua", lambda _: ROUTES)
        (self.gateway.config / "accounts.lua").write_text(ACCOUNTS)
        self.gateway.demo = self.service
        self.proxies = {
            name: FrontProxy(name, folder / name, port, self.gateway.ports[0], self.service.port)
            for name, port in ports.items()
        }
        self.gateway.start()
        self.account = self.gateway.register(PHONE)
        self.token = self.account["session"]["token"]
        self.cookie = f"Cookie: a=1; moongate={self.token}"
        for proxy in self.proxies.values():
            proxy.wait()
        wait_for(lambda: self.proxies["haproxy"].check_status() == "L7OK", "HAProxy to find the gateway")

    def end(self):
        for proxy in self.proxies.values():
            proxy.end()
        self.gateway.stop()


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    setting = Setting(tmp_path_factory.mktemp("forward"))
    try:
        yield setting
    finally:
        setting.end()


@pytest.fixture(params=FrontProxy.NAMES)
def proxy(request, setting):
    return setting.proxies[request.param]


def reached(body):
    """The names (in lower case) and values that the service received."""
    return [
        (name.lower(), value.strip())
        for name, _, value in (field.partition(":") for field in json.loads(body)["fields"])
    ]


def test_signing_in_and_coming_back(setting, proxy):
    gateway = setting.gateway
    browser = requests.Session()
    browser.headers["Accept"] = "text/html"
    asked = browser.get(f"{proxy.url}/in/page?a=1&b=%2F", allow_redirects=False, timeout=10)
    assert asked.status_code in (302, 303), asked.text
    login = asked.headers["Location"]
    assert login == f"{gateway.url}/auth/login?return_to=" + urllib.parse.quote(f"{proxy.url}/in/page?a=1&b=%2F", safe="")
    # The page also works through the proxy and accepts input.
    through = login.replace(gateway.url, proxy.url)
    page = browser.get(through, timeout=10)
    assert page.status_code == 200 and "Welcome Back" in page.text
    # A separate number for this proxy, because of the resend timer.
    number = f"+9198765{60000 + FrontProxy.NAMES.index(proxy.name)}"
    gateway.register(number)
    origin = {"Origin": gateway.url}
    back = f"{proxy.url}/in/page?a=1&b=%2F"
    sent = browser.post(
        f"{gateway.url}/auth/login",
        data={"phone": number, "return_to": back},
        headers=origin,
        allow_redirects=False,
        timeout=10,
    )
    assert sent.status_code == 303 and sent.headers["Location"].startswith("/auth/verify"), sent.text
    done = browser.post(
        gateway.url + sent.headers["Location"],
        data={"code": gateway.code(number)},
        headers=origin,
        allow_redirects=False,
        timeout=10,
    )
    assert done.status_code == 303 and done.headers["Location"] == back, done.text
    cookie = browser.cookies.get("moongate")
    home = browser.get(back, headers={"Cookie": f"moongate={cookie}"}, timeout=10)
    assert home.status_code == 200 and json.loads(home.content)["line"] == "GET /in/page?a=1&b=%2F HTTP/1.1"


def test_programs_get_401(proxy, setting):
    before = len(setting.service.seen)
    for headers in [
        (),
        ("Cookie: moongate=" + "X" * 43,),
        ("Authorization: Bearer " + "X" * 43,),
        ("Cookie: moongate=a; moongate=b",),
    ]:
        status, fields, _ = proxy.raw("GET", "/in/x", headers)
        assert status == 401 and "location" not in fields
    assert proxy.raw("POST", "/in/x", body=b"x" * 100)[0] == 401
    assert len(setting.service.seen) == before


def test_only_navigations_are_redirected(proxy):
    """A script or a prefetch must not read the sign-in page in place of its answer."""
    html = "Accept: text/html, */*; q=0.01"
    for headers in (
        [html, "X-Requested-With: XMLHttpRequest", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"],
        [html, "X-Requested-With: XMLHttpRequest"],
        [html, "HX-Request: true"],
        [html, "Sec-Fetch-Mode: cors"],
        [html, "Sec-Fetch-Mode: navigate", "Sec-Purpose: prefetch;prerender"],
        ["Accept: text/html;q=0, application/json"],
    ):
        status, fields, _ = proxy.raw("GET", "/in/x", headers)
        assert status == 401 and "location" not in fields, headers
    navigate = "Sec-Fetch-Mode: navigate"
    for headers in ([html, navigate, "Sec-Fetch-Dest: document"], [navigate], [html]):
        status, fields, _ = proxy.raw("GET", "/in/x", headers)
        assert status in (302, 303) and "/auth/login?return_to=" in fields["location"], headers


def test_the_service_sees_our_headers_and_no_forged_ones(proxy, setting):
    """Attack: an identity header in any spelling, repeated, or named by Connection."""
    names = [
        "Remote-User",
        "remote-user",
        "REMOTE-USER",
        "Remote_User",
        "remote_user",
        "Remote.User",
        "Remote~User",
        "Remote-Email",
        "Remote_Email",
        "Remote-Phone",
        "Remote-Name",
        "Remote.Name",
        "Remote-Groups",
        "remote-groups",
        "Remote_Groups",
        "Remote.Groups",
        "REMOTE_GROUPS",
        "X-Moongate-Assertion",
        "X_Moongate_Assertion",
        "x-moongate_assertion",
        "X.Moongate.Assertion",
    ]
    forged = [f"{name}: forged-{index}" for index, name in enumerate(names)] + ["Remote-User: forged-twice"]
    for credential in (setting.cookie, f"Authorization: Bearer {setting.token}"):
        status, _, body = proxy.raw("GET", "/in/x", [*forged, credential])
        assert status == 200, body
        fields = reached(body)
        assert "forged" not in body.decode(), body
        mine = {name: value for name, value in fields if name in IDENTITY}
        assert [name for name, _ in fields if re.match(r"(remote|x.moongate)[^a-z0-9]", name)] == [
            *dict.fromkeys(n for n, _ in fields if n in IDENTITY)
        ]
        assert mine["remote-user"] == setting.account["account"]["id"] and mine["remote-phone"] == PHONE
        assert mine["x-moongate-assertion"].count(".") == 2 and not mine.get("remote-email")
    # On an open route, the user is anonymous.
    status, _, body = proxy.raw("GET", "/open/x", forged)
    assert (
        status == 200
        and "forged" not in body.decode()
        and not any(value for name, value in reached(body) if name in IDENTITY)
    )


RESERVED = [
    "Forwarded",
    "X-Forwarded",
    "X-Real-IP",
    "X-Client-IP",
    "True-Client-IP",
    "X-Remote-User",
    "Proxy",
    "X-Rewrite-URL",
    "X-HTTP-Method",
    "X-HTTP-Method-Override",
    "X-Method-Override",
    "Moongate-Device",
    "HTTP2-Settings",
    "X-Original-URL",
    "X-Original-Method",
    "X-WEBAUTH-USER",
    "X-WEBAUTH-ROLE",
    "X-Forwarded-User",
    "X-Forwarded-Email",
    "X-Forwarded-Groups",
    "X-Forwarded-Prefix",
    "X-Forwarded-Preferred-Username",
]


# The proxy itself sends these to the service.
SET_BY_PROXIES = ["X-Forwarded-For", "X-Forwarded-Proto"]


def test_forwarding_headers_from_clients_are_removed(proxy, setting):
    """Attack: forged user, address or method headers for services and frameworks that trust them."""
    names = [*RESERVED, "X-Forwarded-Host"]
    spellings = names + [name.replace("-", "_") for name in [*names, *SET_BY_PROXIES]] + [name.lower() for name in names]
    for path in ("/in/x", "/open/x"):
        status, _, body = proxy.raw(
            "GET", path, [setting.cookie, *[f"{name}: forged-{index}" for index, name in enumerate(spellings)]]
        )
        assert status == 200, body
        assert [field for field in json.loads(body)["fields"] if "forged" in field] == []


def test_an_apps_device_header_reaches_the_gateway(proxy, setting):
    """The client sends the header itself to the gateway's API: a trusted device keeps its own counters."""
    status, _, body = proxy.raw("GET", "/api/auth/session", [setting.cookie, "Moongate-Device: x"])
    assert status == 200, body


def test_groups_are_required_and_forwarded(proxy, setting):
    """Attack: a client sends group headers itself, in the forward-auth request and to the service."""
    forged = ["Remote-Groups: ops", "remote_groups: ops", "Remote.Groups: ops", "X-Forwarded-Groups: ops"]
    before = len(setting.service.seen)
    status, _, body = proxy.raw("GET", "/ops/x", [setting.cookie, *forged])
    assert status == 403 and json.loads(body)["code"] == "forbidden" and json.loads(body)["group"] == "ops", body
    status, fields, body = proxy.raw("GET", "/ops/x", [setting.cookie, "Accept: text/html"])
    assert status == 403 and "location" not in fields and not IDENTITY & set(fields)
    assert b"Sign in as someone else" in body and b"You are signed in as" in body, body
    assert proxy.raw("POST", "/ops/x", [setting.cookie], b"a=1")[0] == 403
    assert len(setting.service.seen) == before
    status, _, body = proxy.raw("GET", "/phones/x", [setting.cookie, *forged])
    assert status == 200 and [value for name, value in reached(body) if name == "remote-groups"] == ["phones"], body
    member = f"{setting.gateway.admin}/groups/a%2Cb/members/{setting.account['account']['id']}"
    assert requests.put(member, timeout=10).status_code == 200
    assert ("remote-groups", "a%2Cb,phones") in reached(proxy.raw("GET", "/in/x", [setting.cookie])[2])
    assert requests.delete(member, timeout=10).status_code == 200
    assert ("remote-groups", "phones") in reached(proxy.raw("GET", "/in/x", [setting.cookie])[2])


def test_a_header_that_connection_names_is_still_ours(proxy, setting):
    """Attack: `Connection: Remote-User` makes a proxy remove the header that it has just set. The request must not
    get another identity."""
    status, _, body = proxy.raw(
        "GET", "/in/x", [setting.cookie, "Remote-User: forged", "Connection: Remote-User, X-Moongate-Assertion"]
    )
    assert status in (200, 400), body
    if status == 200:
        assert {value for name, value in reached(body) if name == "remote-user"} <= {setting.account["account"]["id"]}


def test_going_round_in_circles_ends_with_the_cause(proxy, setting):
    """The session cookie of localhost is not sent to 127.0.0.1, so sign-in would redirect in a loop."""
    gateway = setting.gateway
    browser = requests.Session()
    browser.headers["Accept"] = "text/html"
    browser.cookies.set("moongate", setting.token, domain="localhost.local", path="/")
    address = f"http://127.0.0.1:{proxy.port}/in/circle"
    for _ in range(10):
        page = browser.get(address, allow_redirects=False, timeout=10)
        if page.status_code not in (302, 303):
            break
        # Also through the proxy, whose client is then the same for the gateway.
        address = urllib.parse.urljoin(address, page.headers["Location"]).replace(gateway.url, proxy.url)
    assert page.status_code == 401, f"{page.status_code} {address}"
    assert "three times in a row" in page.text and "is not sent to 127.0.0.1" in page.text, page.text
    reference = re.search(r"dc_[A-Za-z0-9_-]+", page.text)[0]
    decision = requests.get(f"{gateway.admin}/decisions/{reference}", timeout=10)
    assert decision.status_code == 200 and "is not sent to 127.0.0.1" in decision.text


def test_refused_requests(proxy, setting):
    before = len(setting.service.seen)
    assert proxy.raw("GET", "/mail/x", [setting.cookie])[0] == 403
    status, fields, _ = proxy.raw("GET", "/mail/x", [setting.cookie, "Accept: text/html"])
    assert status in (302, 303) and fields["location"].startswith(f"{setting.gateway.url}/auth/email?return_to=")
    assert proxy.raw("GET", "/no/x", [setting.cookie])[0] == 403
    assert proxy.raw("GET", "/nowhere", [setting.cookie])[0] == 403
    assert proxy.raw("GET", "/in/x", [setting.cookie, "Authorization: Bearer other"])[0] in (400, 500)
    status, fields, _ = proxy.raw("POST", "/in/x", ["Accept: text/html"], b"a=1")
    assert status in (302, 303) and "/auth/login?return_to=" in fields["location"]
    assert len(setting.service.seen) == before


def test_methods_bodies_and_big_headers(proxy, setting):
    status, _, body = proxy.raw("POST", "/in/x?q", [setting.cookie], b"x" * 100_000)
    assert status == 200 and json.loads(body)["body"] == 100_000 and json.loads(body)["line"] == "POST /in/x?q HTTP/1.1"
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert json.loads(proxy.raw(method, "/in/x", [setting.cookie])[2])["line"].startswith(method)
    assert proxy.raw("HEAD", "/in/x", [setting.cookie])[0] == 200
    assert proxy.raw("GET", "/in/x", [setting.cookie, "X-Big: " + "b" * 6000])[0] == 200
    assert proxy.raw("GET", "/in/x", [f"{setting.cookie}; big={'b' * 6000}"])[0] == 200


def test_websockets_large_bodies_and_many_cookies(proxy, setting):
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'a' * 22}=="]
    status, _, body = proxy.raw("GET", "/in/socket", [setting.cookie, *upgrade], close=False)
    assert (status, body) == (101, b"hello")
    closing = ["Connection: Upgrade, close", *upgrade[:1], *upgrade[2:]]
    assert proxy.raw("GET", "/in/socket", closing, close=False)[0] == 401
    status, _, body = proxy.raw("POST", "/in/x", [setting.cookie], b"x" * (2 << 20))
    assert status == 200 and json.loads(body)["body"] == 2 << 20, proxy.program.output
    status, fields, _ = proxy.raw("GET", "/in/cookies", [setting.cookie])
    assert status == 200 and fields["set-cookie"].count("c" * 1024) == 6
    # The sign-in page gets the address to return to.
    status, fields, _ = proxy.raw("GET", f"/in/x?left={'l' * 6000}&right", ["Accept: text/html"])
    assert status in (302, 303) and len(fields["location"]) > 6000
    status, _, body = proxy.raw("GET", fields["location"].removeprefix(setting.gateway.url), ["Accept: text/html"])
    assert status == 200 and b"Welcome Back" in body, f"{status} {body[:300]} {proxy.program.output}"


@pytest.mark.parametrize(
    "fields",
    [
        ["Upgrade: h2c"],
        ["upgrade: H2C"],
        ["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"],
        ["Upgrade: h2c, websocket"],
        ["Upgrade: websocket, h2c"],
        ["Upgrade: h2c", "Upgrade: websocket"],
        ["Upgrade: websocket", "Upgrade: h2c"],
    ],
)
def test_no_upgrade_leads_to_another_http(proxy, fields):
    """Attack: after an upgrade to HTTP/2 on an open path, requests for every path reach the service without a question,
    and with identity headers of the client's choice."""
    options = "Upgrade, HTTP2-Settings" if len(fields) > 1 else "Upgrade"
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
        lines = ["GET /open/x HTTP/1.1", f"Host: localhost:{proxy.port}", f"Connection: {options}", *fields]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (chunk := connection.recv(65536)):
            answer += chunk
    # A request that names both protocols may become a WebSocket, and one that names h2c is answered by HTTP/1.1.
    # (The random Sec-WebSocket-Accept may contain these letters.)
    assert answer and not re.search(rb"(?im)^upgrade:.*h2c", answer), answer
    assert "websocket" in " ".join(fields) or answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 403 ")), answer


def test_no_service_worker_controls_the_sign_in_pages(proxy, setting):
    """Attack: a service installs a service worker over the sign-in pages, which reads what users type."""
    before = len(setting.service.seen)
    assert proxy.raw("GET", "/sw.js", ["Service-Worker: script"])[0] == 403
    assert len(setting.service.seen) == before
    for path, headers in [("/sw.js", ()), ("/open/sw.js", ("Service-Worker: script",))]:
        status, fields, _ = proxy.raw("GET", path, headers)
        assert status == 200 and "service-worker-allowed" not in fields


def test_pages_of_other_sites_use_no_remembered_token(proxy, setting):
    """Attack: a browser adds the token that its user typed into the dialog of Basic to a form of another site."""
    status, text, complaint = tool(setting.gateway, "token", "create", f"remembered-{proxy.name}")
    assert status == 0, complaint
    basic = "Authorization: Basic " + base64.b64encode(f"any:{text.strip()}".encode()).decode()
    before = len(setting.service.seen)
    assert proxy.raw("POST", "/programs/x", [basic, "Origin: https://evil.example"], b"a=1")[0] == 403
    assert len(setting.service.seen) == before
    assert proxy.raw("POST", "/programs/x", [basic], b"a=1")[0] == 200
    assert proxy.raw("POST", "/programs/x", [basic, f"Origin: {proxy.url}"], b"a=1")[0] == 200


def test_the_health_check_of_haproxy_succeeds(setting):
    assert setting.proxies["haproxy"].check_status() == "L7OK"


SHAPES = {
    "//open/x",
    "/open//x",
    "/in/../open/x",
    "/open/../in/x",
    "/in/%2e%2e/open/x",
    "/open/%2e%2e/in/x",
    "/open/..%2fin/x",
    "/open%2f..%2fin/x",
    "/open/..;/in/x",
    "/open/.;/x",
    "/open/%5c../in/x",
    "/open/%00",
    "/open/x%2fy",
    "/./in/x",
    "/open/../../in/x",
    "/%6fpen/x",
    "/%69n/x",
    "/open/%252e%252e/in/x",
}


@pytest.mark.parametrize("path", sorted(SHAPES))
def test_the_authorised_path_is_the_forwarded_path(proxy, setting, path):
    """Attack: a path that is open for the gateway but another one for the service."""
    status, _, body = proxy.raw("GET", path)
    if status != 200:
        return
    sent = json.loads(body)["line"].split()[1]
    # A path that was allowed without a session is open as sent, with nothing that could be interpreted differently.
    assert re.fullmatch(r"/(open|%6fpen)/[^/;\\]*(/[^/;\\]+)*", sent) and not re.search(
        r"%2f|%5c|%00|%2e|/\.", sent.replace("%252e", ""), re.I
    ), sent
    # Only Traefik sends its own normalized form, and the same form upstream.
    assert sent == path or proxy.name == "traefik"


def test_the_question_is_the_proxys_own(proxy, setting):
    """Attack: the client sends forward-auth headers for an open page, and a Connection header that removes the
    proxy's."""
    names = [
        "X-Original-URL",
        "X-Original-URI",
        "X-Original-Method",
        "X-Forwarded-Method",
        "X-Forwarded-Uri",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Prefix",
        "X-Rewrite-URL",
        "X-Envoy-Original-Path",
        "X-Envoy-Original-Host",
        "X-HTTP-Method-Override",
    ]
    values = {
        "X-Original-URL": "http://free.example/open/x",
        "X-Original-Method": "GET",
        "X-Forwarded-Method": "GET",
        "X-Forwarded-Host": "free.example",
        "X-Forwarded-Proto": "http",
        "X-Envoy-Original-Host": "free.example",
        "X-HTTP-Method-Override": "GET",
    }
    forged = [f"{name}: {values.get(name, '/open/x')}" for name in names]
    before = len(setting.service.seen)
    shapes = [
        forged,
        [line.replace("-", "_") for line in forged],
        [line.lower() for line in forged],
        forged + forged,
        *[[line] for line in forged],
        [*forged, "Connection: close, " + ", ".join(names)],
        ["Connection: close, X-Forwarded-Uri, X-Forwarded-Host, X-Original-URL"],
        *[[f"Connection: close, {name}"] for name in names],
        *[[line, f"Connection: close, {line.split(':')[0]}"] for line in forged],
    ]
    for headers in shapes:
        status, _, body = proxy.raw(
            "GET", "/in/x", headers, close=not any(line.startswith("Connection") for line in headers)
        )
        assert status in (400, 401, 403, 404, 500, 503), f"{headers}: {status} {body}"
    assert len(setting.service.seen) == before


@pytest.mark.parametrize(
    "target,hosts",
    [
        ("http://free.example/in/x", ["localhost"]),
        ("http://localhost/in/x", ["free.example"]),
        ("/in/x", ["localhost", "free.example"]),
        ("/in/x", ["free.example", "localhost"]),
        ("http://free.example@localhost/in/x", ["localhost"]),
        ("/in/x", ["localhost:80@free.example"]),
        ("/in/x", ["free.example:80/"]),
        ("/in/x", ["free.example localhost"]),
        ("/in/x", ["free.example,localhost"]),
        ("/in/x", ["localhost,free.example"]),
        ("/in/x", ["localhost, free.example"]),
        ("//free.example/in/x", ["localhost"]),
        ("http:/free.example/in/x", ["localhost"]),
        ("/in/x", ["FREE.example."]),
        ("/in/x", ["free.example"]),
    ],
)
def test_the_host_that_is_judged_is_the_host_that_is_sent(proxy, setting, target, hosts):
    """Attack: a request has an open host for the gateway and another host for the service."""
    status, _, body = proxy.raw("GET", target, [f"Host: {host}" for host in hosts[1:]], host=hosts[0])
    if status != 200:
        return
    seen = [value.lower().rstrip(".").partition(":")[0] for name, value in reached(body) if name == "host"]
    assert seen == ["free.example"], f"{body}"


def test_documents_of_the_openid_provider_are_at_its_host_only(proxy, setting):
    """Attack: the documents of a service on another host are replaced by those of the gateway."""
    host, seen = f"auth.example.com:{proxy.port}", setting.service.seen
    assert proxy.raw("GET", "/x", host=host)[0] == 200
    for name in ("openid-configuration", "oauth-authorization-server"):
        before = len(seen)
        proxy.raw("GET", f"/.well-known/{name}", host=host)
        assert len(seen) == before, seen[-1]
        assert proxy.raw("GET", f"/.well-known/{name}", host="free.example")[0] == 200
        assert len(seen) == before + 1


@pytest.fixture(params=FrontProxy.NAMES)
def two_hosts(request, setting, tmp_path):
    """A proxy with two hosts, and the service of the closed one."""
    closed = Service()
    ports = free_port(), setting.gateway.ports[0], setting.service.port, closed.port
    proxy = FrontProxy(request.param, tmp_path / request.param, *ports)
    try:
        proxy.wait()
        # Traefik listens before it has read its routers.
        wait_for(lambda: proxy.raw("GET", "/in/x", host=OPEN)[0] == 200, f"{proxy.name} to be ready", 30)
        yield proxy, closed
    finally:
        proxy.end()
        closed.end()


def test_the_host_that_is_judged_chooses_the_service(two_hosts, setting):
    """Attack: the target of a request names a closed host, by which the proxy chooses the service, and Host names an
    open one, by which the gateway judges; or the other way round."""
    proxy, closed = two_hosts
    for port in ("", f":{proxy.port}", ":80"):
        hidden, free = f"{CLOSED}{port}", f"{OPEN}{port}"
        for target, *hosts in [
            ("/in/x", hidden),
            (f"http://{hidden}/in/x", free),
            (f"http://{free}/in/x", hidden),
            (f"https://{hidden}/in/x", free),
            (f"HTTP://{hidden}/in/x", free),
            (f"http://{free}@{hidden}/in/x", free),
            (f"http://{hidden}/in/x", hidden),
            ("/in/x", hidden, free),
            ("/in/x", free, hidden),
            ("/in/x", f"{hidden},{free}"),
            ("/in/x", f"{free},{hidden}"),
            ("/in/x", f"{hidden}, {free}"),
            (f"http://{hidden}/in/x", free, hidden),
        ]:
            proxy.raw("GET", target, [f"Host: {host}" for host in hosts[1:]], host=hosts[0])
            assert closed.seen == [], f"{target} {hosts}"
    # What the hosts are for works, also with an absolute target.
    hidden, free = f"{CLOSED}:{proxy.port}", f"{OPEN}:{proxy.port}"
    for target in ("/in/x", f"http://{free}/in/x"):
        assert proxy.raw("GET", target, host=free)[0] == 200, target
    assert closed.seen == []
    for target in ("/in/x", f"http://{hidden}/in/x"):
        assert proxy.raw("GET", target, [setting.cookie], host=hidden)[0] == 200, target
    assert len(closed.seen) == 2


def test_only_the_proxy_can_use_forward_auth(proxy, setting):
    """Attack: a client sends the forward-auth request itself with forged headers."""
    own = [
        setting.cookie,
        "X-Original-URL: http://localhost/open/x",
        "X-Original-Method: GET",
        "X-Forwarded-Method: GET",
        "X-Forwarded-Uri: /open/x",
    ]
    for name in FrontProxy.NAMES:
        for path in (
            f"/auth/forward/{name}",
            f"/auth/forward/{name}/open/x",
            f"/auth/%66orward/{name}",
            f"//auth/forward/{name}",
        ):
            status, fields, _ = proxy.raw("GET", path, own)
            assert status in (400, 403, 404, 500), f"{path}: {status}"
            assert not IDENTITY & set(fields)


def test_tokens_of_programs_work_and_go_no_further(proxy, setting):
    """Attack: a service behind the proxy reads the access tokens of its clients."""
    status, text, complaint = tool(setting.gateway, "token", "create", proxy.name)
    assert status == 0, complaint
    secret = text.strip()
    basic = base64.b64encode(f"any:{secret}".encode()).decode()
    for field in (f"Authorization: Bearer {secret}", f"Authorization: Basic {basic}"):
        status, _, body = proxy.raw("GET", "/programs/x", [field])
        fields = dict(reached(body)) if status == 200 else {}
        assert status == 200 and fields["remote-user"] == f"token:{proxy.name}", body
        status, _, opened = proxy.raw("GET", "/open/x", [field])
        assert status == 200
        for text in (body.decode(), opened.decode()):
            assert secret not in text and basic not in text and not re.search(r'"authorization: *[^" ]', text, re.I), (
                text
            )
            assert not re.search(r'"x-(moongate-authorization|envoy-auth[^:]*): *[^" ]', text, re.I), text
    # The service's own credentials are forwarded.
    own = "Authorization: Basic " + base64.b64encode(b"me:secret").decode()
    assert ("authorization", own.partition(": ")[2]) in reached(proxy.raw("GET", "/in/x", [setting.cookie, own])[2])
    # A session's Bearer token is not forwarded either.
    assert setting.token not in proxy.raw("GET", "/in/x", [f"Authorization: Bearer {setting.token}"])[2].decode()
    for field in ((), ("Authorization: Bearer mgt_" + "x" * 43,)):
        status, fields, _ = proxy.raw("GET", "/programs/x", field)
        # git gives up without Basic, and some proxies pass on only one line.
        assert status == 401
        assert re.fullmatch('Basic realm="[^"]*", charset="UTF-8", Bearer', fields["www-authenticate"]), fields
    status, fields, _ = proxy.raw("GET", "/in/x")
    assert status == 401 and "www-authenticate" not in fields


def test_unavailable_gateway_admits_no_request(setting):
    """Runs last, because it ends the gateway."""
    setting.gateway.server.end()
    before = len(setting.service.seen)
    for proxy in setting.proxies.values():
        status, _, _ = proxy.raw("GET", "/in/x", [setting.cookie])
        assert status in (500, 502, 503), f"{proxy.name}: {status}"
    assert len(setting.service.seen) == before
