"""The modules of the certification plans "Basic OP", "Config OP", "RP-Initiated Logout OP" and "Back-Channel Logout OP"
of the OpenID Foundation: a test for each, written from the specifications, with the module's name after the prefix
`oidcc` (docs: Documentation/security/openid-certification.md)."""

import base64
import json
import secrets
import time
from urllib.parse import urlsplit

import jwt
import pytest
import requests

from local_gateway import wait_for
from mockgoogle import field
from openid_provider import OTHER, WEB, Browser, RelyingParty, Site, error_at_app, oauth_error, provider, stays_here

OUT = "http://localhost:9/out"


@pytest.fixture(scope="module")
def site():
    site = Site()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, site):
    notified = WEB + f' sign_out_notice = "http://127.0.0.1:{site.port}/backchannel",'
    gateway = provider(tmp_path_factory.mktemp("gateway"), web=WEB, other=OTHER, notified=notified)
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def app(gateway):
    return RelyingParty(gateway)


@pytest.fixture
def user(gateway):
    """A browser that is signed in as a user with a name and a verified address."""
    browser = Browser(gateway)
    browser.signs_in_at_google()
    return browser


def passed(seconds):
    """Waits until this time has passed, because the module measures it."""
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > seconds, f"{seconds} s to pass", seconds + 20)


# Basic OP.


def test_server(app, gateway):
    """Core 3.1: someone who is not signed in signs in, and the ID token is valid."""
    browser, asked = Browser(gateway), app.asks(scope="openid profile email")
    began = int(time.time())
    answer = app.redeems(app.arrived(asked, browser.authenticates(browser.follows(asked.address))), asked.verifier)
    assert answer.status_code == 200 and "no-store" in answer.headers["Cache-Control"], answer.headers
    tokens = answer.json()
    assert tokens["token_type"].lower() == "bearer" and 0 < tokens["expires_in"] <= 600, tokens
    assert "openid" in tokens["scope"].split()
    claims = app.verified(tokens["id_token"])
    assert claims["iss"] == gateway.url and claims["aud"] in (app.client_id, [app.client_id])
    assert claims["nonce"] == asked.nonce and 0 < len(claims["sub"]) <= 255
    assert claims["iat"] >= began - 5 and claims["exp"] > time.time()
    assert "azp" not in claims or claims["azp"] == app.client_id


def test_response_type_missing(app, user):
    asked = app.asks(response_type=None)
    assert error_at_app(app, asked, user.follows(asked.address)) in ("invalid_request", "unsupported_response_type")


def test_idtoken_signature(app, user):
    """The key is found by `kid`, and the algorithm is the registered one, by default RS256."""
    token = app.signs_in(user).id_token
    head = jwt.get_unverified_header(token)
    assert head["alg"] == "RS256" and head["kid"] in {key.key_id for key in app.keys().keys}
    signed, _, signature = token.rpartition(".")
    damaged = ("A" if signature[0] != "A" else "B") + signature[1:]
    with pytest.raises(jwt.InvalidSignatureError):
        app.verified(f"{signed}.{damaged}")


def test_idtoken_unsigned(app, user):
    """The module is for dynamic registration, which does not exist. No ID token is unsigned."""
    assert "none" not in app.discovery["id_token_signing_alg_values_supported"]
    assert jwt.get_unverified_header(app.signs_in(user).id_token)["alg"] != "none"


def userinfo(answer, tokens):
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json()["sub"] == tokens.claims["sub"]
    return answer.json()


def test_userinfo_get(app, user):
    tokens = app.signs_in(user)
    userinfo(app.userinfo(tokens.access_token), tokens)


def test_userinfo_post_header(app, user):
    tokens = app.signs_in(user)
    bearer = {"Authorization": f"Bearer {tokens.access_token}"}
    userinfo(requests.post(app.endpoint("userinfo"), headers=bearer, timeout=20), tokens)


def test_userinfo_post_body(app, user):
    tokens = app.signs_in(user)
    body = {"access_token": tokens.access_token}
    userinfo(requests.post(app.endpoint("userinfo"), data=body, timeout=20), tokens)


