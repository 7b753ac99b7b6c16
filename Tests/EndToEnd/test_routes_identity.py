"""Routes that say how their service learns who the user is: headers, encodings, HTTP Basic and access tokens (docs:
Documentation/guides/real-services.md)."""

import base64
import email.header
import json
import threading
import time
import wsgiref.simple_server
from urllib.parse import unquote

import jwt
import pytest
import requests

from local_gateway import wait_for
from mockgoogle import choose
from openid_provider import Browser, RelyingParty, provider
from test_accounts import tool
from test_forward import Service

NAME, ADDRESS = "Zoë Ünal", "zoe@gmail.com"
PASSWORD = "a long and random password of the gateway"
AUDIENCE = "https://reports.example.com"
REPORTS = f"""name = "Reports", secret = file "secrets/NAME", redirect_uris = {{ "http://localhost/NAME/cb" }},
    access_token = "jwt", audience = {{ "{AUDIENCE}" }},"""
APPS = {
    "reports": REPORTS,
    "short": REPORTS + ' lifetimes = { access_token = "4s" }, signing = "ES256",',
    "staffed": REPORTS + ' require = { group = "staff" },',
    "other": 'secret = file "secrets/NAME", redirect_uris = { "http://localhost/NAME/cb" },',
}
ROUTES = """return routes {
  { path = "/named/**", to = "SERVICE", encoding = "rfc2047",
    identity = { user = { "X-WEBAUTH-USER", value = "{email}" }, name = "X-Full-Name", groups = "X-Groups" } },
  { path = "/percent/**", to = "SERVICE", encoding = "percent",
    identity = { name = { "X-First-Name", value = "{first_name}" }, user = { "X-Login", value = "{username}@corp" } } },
  { path = "/maybe/**", to = "SERVICE", allow = true, identity = { user = "X-User-Id" } },
  { path = "/basic/**", to = "SERVICE", allow = true,
    identity = { basic = { user = "{email}", password = file "secrets/files" } } },
  { path = "/reports/**", to = "SERVICE", bearer = "reports" },
  { path = "/mixed/**", to = "SERVICE", bearer = "reports", allow = true },
  { path = "/short/**", to = "SERVICE", bearer = "short" },
  { path = "/staffed/**", to = "SERVICE", bearer = "staffed" },
  { path = "/wsgi/**", to = "WSGI", allow = true },
  { path = "/open/**", to = "SERVICE", allow = true },
  { path = "/programs/**", to = "SERVICE", bearer = "reports", tokens = true },
  { path = "/**", to = "SERVICE" },
}
"""
# One for each header that a route names, in spellings that services read as the same name.
FORGED = ["X-WEBAUTH-USER", "X_Webauth_User", "X-Full-Name", "x.full.name", "X_GROUPS", "X-First-Name", "x_login"]
FORGED += ["X-User-Id", "X_User_Id", "x~user~id", "X-USER.ID", "Remote-User", "REMOTE_USER", "Remote.Groups"]


class CGI:
    """A service that reads headers as CGI does, with wsgiref: `X_User_Id` and `X-User-Id` are the same."""

    def __init__(self):
        def application(environ, start_response):
            body = json.dumps({name: text for name, text in environ.items() if name.startswith("HTTP_")}).encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]

        class Quiet(wsgiref.simple_server.WSGIRequestHandler):
            def log_message(self, *_):
                pass

        self.server = wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    service, cgi = Service(), CGI()
    gateway = provider(tmp_path_factory.mktemp("identity"), **APPS)
    gateway.cgi = cgi
    (gateway.config / "secrets/files").write_text(PASSWORD)
    (gateway.config / "secrets/files").chmod(0o600)
    routes = ROUTES.replace("SERVICE", f"http://127.0.0.1:{service.port}")
    gateway.edit("routes.lua", lambda _: routes.replace("WSGI", f"http://127.0.0.1:{cgi.port}"))
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "  region =",
            '  trusted_proxies = { "127.0.0.1/32" }, forward_auth_credentials = true,\n  region =',
            1,
        ),
    )
    try:
        yield gateway.start()
    finally:
        gateway.stop()
        service.end()
        cgi.end()


@pytest.fixture(scope="module")
def zoe(gateway):
    """A browser whose user has a name that is not ASCII."""
    browser = Browser(gateway)
    browser.get(choose(browser.continues(), account="other", name=NAME, email=ADDRESS, verified="1"))
    assert browser.account()["email"] == ADDRESS
    return browser


