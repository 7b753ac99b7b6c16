"""One sign-in on several root domains: a real browser over TLS, WebSockets, and the real forward-auth proxies."""

import asyncio
import re
import ssl
import subprocess
import urllib.parse

import pytest
import requests
import websockets.asyncio.client
import websockets.exceptions
from selenium import webdriver
from selenium.webdriver.common.by import By

import screens
from local_gateway import LocalGateway, free_port
from proxies import FrontProxy
from test_forward import Service
from test_story import Person
from test_websocket import EchoService

PIN = "482915"
HOSTS = ("auth.example.com", "app.example.com", "app.example.org", "shop.example.org")


def several_domains(gateway, scheme, port, more=""):
    """The default configuration with sign-in at auth.example.com."""
    gateway.edit("gateway.lua", lambda text: re.sub(r"    google_oauth = \{.*?\n    \},\n", "", text, flags=re.DOTALL))
    gateway.edit("gateway.lua", lambda text: text.replace("outbox()", "outbox { allow_public = true }"))
    gateway.edit(
        "gateway.lua",
        lambda text: re.sub(
            r'public_url = ".*?",',
            f'{more}public_url = "{scheme}://auth.example.com:{port}",\n  domains = {{ "example.com", "example.org" }},',
            text,
            count=1,
        ),
    )
    gateway.home, gateway.app = (f"{scheme}://{host}:{port}" for host in ("auth.example.com", "app.example.org"))


def routes(port, echo=None, paid="/pay/**"):
    route = '{{ host = "{}", path = "{}", to = "http://127.0.0.1:{}"{} }},'
    lines = [route.format("app.example.org", "/ws", echo, ", websocket = true")] if echo else []
    for host in HOSTS:
        lines += [
            route.format(host, paid, port, ', require = { passed = "pin", within = "5m" }'),
            route.format(host, "/**", port, ""),
        ]
    return "return routes {\n  " + "\n  ".join(lines) + "\n}\n"


# MARK: browser over TLS


@pytest.fixture(scope="module")
def brands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("brands")
    gateway = LocalGateway(folder)
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=example",
            "-addext",
            "subjectAltName=" + ",".join(f"DNS:{host}" for host in HOSTS),
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ],
        check=True,
        capture_output=True,
    )
    echo = EchoService()
    several_domains(gateway, "https", gateway.ports[0], f'tls = {{ cert = "{cert}", key = "{key}" }},\n  ')
    gateway.edit("routes.lua", lambda _: routes(gateway.ports[2], echo.port, paid="/home"))
    gateway.access = folder / "access.log"
    gateway.start(MOONGATE_ACCESS_LOG=str(gateway.access), MOONGATE_LOG="trace")
    yield gateway
    gateway.stop()


@pytest.fixture
def browser(tmp_path):
    driver = screens.start(
        tmp_path / "chromium",
        arguments=[
            "--ignore-certificate-errors",
            "--host-resolver-rules=MAP *.example.com 127.0.0.1,MAP *.example.org 127.0.0.1",
        ],
    )
    yield driver
    driver.quit()


class Visitor(Person):
    """A user who visits several domains."""

    def stands(self, address, what):
        self.waits(lambda: self.browser.current_url == address, f"{what} ({address})")

    def cookie(self, name):
        return next((cookie for cookie in self.browser.get_cookies() if cookie["name"] == name), None)