def test_ensure_request_without_nonce_succeeds_for_code_flow(app, user):
    assert "nonce" not in app.signs_in(user, nonce=None).claims


def scoped(app, user, scope):
    """The claims at userinfo for a scope."""
    tokens = app.signs_in(user, scope=f"openid {scope}")
    return userinfo(app.userinfo(tokens.access_token), tokens)


def test_scope_profile(app, user):
    told = scoped(app, user, "profile")
    assert {"name", "given_name", "family_name", "updated_at"} <= set(told), told
    assert isinstance(told["updated_at"], int) and "email" not in told


def test_scope_email(app, user):
    told = scoped(app, user, "email")
    assert "@" in told["email"] and told["email_verified"] is True and "name" not in told, told


def test_scope_address(app, user):
    """No account has a postal address. The scope is not offered, and asking for it is answered as RFC 6749 says."""
    assert "address" not in app.discovery["scopes_supported"]
    asked = app.asks(scope="openid address")
    back = user.follows(asked.address)
    if field("error", back) is None:
        code = app.arrived(asked, back)
        assert "address" not in app.redeems(code, asked.verifier).json()["scope"].split()
    else:
        assert error_at_app(app, asked, back) == "invalid_scope"


def test_scope_phone(app, gateway, number):
    told = scoped(app, Browser(gateway).signs_in(number), "phone")
    assert (told["phone_number"], told["phone_number_verified"]) == (number, True)


def test_scope_all(app, user):
    told = scoped(app, user, "profile email phone groups")
    assert {"name", "email", "email_verified", "groups"} <= set(told), told


def test_alternate_happy_flow(app, user):
    """RFC 6749 section 3.3: the order of scopes and parameters does not matter."""
    asked = app.asks(scope="email openid")
    backwards = "&".join(reversed(urlsplit(asked.address).query.split("&")))
    code = app.arrived(asked, user.follows(app.endpoint("authorize") + "?" + backwards))
    tokens = app.redeems(code, asked.verifier).json()
    assert "@" in app.userinfo(tokens["access_token"]).json()["email"]


def test_display_page(app, user):
    assert app.signs_in(user, display="page").claims


def test_display_popup(app, user):
    assert app.signs_in(user, display="popup").claims


def test_prompt_login(app, user):
    """Core 3.1.2.1: someone who is signed in authenticates again, and `auth_time` says so."""
    first = app.signs_in(user, max_age="10000").claims
    passed(1.1)
    asked = app.asks(prompt="login", max_age="10000")
    page = stays_here(app.gateway, user.follows(asked.address))
    second = app.verified(app.redeems(app.arrived(asked, user.authenticates(page)), asked.verifier).json()["id_token"])
    assert second["sub"] == first["sub"] and second["auth_time"] > first["auth_time"]


def test_prompt_none_not_logged_in(app, gateway):
    asked = app.asks(prompt="none")
    assert error_at_app(app, asked, Browser(gateway).follows(asked.address)) == "login_required"


def test_prompt_none_logged_in(app, user):
    first, second = app.signs_in(user).claims, app.signs_in(user, prompt="none").claims
    assert first["sub"] == second["sub"] and first.get("auth_time") == second.get("auth_time")


def test_max_age_1(app, user):
    first = app.signs_in(user, max_age="10000").claims
    passed(2.1)
    asked = app.asks(max_age="1")
    page = stays_here(app.gateway, user.follows(asked.address))
    second = app.verified(app.redeems(app.arrived(asked, user.authenticates(page)), asked.verifier).json()["id_token"])
    assert second["auth_time"] > first["auth_time"] and time.time() - second["auth_time"] < 60


def test_max_age_10000(app, user):
    first, second = (app.signs_in(user, max_age="10000").claims for _ in range(2))
    assert first["auth_time"] == second["auth_time"] and first["sub"] == second["sub"]


def test_ensure_request_with_unknown_parameter_succeeds(app, user):
    assert app.signs_in(user, extra="foobar").claims


