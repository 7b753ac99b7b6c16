"""Sign-in at issuers that others have written."""

import json
import logging
import subprocess
from types import SimpleNamespace

import pytest
import requests

from local_gateway import BIN, LocalGateway, wait_for
from mockgoogle import field
from real_issuers import KINDS
from test_other_sites import ROUTES, begins, configure

ENTRY = 'NAME = openid {{ issuer = "{0.url}", client_id = "{0.client_id}", label = "{0.name}"{0.settings}, '
RIGHT = ENTRY + 'client_secret = env "{0.name}", recheck = "1s", trusted_domains = {{ "{0.name}.example.com" }} }}'
WRONG = ENTRY + 'client_secret = env "wrong" }}'
ACCOUNTS = """return accounts {
  groups = {
    ops = function(f)
      local all = f.account.identities
      local mock, django, idpyoidc = all.mock, all.django, all.idpyoidc
      return mock and mock.groups.ops or django and django.groups.ops or idpyoidc and idpyoidc.groups.ops
    end,
  },
}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A gateway with two entries for each issuer, of which one has another secret."""
    for name in ("werkzeug", "django", "oidc_provider_mock", "idpyoidc"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    back = gateway.url + "/auth/callback/"
    issuers, entries = {}, {}
    try:
        for name, kind in KINDS.items():
            issuers[name] = kind([back + name, f"{back}{name}_wrong"], tmp_path_factory.mktemp(name))
            entries[name] = RIGHT.format(issuers[name]).replace("NAME", name)
            entries[f"{name}_wrong"] = WRONG.format(issuers[name]).replace("NAME", f"{name}_wrong")
        configure(gateway, *entries.values(), **{name: f'return policy "{name}" {{}}\n' for name in entries})
        (gateway.config / "accounts.lua").write_text(ACCOUNTS)
        gateway.edit("routes.lua", lambda _: ROUTES.format(f"http://127.0.0.1:{gateway.ports[2]}"))
        secrets = {"wrong": "another secret of the gateway", **{name: site.secret for name, site in issuers.items()}}
        yield SimpleNamespace(gateway=gateway.start(**secrets), issuers=issuers, secrets=secrets)
    finally:
        gateway.stop()
        for issuer in issuers.values():
            issuer.down()


@pytest.fixture(params=KINDS)
def issuer(request, place):
    return place.issuers[request.param]


def signed_in(place, issuer, user):
    visitor, away = begins(place.gateway, issuer.name)
    assert away.startswith(issuer.url + "/"), away
    answer = visitor.get(issuer.consents(away, user))
    assert answer.status_code == 303 and "refused" not in answer.headers["Location"], answer.headers
    return visitor


def test_a_user_gets_an_account_and_finds_it_again(place, issuer):
    first = signed_in(place, issuer, "asha")
    account = first.account()
    told = account["first_name"], account["last_name"], account["email"], account["is_email_verified"]
    assert told == ("Asha", "Rao", issuer.claims("asha")["email"], True)
    assert first.get("/echo/ops/x").status_code == 200
    assert signed_in(place, issuer, "asha").account()["id"] == account["id"]
    assert signed_in(place, issuer, "bina").account()["id"] != account["id"]


def test_doctor_has_read_every_issuer(place):
    done = subprocess.run(
        [BIN / "moongate", "doctor", "--config", place.gateway.config, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", **place.secrets},
    )
    told = [one["message"] for one in json.loads(done.stdout)["checks"] if one["check"] == "site"]
    for name, keys in {"mock": "one key", "django": "one key", "idpyoidc": "2 keys"}.items():
        begin = f"{name}: {place.issuers[name].url} answers with {keys}, and takes client_secret_basic"
        assert any(message.startswith(begin) for message in told), told


@pytest.mark.parametrize("issuer", ["mock", "django"], indirect=True)
def test_a_user_who_cancels_reads_that(place, issuer):
    visitor, away = begins(place.gateway, issuer.name)
    back = issuer.cancels(away)
    assert field("error", back) == "access_denied"
    answer = visitor.get(back)
    if issuer.name == "mock":
        # It leaves out `state`, which RFC 6749 section 4.1.2.1 requires. So nothing says which sign-in was cancelled.
        assert field("state", back) is None and answer.status_code == 404, answer.text
    else:
        assert (answer.status_code, answer.headers["Location"]) == (303, "/auth/login?refused=oauth_cancelled")
        assert "Sign-in cancelled" in visitor.get(answer.headers["Location"]).text
    assert visitor.account() is None


def test_idpyoidc_ends_a_session_without_naming_its_user(place):
    issuer = place.issuers["idpyoidc"]
    first, other = signed_in(place, issuer, "asha"), signed_in(place, issuer, "bina")
    second = signed_in(place, issuer, "asha")

    def posted(token):
        hook = place.gateway.url + "/auth/hook/idpyoidc"
        return requests.post(hook, data={"logout_token": token}, timeout=20).status_code

    tokens = issuer.logout_tokens("asha")
    assert posted(tokens[-1]) == 204
    wait_for(lambda: second.account() is None, "the session to end", 2)
    assert first.account() and other.account()
    for token in tokens[:-1]:
        assert posted(token) == 204
    wait_for(lambda: first.account() is None, "the other session to end", 2)
    assert other.account()


def test_a_secret_that_the_issuer_refuses(place, issuer):
    seen = len(place.gateway.log)
    visitor, away = begins(place.gateway, issuer.name + "_wrong")
    answer = visitor.get(issuer.consents(away, "asha"))
    failed = f"/auth/login?refused=oauth_failed&by={issuer.name}_wrong"
    assert (answer.status_code, answer.headers["Location"]) == (303, failed)
    wait_for(lambda: "answers 401 invalid_client" in place.gateway.log[seen:], "the reason in the log")
    assert visitor.account() is None
    for secret in place.secrets.values():
        assert secret not in place.gateway.log


def test_an_issuer_that_is_asked_again(place, issuer):
    gateway = place.gateway
    visitor, other = signed_in(place, issuer, "bina"), signed_in(place, issuer, "asha")
    assert visitor.get("/echo/ops/x").status_code == 200
    # Somebody is removed from a group there.
    issuer.regroup("bina")
    wait_for(lambda: visitor.get("/echo/ops/x").status_code == 403, "the group to be gone")
    # It is down: nobody is signed out.
    seen = len(gateway.log)
    issuer.down()
    try:
        wait_for(lambda: "a recheck failed" in gateway.log[seen:], "a recheck")
        assert visitor.account() and other.account()
    finally:
        issuer.up()
    issuer.regroup("bina", "ops")
    wait_for(lambda: visitor.get("/echo/ops/x").status_code == 200, "the group to be back", 60)
    # A user is disabled there, again and again, in case a refresh is under way.
    if hasattr(issuer, "disable"):
        wait_for(lambda: issuer.disable("bina") or visitor.account() is None, "the session to end")
    assert other.account() and other.get("/echo/ops/x").status_code == 200