def ask(gateway, path, browser=None, **headers):
    """The fields that the service has received, in lower case, with all their values."""
    answer = requests.get(gateway.url + path, headers=cookie(browser) | headers, timeout=20, allow_redirects=False)
    assert answer.status_code == 200, answer.text
    found = {}
    for field in answer.json()["fields"]:
        name, _, value = field.partition(": ")
        found.setdefault(name.lower(), []).append(value)
    return found


def cookie(browser):
    return {"Cookie": f"moongate={browser.token}"} if browser else {}


def token(fields):
    """The access token that the service has received; None: none."""
    values = fields.get("authorization", [])
    assert len(values) <= 1 and all(value.startswith("Bearer ") for value in values), values
    return values[0].removeprefix("Bearer ") if values else None


# Headers.


def test_named_headers_replace_the_usual_ones(gateway, zoe):
    found = ask(gateway, "/named/x", zoe)
    assert found["x-webauth-user"] == [ADDRESS] and found["remote-email"] == [ADDRESS]
    assert not {"remote-user", "remote-name", "remote-groups"} & set(found)
    # A program that reads mail reads the name.
    decoded = email.header.make_header(email.header.decode_header(found["x-full-name"][0]))
    assert str(decoded) == NAME and found["x-full-name"][0].isascii()
    assert ask(gateway, "/x", zoe)["remote-name"] == [NAME.encode().decode("latin-1")]


def test_percent_encoding_is_that_of_addresses(gateway, zoe):
    found = ask(gateway, "/percent/x", zoe)
    assert found["x-first-name"] == ["Zo%C3%AB"] and unquote(found["x-first-name"][0]) == NAME.split()[0]
    # The account has no user name, so no header says `@corp`.
    assert "x-login" not in found and "remote-user" not in found


@pytest.mark.parametrize("path", ["/named/x", "/percent/x", "/maybe/x", "/basic/x", "/reports/x", "/open/x", "/x"])
def test_no_client_can_forge_a_header_of_any_route(gateway, zoe, path):
    """Attack: a header that one route trusts, sent to another route, in a spelling that a service reads as the same."""
    forged = {name: "mallory" for name in FORGED}
    browsers = [zoe] if path in ("/named/x", "/percent/x", "/reports/x", "/x") else [zoe, None]
    for browser in browsers:
        assert "mallory" not in json.dumps(ask(gateway, path, browser, **forged))


def test_service_that_folds_names_sees_no_forged_one(gateway):
    answer = requests.get(f"{gateway.url}/wsgi/x", headers={name: "mallory" for name in FORGED}, timeout=20)
    assert answer.status_code == 200 and "mallory" not in answer.text, answer.text
    # Without the gateway in between, the service sees it.
    direct = requests.get(f"http://127.0.0.1:{gateway.cgi.port}/", headers={"X_User_Id": "mallory"}, timeout=20)
    assert direct.json()["HTTP_X_USER_ID"] == "mallory"


# HTTP Basic.


def test_basic_is_the_gateways(gateway, zoe):
    """Attack: a client guesses the one password of the service, without a session or beside one."""
    stated = "Basic " + base64.b64encode(f"{ADDRESS}:{PASSWORD}".encode()).decode()
    guess = {"Authorization": "Basic " + base64.b64encode(b"root:guess").decode()}
    assert ask(gateway, "/basic/x", zoe)["authorization"] == [stated]
    assert ask(gateway, "/basic/x", zoe, **guess)["authorization"] == [stated]
    assert "authorization" not in ask(gateway, "/basic/x", **guess)
    # Services of other routes have users of their own.
    assert ask(gateway, "/open/x", zoe, **guess)["authorization"] == [guess["Authorization"]]


def test_password_is_told_nobody(gateway, zoe):
    ask(gateway, "/basic/x", zoe)
    assert PASSWORD not in gateway.log
    for words in (["check"], ["policy", "show", "routes"], ["check", "--json"]):
        _, text, complaint = tool(gateway, *words)
        assert PASSWORD not in text + complaint, words


def test_user_without_the_value_gets_no_basic(gateway, number):
    browser = Browser(gateway).signs_in(number)
    found = ask(gateway, "/basic/x", browser)
    assert found["remote-phone"] == [number] and "authorization" not in found