def test_id_token_hint(app, user):
    first = app.signs_in(user)
    second = app.signs_in(user, prompt="none", id_token_hint=first.id_token).claims
    assert second["sub"] == first.claims["sub"]
    # Of somebody else: Core 3.1.2.1.
    other = Browser(app.gateway)
    other.signs_in_at_google(account="100000000000000000002")
    asked = app.asks(prompt="none", id_token_hint=first.id_token)
    assert error_at_app(app, asked, other.follows(asked.address)) == "login_required"


def test_login_hint(app, user):
    assert app.signs_in(user, login_hint="asha@example.com").claims


def test_ui_locales(app, user, gateway):
    assert app.signs_in(user, ui_locales="hi se").claims
    page = stays_here(gateway, Browser(gateway).follows(app.asks(ui_locales="hi se").address))
    assert 'lang="hi"' in page.text


def test_claims_locales(app, user):
    assert app.signs_in(user, claims_locales="se").claims


def test_ensure_request_with_acr_values_succeeds(app, user):
    claims = app.signs_in(user, acr_values="urn:moongate:aal:1 urn:moongate:aal:2").claims
    assert claims["acr"] in ("urn:moongate:aal:1", "urn:moongate:aal:2")


def reused(app, user, seconds):
    asked = app.asks()
    code = app.arrived(asked, user.follows(asked.address))
    tokens = app.redeems(code, asked.verifier).json()
    assert app.userinfo(tokens["access_token"]).status_code == 200
    passed(seconds)
    assert oauth_error(app.redeems(code, asked.verifier)) == "invalid_grant"
    assert app.userinfo(tokens["access_token"]).status_code == 401
    assert oauth_error(app.refreshes(tokens["refresh_token"])) == "invalid_grant"


def test_codereuse(app, user):
    """RFC 6749 section 4.1.2: the second use is refused, and ends what the first one got."""
    reused(app, user, 0)


@pytest.mark.alone
def test_codereuse_30seconds(app, user):
    reused(app, user, 30)


def test_ensure_registered_redirect_uri(app, user):
    page = stays_here(app.gateway, user.follows(app.asks(redirect_uri="http://localhost:9/another").address))
    assert page.status_code == 400 and "localhost:9" not in page.text


def test_ensure_post_request_succeeds(app, user):
    """Core 3.1.2.1: the request may be a form that another site sends."""
    asked = app.asks()
    answer = user.session.post(
        app.endpoint("authorize"),
        data=asked.fields,
        headers={"Origin": "http://localhost:9", "Accept": "text/html"},
        allow_redirects=False,
        timeout=20,
    )
    assert app.redeems(app.arrived(asked, user.stays(answer)), asked.verifier).status_code == 200


def test_server_client_secret_post(app, user):
    asked = app.asks()
    code = app.arrived(asked, user.follows(asked.address))
    fields = {"client_id": app.client_id, "client_secret": app.secret}
    answer = app.redeems(code, asked.verifier, headers={}, **fields)
    assert answer.status_code == 200 and app.verified(answer.json()["id_token"]), answer.text
    assert {"client_secret_basic", "client_secret_post"} <= set(app.discovery["token_endpoint_auth_methods_supported"])


def unsigned(**claims):
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return f"{part({'alg': 'none'})}.{part(claims)}."


def test_request_uri_unsigned_supported_correctly_or_rejected_as_unsupported(app, user):
    assert app.discovery.get("request_uri_parameter_supported") is False, "the default is true"
    asked = app.asks(request_uri="http://localhost:9/request.jwt")
    assert error_at_app(app, asked, user.follows(asked.address)) == "request_uri_not_supported"


def test_unsigned_request_object_supported_correctly_or_rejected_as_unsupported(app, user):
    assert not app.discovery.get("request_parameter_supported")
    asked = app.asks()
    with_object = app.asks(state=asked.state, request=unsigned(**asked.fields))
    assert error_at_app(app, with_object, user.follows(with_object.address)) == "request_not_supported"


