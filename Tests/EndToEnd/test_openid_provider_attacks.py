"""Attacks on the OpenID endpoints, and requests that they must refuse: the security considerations of RFC 6749, 6819,
9700, 8252, 8628 and 9126 (docs: Documentation/security/oauth.md)."""

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import re
import secrets
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from local_gateway import BIN, wait_for
from mockgoogle import field, pkce
from openid_provider import (
    DESKTOP,
    OTHER,
    TELEVISION,
    WEB,
    Browser,
    Forms,
    RelyingParty,
    error_at_app,
    oauth_error,
    provider,
    stays_here,
)
from test_accounts import tool

LOOPBACK = "http://127.0.0.1:9/in"
APPS = {
    "web": WEB,
    "other": OTHER,
    "desktop": DESKTOP,
    "television": TELEVISION,
    "asking": OTHER + ' consent = "always",',
    "staffed": OTHER + ' require = { group = "staff" }, lifetimes = { access_token = "2s" },',
    "locked": OTHER,
    "lax": OTHER + ' pkce = "optional",',
    "robot": 'secret = file "secrets/NAME", grants = { "client_credentials" }, scopes = { "read" },',
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = provider(tmp_path_factory.mktemp("gateway"), **APPS)
    # All wrong codes and tokens of this module come from one address.
    gateway.edit("policies/token.lua", lambda text: text.replace("max = 60", "max = 200"))
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def app(gateway):
    return RelyingParty(gateway)


@pytest.fixture
def other(gateway):
    return RelyingParty(gateway, "other")


@pytest.fixture
def desktop(gateway):
    return RelyingParty(gateway, "desktop", LOOPBACK)


@pytest.fixture
def user(gateway, number):
    return Browser(gateway).signs_in(number)


def code_for(app, user, **changes):
    asked = app.asks(**changes)
    return app.arrived(asked, user.follows(asked.address)), asked


# The authorization endpoint.


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:9/web/CB",
        "http://localhost:9/web/cb/",
        "http://localhost:9/web/../web/cb",
        "http://localhost:9/web/%63b",
        "http://localhost:9/web/cb?next=http://evil.example",
        "http://localhost:9/web/cb#x",
        "http://LOCALHOST:9/web/cb",
        "http://localhost.:9/web/cb",
        "http://evil@localhost:9/web/cb",
        "http://localhost:9@evil.example/web/cb",
        "http://localhost.evil.example:9/web/cb",
        "https://localhost:9/web/cb",
        "http://127.0.0.1:9/web/cb",
        "http://localhost:99999/web/cb",
        "http://localhost:9\\@evil.example/web/cb",
        "//localhost:9/web/cb",
        "http://localhost:9/web/cb\r\nSet-Cookie: moongate=x",
        "javascript:alert(1)",
        "OWN/web/cb",
        "",
    ],
)
def test_code_goes_to_no_other_address(app, user, address):
    """Attack: a redirect URI that resembles the registered one, at which the attacker reads the code."""
    page = stays_here(app.gateway, user.follows(app.asks(redirect_uri=address.replace("OWN", app.gateway.url)).address))
    assert page.status_code == 400, page.text
    # The links to other languages repeat the request, here.
    away = [to for to in re.findall(r'(?:href|action|src|content)="([^"]*)"', page.text) if "evil" in to]
    assert all(to.startswith("/auth/openid/authorize?") for to in away), away


def test_missing_redirect_uri_or_unknown_client_is_told_on_a_page(app, user):
    """Attack: an error that is sent to an address which nobody has verified (open redirector, RFC 9700 4.11)."""
    for changes in ({"redirect_uri": None}, {"client_id": "unknown"}, {"client_id": None}):
        page = stays_here(app.gateway, user.follows(app.asks(**changes).address))
        assert page.status_code == 400 and "Example Web" not in page.text, page.text
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"], page.headers


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"response_type": "id_token"}, "unsupported_response_type"),
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"max_age": "-1"}, "invalid_request"),
        ({"nonce": "n" * 600}, "invalid_request"),
        ({"request": "x"}, "request_not_supported"),
        ({"request_uri": "https://evil.example/r"}, "request_uri_not_supported"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"claims": "{"}, "invalid_request"),
    ],
)
def test_invalid_requests_get_the_error_of_their_rfc(app, user, changes, error):
    """Attack, among others: PKCE left out or weakened (RFC 9700 2.1.1), and tokens in the front channel (2.1.2)."""
    asked = app.asks(**changes)
    assert error_at_app(app, asked, user.follows(asked.address)) == error


def test_a_parameter_twice_is_refused(app, user):
    """Attack: two values, of which each side reads another one (RFC 6749 3.1)."""
    asked = app.asks()
    page = stays_here(app.gateway, user.follows(asked.address + "&redirect_uri=http%3A%2F%2Fevil.example%2F"))
    assert page.status_code == 400
    assert stays_here(app.gateway, user.follows(asked.address + "&scope=openid")).status_code == 400
    assert (
        oauth_error(
            requests.post(
                app.endpoint("token"),
                data=[("grant_type", "refresh_token"), ("grant_type", "authorization_code"), ("refresh_token", "x")],
                headers=app.basic(),
                timeout=20,
            )
        )
        == "invalid_request"
    )


