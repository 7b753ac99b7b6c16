"""Services whose names contain slashes, behind routes with `encoded`: npm, RabbitMQ, GitLab, Matrix and file servers.
What the gateway and the proxies of forward-auth pass on, and what no service may see."""

import collections
import html
import json
import re
import urllib.parse

import pytest
import requests

from local_gateway import LocalGateway, free_port, wait_for
from proxies import FrontProxy
from test_accounts import tool
from test_field_requests import ask, status
from test_forward import Service
from test_tls import certificate, speak_tls
from wire import H2Client, Upstream

ALL = 'encoded = { "slash", "backslash", "empty" }'
# The services, each with a host of its own.
HOSTED = """
  {{ host = "npm.example.com", path = "/**", {to}, tokens = true, encoded = {{ "slash" }} }},
  {{ host = "rabbitmq.example.com", path = "/api/**", {to}, encoded = {{ "slash" }} }},
  {{ host = "gitlab.example.com", path = "/api/v4/admin/**", {to}, require = {{ group = "ops" }} }},
  {{ host = "gitlab.example.com", path = "/api/**", {to}, encoded = {{ "slash" }} }},
  {{ host = "matrix.example.com", path = "/_matrix/**", {to}, allow = true, encoded = {{ "slash" }} }},
  {{ host = "files.example.com", path = "/**", {to}, encoded = {{ "backslash", "empty" }} }},"""
# The paths of all hosts.
ROUTES = """return routes {{{hosted}
  {{ path = "/admin/**", {to}, require = {{ group = "ops" }} }},
  {{ path = "/*/secret", {to}, require = {{ group = "ops" }} }},
  {{ path = "/plain/**", {to}, allow = true }},
  {{ path = "/judged/**", {to}, encoded = {{ "slash" }}, decide = function(f)
    if f.request.path == "/judged/@scope%2fname" then return allow end
    return deny "not_as_sent"
  end }},
  {{ path = "/open/**", {to}, allow = true, {all} }},
  {{ path = "/**", {to}, {all} }},
}}
"""
ACCOUNTS = "return accounts { groups = { ops = members() } }\n"

SERVICES = [
    ("npm.example.com", "/@scope%2fname"),
    ("npm.example.com", "/@scope%2Fname/-/name-1.0.0.tgz"),
    ("npm.example.com", "/-/package/@scope%2fname/dist-tags"),
    ("rabbitmq.example.com", "/api/queues/%2F/name"),
    ("rabbitmq.example.com", "/api/exchanges/%2f/amq.direct/bindings/source?page=1"),
    ("rabbitmq.example.com", "/api/queues/%2F/with%2Fslash"),
    ("gitlab.example.com", "/api/v4/projects/group%2Fproject"),
    ("gitlab.example.com", "/api/v4/projects/group%2Fsub%2Fproject/repository/files/lib%2Fa.rb/raw?ref=main"),
    ("matrix.example.com", "/_matrix/client/v3/rooms/!abc:example.org/state/m.room.member/@a%2Fb:example.org"),
    ("matrix.example.com", "/_matrix/client/v3/directory/room/%23a%2Fb:example.org"),
    ("files.example.com", "/share/a%5Cb.txt"),
    ("files.example.com", "/bucket//key"),
    ("files.example.com", "/web/2020/http://example.com//x"),
    ("files.example.com", "/bucket/key//"),
]
# What must come back byte for byte after a sign-in.
KEPT = ["/@scope%2fname?x=%2F", "/queues/%2F/name", "/a%5Cb;v=1%2F2", "/web/2020/http://example.com//x?q=//y"]


@pytest.fixture(scope="module")
def upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


def routed(gateway, port, hosted=""):
    to = f'to = "http://127.0.0.1:{port}"'
    gateway.edit("routes.lua", lambda _: ROUTES.format(hosted=hosted.format(to=to), to=to, all=ALL))
    (gateway.config / "accounts.lua").write_text(ACCOUNTS)
    return gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, upstream):
    """A gateway at auth.example.com, whose sessions are valid at the hosts of the services."""
    gateway = routed(LocalGateway(tmp_path_factory.mktemp("encoded")), upstream.port, HOSTED)
    gateway.home = f"http://auth.example.com:{gateway.ports[0]}"
    ours = f'public_url = "{gateway.home}",\n  cookie_domain = "example.com",'
    gateway.edit("gateway.lua", lambda text: re.sub(r'public_url = "[^"]*",', ours, text, count=1))
    gateway.edit("gateway.lua", lambda text: text.replace("outbox()", "outbox { allow_public = true }"))
    gateway.edit("gateway.lua", lambda text: re.sub(r"    google_oauth = \{.*?\n    \},\n", "", text, flags=re.DOTALL))
    try:
        gateway.start()
        gateway.token = gateway.register("+919876500900")["session"]["token"]
        yield gateway
    finally:
        gateway.stop()