# Access tokens.


def test_api_verifies_the_token(gateway, zoe):
    access = token(ask(gateway, "/reports/x", zoe))
    assert jwt.get_unverified_header(access)["typ"] == "at+jwt"
    party = RelyingParty(gateway, "reports")
    key = party.keys()[jwt.get_unverified_header(access)["kid"]].key
    claims = jwt.decode(access, key, ["RS256"], audience=AUDIENCE, issuer=gateway.url)
    assert claims["sub"] == zoe.account()["id"] and claims["client_id"] == "reports"
    assert claims["exp"] - claims["iat"] == 600 and "offline_access" not in claims["scope"].split()
    assert zoe.token not in access and "session" not in claims
    told = party.introspects(access)
    assert told["active"] is True and told["sub"] == claims["sub"] and told["exp"] == claims["exp"]
    assert party.userinfo(access).json()["email"] == ADDRESS
    # Attack: another app asks about it.
    assert RelyingParty(gateway, "other").introspects(access) == {"active": False}


def test_token_is_no_session(gateway, zoe):
    """Attack: the service uses the token at the gateway in the name of the user."""
    access = token(ask(gateway, "/reports/x", zoe))
    bearer = {"Authorization": f"Bearer {access}"}
    assert gateway.api("GET", "/session", headers=bearer).status_code == 401
    assert requests.get(f"{gateway.url}/x", headers=bearer, timeout=20).status_code == 401


def test_token_is_kept_and_renewed(gateway, zoe):
    # Each event loop has its own token, and one connection is on one event loop.
    with requests.Session() as session:
        seen, end = [], time.monotonic() + 7
        while time.monotonic() < end:
            answer = session.get(f"{gateway.url}/short/x", headers=cookie(zoe), timeout=20)
            value = next(field for field in answer.json()["fields"] if field.startswith("Authorization: Bearer "))
            access = value.removeprefix("Authorization: Bearer ")
            claims = jwt.decode(access, options={"verify_signature": False})
            assert claims["exp"] > time.time() - 0.5, "a token that has expired"
            if access not in seen:
                seen.append(access)
            time.sleep(0.05)
    assert 2 <= len(seen) <= 4, "one for about three seconds each"


def test_token_ends_with_the_session(gateway, number):
    """Attack: the service, or who has read its log, uses the token after a sign-out."""
    browser = Browser(gateway).signs_in(number)
    access = token(ask(gateway, "/reports/x", browser))
    party = RelyingParty(gateway, "reports")
    assert party.introspects(access)["active"] is True
    # A service cannot end it: the gateway would make a new one.
    assert party.posts("revoke", token=access).status_code == 200
    assert party.introspects(access)["active"] is True
    out = gateway.api("POST", "/logout", {}, headers={"Authorization": f"Bearer {browser.token}"})
    assert out.status_code == 204, out.text
    assert party.introspects(access) == {"active": False}
    assert party.userinfo(access).status_code == 401
    again = requests.get(f"{gateway.url}/reports/x", headers=cookie(browser), timeout=20, allow_redirects=False)
    assert again.status_code == 401
    assert token(ask(gateway, "/mixed/x", browser)) is None


def test_client_cannot_send_a_token_of_its_own(gateway, zoe, number):
    """Attack: a user sends the token of another one along, or one of an attacker's issuer."""
    other = token(ask(gateway, "/reports/x", Browser(gateway).signs_in(number)))
    stolen = {"Authorization": f"Bearer {other}"}
    both = requests.get(f"{gateway.url}/mixed/x", headers=cookie(zoe) | stolen, timeout=20)
    assert both.status_code == 400, both.text
    # Without a session, the service judges what the client sends.
    assert token(ask(gateway, "/mixed/x", **stolen)) == other
    assert "authorization" not in ask(gateway, "/mixed/x")


