"""Sign-in by Google in the demo: over HTTP, and with independent programs on either side."""

import json
import logging
import os
import re
import stat
import subprocess
import time

import pytest
import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.jwk import KeySet
from oidc_provider_mock import User, run_server_in_thread

from attack import Person, bearer, send
from local_gateway import BIN, problem, wait_for
from mockgoogle import MockGoogle, Visitor, choose, field, pkce
from test_accounts import tool

ASHA, RAVI, MINA = (f"10000000000000000000{number}" for number in (1, 2, 3))


# The demo, whose service has a mock of Google.


def test_a_new_person_and_the_same_again(gateway):
    first = Visitor(gateway)
    away = first.continues(return_to="/reports?x=1")
    assert away.startswith(gateway.google + "/authorize?")
    back = first.get(choose(away, account=ASHA))
    assert (back.status_code, back.headers["Location"]) == (303, "/profile-setup?return_to=%2Freports%3Fx%3D1")
    account = first.account()
    assert account["email"] == "asha@gmail.com" and account["is_email_verified"] and account["first_name"] == "Asha"
    assert first.get("/home").status_code == 200
    second = Visitor(gateway)
    assert second.get(choose(second.continues("/auth/register"), account=ASHA)).headers["Location"] == "/home"
    assert second.account()["id"] == account["id"]


def test_a_step_up_by_google_leads_back_to_where_it_was_asked_for(gateway):
    visitor = Visitor(gateway)
    visitor.get(choose(visitor.continues(), account=ASHA))
    token = visitor.session.cookies["moongate"]
    page = visitor.get("/auth/login?flow=step_up&return_to=%2Freports").text
    assert "Confirm it&#39;s you" in page and 'name="password"' not in page, (
        "of the ways only those that the account has"
    )
    asked = {"flow": "step_up", "return_to": "/reports"}
    for action, sentence in (("cancel", "Sign-in cancelled"), ("error", "Google sign-in failed. Try again.")):
        back = visitor.get(choose(visitor.continues(**asked), action=action))
        assert back.status_code == 303 and back.headers["Location"].startswith(
            "/auth/login?flow=step_up&refused=oauth_"
        ), back.headers
        page = visitor.get(back.headers["Location"]).text
        assert sentence in page and 'href="/reports"' in page and 'value="google_oauth"' in page
        assert visitor.account(), "still signed in"
    # Another user's Google account is another user.
    back = visitor.get(choose(visitor.continues(**asked), account=RAVI))
    assert "refused=denied" in back.headers["Location"] and visitor.session.cookies["moongate"] == token
    assert visitor.get(choose(visitor.continues(**asked), account=ASHA)).headers["Location"] == "/reports"
    assert visitor.session.cookies["moongate"] != token, "a new token at every step-up"
    # Without both, there is nothing to ask for, and no redirect loop.
    stranger = Visitor(gateway)
    stranger.session.cookies["moongate"] = gateway.register("+919876512345")["session"]["token"]
    answer = stranger.get("/auth/login?flow=step_up&return_to=%2Freports")
    assert answer.status_code == 403 and "Not allowed" in answer.text


def test_the_demo_makes_its_secret_and_keeps_it(gateway):
    file = gateway.config / "data" / "google.secret"
    secret = file.read_text()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600 and len(secret.strip()) == 43
    gateway.restart(15)
    assert file.read_text() == secret
    assert secret.strip() not in gateway.log


def test_check_creates_nothing_and_needs_no_demo_secret(new_gateway):
    def check():
        return subprocess.run(
            [BIN / "moongate", "check", "--config", new_gateway.config, "--json"],
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = check()
    assert done.returncode == 0, done.stdout
    assert not (new_gateway.config / "data").exists()
    budget = next(line for line in json.loads(done.stdout)["budgets"] if line["provider"] == "google_oauth")
    assert budget == {"provider": "google_oauth", "guesses_per_day": 0, "guesses_per_30d": 0, "probability_30d": 0}
    # For the real Google, the secret file must exist.
    new_gateway.edit("gateway.lua", lambda text: text.replace(f'issuer = "{new_gateway.google}",', ""))
    done = check()
    assert done.returncode == 1 and "google.secret: there is no such file" in done.stdout
    # The demo's configuration on a machine that others can reach is refused.
    new_gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            f'public_url = "{new_gateway.url}"', 'public_url = "https://auth.example.com"'
        ).replace(
            'client_id = "moongate-demo"',
            f'issuer = "{new_gateway.google}", client_id = "moongate-demo"',
        ),
    )
    done = check()
    assert done.returncode == 1 and "lets anyone sign in as anyone" in done.stdout