def get(gateway, path, *fields, host=None, method="GET"):
    return ask(gateway, f"{method} {path}", f"Host: {host or f'auth.example.com:{gateway.ports[0]}'}", *fields)


def cookie(gateway):
    return f"Cookie: a=1; moongate={gateway.token}"


def lines(upstream):
    """How often the service received each request line."""
    received = upstream.all.decode("latin-1").split("\r\n")
    return collections.Counter(line for line in received if line.endswith(" HTTP/1.1"))


# The proxy.


@pytest.mark.parametrize("host,path", SERVICES)
def test_names_with_slashes_reach_their_service(gateway, upstream, host, path):
    before = lines(upstream)
    answer = get(gateway, path, cookie(gateway), host=host)
    assert status(answer) == 200, answer
    assert lines(upstream) - before == {f"GET {path} HTTP/1.1": 1}


def test_npm_publishes_with_a_token(gateway, upstream):
    code, text, complaint = tool(gateway, "token", "create", "npm")
    assert code == 0, complaint
    bearer = f"Authorization: Bearer {text.strip()}"
    before = lines(upstream)
    for method in ("GET", "PUT", "DELETE"):
        answer = get(gateway, "/@scope%2fname", bearer, host="npm.example.com", method=method)
        assert status(answer) == 200, answer
    received = lines(upstream)
    assert received - before == {f"{method} /@scope%2fname HTTP/1.1": 1 for method in ("GET", "PUT", "DELETE")}
    assert status(get(gateway, "/@scope%2fname", host="npm.example.com")) == 401
    assert lines(upstream) == received


def test_decide_sees_the_path_as_sent(gateway, upstream):
    before = lines(upstream)
    assert status(get(gateway, "/judged/@scope%2fname", cookie(gateway))) == 200
    assert status(get(gateway, "/judged/@scope%2Fname", cookie(gateway))) == 403
    assert lines(upstream) - before == {"GET /judged/@scope%2fname HTTP/1.1": 1}


@pytest.mark.parametrize(
    "host,path",
    [
        # The route lacks the word for these bytes.
        (None, "/plain/a%2Fb"),
        (None, "/plain/a%5Cb"),
        (None, "/plain//b"),
        ("npm.example.com", "/@scope%5cname"),
        ("npm.example.com", "/a//b"),
        ("files.example.com", "/a%2Fb"),
        # An earlier route would judge the path where these bytes separate names.
        (None, "/admin%2Fusers"),
        (None, "/%61dmin%2fusers"),
        (None, "/admin%5Cusers"),
        (None, "/%2Fadmin/users"),
        (None, "/x%2Fsecret"),
        (None, "/x//secret"),
        (None, "/admin;x%2Fusers"),
        ("gitlab.example.com", "/api/v4%2Fadmin/ci"),
        ("gitlab.example.com", "/api/v4/admin%2Fci"),
        # The gateway's own paths.
        (None, "/auth%2Flogin"),
        (None, "/auth//login"),
        (None, "/api%2Fauth%2Fsession"),
        (None, "/api/auth//session"),
        (None, "/.well-known%2Fmoongate%2Fkeys"),
        # No route takes these.
        (None, "/a%2F..%2Fb"),
        (None, "/a%5C..%5Cb"),
        (None, "/a//../b"),
        (None, "/open%2f%2e%2e%2fadmin"),
        (None, "/a%2F..;x/b"),
        (None, "//admin/users"),
        (None, "//auth.example.com/x"),
        (None, "/a%2F%00"),
        (None, "/a\\b"),
        (None, "/a%c0%afb"),
    ],
)
def test_nobody_walks_around_a_rule(gateway, upstream, host, path):
    """Attack: a service that decodes the path before it looks for its own rules, or reads `//name` as a host."""
    before = lines(upstream)
    answer = get(gateway, path, cookie(gateway), host=host)
    assert status(answer) == 400 and '"code":"bad_request"' in answer, answer
    assert lines(upstream) == before
    decision = json.loads(answer.partition("\r\n\r\n")[2])["decision_id"]
    told = requests.get(f"{gateway.admin}/decisions/{decision}", timeout=10).json()
    assert told["detail"]["reason"], told