def test_state_adds_no_header_and_no_parameter(app, user):
    """Attack: header injection, or a second `code`, by `state`."""
    for state in ("x&code=evil", "x#code=evil", "<script>"):
        asked = app.asks(state=state)
        assert app.arrived(asked, user.follows(asked.address))
    # Not in the alphabet of RFC 6749 appendix A.5.
    refused = user.follows(app.asks(state="x\r\nSet-Cookie: moongate=evil").address)
    assert not isinstance(refused, str) and refused.status_code == 400


def test_a_huge_state_is_refused(app, user):
    asked = app.asks(state="s" * 100_000)
    answer = user.follows(asked.address)
    assert not isinstance(answer, str) or len(answer) < 10_000, "sent back"
    assert isinstance(answer, str) or answer.status_code in (400, 414, 431), answer.status_code
    longest = app.asks(state="s" * 2048)
    assert app.arrived(longest, user.follows(longest.address))
    too_long = user.follows(app.asks(state="s" * 2049).address)
    assert isinstance(too_long, str) and field("error", too_long) == "invalid_request", too_long


def test_thousands_of_begun_authorizations_leave_nothing(app, gateway):
    """Attack: fill the store by beginning authorizations without ever signing in."""
    file = gateway.config / "data" / "moongate.db"

    def rows():
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=20) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return sum(database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables)

    before = rows()

    def begins(_):
        cookies = {"moongate-flow": secrets.token_urlsafe(32)}
        address = app.asks(state="s" * 2000).address
        return requests.get(address, cookies=cookies, allow_redirects=False, timeout=20).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(begins, range(1000)))
    assert set(answers) <= {302, 303, 429}, set(answers)
    assert rows() - before < 50


def test_planted_continuation_is_refused(app, gateway, user):
    """Attack: login CSRF. The attacker begins an authorization, and sends the link of its continuation."""
    attacker = Browser(gateway)
    page = stays_here(gateway, attacker.follows(app.asks().address))
    link = dict(parse_qsl(urlsplit(page.url).query))["return_to"]
    assert "/auth/openid/continue" in link, page.url
    stopped = stays_here(gateway, user.follows(link))
    assert stopped.status_code in (400, 403, 404), stopped.text


def test_answers_name_the_issuer(app, user):
    """Attack: mix-up of issuers (RFC 9207): the app sends the code to another one."""
    asked = app.asks()
    assert field("iss", user.follows(asked.address)) == app.gateway.url
    refused = app.asks(response_type="token")
    assert field("iss", user.follows(refused.address)) == app.gateway.url


def test_pages_cannot_be_framed_and_send_no_referrer(app, gateway):
    """Attack: clickjacking, and addresses with requests that leak by `Referer` (RFC 6819 4.4.1.9, 9700 4.2)."""
    page = stays_here(gateway, Browser(gateway).follows(app.asks().address))
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"], page.headers
    assert page.headers["Referrer-Policy"] in ("no-referrer", "same-origin"), page.headers


def test_form_post_sends_a_form_to_the_app_only(app, user):
    asked = app.asks(response_mode="form_post")
    page = user.follows(asked.address)
    assert page.status_code == 200, page
    form = Forms(page.text).forms[0]
    assert form.action == app.redirect and form.fields["state"] == asked.state
    assert form.fields["iss"] == app.gateway.url
    policy = page.headers["Content-Security-Policy"]
    assert re.search(r"form-action [^;]*http://localhost:9", policy) and "no-store" in page.headers["Cache-Control"]
    assert app.redeems(form.fields["code"], asked.verifier).status_code == 200


# Consent.


def test_consent_names_the_app_and_cannot_be_forged(gateway, user):
    """Attack: another site sends the form of the consent page (RFC 6819 4.4.1.10)."""
    app = RelyingParty(gateway, "asking")
    asked = app.asks()
    page = stays_here(gateway, user.follows(asked.address))
    assert page.status_code == 200 and "Other Web" in page.text and "http://localhost:9" in page.text, page.text
    form = next(one for one in Forms(page.text).forms if one.buttons)
    name, value, _ = form.buttons[0]
    target = requests.compat.urljoin(page.url, form.action or page.url)
    forged = user.session.post(
        target,
        data=form.fields | ({name: value} if name else {}),
        headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        allow_redirects=False,
        timeout=20,
    )
    assert forged.status_code in (400, 403), forged.status_code
    assert app.arrived(asked, user.presses(page, "allow"))
    # "always" asks again, and prompt=none shows nothing.
    assert stays_here(gateway, user.follows(app.asks().address)).status_code == 200
    silent = app.asks(prompt="none")
    assert error_at_app(app, silent, user.follows(silent.address)) == "consent_required"
    refused = app.asks()
    page = stays_here(gateway, user.follows(refused.address))
    assert error_at_app(app, refused, user.presses(page, "cancel")) == "access_denied"


def test_forms_are_answered_by_303(gateway, user):
    """Attack: a redirect that repeats the form, and what the user typed into it, at the app (RFC 9700 4.12)."""
    app = RelyingParty(gateway, "asking")
    page = stays_here(gateway, user.follows(app.asks().address))
    form = next(one for one in Forms(page.text).forms if one.buttons)
    action = urlsplit(form.action or page.url)
    answer = user.post(f"{action.path}?{action.query}", **form.fields, action="allow")
    assert answer.status_code in (200, 303), answer.status_code