def test_an_unverified_address_joins_nothing(gateway):
    first, second, third = Visitor(gateway), Visitor(gateway), Visitor(gateway)
    first.get(choose(first.continues(), account="other", name="Dora Fox", email="dora@gmail.com", verified="1"))
    second.get(choose(second.continues(), account="other", name="Mallory", email="dora@gmail.com"))
    assert second.account()["id"] != first.account()["id"] and not second.account()["is_email_verified"]
    third.get(choose(third.continues(), account="other", name="Dora Fox", email="DORA@gmail.com", verified="1"))
    assert third.account()["id"] == first.account()["id"]


def test_user_whose_identity_waits_reads_until_when(gateway, number):
    Person(gateway, phone=number)
    dora = {"account": "other", "name": "Dora Roe", "email": f"dora{number[-7:]}@gmail.com", "verified": "1"}
    merging = Visitor(gateway)
    merging.get(choose(merging.continues(), **dora))
    own = bearer(merging.session.cookies["moongate"])
    flow = gateway.api("POST", "/flows", {"flow": "join_phone"}, **own).json()["id"]
    code = send(gateway, flow, "phone_otp", number, **own)
    assert gateway.api("POST", f"/flows/{flow}/submit", {"code": code}, **own).status_code == 200
    again = Visitor(gateway)
    back = again.get(choose(again.continues(), **dora)).headers["Location"]
    assert "refused=identifier_too_new." in back
    assert "too recently to be used here. Please try again in" in again.get(back).text
    for unbelievable in ("99999999999", "-1", "x"):
        page = again.get(f"/auth/login?refused=identifier_too_new.{unbelievable}").text
        assert "too recently to be used here. Please try again later." in page