def test_the_refusal_tells_the_operator_what_to_change(gateway):
    for path, words in [
        ("/plain/a%5Cb", ["%5C", "routes.lua:", 'encoded = { "backslash" }']),
        ("/admin%2Fusers", ["%2F", "the earlier route at routes.lua:"]),
        ("/auth%2Flogin", ["%2F", "the gateway's own"]),
    ]:
        answer = get(gateway, path, cookie(gateway))
        assert "routes.lua" not in answer
        decision = json.loads(answer.partition("\r\n\r\n")[2])["decision_id"]
        reason = requests.get(f"{gateway.admin}/decisions/{decision}", timeout=10).json()["detail"]["reason"]
        assert all(word in reason for word in words), reason


def test_http2_passes_the_same_bytes(tmp_path_factory, upstream):
    folder = tmp_path_factory.mktemp("http2")
    gateway = LocalGateway(folder)
    speak_tls(gateway, *certificate(folder, "one"))
    routed(gateway, upstream.port)
    try:
        gateway.start()
        client = H2Client(gateway.ports[0])
        before = lines(upstream)
        for path in ("/open/@scope%2fname", "/open/%2F/a%5cb", "/open//http://example.com//x?y=//"):
            assert client.answer(client.ask(client.headers(path))).status == 200
        for path in ("/admin%2Fusers", "//open/x", "/open/..%2fadmin/users", "/plain//x", "/auth%2Flogin"):
            assert client.answer(client.ask(client.headers(path))).status == 400
        client.close()
        assert lines(upstream) - before == {
            "GET /open/@scope%2fname HTTP/1.1": 1,
            "GET /open/%2F/a%5cb HTTP/1.1": 1,
            "GET /open//http://example.com//x?y=// HTTP/1.1": 1,
        }
    finally:
        gateway.stop()


# Sign-in.


def location(answer):
    return next(line[10:] for line in answer.split("\r\n") if line.lower().startswith("location: "))


def at_home(gateway, browser, method, path, **options):
    """A request of a browser to auth.example.com, a name that exists only in this test."""
    headers = {"Host": gateway.home.removeprefix("http://"), "Origin": gateway.home, "Accept": "text/html"}
    address = gateway.url + path.removeprefix(gateway.home)
    return browser.request(method, address, headers=headers, allow_redirects=False, timeout=20, **options)


def signs_in(gateway, number, back):
    """Signs in by the page, which leads back. Returns the browser and the address that it is sent to."""
    gateway.register(number)
    browser = requests.Session()
    sent = at_home(gateway, browser, "POST", "/auth/login", data={"phone": number, "return_to": back})
    assert sent.status_code == 303 and sent.headers["Location"].startswith("/auth/verify"), sent.text
    done = at_home(gateway, browser, "POST", sent.headers["Location"], data={"code": gateway.code(number)})
    assert done.status_code == 303, done.text
    return browser, done.headers["Location"]


@pytest.mark.parametrize("path", KEPT)
def test_a_sign_in_leads_back_to_the_same_bytes(gateway, upstream, number, path):
    asked = get(gateway, path, "Accept: text/html")
    assert status(asked) == 302, asked
    assert location(asked) == "/auth/login?return_to=" + urllib.parse.quote(path, safe="")
    page = at_home(gateway, requests, "GET", location(asked))
    assert page.status_code == 200 and f'name="return_to" value="{path}"' in html.unescape(page.text), page.text
    browser, back = signs_in(gateway, number, path)
    assert back == path
    before = lines(upstream)
    assert status(get(gateway, back, f"Cookie: moongate={browser.cookies['moongate']}")) == 200
    assert lines(upstream) - before == {f"GET {path} HTTP/1.1": 1}


def test_a_sign_in_at_another_host_leads_back_to_the_same_bytes(gateway, number, other_number):
    host = f"npm.example.com:{gateway.ports[0]}"
    asked = get(gateway, "/@scope%2fname?x=1", "Accept: text/html", host=host)
    assert status(asked) == 302, asked
    back = urllib.parse.parse_qs(urllib.parse.urlsplit(location(asked)).query)["return_to"][0]
    assert back == f"http://{host}/@scope%2fname?x=1"
    assert signs_in(gateway, number, back)[1] == back
    # The route of npm takes no `//`.
    assert signs_in(gateway, other_number(), f"http://{host}/@scope//name")[1] != f"http://{host}/@scope//name"


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/a%2Fb",
        "/%2F%2Fevil.example/..%2Fx",
        "/plain/a%2Fb",
        "/admin%2Fusers",
        "/auth%2Flogout",
        "/a//../b",
        "http://evil.example/a%2Fb",
        "http://npm.example.com@evil.example/a%2Fb",
    ],
)
def test_a_link_to_sign_in_leads_nowhere_else(gateway, target):
    """Attack: an open redirect through the bytes that a route takes."""
    page = at_home(gateway, requests, "GET", f"/auth/login?return_to={urllib.parse.quote(target, safe='')}")
    assert page.status_code == 200 and 'name="return_to"' not in page.text


