"""`frames`: a service and the sign-in that it leads to, in a frame of another site, in a real browser over TLS."""

import ssl

import pytest
import requests
from selenium.webdriver.common.by import By

import screens
from local_gateway import LocalGateway, problem, wait_for
from services import Handler, HTTPService
from test_story import Person
from test_tls import certificate, speak_tls

FRAMED = "__Host-moongate-framed"


class Service(Handler):
    """A service that forbids every frame, as many do, with a form and a script that post to it."""

    seen = []

    PAGE = """<!doctype html><title>Wiki</title><h1>The wiki</h1>
    <form method="post" action="/wiki/form"><button id="post">Save</button></form>
    <a id="out" href="/auth/logout?return_to=/wiki/">Leave</a>
    <script src="/wiki/script.js"></script><p id="said"></p>"""
    SCRIPT = """fetch("/wiki/data", { method: "POST", body: "x" }).then(answer => answer.text())
      .then(text => { document.getElementById("said").textContent = text; });"""

    def answers(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        user = self.headers.get("Remote-User")
        Service.seen.append((self.command, self.path, bool(user), self.headers.get("Cookie")))
        kind, body = "text/html", f"{self.command} {self.path} by {'a user' if user else 'nobody'}"
        if self.path in ("/wiki/", "/home"):
            body = Service.PAGE
        elif self.path == "/wiki/script.js":
            kind, body = "text/javascript", Service.SCRIPT
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Content-Security-Policy", "default-src 'self'; form-action 'self'; frame-ancestors 'none'")
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = answers


class Site(Handler):
    """Another site, which shows the address in its query in a frame."""

    def do_GET(self):
        address = self.path.partition("?")[2]
        frame = f'<iframe id="frame" name="frame" src="{address}" width="800" height="700"></iframe>' if address else ""
        body = f"<!doctype html><title>Portal</title>{frame}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class TLSService(HTTPService):
    """The same over TLS, on every host name."""

    def __init__(self, handler, cert, key):
        super().__init__(handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        # A browser may open a connection and send nothing.
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )


class FramedPerson(Person):
    """A user of what the frame shows."""

    def waits(self, condition, what):
        def inside():
            self.browser.switch_to.default_content()
            self.browser.switch_to.frame(self.browser.find_element(By.ID, "frame"))
            return condition()

        return super().waits(inside, what)

    def is_at(self, path):
        self.waits(lambda: self.browser.execute_script("return location.pathname") == path, f"{path} in the frame")

    def signs_in(self, number):
        seen = {entry["id"] for entry in self.gateway.outbox()}
        self.fills("phone", number.removeprefix("+91"))
        self.presses("Send OTP")
        code = self.is_sent(seen)
        self.waits(lambda: self.browser.find_elements(By.NAME, "code"), "the page of the code")
        self.enters(code)

    def runs(self, script, *arguments):
        """Runs a script in the embedding page."""
        self.browser.switch_to.default_content()
        return self.browser.execute_async_script(script, *arguments)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    cert, key = certificate(folder, "one")
    patch = pytest.MonkeyPatch()
    patch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    site, service = TLSService(Site, cert, key), HTTPService(Service)
    gateway = LocalGateway(folder)
    speak_tls(gateway, cert, key)
    gateway.portal, gateway.evil = (
        f"https://{host}:{site.port}" for host in ("portal.example.org", "evil.example.net")
    )
    gateway.edit("policies/phone_otp.lua", screens.many)
    gateway.edit(
        "routes.lua",
        lambda _: f"""return routes {{
          {{ path = "/wiki/**", to = "http://127.0.0.1:{service.port}", websocket = true,
            frames = {{ "{gateway.portal}" }} }},
          {{ path = "/**", to = "http://127.0.0.1:{service.port}" }},
        }}""",
    )
    try:
        yield gateway.start()
    finally:
        gateway.stop()
        site.end()
        service.end()
        patch.undo()


@pytest.fixture
def browser(tmp_path):
    driver = screens.start(
        tmp_path / "chromium",
        arguments=[
            "--ignore-certificate-errors",
            "--host-resolver-rules=MAP *.example.org 127.0.0.1,MAP *.example.net 127.0.0.1",
        ],
    )
    yield driver
    driver.quit()


def cookies(browser):
    """The gateway's cookies by name, of all sites."""
    found = browser.execute_cdp_cmd("Network.getAllCookies", {})["cookies"]
    return {cookie["name"]: cookie for cookie in found if "moongate" in cookie["name"]}


def test_sign_in_work_and_sign_out_within_a_frame(world, browser, number):
    gateway = world
    gateway.register(number)
    person = FramedPerson(browser, gateway)
    browser.get(f"{gateway.portal}/?{gateway.url}/wiki/")
    person.is_at("/auth/login")
    person.signs_in(number)
    person.is_at("/wiki/")
    person.reads("The wiki")
    # The page's own script and form are requests of the service.
    person.reads("POST /wiki/data by a user")
    person.presses("Save")
    person.reads("POST /wiki/form by a user")
    assert all(cookie is None for *_, cookie in Service.seen), "no cookie of the gateway reaches the service"

    kept = cookies(browser)
    session = kept[FRAMED]
    assert session["secure"] and session["httpOnly"] and session["sameSite"] == "None" and session["path"] == "/"
    key = session["partitionKey"]
    # A site is a registrable domain.
    assert "https://example.org" in (key if isinstance(key, str) else key["topLevelSite"]), session
    assert "__Host-moongate" not in kept, "the usual cookie is for top-level pages"

    # The session ends where it began: in the frame. It is unknown in a tab of its own.
    browser.get(f"{gateway.url}/wiki/")
    wait_for(lambda: "/auth/login" in browser.current_url, "the sign-in page of the tab")
    browser.get(f"{gateway.portal}/?{gateway.url}/wiki/")
    person.reads("The wiki")
    person.presses("Leave")
    person.is_at("/auth/logout")
    person.presses("Sign out", "Sign Out")
    person.is_at("/auth/login")
    assert FRAMED not in cookies(browser)
    problem(requests.get(f"{gateway.url}/wiki/", headers={"Cookie": f"{FRAMED}={session['value']}"}), 401, "unauthenticated")


def test_embedding_site_acts_for_nobody(world, browser, number):
    """Attack: the embedding site sends what a user's own page would send. The browser adds the cookie."""
    gateway = world
    gateway.register(number)
    person = FramedPerson(browser, gateway)
    browser.get(f"{gateway.portal}/?{gateway.url}/wiki/")
    person.is_at("/auth/login")
    person.signs_in(number)
    person.reads("The wiki")
    person.reads("POST /wiki/data by a user")
    Service.seen.clear()
    person.runs(
        """const [address, done] = arguments;
        const form = document.createElement("form");
        Object.assign(form, { method: "post", action: address + "/wiki/form", target: "frame" });
        document.body.append(form);
        form.submit();
        done();""",
        gateway.url,
    )
    person.reads("Reference: dc_")
    tried = person.runs(
        """const [address, done] = arguments;
        const ask = (path, options) => fetch(address + path, { credentials: "include", mode: "no-cors", ...options })
          .then(() => "sent", () => "failed");
        const socket = new Promise(end => {
          const opened = new WebSocket(address.replace("https", "wss") + "/wiki/socket");
          opened.onopen = () => end("open");
          opened.onerror = () => end("refused");
        });
        const script = new Promise(end => {
          const element = document.createElement("script");
          Object.assign(element, { src: address + "/wiki/script.js", onload: () => end("ran"), onerror: () => end("refused") });
          document.body.append(element);
        });
        Promise.all([ask("/wiki/data", { method: "POST", body: "x" }), ask("/wiki/secret"),
          ask("/auth/logout", { method: "POST", body: new URLSearchParams({ return_to: "/" }) }), socket, script]).then(done);""",
        gateway.url,
    )
    assert tried[3:] == ["refused", "refused"], tried
    assert Service.seen == [], "nothing of it reached the service"
    # The user is still signed in, in the frame only.
    browser.get(f"{gateway.portal}/?{gateway.url}/wiki/")
    person.reads("The wiki")
    person.reads("POST /wiki/data by a user")
    assert all(user for _, _, user, _ in Service.seen)
    # Attack: another service, which nothing else protects from being framed, gets the user's clicks.
    Service.seen.clear()
    browser.get(f"{gateway.portal}/?{gateway.url}/home")
    refused_to_frame(browser)
    assert Service.seen == []


def refused_to_frame(browser):
    lines = []

    def told():
        lines.extend(entry["message"] for entry in browser.get_log("browser"))
        return any("frame-ancestors" in line for line in lines)

    wait_for(told, "the browser to refuse the frame")


@pytest.mark.parametrize("path", ["/wiki/", "/auth/login?return_to=%2Fwiki%2F", "/auth/login?return_to=/wiki/%23x"])
def test_other_sites_show_nothing(world, browser, path):
    browser.get(f"{world.evil}/?{world.url}{path}")
    refused_to_frame(browser)


@pytest.mark.parametrize(
    "path",
    ["/home", "/auth/login", "/auth/login?return_to=/home", "/auth/login?frames=https://portal.example.org"],
)
def test_sites_of_a_route_show_only_that_route(world, browser, path):
    browser.get(f"{world.portal}/?{world.url}{path}")
    refused_to_frame(browser)


def test_headers_of_the_route_and_its_sign_in(world, number):
    gateway = world
    token = gateway.register(number)["session"]["token"]
    ancestors = f"frame-ancestors 'self' {gateway.portal}"

    def policies(path, **headers):
        answer = requests.get(gateway.url + path, headers=headers, allow_redirects=False, timeout=20)
        return answer, answer.raw.headers.getlist("Content-Security-Policy"), answer.headers.get("X-Frame-Options")

    signed_in = {"Authorization": f"Bearer {token}"}
    answer, policy, options = policies("/wiki/", **signed_in)
    assert answer.status_code == 200 and options is None
    assert policy == ["default-src 'self'; form-action 'self'", ancestors]
    answer, policy, options = policies("/home", **signed_in)
    assert policy == ["default-src 'self'; form-action 'self'; frame-ancestors 'none'"] and options == "DENY"
    # A refusal on the route, and the page of a sign-in.
    answer = requests.post(gateway.url + "/wiki/", headers={"Accept": "text/html"}, timeout=20)
    assert answer.status_code == 401 and "X-Frame-Options" not in answer.headers
    assert answer.headers["Content-Security-Policy"].endswith("; " + ancestors)
    answer, policy, options = policies("/auth/login?return_to=/wiki/")
    assert options is None and policy[0].endswith(f"; frame-ancestors {gateway.portal}")
    answer, policy, options = policies("/auth/login?return_to=/home")
    assert options == "DENY" and policy[0].endswith("; frame-ancestors 'none'")


def test_token_of_a_frame_is_of_no_use_elsewhere(world, browser, number):
    """Attack: a program that has the cookie, and other routes and pages."""
    gateway = world
    gateway.register(number)
    person = FramedPerson(browser, gateway)
    browser.get(f"{gateway.portal}/?{gateway.url}/wiki/")
    person.is_at("/auth/login")
    person.signs_in(number)
    person.reads("The wiki")
    cookie = {"Cookie": f"{FRAMED}={cookies(browser)[FRAMED]['value']}"}
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Origin": gateway.url}
    assert requests.get(f"{gateway.url}/wiki/", headers={**cookie, **own}, timeout=20).status_code == 200
    for path in ("/home", "/api/auth/sessions", "/api/auth/devices"):
        problem(requests.get(gateway.url + path, headers={**cookie, **own}, timeout=20), 401, "unauthenticated")
    change = requests.post(f"{gateway.url}/api/auth/flows", json={"flow": "join_phone"}, headers={**cookie, **own}, timeout=20)
    problem(change, 403, "denied")
    for headers in ({}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}):
        problem(requests.get(f"{gateway.url}/wiki/", headers={**cookie, **headers}, timeout=20), 401, "unauthenticated")
    for headers in ({}, {"Origin": gateway.portal}, {"Origin": "null", "Sec-Fetch-Site": "same-origin"}):
        problem(requests.post(f"{gateway.url}/wiki/", headers={**cookie, **headers}, timeout=20), 403, "origin_refused")