def test_removed_app_gets_nothing(tmp_path, number):
    """Attack: requests, codes and tokens of an app that the operator has removed from apps.lua meanwhile."""
    gateway = provider(tmp_path, web=WEB, other=OTHER)
    try:
        user = Browser(gateway.start()).signs_in(number)
        other = RelyingParty(gateway, "other")
        tokens = other.signs_in(user)
        code, asked = code_for(other, user)
        _, pushed_request = pushed(other)
        gateway.edit("apps.lua", lambda text: text[: text.index("  other = app")] + "}\n")
        assert requests.post(f"{gateway.admin}/policy/reload", timeout=30).status_code == 200
        stays_here(gateway, user.follows(par_address(other, pushed_request.json()["request_uri"])))
        stays_here(gateway, user.follows(other.asks().address))
        assert oauth_error(other.redeems(code, asked.verifier), 401) == "invalid_client"
        assert other.userinfo(tokens.access_token).status_code == 401
        assert RelyingParty(gateway).signs_in(user).claims
    finally:
        gateway.stop()


# Codes.


def test_code_is_bound_to_client_redirect_uri_and_verifier(app, other, desktop, user):
    """Attack: code injection and theft. Whoever has a code, but not everything that it is bound to, gets nothing."""
    code, asked = code_for(app, user)
    assert oauth_error(other.redeems(code, asked.verifier, redirect_uri=app.redirect)) == "invalid_grant"
    assert oauth_error(desktop.redeems(code, asked.verifier, redirect_uri=app.redirect)) == "invalid_grant"
    for changes in (
        {"redirect_uri": "http://localhost:8/web/cb"},
        {"redirect_uri": None},
        {"code_verifier": pkce()[0]},
        {"code_verifier": None},
        {"code": code[:-1] + ("A" if code[-1] != "A" else "B")},
        {"code": "x" * 43},
        {"code": "x" * 50_000},
    ):
        fields = {"redirect_uri": app.redirect, "code_verifier": asked.verifier, "code": code, **changes}
        answer = app.posts("token", grant_type="authorization_code", **fields)
        assert answer.status_code == 400 and answer.json()["error"] in ("invalid_grant", "invalid_request"), answer.text


def test_verifier_for_a_code_without_a_challenge_is_refused(gateway, user):
    """Attack: PKCE downgrade (RFC 9700 4.8.2): the attacker removes the challenge from the victim's request."""
    app = RelyingParty(gateway, "lax")
    code, _ = code_for(app, user, code_challenge=None, code_challenge_method=None)
    assert oauth_error(app.redeems(code, pkce()[0])) == "invalid_grant"
    code, asked = code_for(app, user)
    assert oauth_error(app.redeems(code, None)) in ("invalid_grant", "invalid_request")
    plain, _ = code_for(app, user, code_challenge=None, code_challenge_method=None)
    assert app.redeems(plain, None).status_code == 200


def test_only_one_of_many_redeems_a_code(app, user):
    """Attack: a race between the app and whoever has stolen its code."""
    code, asked = code_for(app, user)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: app.redeems(code, asked.verifier), range(8)))
    assert sorted(answer.status_code for answer in answers)[1:] == [400] * 7, [one.status_code for one in answers]
    for answer in answers:
        if answer.status_code == 200:
            assert app.userinfo(answer.json()["access_token"]).status_code == 401


