"""Sign-in at other sites by `openid { … }` and `oauth { … }`: presets, the function `identity`, names and buttons."""

import html
import json
import re
import subprocess
from urllib.parse import quote

import pytest
import requests

from local_gateway import BIN, wait_for
from mockgoogle import Visitor, field
from other_sites import OtherSite

CLIENT = 'client_id = "gateway", client_secret = env "SITE_SECRET"'
ICON = '<svg viewBox="0 0 8 8" aria-hidden="true"><path d="M0 0h8v8H0z"/></svg>'

WORK = """return policy "work" {
  identity = function(f)
    if f.claims.department == "guests" then return deny "not_staff" end
    if f.claims.department == "broken" then error("no " .. f.claims.email) end
    return { email = f.claims.email, email_verified = f.claims.email_verified, first_name = f.claims.given_name,
             groups = f.claims.roles, data = { department = f.claims.department } }
  end,
  reasons = { not_staff = "Only staff can sign in here." },
}
"""


@pytest.fixture
def site():
    site = OtherSite()
    yield site
    site.stop()


def configure(gateway, *entries, **policies):
    """Adds entries to gateway.lua and to the flow of the sign-in page."""
    added = "providers = {\n" + ",\n".join(entries) + ","
    gateway.edit("gateway.lua", lambda text: text.replace("providers = {", added, 1))
    names = ", ".join(f'"{entry.split()[0]}"' for entry in entries)
    gateway.edit("flows/login.lua", lambda text: text.replace('"google_oauth"', f'"google_oauth", {names}'))
    for name, text in policies.items():
        (gateway.config / "policies" / f"{name}.lua").write_text(text)


def work(site, more=""):
    return f'work = openid {{ issuer = "{site.url}", {CLIENT}, label = "Example Inc."{more} }}'


def begins(gateway, name, flow=None):
    """A visitor that presses the site's button, and the address that it leads to."""
    visitor = Visitor(gateway)
    answer = visitor.post("/auth/login", provider=name, **({"flow": flow} if flow else {}))
    assert answer.status_code == 200, answer.text
    return visitor, html.unescape(re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)[1])


def returns(visitor, site, away, name="work", **claims):
    """The answer to the callback, with these claims in the ID token."""
    if claims:
        site.claims = {"nonce": field("nonce", away), **claims}
    return visitor.get(f"/auth/callback/{name}?code=c0de&state={field('state', away)}")


def check(gateway):
    done = subprocess.run(
        [BIN / "moongate", "check", "--config", gateway.config],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "SITE_SECRET": "s"},
    )
    return done.stdout + done.stderr