def test_claims_essential(app, user):
    wanted = json.dumps({"userinfo": {"name": {"essential": True}}})
    tokens = app.signs_in(user, scope="openid profile", claims=wanted)
    assert app.userinfo(tokens.access_token).json()["name"]


def test_ensure_request_object_with_redirect_uri(app, user):
    """The address in a request object never gets a code."""
    inner = unsigned(client_id=app.client_id, response_type="code", redirect_uri=app.redirect, state="inner")
    asked = app.asks(redirect_uri="http://localhost:9/another", request=inner)
    assert stays_here(app.gateway, user.follows(asked.address)).status_code == 400


def test_refresh_token(app, user):
    """Core 12: the new ID token is about the same user, and the token is bound to its client."""
    first = app.signs_in(user)
    other = RelyingParty(app.gateway, "other")
    assert oauth_error(other.refreshes(first.refresh_token)) == "invalid_grant"
    answer = app.refreshes(first.refresh_token)
    assert answer.status_code == 200, answer.text
    claims = app.verified(answer.json()["id_token"])
    assert {name: claims[name] for name in ("iss", "sub", "aud")} == {
        name: first.claims[name] for name in ("iss", "sub", "aud")
    }
    assert claims.get("auth_time") == first.claims.get("auth_time") and claims["iat"] >= first.claims["iat"]
    assert app.userinfo(answer.json()["access_token"]).status_code == 200
    assert answer.json()["refresh_token"] != first.refresh_token


def test_ensure_request_with_valid_pkce_succeeds(app, user):
    assert app.discovery["code_challenge_methods_supported"] == ["S256"]
    assert app.signs_in(user).claims


# Config OP.


def test_discovery_endpoint_verification(app, gateway):
    """Discovery 1.0 section 4: the issuer, and everything that it must name, at addresses of the issuer."""
    found = app.discovery
    assert found["issuer"] == gateway.url
    endpoints = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
    assert all(found[name].startswith(gateway.url + "/") for name in endpoints), found
    assert found["response_types_supported"] == ["code"] and "public" in found["subject_types_supported"]
    assert "RS256" in found["id_token_signing_alg_values_supported"] and "openid" in found["scopes_supported"]
    assert {"sub", "iss", "auth_time", "acr"} <= set(found["claims_supported"])
    assert found["claims_parameter_supported"] is True
    assert found["authorization_response_iss_parameter_supported"] is True
    keys = requests.get(found["jwks_uri"], timeout=20).json()["keys"]
    assert keys and len({key["kid"] for key in keys}) == len(keys), keys
    secret_parts = {"d", "p", "q", "dp", "dq", "qi", "k"}
    assert not any(secret_parts & set(key) for key in keys)
    for key in keys:
        assert key["kty"] != "RSA" or len(base64.urlsafe_b64decode(key["n"] + "==")) >= 256
    same = requests.get(gateway.url + "/.well-known/oauth-authorization-server", timeout=20).json()
    assert {name: same[name] for name in ("issuer", *endpoints)} == {
        name: found[name] for name in ("issuer", *endpoints)
    }


# RP-Initiated Logout OP.


def leaves(app, user, **fields):
    """Opens the logout endpoint. Returns where the browser ends."""
    fields = {name: value for name, value in fields.items() if value is not None}
    return user.follows(requests.Request("GET", app.endpoint("logout"), params=fields).prepare().url)


def is_signed_out(app, user):
    asked = app.asks(prompt="none")
    back = user.follows(asked.address)
    assert isinstance(back, str), back.text
    return field("error", back) == "login_required"


def test_rp_initiated_logout_discovery_endpoint_verification(app, gateway):
    assert app.discovery["end_session_endpoint"] == gateway.url + "/auth/openid/logout"


def test_rp_initiated_logout(app, user):
    hint, state = app.signs_in(user).id_token, secrets.token_urlsafe(8)
    back = leaves(app, user, id_token_hint=hint, post_logout_redirect_uri=OUT, state=state)
    assert back == f"{OUT}?state={state}", back
    assert is_signed_out(app, user)