def test_user_whom_the_app_refuses_gets_no_token(gateway, number):
    browser = Browser(gateway).signs_in(number)
    found = ask(gateway, "/staffed/x", browser, Authorization="Negotiate x")
    assert found["remote-user"] == [browser.account_id] and "authorization" not in found
    lines = lambda: [line for line in gateway.log.splitlines() if "gets no access token" in line and "staffed" in line]
    line = wait_for(lambda: next(iter(lines()), None), "the log line")
    assert "not_in_group" in line and "routes.lua:" in line, line
    assert tool(gateway, "group", "add", "staff", browser.account_id)[0] == 0
    access = wait_for(lambda: token(ask(gateway, "/staffed/x", browser)), "the token", 5)
    assert jwt.decode(access, options={"verify_signature": False})["groups"] == ["staff"]
    # Attack: the token from before is sent on after the user has left.
    assert tool(gateway, "group", "remove", "staff", browser.account_id)[0] == 0
    wait_for(lambda: token(ask(gateway, "/staffed/x", browser)) is None, "the end of the token", 5)
    assert RelyingParty(gateway, "staffed").introspects(access) == {"active": False}


def test_program_gets_no_token(gateway):
    status, text, complaint = tool(gateway, "token", "create", "ci")
    assert status == 0, complaint
    found = ask(gateway, "/programs/x", Authorization=f"Bearer {text.strip()}")
    assert found["remote-user"] == ["token:ci"] and "authorization" not in found


# Forward-auth.


def question(gateway, path, browser=None, **headers):
    asked = {"X-Original-URL": gateway.url + path, "X-Original-Method": "GET"}
    fields = asked | cookie(browser) | headers
    answer = requests.get(f"{gateway.url}/auth/forward/nginx", headers=fields, timeout=20, allow_redirects=False)
    assert answer.status_code == 200, answer.text
    return answer.headers


def test_forward_answers_have_the_headers_of_all_routes(gateway, zoe):
    names = ["X-First-Name", "X-Full-Name", "X-Groups", "X-Login", "X-User-Id", "X-WEBAUTH-USER"]
    named = question(gateway, "/named/x", zoe)
    assert named["X-WEBAUTH-USER"] == ADDRESS and named["Remote-User"] == "" and named["X-User-Id"] == ""
    usual = question(gateway, "/x", zoe, **{name: "mallory" for name in names})
    assert [usual[name] for name in names] == [""] * len(names) and usual["Remote-Email"] == ADDRESS
    anonymous = question(gateway, "/open/x", **{name: "mallory" for name in names})
    assert [anonymous[name] for name in names] == [""] * len(names)


def test_forward_answers_state_authorization(gateway, zoe):
    stated = "Basic " + base64.b64encode(f"{ADDRESS}:{PASSWORD}".encode()).decode()
    basic = question(gateway, "/basic/x", zoe)
    assert basic["Authorization"] == stated and basic["X-Moongate-Authorization"] == "remove"
    nobody = question(gateway, "/basic/x", Authorization="Basic cm9vdDpndWVzcw==")
    assert "Authorization" not in nobody and nobody["X-Moongate-Authorization"] == "remove"
    access = question(gateway, "/reports/x", zoe)["Authorization"].removeprefix("Bearer ")
    assert RelyingParty(gateway, "reports").introspects(access)["active"] is True
    assert "Authorization" not in question(gateway, "/x", zoe)


# The configuration. These tests change it, so they are the last.


def test_forward_answers_state_no_credential_unasked(gateway, zoe):
    """Attack: a proxy that passes everything on passes on a user's question, whose answer has the shared password."""
    old = gateway.policy()["active"]
    before = gateway.edit("gateway.lua", lambda text: text.replace("_credentials = true", "_credentials = false"))
    old = gateway.wait_generation(old)["active"]
    for path in ["/basic/x", "/reports/x"]:
        answer = requests.get(
            f"{gateway.url}/auth/forward/envoy{path}", headers=cookie(zoe) | {"X-Forwarded-Proto": "http"}, timeout=20
        )
        assert answer.status_code == 403 and "Authorization" not in answer.headers, answer.headers
    gateway.edit("gateway.lua", lambda _: before)
    gateway.wait_generation(old)


def test_reload_judges_anew(gateway, zoe):
    """Attack: an operator takes the app away from a user, and the token from before is sent on."""
    assert token(ask(gateway, "/reports/x", zoe))
    old = gateway.policy()["active"]
    demand = 'reports = app { require = { group = "ops" },'
    gateway.edit("apps.lua", lambda text: text.replace("reports = app {", demand))
    gateway.wait_generation(old)
    wait_for(lambda: token(ask(gateway, "/reports/x", zoe)) is None, "the end of the token", 5)