def local(gateway, method, host, path, **options):
    """A request to one of the hosts, whose names exist only in this test."""
    headers = {"Host": f"{host}:{gateway.ports[0]}", **options.pop("headers", {})}
    return requests.request(
        method,
        f"https://127.0.0.1:{gateway.ports[0]}{path}",
        headers=headers,
        verify=False,
        allow_redirects=False,
        timeout=20,
        **options,
    )


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_sign_in_once_use_both_step_up_on_the_second_sign_out_once(brands, browser, number):
    gateway, port = brands, brands.ports[0]
    begun = local(gateway, "POST", HOSTS[0], "/api/auth/flows", json={"flow": "register"}).json()["id"]
    local(gateway, "POST", HOSTS[0], f"/api/auth/flows/{begun}/begin", json={"provider": "phone_otp", "phone": number})
    token = local(gateway, "POST", HOSTS[0], f"/api/auth/flows/{begun}/submit", json={"code": gateway.code(number)}).json()[
        "session"
    ]["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    token = local(gateway, "POST", HOSTS[0], "/api/auth/set-passcode", json={"passcode": PIN}, headers=bearer).json()[
        "token"
    ]
    local(gateway, "DELETE", HOSTS[0], "/api/auth/session", headers={"Authorization": f"Bearer {token}"})

    # An anonymous user opens the second domain, signs in at the first, and returns.
    person = Visitor(browser, gateway)
    browser.get(f"{gateway.app}/echo?a=1")
    person.waits(lambda: browser.current_url.startswith(f"{gateway.home}/auth/login?"), "the sign-in page of public_url")
    seen = {entry["id"] for entry in gateway.outbox()}
    person.fills("phone", number.removeprefix("+91"))
    person.presses("Send OTP")
    code = person.is_sent(seen)
    person.waits(lambda: browser.find_elements(By.NAME, "code"), "the code's page")
    person.enters(code)
    person.stands(f"{gateway.app}/echo?a=1", "back on the second domain")
    second = person.cookie("__Secure-moongate")
    assert (
        second["domain"] == ".example.org" and second["secure"] and second["httpOnly"] and second["sameSite"] == "Lax"
    )
    nonce = person.cookie("__Host-moongate-flow")
    assert nonce["domain"] == "app.example.org" and nonce["secure"] and nonce["httpOnly"]
    assert second["value"] not in person.text and nonce["value"] not in person.text, (
        "no cookie of ours reaches the service"
    )

    # Both domains, and another host of the second, without typing.
    for host in HOSTS[1:]:
        browser.get(f"https://{host}:{port}/echo")
        person.stands(f"https://{host}:{port}/echo", f"signed in on {host}")
    assert person.cookie("__Secure-moongate")["value"] == second["value"]

    # A step-up for a route of the second domain: at public_url, and back with a new cookie.
    browser.get(f"{gateway.app}/home")
    person.waits(lambda: browser.current_url.startswith(f"{gateway.home}/auth/pin?"), "the passcode's page")
    person.waits(lambda: len(browser.find_elements(By.CSS_SELECTOR, "form[data-form=pad]")) == 1, "the pad")
    person.waits(
        lambda: browser.execute_script("return document.querySelector('form[data-form=pad]').dataset.ready"),
        "its script",
    )
    webdriver.ActionChains(browser).send_keys(PIN).perform()
    person.stands(f"{gateway.app}/home", "back after the step-up")
    renewed = person.waits(
        lambda: (cookie := person.cookie("__Secure-moongate")) and cookie["value"] != second["value"] and cookie,
        "a new token after the step-up",
    )
    dead = local(gateway, "GET", HOSTS[2], "/echo", headers={"Cookie": f"__Secure-moongate={second['value']}"})
    assert dead.status_code == 401, "the one before it is dead"
    for host in ("app.example.com", "auth.example.com"):
        stolen = local(gateway, "GET", host, "/echo", headers={"Cookie": f"__Secure-moongate={renewed['value']}"})
        assert stolen.status_code == 401, "a cookie of one domain is not valid at another"

    # Signing out on the second domain signs out on both and closes its WebSocket.
    async def socket():
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Cookie": f"__Secure-moongate={renewed['value']}", "Origin": gateway.app}
        address = f"wss://app.example.org:{port}/ws"
        async with websockets.asyncio.client.connect(
            address, host="127.0.0.1", port=port, ssl=context, additional_headers=headers
        ) as socket:
            await socket.send("x")
            assert await socket.recv() == "x"
            await asyncio.to_thread(sign_out)
            with pytest.raises(websockets.exceptions.ConnectionClosed):
                async with asyncio.timeout(5):
                    await socket.recv()

    def sign_out():
        browser.get(f"{gateway.app}/auth/logout")
        person.presses("Sign out", "Sign Out")
        person.waits(lambda: browser.current_url.startswith(f"{gateway.home}/auth/login"), "the sign-in page")

    asyncio.run(socket())
    for origin in (gateway.app, f"https://app.example.com:{port}"):
        browser.get(f"{origin}/echo")
        person.waits(lambda: browser.current_url.startswith(f"{gateway.home}/auth/login?"), f"signed out on {origin}")

    # Attack: a code or token in the log at the lowest level.
    assert "/auth/handoff" in gateway.access.read_text(), "the handoffs are in the access log"
    for text in (gateway.log, gateway.access.read_text()):
        assert "handoff?" not in text and "challenge=" not in text
        assert not any(secret in text for secret in (second["value"], renewed["value"], nonce["value"]))


# MARK: forward-auth