def test_an_issuer_with_a_label_an_icon_and_an_identity_function(new_gateway, site):
    gateway = new_gateway
    (gateway.config / "icons").mkdir()
    (gateway.config / "icons" / "work.svg").write_text(ICON + "\n")
    configure(gateway, work(site, ', icon = "icons/work.svg"'), work=WORK)
    gateway.start(SITE_SECRET="s3cret")
    page = Visitor(gateway).get("/auth/login").text
    assert f"{ICON}<span>Example Inc.</span>" in page

    asha = {"sub": "a1", "email": "asha@example.com", "email_verified": True, "given_name": "Asha"}
    visitor, away = begins(gateway, "work")
    assert away.startswith(site.url + "/authorize?") and field("code_challenge_method", away) == "S256"
    assert returns(visitor, site, away, **asha, roles=["ops"], department="sales").status_code == 303
    assert visitor.account()["first_name"] == "Asha"
    exported = subprocess.run(
        [BIN / "moongate", "account", "export", "--config", gateway.config],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "SITE_SECRET": "s3cret"},
    ).stdout
    own = next(line for line in map(json.loads, exported.splitlines()) if line["id"] == visitor.account()["id"])
    assert any(name.get("federated") == f"work {site.url} a1" for name in own["identifiers"]), own

    # The same by the command.
    def shown(claims, *words):
        file = gateway.config / "claims.json"
        file.write_text(claims)
        done = subprocess.run(
            [BIN / "moongate", "policy", "claims", "work", file, "--config", gateway.config, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": "/usr/bin:/bin", "SITE_SECRET": "s3cret"},
        )
        return done.returncode, done.stdout + done.stderr

    status, told = shown(json.dumps(asha | {"roles": ["ops"], "department": "sales"}), "--json")
    assert (status, json.loads(told)["groups"], json.loads(told)["data"]) == (0, ["ops"], {"department": "sales"})
    status, told = shown(site.id_token())
    assert status == 0 and "email: asha@example.com (verified)" in told, told
    status, told = shown('{"department":"guests"}')
    assert status == 1 and "Only staff can sign in here." in told, told
    assert shown("nonsense")[0] == 2

    # The doctor has read discovery and keys.
    checked = subprocess.run(
        [BIN / "moongate", "doctor", "--config", gateway.config, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "SITE_SECRET": "s3cret"},
    )
    told = [one["message"] for one in json.loads(checked.stdout)["checks"] if one["check"] == "site"]
    assert f"work: {site.url} answers with one key, and takes client_secret_basic." in told, told

    # Whom the function denies reads its sentence, and gets no account.
    guest, away = begins(gateway, "work")
    back = returns(guest, site, away, sub="g1", email="g@example.com", department="guests")
    assert (back.status_code, back.headers["Location"]) == (303, "/auth/login?refused=not_staff&by=work")
    assert "Only staff can sign in here." in guest.get(back.headers["Location"]).text
    assert guest.account() is None
    # A function that fails refuses, and the log says why without the claims.
    broken, away = begins(gateway, "work")
    back = returns(broken, site, away, sub="b1", email="secret-mail@example.com", department="broken")
    assert (back.status_code, back.headers["Location"]) == (303, "/auth/login?refused=policy_error")
    assert "Something went wrong on our side." in broken.get(back.headers["Location"]).text
    assert "policies/work.lua:4" in gateway.log and "secret-mail" not in gateway.log
    assert "s3cret" not in gateway.log


def test_a_posted_answer_and_the_name_beside_the_code(new_gateway, site):
    gateway = new_gateway
    configure(gateway, work(site, ', response_mode = "form_post"'), work='return policy "work" {}')
    gateway.start(SITE_SECRET="s3cret")
    visitor, away = begins(gateway, "work")
    assert field("response_mode", away) == "form_post"
    site.claims = {"nonce": field("nonce", away), "sub": "a1"}
    user = '{"name":{"firstName":"Asha","lastName":"Rao"},"email":"owner@gmail.com"}'
    posted = visitor.session.post(
        gateway.url + "/auth/callback/work",
        data={"code": "c0de", "state": field("state", away), "user": user, "id_token": "x"},
        headers={"Origin": site.url},
        allow_redirects=False,
        timeout=20,
    )
    assert posted.status_code == 303, posted.text
    assert visitor.get(posted.headers["Location"]).status_code == 303
    # Attack: the address of the form is the browser's.
    account = visitor.account()
    assert account["first_name"] == "Asha" and not account.get("email")


def signed_in(gateway, site, **claims):
    visitor, away = begins(gateway, "work")
    assert returns(visitor, site, away, **claims).status_code == 303
    assert visitor.account()
    return visitor


def test_the_issuer_signs_a_user_out(new_gateway, site):
    gateway = new_gateway
    configure(gateway, work(site, ', sign_out = "there"'), work='return policy "work" {}')
    gateway.start(SITE_SECRET="s3cret")

    def posted(token):
        return requests.post(gateway.url + "/auth/hook/work", data={"logout_token": token}, timeout=20).status_code

    first, second = signed_in(gateway, site, sub="a1", sid="s-1"), signed_in(gateway, site, sub="a1", sid="s-2")
    other = signed_in(gateway, site, sub="b1", sid="s-3")
    token = site.logout_token(sub="a1", sid="s-1", jti="1")
    assert posted(token) == 204
    wait_for(lambda: first.account() is None, "the session to end", 2)
    assert second.account() and other.account()
    # Attacks: the same token again, an ID token, and one that nobody has signed.
    assert [posted(token), posted(site.id_token()), posted("a.b.c"), posted("")] == [400] * 4
    assert posted(site.logout_token(sub="a1", jti="2")) == 204
    wait_for(lambda: second.account() is None, "all sessions of the user to end", 2)
    assert other.account()
    # A token that names no user, and an id of any length.
    long = "s" * 3000
    first, second = signed_in(gateway, site, sub="a1", sid=long), signed_in(gateway, site, sub="a1", sid="s-4")
    # Attack: an id that nobody has.
    assert posted(site.logout_token(sid="s", jti="3")) == 204
    assert posted(site.logout_token(sid=long, jti="4")) == 204
    wait_for(lambda: first.account() is None, "the session to end", 2)
    assert second.account() and other.account()
    # A user who signs out here is led to the issuer, and has signed out here by then.
    left = other.post("/auth/logout", return_to="/")
    away = html.unescape(re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', left.text)[1])
    assert away.startswith(site.url + "/end?client_id=gateway"), away
    assert field("post_logout_redirect_uri", away) == gateway.url + "/auth/login"
    assert other.account() is None and "Clear-Site-Data" in left.headers


def test_a_page_of_the_issuer_signs_its_user_out(new_gateway, driver):
    gateway, site = new_gateway, OtherSite("localhost")
    try:
        configure(gateway, work(site), work='return policy "work" {}')
        gateway.start(SITE_SECRET="s3cret")
        first, second = signed_in(gateway, site, sub="a1", sid="s-1"), signed_in(gateway, site, sub="a1", sid="s-2")
        frame = f'<iframe src="{gateway.url}/auth/logout/work?iss={quote(site.url)}&sid={{}}"></iframe>'
        site.pages = {"/end": frame.format("s-1"), "/wrong": frame.format("s-2")}
        driver.get(gateway.url + "/auth/login")
        token = first.session.cookies["moongate"]
        driver.add_cookie({"name": "moongate", "value": token, "path": "/", "httpOnly": True, "sameSite": "Lax"})
        driver.get_log("browser")
        # Attack: a page that anyone has made embeds the address, and knows the id. To this browser it is another site,
        # so the gateway gets no cookie, and the browser does not show the frame.
        driver.get(f"http://127.0.0.1:{site.port}/end")
        assert first.account() and "frame-ancestors" in str(driver.get_log("browser"))
        # Attack: an id of another session.
        driver.get(site.url + "/wrong")
        assert first.account()
        driver.get(site.url + "/end")
        wait_for(lambda: first.account() is None, "the session to end", 2)
        assert second.account() and "frame-ancestors" not in str(driver.get_log("browser"))
    finally:
        site.stop()


ACCOUNTS = """return accounts {
  groups = { ops = function(f) local work = f.account.identities.work return work and work.groups.ops end },
}
"""
ROUTES = """return routes {{
  {{ path = "/echo/ops/**", to = "{0}", require = {{ group = "ops" }} }},
  {{ path = "/**", to = "{0}" }},
}}
"""


def test_the_issuer_is_asked_again(new_gateway, site):
    gateway = new_gateway
    configure(gateway, work(site, ', recheck = "1s", recheck_grace = "1h"'), work='return policy "work" {}')
    (gateway.config / "accounts.lua").write_text(ACCOUNTS)
    gateway.edit("routes.lua", lambda _: ROUTES.format(f"http://127.0.0.1:{gateway.ports[2]}"))
    gateway.start(SITE_SECRET="s3cret")
    visitor, away = begins(gateway, "work")
    assert "offline_access" in field("scope", away).split()
    assert returns(visitor, site, away, sub="a1", groups=["ops"]).status_code == 303
    assert visitor.get("/echo/ops/x").status_code == 200

    def rechecks():
        return sum(form["grant_type"] == "refresh_token" for form in site.posted)

    # Somebody is removed from a group there.
    site.claims = site.claims | {"groups": ["dev"]}
    wait_for(lambda: visitor.get("/echo/ops/x").status_code == 403, "the group to be gone")
    assert visitor.account()
    # The issuer is down: nobody is signed out, and the groups stay.
    site.fails = (503, "temporarily_unavailable")
    before = rechecks()
    wait_for(lambda: rechecks() > before, "a recheck")
    assert visitor.account() and visitor.get("/echo/ops/x").status_code == 403
    # It comes back, and no token has come twice.
    site.fails = None
    site.claims = site.claims | {"groups": ["ops"]}
    wait_for(lambda: visitor.get("/echo/ops/x").status_code == 200, "the group to be back", 60)
    assert site.reused == []
    # The user is disabled there.
    site.fails = (400, "invalid_grant")
    wait_for(lambda: visitor.account() is None, "the session to end", 60)
    assert "r3fresh" not in gateway.log


def test_a_site_of_oauth(new_gateway, site):
    gateway = new_gateway
    entry = f'forge = oauth {{ preset = "gitea", server = "{site.url}", {CLIENT}, label = "Forge" }}'
    configure(gateway, entry, forge='return policy "forge" {}')
    gateway.start(SITE_SECRET="s3cret")
    me = "/login/oauth/userinfo"
    site.answers[me] = {"sub": "7", "name": "Asha Rao", "email": "asha@example.com", "groups": ["acme"]}
    visitor, away = begins(gateway, "forge")
    assert away.startswith(site.url + "/login/oauth/authorize?") and field("nonce", away) is None
    assert returns(visitor, site, away, "forge").status_code == 303
    first = visitor.account()
    assert first["first_name"] == "Asha Rao" and not first["is_email_verified"]
    assert "Bearer t0ken" in site.bearers and site.posted[-1]["code"] == "c0de"
    # The same user again, and another one.
    again, away = begins(gateway, "forge")
    returns(again, site, away, "forge")
    assert again.account()["id"] == first["id"]
    site.answers[me] = {"sub": "8", "email": "asha@example.com"}
    other, away = begins(gateway, "forge")
    returns(other, site, away, "forge")
    assert other.account()["id"] != first["id"], "an address that is not verified joins nothing"
    # Attack: the answer of one site is sent to the callback of another.
    mixed, away = begins(gateway, "forge")
    assert mixed.get(f"/auth/callback/google_oauth?code=c0de&state={field('state', away)}").status_code == 404


def test_mistakes_have_a_place_and_a_remedy(new_gateway, site):
    gateway = new_gateway
    before = (gateway.config / "gateway.lua").read_text()
    slack = f"preset = 'slack', {CLIENT}"

    def check_with(entry):
        text = before.replace("providers = {", "providers = {\n" + entry + ",", 1)
        (gateway.config / "gateway.lua").write_text(text)
        return check(gateway)

    for entry, message in (
        (f"openid = {{ issuer = 'https://a.example.com', {CLIENT} }}", "is a kind of provider: give the entry a name"),
        (f"work = openid {{ preset = 'okta', {CLIENT} }}", "the preset okta needs it"),
        (f"work = openid {{ preset = 'oktaa', {CLIENT} }}", "did you mean `okta`"),
        ("work = openid { preset = 'slack', client_id = 'x' }", "write the client's secret, or its private_key"),
        (f"work = oauth {{ {CLIENT} }}", "providers.work.userinfo: is missing"),
        (f"work = openid {{ {slack}, title = 'A', label = 'B' }}", "says the same as `title`"),
        (f"work = openid {{ {slack}, icon = 'none.svg' }}", "providers.work.icon: none.svg"),
    ):
        told = check_with(entry)
        assert message in told and re.search(r"gateway\.lua:\d+: ", told), told
    # Attack: an icon with a script, which every visitor of the sign-in page would load.
    for text in ("<svg><script>1</script></svg>", '<svg onload="x()"></svg>', "<p>no</p>", '<svg><a href="//x"/></svg>'):
        (gateway.config / "x.svg").write_text(text)
        assert "must be one <svg> element" in check_with(f"work = openid {{ {slack}, icon = 'x.svg' }}"), text