def test_code_of_an_ended_session_is_worthless(app, user):
    """Attack: a code that was stolen before its user signed out."""
    code, asked = code_for(app, user)
    token = user.token
    assert app.gateway.api("DELETE", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 204
    assert oauth_error(app.redeems(code, asked.verifier)) == "invalid_grant"


# Refresh tokens.


def test_refresh_tokens_rotate_and_theft_ends_the_family(app, other, user, gateway):
    """Attack: refresh token theft (RFC 9700 4.14.2)."""
    first = app.signs_in(user)
    second = app.refreshes(first.refresh_token).json()
    # A lost answer: the same client repeats within ten seconds, and gets the same result.
    again = app.refreshes(first.refresh_token)
    assert again.status_code == 200 and again.json()["refresh_token"] == second["refresh_token"], again.text
    assert oauth_error(other.refreshes(second["refresh_token"])) == "invalid_grant"
    third = app.refreshes(second["refresh_token"]).json()
    # The oldest one is neither the current one nor the one before.
    assert oauth_error(app.refreshes(first.refresh_token)) == "invalid_grant"
    assert oauth_error(app.refreshes(third["refresh_token"])) == "invalid_grant"
    assert app.userinfo(third["access_token"]).status_code == 401


@pytest.mark.alone
def test_previous_refresh_token_ends_the_family_after_ten_seconds(app, user):
    """Attack: the thief uses the stolen token after its owner has used it."""
    first = app.signs_in(user)
    second = app.refreshes(first.refresh_token).json()
    rotated = time.monotonic()
    wait_for(lambda: time.monotonic() - rotated > 11, "eleven seconds", 20)
    assert oauth_error(app.refreshes(first.refresh_token)) == "invalid_grant"
    assert oauth_error(app.refreshes(second["refresh_token"])) == "invalid_grant"


def test_app_gets_only_scopes_of_its_own(other, user):
    """Attack: an app asks for more than the operator has registered. Core 3.1.2.1: what it may not have is left out."""
    tokens = other.signs_in(user, scope="openid admin phone offline_access")
    assert set(tokens.scope.split()) == {"openid"}, tokens.scope
    assert "phone_number" not in other.userinfo(tokens.access_token).json()


def test_refresh_gets_no_further_scope(app, user):
    """Attack: privilege escalation by a refresh (RFC 6749 6)."""
    tokens = app.signs_in(user, scope="openid phone")
    assert oauth_error(app.refreshes(tokens.refresh_token, scope="openid phone email")) == "invalid_scope"
    narrow = app.refreshes(tokens.refresh_token, scope="openid")
    assert narrow.status_code == 200 and "phone_number" not in app.userinfo(narrow.json()["access_token"]).json()


def test_tokens_end_with_the_session(app, user, gateway):
    """Attack: tokens of a session that its user has ended."""
    bound = app.signs_in(user)
    token = user.token
    assert gateway.api("DELETE", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 204
    wait_for(lambda: app.userinfo(bound.access_token).status_code == 401, "the end of the access token", 1)
    assert oauth_error(app.refreshes(bound.refresh_token)) == "invalid_grant"
    assert app.introspects(bound.access_token) == {"active": False}


def test_offline_access_outlives_the_session_and_no_lock(app, user, gateway):
    """Attack: a refresh token with `offline_access` of an account that an operator has locked."""
    tokens = app.signs_in(user, scope="openid offline_access")
    token = user.token
    assert gateway.api("DELETE", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 204
    answer = app.refreshes(tokens.refresh_token)
    assert answer.status_code == 200, answer.text
    assert tool(gateway, "account", "disable", user.account_id)[0] == 0
    assert oauth_error(app.refreshes(answer.json()["refresh_token"])) == "invalid_grant"


def test_removed_member_loses_access(gateway, user):
    """Attack: somebody who has left the group goes on with tokens of before."""
    app = RelyingParty(gateway, "staffed")
    asked = app.asks()
    page = stays_here(gateway, user.follows(asked.address))
    assert page.status_code == 403 and "Other Web" in page.text, page.text
    silent = app.asks(prompt="none")
    assert error_at_app(app, silent, user.follows(silent.address)) in ("access_denied", "interaction_required")
    assert tool(gateway, "group", "add", "staff", user.account_id)[0] == 0
    tokens = wait_for(lambda: member(app, user), "membership", 5)
    assert tool(gateway, "group", "remove", "staff", user.account_id)[0] == 0
    wait_for(lambda: app.userinfo(tokens.access_token).status_code in (401, 403), "the end of access", 4)
    assert oauth_error(app.refreshes(tokens.refresh_token)) == "invalid_grant"


def member(app, user):
    asked = app.asks()
    back = user.follows(asked.address)
    return isinstance(back, str) and app_tokens(app, asked, back)


def app_tokens(app, asked, back):
    return SimpleNamespace(**app.redeems(app.arrived(asked, back), asked.verifier).json())


# Clients.


def test_client_authentication_is_checked(app, desktop, user):
    """Attack: impersonate a client (RFC 6819 5.2.3): a wrong secret, none, or two ways at once."""
    code, asked = code_for(app, user)
    for headers, fields in (
        (app.basic("wrong"), {}),
        ({}, {"client_id": "web", "client_secret": "wrong"}),
        ({}, {"client_id": "web"}),
        ({"Authorization": "Basic !!!"}, {}),
        ({"Authorization": "Basic " + base64.b64encode(b"unknown:x").decode()}, {}),
    ):
        answer = app.redeems(code, asked.verifier, headers=headers, **fields)
        assert oauth_error(answer, 401) == "invalid_client"
        assert answer.headers["WWW-Authenticate"].startswith("Basic"), answer.headers
    both = app.redeems(code, asked.verifier, headers=app.basic(), client_id="web", client_secret=app.secret)
    assert both.status_code in (400, 401) and both.json()["error"] in ("invalid_request", "invalid_client")
    other_id = app.redeems(code, asked.verifier, headers=app.basic(), client_id="other")
    assert other_id.status_code in (400, 401), other_id.text
    # A public client has no secret to send.
    extra = {"client_id": "desktop", "client_secret": "x"}
    public = desktop.posts("token", headers={}, grant_type="refresh_token", refresh_token="x", **extra)
    assert public.status_code in (400, 401), public.text
    assert app.redeems(code, asked.verifier).status_code == 200


def test_wrong_secrets_lock_nobody_else_out(gateway, user):
    """Attack: lock an app out by wrong secrets. They count by app and address."""
    app = RelyingParty(gateway, "locked")
    statuses = [app.refreshes("x", headers=app.basic("wrong")).status_code for _ in range(230)]
    assert 429 in statuses and set(statuses) <= {401, 429}, set(statuses)
    assert RelyingParty(gateway).signs_in(user).claims


class KeyServer:
    """The published keys of an app, or whatever else a test answers at their address."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        self.answer, self.seconds, self.asked = json.dumps({"keys": [{**public, "kid": "k1", "alg": "ES256"}]}), 0, 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked += 1
                server.ended.wait(server.seconds)
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(server.answer.encode())

            def log_message(self, *_):
                pass

        self.ended = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/jwks.json"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def key_server():
    server = KeyServer()
    yield server
    server.stop()


def test_app_authenticates_with_its_own_key(tmp_path, number, key_server):
    """Attack: an assertion that is repeated, for another issuer, of another app, unsigned, or by another key."""
    keyed = f'keys = "{key_server.url}", redirect_uris = {{ "http://localhost/keyed/cb" }},'
    gateway = provider(tmp_path, keyed=keyed, other=OTHER)
    try:
        user = Browser(gateway.start()).signs_in(number)
        app = RelyingParty(gateway, "keyed")

        def assertion(key=key_server.key, algorithm="ES256", **changes):
            now = int(time.time())
            usual = {"iss": "keyed", "sub": "keyed", "aud": gateway.url, "iat": now, "exp": now + 60}
            claims = usual | {"jti": secrets.token_urlsafe(8)} | changes
            return jwt.encode(claims, key, algorithm, headers={"kid": "k1"})

        def redeems(code, verifier, proof):
            kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            return app.redeems(code, verifier, headers={}, client_assertion=proof, client_assertion_type=kind)

        code, asked = code_for(app, user)
        another = ec.generate_private_key(ec.SECP256R1())
        for proof in (
            assertion(key=another),
            assertion(aud="https://another.example.com"),
            assertion(sub="other", iss="other"),
            assertion(exp=int(time.time()) - 120),
            assertion(exp=int(time.time()) + 100_000),
            assertion(jti=None),
            jwt.encode({"iss": "keyed", "sub": "keyed", "aud": gateway.url}, None, "none"),
            "x.y.z",
        ):
            assert oauth_error(redeems(code, asked.verifier, proof), 401) == "invalid_client"
        right = assertion()
        assert redeems(code, asked.verifier, right).status_code == 200
        code, asked = code_for(app, user)
        assert oauth_error(redeems(code, asked.verifier, right), 401) == "invalid_client"
    finally:
        gateway.stop()


@pytest.mark.parametrize("answer, seconds", [("x" * 20_000_000, 0), ("[]", 0), ("{", 0), ("{}", 600)])
def test_keys_that_cannot_be_read_hold_nothing_up(tmp_path, number, key_server, answer, seconds):
    """Attack: an address of keys that is huge, broken or slow, and many assertions that need it."""
    key_server.answer, key_server.seconds = answer, seconds
    keyed = f'keys = "{key_server.url}", redirect_uris = {{ "http://localhost/keyed/cb" }},'
    gateway = provider(tmp_path, keyed=keyed, other=OTHER)
    try:
        user = Browser(gateway.start()).signs_in(number)
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

        def tries(_):
            now = int(time.time())
            claims = {"iss": "keyed", "sub": "keyed", "aud": gateway.url, "exp": now + 60, "jti": secrets.token_hex(8)}
            fields = {"client_assertion": jwt.encode(claims, key_server.key, "ES256"), "client_assertion_type": kind}
            form = {"grant_type": "refresh_token", "refresh_token": "x", **fields}
            return requests.post(f"{gateway.url}/auth/openid/token", data=form, timeout=60).status_code

        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(tries, range(8))
            other = RelyingParty(gateway, "other")
            assert other.signs_in(user).claims
            assert set(answers) <= {401, 503}
        assert key_server.asked <= 3
    finally:
        gateway.stop()


@pytest.mark.parametrize("grant", ["password", "implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer", ""])
def test_other_grants_are_refused(app, grant):
    answer = app.posts("token", grant_type=grant, username="a", password="b")
    assert oauth_error(answer) in ("unsupported_grant_type", "invalid_request")


def test_grants_that_the_app_does_not_have_are_refused(app):
    for grant in ("client_credentials", "urn:ietf:params:oauth:grant-type:device_code"):
        assert oauth_error(app.posts("token", grant_type=grant, device_code="x")) == "unauthorized_client"


def test_programs_get_tokens_about_no_user(gateway):
    """Attack: a token of a program that services take for a user's (RFC 9700 4.15)."""
    robot = RelyingParty(gateway, "robot")
    answer = robot.posts("token", grant_type="client_credentials", scope="read")
    assert answer.status_code == 200 and "refresh_token" not in answer.json() and "id_token" not in answer.json()
    token = answer.json()["access_token"]
    assert robot.userinfo(token).status_code in (401, 403)
    found = robot.introspects(token)
    assert found["active"] is True and found["client_id"] == "robot" and found.get("sub", "robot") == "robot", found
    own = {"Authorization": f"Bearer {token}"}
    assert requests.get(gateway.url + "/home", headers=own, timeout=20, allow_redirects=False).status_code == 401


def test_other_bodies_and_methods_are_refused(app):
    answer = requests.post(app.endpoint("token"), json={"grant_type": "refresh_token"}, headers=app.basic(), timeout=20)
    assert answer.status_code in (400, 415), answer.text
    assert requests.get(app.endpoint("token"), timeout=20).status_code in (404, 405)
    huge = app.posts("token", grant_type="refresh_token", refresh_token="x" * 2_000_000)
    assert huge.status_code in (400, 413)
    assert requests.get(app.endpoint("introspect"), params={"token": "x"}, timeout=20).status_code in (401, 404, 405)


# Access tokens.


def test_access_token_is_taken_in_header_and_body_only(app, user):
    """Attack: tokens in addresses, which logs and `Referer` show (RFC 6750 5.3, 9700 4.3.2)."""
    token = app.signs_in(user).access_token
    answer = requests.get(app.endpoint("userinfo"), params={"access_token": token}, timeout=20)
    assert answer.status_code in (400, 401)
    for wrong in ("x", "mga_" + "x" * 60, token[:-2] + "AA", app.secret):
        answer = app.userinfo(wrong)
        assert answer.status_code == 401 and 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert requests.get(app.endpoint("userinfo"), timeout=20).headers["WWW-Authenticate"].startswith("Bearer")


def test_signed_access_tokens_name_their_audience(tmp_path, number):
    """Attack: a signed access token that is taken for an ID token, or by a service that it is not for (RFC 9068 4)."""
    audience = 'access_token = "jwt", audience = { "https://api.example.com" },'
    pairwise = OTHER.replace("http://localhost/NAME/cb", "https://apart.example.com/cb") + ' subject = "pairwise",'
    gateway = provider(tmp_path, web=WEB + f' signing = "ES256", {audience}', apart=pairwise)
    try:
        user = Browser(gateway.start()).signs_in(number)
        app, apart = RelyingParty(gateway), RelyingParty(gateway, "apart", "https://apart.example.com/cb")
        tokens = app.signs_in(user)
        head = jwt.get_unverified_header(tokens.access_token)
        assert (head["typ"], head["alg"]) == ("at+jwt", "ES256")
        key = app.keys()[head["kid"]].key
        told = jwt.decode(tokens.access_token, key, ["ES256"], audience="https://api.example.com", issuer=gateway.url)
        assert told["client_id"] == "web" and told["sub"] == tokens.claims["sub"] and told["exp"] - told["iat"] <= 600
        with pytest.raises(jwt.InvalidAudienceError):
            app.verified(tokens.access_token)
        assert app.userinfo(tokens.access_token).status_code == 200
        assert app.userinfo(tokens.id_token).status_code == 401
        assert apart.signs_in(user).claims["sub"] != tokens.claims["sub"]
        own = {"Authorization": f"Bearer {user.token}"}
        assert gateway.api("DELETE", "/session", headers=own).status_code == 204
        wait_for(lambda: app.userinfo(tokens.access_token).status_code == 401, "the end of the signed token", 2)
    finally:
        gateway.stop()


def test_access_token_is_no_session(app, user, gateway):
    """Attack: an app uses the token that it got at services behind the gateway, or to change the account."""
    tokens = app.signs_in(user)
    for token in (tokens.access_token, tokens.id_token, tokens.refresh_token):
        own = {"Authorization": f"Bearer {token}"}
        assert gateway.api("GET", "/session", headers=own).status_code == 401
        assert requests.get(gateway.url + "/home", headers=own, timeout=20, allow_redirects=False).status_code == 401


def test_introspection_and_revocation_know_only_own_tokens(app, other, user):
    """Attack: one app examines or ends the tokens of another (RFC 7009 2.1, RFC 7662 4)."""
    tokens = app.signs_in(user)
    assert other.introspects(tokens.access_token) == {"active": False}
    other.posts("revoke", token=tokens.refresh_token)
    other.posts("revoke", token=tokens.access_token)
    found = app.introspects(tokens.access_token)
    assert found["active"] is True and found["client_id"] == "web" and found["sub"] == tokens.claims["sub"], found
    assert oauth_error(app.posts("introspect", headers={}, token=tokens.access_token), 401) == "invalid_client"
    assert app.posts("revoke", token="unknown").status_code == 200
    assert app.posts("revoke", token=tokens.refresh_token).status_code == 200
    assert app.userinfo(tokens.access_token).status_code == 401
    assert oauth_error(app.refreshes(tokens.refresh_token)) == "invalid_grant"


def test_forged_id_token_hints_are_refused(app, user):
    """Attack: `alg` confusion: the public key as an HMAC secret, `none`, and a key of the attacker's own."""
    claims = app.signs_in(user).claims
    key = app.keys().keys[0]
    public = key.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    body = f"{part({'alg': 'HS256', 'kid': key.key_id})}.{part(claims)}"
    mac = hmac.new(public, body.encode(), hashlib.sha256).digest()
    forged = body + "." + base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
    own = jwt.encode(claims, secrets.token_bytes(64), "HS256", headers={"kid": key.key_id})
    none = f"{part({'alg': 'none'})}.{part(claims)}."
    for hint in (forged, own, none, "x.y.z", "x" * 30_000):
        query = urlencode({"id_token_hint": hint, "post_logout_redirect_uri": "http://localhost:9/out"})
        page = user.get(f"/auth/openid/logout?{query}")
        assert page.status_code in (200, 400, 414, 431), page.status_code
        asked = app.asks(prompt="none", id_token_hint=hint)
        back = user.follows(asked.address)
        assert not isinstance(back, str) or field("error", back) in ("login_required", "invalid_request"), back
    assert app.signs_in(user, prompt="none").claims, "nobody was signed out"


def test_sign_out_addresses_are_compared_exactly(app, user):
    """Attack: an open redirect by `post_logout_redirect_uri`."""
    for address in (
        "http://localhost:9/out/",
        "http://localhost:9/out?x=1",
        "http://evil.example/out",
        "http://localhost:9@evil.example/out",
        "http://localhost:9/web/cb",
    ):
        hint = app.signs_in(user).id_token
        query = urlencode({"id_token_hint": hint, "post_logout_redirect_uri": address})
        page = user.get(f"/auth/openid/logout?{query}")
        assert not page.is_redirect or page.headers["Location"].startswith(("/", app.gateway.url + "/")), page.headers
        user = Browser(app.gateway).signs_in(f"+9198764{secrets.randbelow(90000) + 10000}")


# Pushed authorization requests.


def pushed(app, **changes):
    asked = app.asks(**changes)
    fields = {name: value for name, value in asked.fields.items() if name != "client_id" or not app.secret}
    return asked, app.posts("par", **fields)


def par_address(app, uri, client=None):
    return app.endpoint("authorize") + "?" + urlencode({"client_id": client or app.client_id, "request_uri": uri})


def test_pushed_request_is_used_once_by_its_client(app, other, user):
    """Attack: `request_uri` of another client, or of somebody's earlier request (RFC 9126 7)."""
    asked, answer = pushed(app)
    assert answer.status_code == 201 and 0 < answer.json()["expires_in"] <= 600, answer.text
    uri = answer.json()["request_uri"]
    assert uri.startswith("urn:ietf:params:oauth:request_uri:")
    stays_here(app.gateway, user.follows(par_address(other, uri)))
    code = app.arrived(asked, user.follows(par_address(app, uri)))
    assert app.redeems(code, asked.verifier).status_code == 200
    again = user.follows(par_address(app, uri))
    assert not isinstance(again, str) or field("code", again) is None, again


def test_pushed_requests_are_checked_at_once(app):
    for changes in (
        {"redirect_uri": "http://evil.example/cb"},
        {"response_type": "token"},
        {"request_uri": "urn:ietf:params:oauth:request_uri:x"},
        {"code_challenge": None, "code_challenge_method": None},
        {"state": "s" * 3000},
    ):
        assert 400 <= pushed(app, **changes)[1].status_code < 500, changes
    asked = app.asks()
    assert oauth_error(app.posts("par", headers=app.basic("wrong"), **asked.fields), 401) == "invalid_client"
    assert oauth_error(app.posts("par", headers={}, **asked.fields), 401) == "invalid_client"


def test_parameters_beside_a_pushed_request_change_nothing(app, user):
    """Attack: the front channel replaces what the app has pushed (RFC 9126 4)."""
    asked, answer = pushed(app)
    address = par_address(app, answer.json()["request_uri"])
    back = user.follows(address + "&" + urlencode({"redirect_uri": "http://evil.example/", "state": "evil"}))
    assert not isinstance(back, str) or back.startswith(app.redirect) and field("state", back) != "evil", back


# Native apps.


def test_native_app_by_any_loopback_port_and_its_scheme(desktop, user, gateway):
    assert desktop.signs_in(user).claims
    for address in ("http://127.0.0.1:54321/in", "com.example.desktop:/in"):
        assert RelyingParty(gateway, "desktop", address).signs_in(user).claims
    for address in ("http://localhost:9/in", "http://[::1]:9/in", "http://127.0.0.2:9/in", "com.example.desktop:/in2"):
        stays_here(gateway, user.follows(desktop.asks(redirect_uri=address).address))


def test_native_app_without_pkce_is_refused(desktop, user):
    """Attack: another app on the device takes the redirect URI of this one (RFC 8252 8.1)."""
    asked = desktop.asks(code_challenge=None, code_challenge_method=None)
    assert error_at_app(desktop, asked, user.follows(asked.address)) == "invalid_request"
    code, asked = code_for(desktop, user)
    assert desktop.redeems(code, None).status_code == 400


# Devices.


def begun(gateway, **fields):
    app = RelyingParty(gateway, "television")
    return app, app.posts("device", scope="openid", **fields)


def polls(app, device):
    return app.posts("token", grant_type="urn:ietf:params:oauth:grant-type:device_code", device_code=device)


def test_device_page_says_which_app_asks_and_from_where(gateway, user):
    """Attack: device-code phishing (RFC 8628 5.4). A link with the code is no consent, and names are escaped."""
    app, answer = begun(gateway)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert re.fullmatch(r"[A-Z0-9]{4}-?[A-Z0-9]{4}", told["user_code"]) and told["interval"] >= 5, told
    assert not set(told["user_code"]) & set("01OI"), told["user_code"]
    assert told["verification_uri"] == gateway.url + "/auth/device" and told["expires_in"] <= 1800
    assert oauth_error(polls(app, told["device_code"])) == "authorization_pending"
    page = stays_here(gateway, user.follows(told.get("verification_uri_complete", told["verification_uri"])))
    assert oauth_error(polls(app, told["device_code"])) in ("authorization_pending", "slow_down"), (
        "opened is not allowed"
    )
    if "Television" not in page.text:
        page = stays_here(gateway, user.stays(user.post("/auth/device", user_code=told["user_code"])))
    assert "Example &lt;b&gt;Television&lt;/b&gt;" in page.text and "127.0.0.1" in page.text, page.text


def test_device_polls_too_fast_and_with_a_wrong_code(gateway):
    """Attack: guess device codes, or wear the gateway out by polling (RFC 8628 5.2, 3.5)."""
    app, answer = begun(gateway)
    device = answer.json()["device_code"]
    assert len(device) >= 40
    told = [oauth_error(polls(app, device)) for _ in range(3)]
    assert "slow_down" in told and set(told) <= {"authorization_pending", "slow_down"}, told
    assert oauth_error(polls(app, device[:-1] + "x")) in ("invalid_grant", "expired_token")
    desktop = RelyingParty(gateway, "desktop", LOOPBACK)
    assert oauth_error(polls(desktop, device)) in ("unauthorized_client", "invalid_grant")


def test_user_codes_cannot_be_guessed(tmp_path, number):
    """Attack: guess codes of devices on the page (RFC 8628 5.1). After too many, the right one does not work either."""
    gateway = provider(tmp_path, television=TELEVISION)
    gateway.edit("policies/token.lua", lambda text: text.replace("max = 60", "max = 8"))
    try:
        user = Browser(gateway.start()).signs_in(number)
        right = begun(gateway)[1].json()["user_code"]
        for _ in range(8):
            letters = "".join(secrets.choice("BCDFGHJKMNPQRSTVWXZ") for _ in range(8))
            assert "Television" not in user.stays(user.post("/auth/device", user_code=letters)).text
        assert "Television" not in user.stays(user.post("/auth/device", user_code=right)).text
    finally:
        gateway.stop()


def test_unknown_scope_of_a_program_is_refused_or_left_out(gateway):
    """Attack: a program asks for more than it may have."""
    robot = RelyingParty(gateway, "robot")
    answer = robot.posts("token", grant_type="client_credentials", scope="read admin")
    assert answer.json().get("error") == "invalid_scope" or answer.json()["scope"].split() == ["read"], answer.text


# What is told and kept.


def test_no_secret_is_logged(app, user, gateway):
    """Attack: read codes, tokens, secrets or state in the log or in the store (RFC 6819 5.1.6)."""
    asked = app.asks(state="state-" + secrets.token_hex(12))
    code = app.arrived(asked, user.follows(asked.address))
    tokens = app.redeems(code, asked.verifier).json()
    app.refreshes("mgr_wrong-refresh-token-" + secrets.token_hex(4))
    used = [
        asked.state,
        asked.verifier,
        code,
        app.secret,
        *(tokens[name] for name in ("access_token", "refresh_token")),
    ]
    stored = b"".join(file.read_bytes() for file in (gateway.config / "data").glob("moongate.db*"))
    for secret in used:
        assert secret not in gateway.log, "in the log"
        assert secret.encode() not in stored, "in the store"


def test_names_of_apps_are_escaped(gateway, user):
    """Attack: HTML in an app's name."""
    _, answer = begun(gateway)
    page = user.stays(user.post("/auth/device", user_code=answer.json()["user_code"]))
    assert "<b>Television" not in page.text


def test_without_apps_there_are_no_endpoints(new_gateway):
    new_gateway.start()
    for path in (
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
        "/auth/openid/authorize",
        "/auth/openid/keys",
    ):
        answer = requests.get(new_gateway.url + path, timeout=20, allow_redirects=False)
        assert "issuer" not in answer.text and answer.status_code in (302, 401, 404), (path, answer.status_code)


@pytest.mark.parametrize(
    "fields",
    [
        'public = true, redirect_uris = { "http://app.example.com/cb" }',
        'public = true, redirect_uris = { "https://*.example.com/cb" }',
        'public = true, redirect_uris = { "https://app.example.com/cb#x" }',
        'public = true, redirect_uris = { "https:///cb" }',
        'public = true, secret = env "S", redirect_uris = { "https://app.example.com/cb" }',
        'redirect_uris = { "https://app.example.com/cb" }',
        'public = true, grants = { "client_credentials" }, redirect_uris = { "https://app.example.com/cb" }',
        'public = true, pkce = "optional", redirect_uris = { "https://app.example.com/cb" }',
        'public = true, redirect_uris = { "https://app.example.com/cb" }, require = { group = "nobody" }',
        'public = true, redirect_uris = { "https://app.example.com/cb" }, signing = "none"',
        'public = true, redirect_uris = { "https://app.example.com/cb" }, signing = "HS256"',
        'public = true, redirect_uris = { "https://app.example.com/cb" }, lifetimes = { id_token = "0s" }',
        'public = true, redirect_uris = { "https://app.example.com/cb" }, sign_out_notice = "http://app.example.com/"',
        'public = true, redirect_uris = { "https://app.example.com/cb" },'
        ' claims = function(f) return { sub = "admin" } end',
    ],
)
def test_check_refuses_what_is_unsafe(new_gateway, fields):
    (new_gateway.config / "apps.lua").write_text(f"return apps {{\n  bad = app {{ {fields} }},\n}}\n")
    done = subprocess.run(
        [BIN / "moongate", "check", "--config", new_gateway.config],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "S": "s" * 40},
    )
    assert done.returncode == 1 and "apps.lua:" in done.stdout + done.stderr, done.stdout + done.stderr