# Forward-auth.


class Setting:
    """The proxies of the guides in front of one gateway and one service."""

    def __init__(self, folder):
        self.service = Service()
        self.gateway = LocalGateway(folder)
        ports = {name: free_port() for name in FrontProxy.NAMES}
        hosts = ", ".join(f'"localhost:{port}"' for port in ports.values())
        self.gateway.edit(
            "gateway.lua",
            lambda text: text.replace(
                "  region =",
                f'  trusted_proxies = {{ "127.0.0.1/32" }}, redirect_hosts = {{ {hosts} }},\n  region =',
                1,
            ),
        )
        routed(self.gateway, 1)
        self.gateway.demo = self.service
        self.proxies = {
            name: FrontProxy(name, folder / name, port, self.gateway.ports[0], self.service.port)
            for name, port in ports.items()
        }
        self.gateway.start()
        self.gateway.token = self.gateway.register("+919876500901")["session"]["token"]
        for proxy in self.proxies.values():
            proxy.wait()
            # Traefik listens before it has read its routers.
            wait_for(lambda proxy=proxy: proxy.raw("GET", "/open/x")[0] == 200, f"{proxy.name} to pass a request on", 30)

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


def normal(proxy, path):
    """The path as the proxy passes it on. Traefik writes hexadecimal digits in upper case, and merges slashes."""
    if proxy.name != "traefik":
        return path
    path, mark, query = path.partition("?")
    while "//" in path:
        path = path.replace("//", "/")
    return path.replace("%2f", "%2F").replace("%5c", "%5C") + mark + query


@pytest.mark.parametrize(
    "path",
    [
        "/@scope%2fname",
        "/api/queues/%2F/name",
        "/api/v4/projects/group%2Fproject/issues?x=%2f",
        "/_matrix/client/v3/directory/room/%23a%2Fb:example.org",
        "/share/a%5cb",
        "/bucket//key",
    ],
)
def test_proxies_pass_names_with_slashes_on(proxy, setting, path):
    code, _, body = proxy.raw("GET", path, [cookie(setting.gateway)])
    assert code == 200, body
    received = json.loads(body)
    assert received["line"] == f"GET {normal(proxy, path)} HTTP/1.1"
    assert any(field.lower().startswith("remote-user: ac_") for field in received["fields"]), received


def test_decide_sees_the_path_that_the_proxy_sends(proxy, setting):
    path = "/judged/@scope%2fname"
    code, _, _ = proxy.raw("GET", path, [cookie(setting.gateway)])
    assert code == (200 if normal(proxy, path) == path else 403)
    assert proxy.raw("GET", "/judged/@scope%2Fname", [cookie(setting.gateway)])[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/plain/a%2Fb",
        "/admin%2Fusers",
        "/%61dmin%5Cusers",
        "/%2Fadmin/users",
        "/x%2Fsecret",
        "/open/..%2fadmin/users",
        "/open/a%2F..%2F..%2Fadmin",
        "/auth%2Flogin",
        "/auth%2Fforward%2Fenvoy%2Fopen",
        "/api%2Fauth%2Fsession",
        "/x//secret",
        "//admin/users",
        "//localhost/x",
    ],
)
def test_nobody_walks_around_a_rule_through_a_proxy(proxy, setting, path):
    """Attack: a path that the proxy or the service reads as another one."""
    before = len(setting.service.seen)
    code, _, body = proxy.raw("GET", path, [cookie(setting.gateway)])
    if proxy.name == "traefik" and "//" in path:
        # Merged before the question, so that the rules judge the path that the service gets.
        assert code != 200 or "//" not in json.loads(body)["line"]
        return
    # nginx turns the 400 of a question into its own 500, and finds nothing below /auth/forward itself.
    assert code == 400 or proxy.name == "nginx" and code in (404, 500), body
    assert len(setting.service.seen) == before


@pytest.mark.parametrize("path", KEPT)
def test_a_sign_in_leads_back_through_the_proxy(proxy, setting, path):
    code, fields, body = proxy.raw("GET", path, ["Accept: text/html"])
    assert code in (302, 303), body
    back = proxy.url + normal(proxy, path)
    assert fields["location"] == f"{setting.gateway.url}/auth/login?return_to=" + urllib.parse.quote(back, safe="")
    page = requests.get(fields["location"], headers={"Accept": "text/html"}, timeout=20)
    assert f'name="return_to" value="{back}"' in html.unescape(page.text), page.text