def test_rp_initiated_logout_bad_post_logout_redirect_uri(app, user):
    hint = app.signs_in(user).id_token
    page = leaves(app, user, id_token_hint=hint, post_logout_redirect_uri="http://localhost:9/elsewhere", state="s")
    assert "localhost:9" not in stays_here(app.gateway, page).text


def test_rp_initiated_logout_modified_id_token_hint(app, user):
    """The hint with `alg: none`: the user is asked, and not sent to the app."""
    claims = app.signs_in(user).claims
    page = leaves(app, user, id_token_hint=unsigned(**claims), post_logout_redirect_uri=OUT, state="s")
    stays_here(app.gateway, page)
    assert not is_signed_out(app, user)


def test_rp_initiated_logout_no_id_token_hint(app, user):
    """Without a hint, the user is asked before anything ends."""
    app.signs_in(user)
    page = stays_here(app.gateway, leaves(app, user, post_logout_redirect_uri=OUT, state="s"))
    assert page.status_code in (200, 400) and not is_signed_out(app, user)


def test_rp_initiated_logout_no_params(app, user):
    app.signs_in(user)
    page = stays_here(app.gateway, leaves(app, user))
    assert page.status_code == 200 and not is_signed_out(app, user)
    user.presses(page, "Sign out")
    assert is_signed_out(app, user)


def test_rp_initiated_logout_no_post_logout_redirect_uri(app, user):
    hint = app.signs_in(user).id_token
    stays_here(app.gateway, leaves(app, user, id_token_hint=hint, state="s"))
    assert is_signed_out(app, user)


def test_rp_initiated_logout_no_state(app, user):
    hint = app.signs_in(user).id_token
    assert leaves(app, user, id_token_hint=hint, post_logout_redirect_uri=OUT) == OUT
    assert is_signed_out(app, user)


def test_rp_initiated_logout_only_state(app, user):
    app.signs_in(user)
    stays_here(app.gateway, leaves(app, user, state="s"))
    assert not is_signed_out(app, user)


def test_rp_initiated_logout_query_added_to_post_logout_redirect_uri(app, user):
    hint = app.signs_in(user).id_token
    page = leaves(app, user, id_token_hint=hint, post_logout_redirect_uri=OUT + "?foo=bar", state="s")
    assert "foo=bar" not in stays_here(app.gateway, page).text


def test_rp_initiated_logout_bad_id_token_hint(app, user):
    signed, _, signature = app.signs_in(user).id_token.rpartition(".")
    damaged = ("A" if signature[0] != "A" else "B") + signature[1:]
    page = leaves(app, user, id_token_hint=f"{signed}.{damaged}", post_logout_redirect_uri=OUT, state="s")
    stays_here(app.gateway, page)
    assert not is_signed_out(app, user)


# Back-Channel Logout OP.


def test_backchannel_logout_discovery_endpoint_verification(app):
    found = app.discovery
    assert found["backchannel_logout_supported"] is True and found["backchannel_logout_session_supported"] is True


def test_backchannel_rp_initiated_logout(gateway, site, user):
    """Back-Channel Logout 1.0 section 2: the app gets a logout token, and the browser comes back to the app."""
    app = RelyingParty(gateway, "notified")
    claims = app.signs_in(user)
    hint, state = claims.id_token, secrets.token_urlsafe(8)
    back = leaves(app, user, id_token_hint=hint, post_logout_redirect_uri=OUT, state=state)
    assert back == f"{OUT}?state={state}", back
    token = wait_for(
        lambda: next((one for one in site.notices() if sid(one) == claims.claims["sid"]), None), "a notice"
    )
    assert jwt.get_unverified_header(token)["typ"] == "logout+jwt"
    told = app.verified(token)
    assert told["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert told["sub"] == claims.claims["sub"] and told["jti"] and abs(told["iat"] - time.time()) < 60
    assert told["exp"] - told["iat"] <= 300 and "nonce" not in told
    assert is_signed_out(app, user)


def sid(token):
    return jwt.decode(token, options={"verify_signature": False}).get("sid")