class Fronts:
    """The five proxies before one gateway: each on a port of its own, by the configurations of their pages."""

    def __init__(self, folder):
        self.service, self.folder = Service(), folder

    def behind(self, name):
        """A gateway whose public_url is this proxy, and the proxy."""
        gateway, port = LocalGateway(self.folder / f"gateway-{name}"), free_port()
        several_domains(gateway, "http", port, 'trusted_proxies = { "127.0.0.1/32" },\n  ')
        # Passkeys require https.
        gateway.edit("gateway.lua", lambda text: re.sub(r"    passkey = .*\n", "", text))
        gateway.edit("routes.lua", lambda _: routes(1))
        gateway.demo = self.service
        gateway.start()
        # After the gateway, because HAProxy takes a server out whose first check fails.
        return gateway, FrontProxy(name, self.folder / name, port, gateway.ports[0], self.service.port).wait()


@pytest.fixture(scope="module")
def fronts(tmp_path_factory):
    fronts = Fronts(tmp_path_factory.mktemp("fronts"))
    yield fronts
    fronts.service.end()


class Jar:
    """A cookie jar by domain, for hosts whose names exist only in this test."""

    def __init__(self, proxy):
        self.proxy, self.cookies = proxy, {}

    def get(self, address, accept="text/html"):
        url = urllib.parse.urlsplit(address)
        sent = [
            f"{name}={value}"
            for (name, scope), value in self.cookies.items()
            if scope == url.hostname or scope.startswith(".") and f".{url.hostname}".endswith(scope)
        ]
        headers = [f"Accept: {accept}"] + (["Cookie: " + "; ".join(sent)] if sent else [])
        target = url.path + (f"?{url.query}" if url.query else "")
        status, fields, body = self.proxy.raw("GET", target, headers, host=url.netloc)
        for line in fields.get("set-cookie", "").splitlines():
            self.keep(line, url.hostname)
        return status, fields, body

    def keep(self, line, host):
        parts = line.split("; ")
        name, _, value = parts[0].partition("=")
        domain = next((part[len("Domain=") :] for part in parts if part.startswith("Domain=")), None)
        place = name, f".{domain}" if domain else host
        if "Max-Age=0" in parts:
            self.cookies.pop(place, None)
        else:
            self.cookies[place] = value

    def follow(self, address):
        led = []
        while len(led) < 10:
            status, fields, body = self.get(address)
            if status not in (302, 303):
                return led, status, body
            address = urllib.parse.urljoin(address, fields["location"])
            led.append(address)
        raise AssertionError(f"round and round: {led}")


@pytest.mark.parametrize("name", FrontProxy.NAMES)
def test_forward_auth_on_two_domains(fronts, name, number):
    gateway, proxy = fronts.behind(name)
    try:
        token = gateway.register(number)["session"]["token"]
        jar = Jar(proxy)
        jar.cookies["moongate", ".example.com"] = token
        led, status, body = jar.follow(f"{gateway.app}/in/x?a=1")
        assert status == 200, (led, body)
        assert [address.split("?")[0] for address in led] == [
            f"{gateway.app}/auth/handoff",
            f"{gateway.home}/auth/handoff",
            f"{gateway.app}/auth/handoff",
            f"{gateway.app}/in/x",
        ]
        assert b"GET /in/x?a=1" in body and not any("/auth/handoff" in line for line in fronts.service.seen), (
            "no code reaches the service"
        )
        second = jar.cookies["moongate", ".example.org"]
        # Attack: the token of one domain at the other, with forward-auth.
        assert proxy.raw("GET", "/in/x", [f"Cookie: moongate={second}"], host="app.example.com")[0] == 401
        assert proxy.raw("GET", "/in/x", [f"Cookie: moongate={token}"], host="app.example.org")[0] == 401
        # Attack: the code is used again.
        assert jar.get(led[2])[0] == 403
        # A step-up leads to public_url.
        status, fields, _ = jar.get(f"{gateway.app}/pay/x")
        assert status in (302, 303) and fields["location"].startswith(
            f"{gateway.home}/auth/pin?flow=step_up&return_to="
        ), fields
        assert (
            gateway.api(
                "DELETE",
                "/session",
                headers={"Authorization": f"Bearer {token}", "Host": f"auth.example.com:{proxy.port}"},
            ).status_code
            == 204
        )
        assert jar.get(f"{gateway.app}/in/x", accept="*/*")[0] == 401
    finally:
        proxy.end()
        gateway.server.end()