def test_another_issuer_is_not_believed_about_gmail(new_gateway):
    """Attack: an issuer of the attacker's own says that owner@gmail.com is verified, or that example.com is its `hd`."""
    gateway = new_gateway
    gateway.edit("gateway.lua", lambda text: text.replace('trusted_domains = { "gmail.com" },', ""))
    gateway.start()
    for email, domain in (("owner@gmail.com", ""), ("owner@example.com", "example.com")):
        imported = subprocess.run(
            [BIN / "moongate", "account", "import", "--config", gateway.config, "-"],
            input=json.dumps({"identifiers": [{"email": email, "verified": True}]}) + "\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert imported.returncode == 0, imported.stderr + imported.stdout
        stranger = Visitor(gateway)
        back = stranger.get(
            choose(stranger.continues(), account="other", name="Mallory", email=email, verified="1", hd=domain)
        )
        assert stranger.account() is None
        assert "/auth/" in back.headers["Location"] and "flow" not in back.headers["Location"], back.headers
        page = stranger.get(back.headers["Location"])
        assert page.status_code == 200 and "code" in page.text.lower()
    # An issuer of the attacker's is not trusted for a public mail provider by mistake.
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            f'issuer = "{gateway.google}",',
            'issuer = "https://login.example.com", trusted_domains = { "gmail.com" },',
        ),
    )
    done = subprocess.run(
        [BIN / "moongate", "check", "--config", gateway.config], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "gmail.com is a public mail provider" in done.stdout, done.stdout
    assert re.search(r"gateway\.lua:\d+: providers\.google_oauth\.trusted_domains: ", done.stdout), done.stdout


def test_flow_for_existing_accounts_creates_none_by_google(new_gateway):
    """Attack: registration is closed, and a stranger registers by Google at the sign-in page, by the API or an app."""
    gateway = new_gateway
    gateway.edit("flows/login.lua", lambda text: text.replace('registers = { "google_oauth" },', ""))
    gateway.registers_app("https://app.example.com/in")
    gateway.start()
    stranger = Visitor(gateway)
    back = stranger.get(choose(stranger.continues(return_to="/reports"), account=ASHA))
    assert back.status_code == 303 and "refused=account_not_found" in back.headers["Location"]
    page = stranger.get(back.headers["Location"]).text
    assert "No account found" in page and stranger.account() is None
    # An account that exists is still opened, with and without a page.
    known = Visitor(gateway)
    known.get(choose(known.continues("/auth/register"), account=RAVI))
    again = Visitor(gateway)
    again.get(choose(again.continues(), account=RAVI))
    assert again.account()["id"] == known.account()["id"]
    # An app learns it by its code.
    _, challenge = pkce()
    flow = gateway.api(
        "POST", "/flows", {"flow": "login", "code_challenge": challenge, "redirect_to": "https://app.example.com/in"}
    ).json()["id"]
    browser = Visitor(gateway)
    browser.get(f"/auth/login?id={flow}")
    back = browser.get(choose(browser.continues(id=flow), account=ASHA))
    assert back.headers["Location"] == "https://app.example.com/in?error=account_not_found"


def test_closed_registration_holds_for_google_and_every_page(new_gateway):
    """Attack: `registration = "closed"`, and a stranger registers by Google at the sign-in page, by a code that was
    requested a moment before, or by an app's call."""
    gateway = new_gateway
    gateway.start()
    known = Visitor(gateway)
    known.get(choose(known.continues("/auth/register"), account=RAVI))
    early = gateway.flow("register")
    assert gateway.begin(early, "+919876500001").status_code == 200
    code = gateway.code("+919876500001")
    active = gateway.policy()["active"]
    gateway.edit("accounts.lua", lambda text: text.replace('registration = "open"', 'registration = "closed"'))
    gateway.wait_generation(active)
    stranger = Visitor(gateway)
    assert "Create Account" not in stranger.get("/auth/login?return_to=%2Freports").text
    back = stranger.get(choose(stranger.continues(return_to="/reports"), account=ASHA))
    assert back.status_code == 303 and "refused=registration_closed" in back.headers["Location"]
    page = stranger.get(back.headers["Location"]).text
    assert "New accounts cannot be created here." in page and "Create Account" not in page
    assert stranger.account() is None
    assert stranger.get("/auth/register").status_code == 403
    late = gateway.submit(early, code)
    problem(late, 403, "registration_closed")
    registered = gateway.api(
        "POST",
        "/register",
        {"email": "new@example.com", "password": "correct horse 9", "first_name": "A", "last_name": "B"},
    )
    problem(registered, 403, "registration_closed")
    again = Visitor(gateway)
    again.get(choose(again.continues(), account=RAVI))
    assert again.account()["id"] == known.account()["id"]
    told = subprocess.run(
        [BIN / "moongate", "policy", "explain", late.json()["decision_id"], "--config", gateway.config],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "accounts.lua:" in told.stdout and "registration" in told.stdout, told.stdout


ADMIT = """registration = "open",
  admit = function(f) if f.account.groups.staff then return allow end return deny "staff_only" end,
  reasons = { staff_only = "Only staff <may> sign in." },
  groups = { staff = members() },
"""


def test_admit_decides_for_google_codes_and_apps(new_gateway):
    """Attack: accounts.lua admits the members of a group, and others come by Google, by a code that was requested
    before, by an app, or by registering."""
    gateway = new_gateway
    gateway.registers_app("https://app.example.com/in")
    gateway.start()
    known = Visitor(gateway)
    known.get(choose(known.continues("/auth/register"), account=RAVI))
    early = gateway.flow("register")
    assert gateway.begin(early, "+919876500001").status_code == 200
    code = gateway.code("+919876500001")
    active = gateway.policy()["active"]
    gateway.edit("accounts.lua", lambda text: text.replace('registration = "open",', ADMIT))
    gateway.wait_generation(active)
    assert known.account()["id"], "a session goes on"
    for account in (RAVI, ASHA):
        stranger = Visitor(gateway)
        back = stranger.get(choose(stranger.continues(return_to="/reports"), account=account))
        assert back.status_code == 303 and "refused=staff_only" in back.headers["Location"], back.headers
        page = stranger.get(back.headers["Location"]).text
        assert "Only staff &lt;may&gt; sign in." in page
        assert stranger.account() is None
    late = problem(gateway.submit(early, code), 403, "staff_only")
    assert late["detail"] == "Only staff <may> sign in."
    _, challenge = pkce()
    wanted = {"flow": "login", "code_challenge": challenge, "redirect_to": "https://app.example.com/in"}
    flow = gateway.api("POST", "/flows", wanted).json()["id"]
    browser = Visitor(gateway)
    browser.get(f"/auth/login?id={flow}")
    back = browser.get(choose(browser.continues(id=flow), account=RAVI))
    assert "code=" not in back.headers["Location"]
    command = [BIN / "moongate", "policy", "explain", late["decision_id"], "--config", gateway.config]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert "accounts.admit" in told and 'deny "staff_only"' in told and "account.groups" in told, told
    assert tool(gateway, "group", "add", "staff", known.account()["id"])[0] == 0
    again = Visitor(gateway)
    again.get(choose(again.continues(), account=RAVI))
    assert again.account()["id"] == known.account()["id"]


def test_reason_of_a_refused_sign_in_is_in_log_and_decision(gateway):
    visitor = Visitor(gateway)
    visitor.get(choose(visitor.continues(), action="error"))
    line = wait_for(
        lambda: [line for line in gateway.log.splitlines() if "google_oauth: refused: error server_error" in line],
        "the reason",
    )[-1]
    decision = re.search(r"decision=(dc_[\w-]+)", line)[1]
    told = subprocess.run(
        [BIN / "moongate", "policy", "explain", decision, "--config", gateway.config],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "401 oauth_failed" in told.stdout and "because    error server_error" in told.stdout, told.stdout


def test_page_shows_the_policys_sentence(new_gateway):
    gateway = new_gateway
    gateway.edit(
        "policies/google_oauth.lua",
        lambda text: text.rstrip().rstrip("}")
        + '  verify = function(f) return deny "invite_only" end,\n'
        + '  reasons = { invite_only = "Ask your host for an invitation <b>first</b>." },\n}\n',
    )
    gateway.start()
    visitor = Visitor(gateway)
    back = visitor.get(choose(visitor.continues(return_to="/reports"), account=ASHA))
    page = visitor.get(back.headers["Location"]).text
    assert "Ask your host for an invitation &lt;b&gt;first&lt;/b&gt;." in page, page
    assert "Google sign-in failed" not in page and visitor.account() is None
    # Text from a link is not shown.
    assert "other_reason" not in visitor.get("/auth/login?refused=other_reason&by=google_oauth").text


def test_link_of_a_foreign_sign_in(gateway):
    attacker, victim = Visitor(gateway), Visitor(gateway)
    back = choose(attacker.continues(), account=ASHA)
    victim.continues()
    assert victim.get(back).status_code == 404 and victim.account() is None
    assert attacker.get(back).status_code == 303
    assert attacker.get(back).status_code in (404, 409), "once"


def test_keys_rotate_in_between(gateway):
    for _ in range(3):
        visitor = Visitor(gateway)
        away = visitor.continues()
        assert (
            requests.post(
                gateway.google + "/keys", data={"rotate": "1"}, allow_redirects=False, timeout=20
            ).status_code
            == 303
        )
        assert visitor.get(choose(away, account=RAVI)).status_code == 303
        assert visitor.account()


def test_a_provider_that_does_not_answer_is_not_waited_for(gateway):
    visitor = Visitor(gateway)
    back = visitor.get(choose(visitor.continues(), account=ASHA, slow="1"))
    assert (back.status_code, back.headers["Location"]) == (303, "/auth/login?refused=oauth_failed")
    assert "Google sign-in failed. Try again." in visitor.get(back.headers["Location"]).text
    assert back.elapsed.total_seconds() < 7 and visitor.account() is None


def test_apps(gateway):
    gateway.registers_app("https://app.example.com/in", "https://app.example.com/in?a=1")
    gateway.restart(15)
    verifier, challenge = pkce()
    created = gateway.api(
        "POST", "/flows", {"flow": "login", "code_challenge": challenge, "redirect_to": "https://app.example.com/in"}
    )
    assert created.status_code == 201, created.text
    flow = created.json()["id"]
    # The API gives out no link of Google: the app opens a page that names it.
    problem(gateway.api("POST", f"/flows/{flow}/begin", {"provider": "google_oauth"}), 409, "step_not_open")
    # The system browser does not know the flow and gets no session from it.
    browser = Visitor(gateway)
    assert "Example Wallet" in browser.get(f"/auth/login?id={flow}").text
    back = browser.get(choose(browser.continues(id=flow), account=ASHA))
    assert back.status_code == 303 and back.headers["Location"].startswith("https://app.example.com/in?code=")
    assert browser.account() is None
    code = field("code", back.headers["Location"])
    assert code not in gateway.api("GET", f"/flows/{flow}").text
    problem(gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": "a" * 43}), 401, "invalid_code")
    done = gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": verifier})
    assert done.status_code == 200, done.text
    token = done.json()["session"]["token"]
    assert gateway.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    problem(gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": verifier}), 409, "step_not_open")

    # A cancellation returns to the app.
    for action, error in (("cancel", "oauth_cancelled"), ("error", "oauth_failed")):
        flow = gateway.api(
            "POST",
            "/flows",
            {"flow": "login", "code_challenge": challenge, "redirect_to": "https://app.example.com/in?a=1"},
        ).json()["id"]
        browser = Visitor(gateway)
        browser.get(f"/auth/login?id={flow}")
        back = browser.get(choose(browser.continues(id=flow), action=action))
        assert (back.status_code, back.headers["Location"]) == (303, f"https://app.example.com/in?a=1&error={error}")


def test_an_address_that_was_left_behind_does_not_come_back(gateway):
    """Attack: the mail address of a former employer, which the user once used at Google."""
    person = Visitor(gateway)
    person.get(choose(person.continues(), account=ASHA))
    owner = {"Authorization": f"Bearer {person.session.cookies['moongate']}"}
    flow = gateway.api("POST", "/flows", {"flow": "change_email"}, headers=owner).json()["id"]
    gateway.api("POST", f"/flows/{flow}/begin", {"email": "new@example.com"}, headers=owner)
    wait_for(lambda: [entry for entry in gateway.outbox() if entry["to"] == "new@example.com"], "the mail")
    done = gateway.api("POST", f"/flows/{flow}/submit", {"code": gateway.code("new@example.com")}, headers=owner)
    assert done.json()["status"] == "complete", done.text
    again = Visitor(gateway)
    again.get(choose(again.continues(), account=ASHA))
    assert again.account()["id"] == done.json()["account"]["id"] and again.account()["email"] == "new@example.com"
    sent = len(gateway.outbox())
    flow = gateway.flow("login")
    assert (
        gateway.api("POST", f"/flows/{flow}/begin", {"provider": "email_code", "email": "asha@gmail.com"}).status_code
        == 200
    )
    time.sleep(0.5)
    assert not [entry for entry in gateway.outbox()[: len(gateway.outbox()) - sent] if entry["code"]], (
        "it is unregistered: nothing is sent"
    )


# An independent provider: our client with oidc-provider-mock.


@pytest.fixture
def stranger():
    users = [
        User(
            sub="dora",
            claims={"email": "dora@example.com", "email_verified": True, "given_name": "Dora", "family_name": "Fox"},
        ),
        User(sub="mallory", claims={"email": "dora@example.com", "email_verified": False}),
    ]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with run_server_in_thread(user_claims=users) as server:
        yield f"http://localhost:{server.server_port}"


def test_our_client_at_a_strangers_provider(new_gateway, stranger):
    gateway = new_gateway
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(gateway.google, stranger).replace(
            'client_secret = file "data/google.secret"', 'client_secret = env "STRANGERS_SECRET"'
        ),
    )
    gateway.start(STRANGERS_SECRET="anything")

    def consents(address, **fields):
        answer = requests.post(address, data=fields, allow_redirects=False, timeout=20)
        assert answer.status_code in (302, 303), answer.text
        return answer.headers["Location"]

    dora = Visitor(gateway)
    away = dora.continues()
    assert away.startswith(stranger + "/")
    back = dora.get(consents(away, sub="dora"))
    assert (back.status_code, back.headers["Location"]) == (303, "/profile-setup")
    account = dora.account()
    # That site is not authoritative for the address, so the account only claims it until its own code proves it.
    assert (account["email"], account["is_email_verified"], account["last_name"]) == ("dora@example.com", False, "Fox")
    again = Visitor(gateway)
    assert again.get(consents(again.continues(), sub="dora")).headers["Location"] == "/home"
    mallory = Visitor(gateway)
    mallory.get(consents(mallory.continues(), sub="mallory"))
    assert mallory.account()["id"] != account["id"] and not mallory.account()["is_email_verified"]


# An independent client: Authlib with mock Google.

CALLBACK = "http://localhost:9/callback"


@pytest.fixture
def google():
    mock = MockGoogle(CALLBACK)
    try:
        yield mock
    finally:
        mock.stop()


def authlib(mock, method="client_secret_basic", redirect=CALLBACK):
    return OAuth2Session(
        mock.client_id,
        mock.client_secret,
        scope="openid email profile",
        redirect_uri=redirect,
        code_challenge_method="S256",
        token_endpoint_auth_method=method,
    )


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_authlib_signs_in_at_mock_google(google, method):
    told = requests.get(google.issuer + "/.well-known/openid-configuration", timeout=20).json()
    assert told["issuer"] == google.issuer and method in told["token_endpoint_auth_methods_supported"]
    client = authlib(google, method)
    verifier, _ = pkce()
    away, state = client.create_authorization_url(told["authorization_endpoint"], code_verifier=verifier, nonce="n0nce")
    back = choose(away, account=MINA)
    assert field("state", back) == state and field("iss", back) == google.issuer
    token = client.fetch_token(told["token_endpoint"], authorization_response=back, code_verifier=verifier, state=state)
    keys = KeySet.import_key_set(requests.get(told["jwks_uri"], timeout=20).json())
    read = jwt.decode(token["id_token"], keys, algorithms=["RS256"])
    jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": google.issuer},
        aud={"essential": True, "value": google.client_id},
        exp={"essential": True},
        nonce={"essential": True, "value": "n0nce"},
    ).validate(read.claims)
    assert read.claims["email"] == "mina@example.com" and read.claims["email_verified"] is False
    assert client.get(told["userinfo_endpoint"]).json()["sub"] == read.claims["sub"] == MINA


@pytest.mark.parametrize("what", ["verifier", "reused", "redirect", "secret", "no verifier"])
def test_authlib_is_refused(google, what):
    client = authlib(google)
    verifier, _ = pkce()
    away, state = client.create_authorization_url(google.issuer + "/authorize", code_verifier=verifier)
    back = choose(away, account=ASHA)
    if what == "reused":
        client.fetch_token(google.issuer + "/token", authorization_response=back, code_verifier=verifier, state=state)
    if what == "redirect":
        client = authlib(google, redirect="http://localhost:9/other")
    if what == "secret":
        client = OAuth2Session(google.client_id, "wrong", redirect_uri=CALLBACK, code_challenge_method="S256")
    sent = {"verifier": pkce()[0], "no verifier": None}.get(what, verifier)
    with pytest.raises(OAuthError) as refused:
        client.fetch_token(google.issuer + "/token", authorization_response=back, code_verifier=sent, state=state)
    assert refused.value.error == ("invalid_client" if what == "secret" else "invalid_grant")


@pytest.mark.parametrize(
    "address", ["http://localhost:9/callback/", "http://localhost:9/other", "http://evil.example.com/"]
)
def test_unknown_redirect_address_is_refused(google, address):
    _, challenge = pkce()
    answer = requests.get(
        google.issuer + "/authorize",
        allow_redirects=False,
        timeout=20,
        params={
            "client_id": google.client_id,
            "redirect_uri": address,
            "response_type": "code",
            "scope": "openid",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        },
    )
    assert answer.status_code == 400 and "Location" not in answer.headers


def test_demo_service_reports_invalid_options():
    """Attack: a mock of Google on an address that other machines reach, where they sign in as anyone."""
    for flags, words in [(["--port", "70000"], "65535"), (["--google-secret", "a", "--host", "0.0.0.0"], "127.0.0.1")]:
        done = subprocess.run([BIN / "demo-service", *flags], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and words in done.stderr


def test_gateway_serves_no_mock_of_google(gateway):
    """Attack: a gateway with code that signs anyone in as anyone."""
    answer = requests.get(gateway.url + "/mock-google/", allow_redirects=False, timeout=20)
    assert answer.status_code == 401, "its path is one of the service, which needs a sign-in"
