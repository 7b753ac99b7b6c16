"""Several instances of one provider: two sites, two SMS providers, two PINs."""

import json
import re
import subprocess

import pytest
import requests

from local_gateway import BIN
from mockgoogle import MockGoogle, Visitor, choose

INSTANCES = """
    sms_in = phone_otp { sms = outbox(), title = "SMS (India)" },
    sms_us = phone_otp { sms = outbox(), title = "SMS (USA)" },
    door_pin = pin { title = "Door code" },
"""


def with_instances(gateway, more=""):
    gateway.edit("gateway.lua", lambda text: text.replace("providers = {", "providers = {" + INSTANCES + more, 1))
    for name in ("sms_in", "sms_us", "door_pin"):
        (gateway.config / "policies" / f"{name}.lua").write_text(f'return policy "{name}" {{}}\n')
    (gateway.config / "flows" / "two.lua").write_text(
        'return flow "two" { account = "any", steps = { any_of { "sms_in", "sms_us" } }, next = { new = "/home", returning = "/home" } }\n'
    )
    # Two more sign-in methods add two more targets for guesses.
    gateway.edit("gateway.lua", lambda text: text.replace('risk_budget = "0.1% per 30d"', 'risk_budget = "1% per 30d"'))


@pytest.fixture(scope="module")
def two_sites():
    """Two identity providers with the same subjects."""
    sites = []
    try:
        yield lambda *redirects: sites.append(MockGoogle(*redirects)) or sites[-1]
    finally:
        for site in sites:
            site.stop()


def test_two_sites_are_two_identities(new_gateway, two_sites):
    gateway = new_gateway
    work = two_sites(gateway.url + "/auth/callback/work")
    club = two_sites(gateway.url + "/auth/callback/club")
    entry = '{name} = google_oauth {{ issuer = "{site.issuer}", client_id = "{site.client_id}", client_secret = env "{secret}", title = "{title}" }},\n'
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "providers = {",
            "providers = {\n"
            + entry.format(name="work", site=work, secret="WORK_SECRET", title="Acme staff")
            + entry.format(name="club", site=club, secret="CLUB_SECRET", title="Chess club"),
            1,
        ),
    )
    gateway.edit("flows/login.lua", lambda text: text.replace('"google_oauth"', '"google_oauth", "work", "club"'))
    gateway.start(WORK_SECRET=work.client_secret, CLUB_SECRET=club.client_secret)

    def continues(visitor, name):
        answer = visitor.post("/auth/login", provider=name)
        return (
            re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)[1]
            .replace("&amp;", "&")
            .replace("&#61;", "=")
        )

    page = Visitor(gateway).get("/auth/login").text
    assert [title for title in ("Continue with Google", "Acme staff", "Chess club") if title not in page] == []
    # Unverified, so that only the subject identifies the user.
    dora = {"account": "other", "name": "Dora Fox", "email": "dora@example.com"}
    staff = Visitor(gateway)
    away = continues(staff, "work")
    assert away.startswith(work.issuer)
    assert staff.get(choose(away, **dora)).status_code == 303
    first = staff.account()
    # Attack: another user has the same subject at the other site.
    thief = Visitor(gateway)
    assert thief.get(choose(continues(thief, "club"), **dora)).status_code == 303
    assert thief.account()["id"] != first["id"]
    again = Visitor(gateway)
    again.get(choose(continues(again, "work"), **dora))
    assert again.account()["id"] == first["id"]
    told = subprocess.run(
        [BIN / "moongate", "account", "export", "--config", gateway.config],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "WORK_SECRET": work.client_secret, "CLUB_SECRET": club.client_secret},
    )
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    federated = sorted(name["federated"] for line in lines for name in line["identifiers"] if "federated" in name)
    assert [value.rsplit(" ", 1)[0] for value in federated] == [f"club {club.issuer}", f"work {work.issuer}"], federated
    assert federated[0].split(" ")[2] == federated[1].split(" ")[2], "one subject at two sites"
    # The export can be imported: nothing else is wrong with its lines than that the accounts exist.
    checked = subprocess.run(
        [BIN / "moongate", "account", "import", "-", "--config", gateway.config, "--dry-run"],
        input=told.stdout,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "WORK_SECRET": work.client_secret, "CLUB_SECRET": club.client_secret},
    )
    problems = checked.stdout.splitlines()[:-1]
    assert len(problems) == len(lines) and all("already exists" in each for each in problems), checked.stdout
    # The account page shows which site belongs to the user, and the address.
    page = staff.get("/auth/account").text
    badges = dict(
        re.findall(
            r'<dt>(Google|Acme staff|Chess club)</dt>\s*<dd>(?:<span class="value"[^>]*>[^<]*</span>)?<span class="badge[^"]*">([^<]*)<',
            page,
        )
    )
    assert badges == {"Google": "Not connected", "Acme staff": "Connected", "Chess club": "Not connected"}
    # A failing site is named.
    failing = Visitor(gateway)
    for name, sentence in (
        ("work", "Acme staff could not sign you in. Try again."),
        ("google_oauth", "Google sign-in failed. Try again."),
    ):
        failed = failing.get(f"/auth/login?refused=oauth_failed&by={name}").text
        assert sentence in failed, failed
    back = failing.get(choose(continues(failing, "work"), action="error"))
    assert (back.status_code, back.headers["Location"]) == (303, "/auth/login?refused=oauth_failed&by=work")
    hindi = failing.session.get(
        gateway.url + "/auth/login?refused=oauth_failed&by=google_oauth",
        headers={"Accept": "text/html", "Accept-Language": "hi"},
        timeout=20,
    ).text
    assert "Google से साइन-इन नहीं हो सका। फिर कोशिश करें।" in hindi
    # Attack: the response of one site is sent to the other's callback.
    mixed = Visitor(gateway)
    back = choose(continues(mixed, "work"), **dora)
    answer = mixed.get(back.replace("/auth/callback/work", "/auth/callback/club"))
    assert answer.status_code == 404 and mixed.account() is None


def test_two_sms_providers_have_separate_names_and_counters(new_gateway, number):
    gateway = new_gateway
    with_instances(gateway)
    gateway.start()
    page = Visitor(gateway).get("/auth/login?flow=two").text
    assert "SMS (USA)" in page, "the second one is offered by title"
    flow = gateway.flow("two")
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "sms_us", "phone": number})
    assert begun.status_code == 200, begun.text
    code = gateway.code(number)
    other = gateway.flow("two")
    assert gateway.api("POST", f"/flows/{other}/begin", {"provider": "sms_in", "phone": number}).status_code == 200
    # Attack: the code of one instance is used at the other.
    stolen = gateway.submit(other, code)
    assert (stolen.status_code, stolen.json()["code"]) == (401, "invalid_code")
    assert gateway.submit(flow, code).status_code == 200
    # The first instance has the field and a page under its own name; the other is offered by its title.
    visitor = Visitor(gateway)
    sent = visitor.post("/auth/login", flow="two", phone="+919876500099", **{"with": "phone"})
    assert sent.status_code == 303 and sent.headers["Location"].startswith("/auth/step/sms_in?id="), sent.headers
    assert visitor.get(sent.headers["Location"]).status_code == 200
    offered = visitor.get("/auth/step?flow=two&with=sms_us")
    assert offered.status_code == 200, offered.headers
    assert 'provider="sms_us"' in requests.get(gateway.admin + "/metrics", timeout=20).text


def test_two_pins_are_two_factors(new_gateway, number):
    gateway = new_gateway
    with_instances(gateway)
    gateway.start()
    visitor = Visitor(gateway)
    visitor.session.cookies["moongate"] = gateway.register(number)["session"]["token"]
    page = visitor.get("/auth/account").text
    assert "Door code" in page and "/auth/step/door_pin?flow=door_pin_set" in page and "/auth/pin?flow=pin_set" in page
    for path in ("/auth/step/door_pin?flow=door_pin_set", "/auth/pin?flow=pin_set"):
        assert visitor.get(path).status_code == 200, path


def test_tools_know_instances(new_gateway):
    gateway = new_gateway
    with_instances(gateway)

    def run(*words):
        return subprocess.run([BIN / "moongate", *words], capture_output=True, text=True, timeout=120)

    done = run("check", "--config", gateway.config, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"sms_in", "sms_us", "door_pin"} <= {line["provider"] for line in json.loads(done.stdout)["budgets"]}
    listed = json.loads(run("provider", "list", "--config", gateway.config, "--json").stdout)
    assert {entry["name"]: entry.get("instance_of") for entry in listed if entry.get("instance_of")} == {
        "sms_in": "phone_otp",
        "sms_us": "phone_otp",
        "door_pin": "pin",
    }
    for name in ("sms_us", "door_pin"):
        shown = run(
            "policy",
            "simulate",
            "--config",
            gateway.config,
            "--attacker",
            "guess",
            "--provider",
            name,
            "--for",
            "1h",
            "--json",
        )
        assert shown.returncode in (0, 1) and json.loads(shown.stdout), shown.stderr
    assert run("policy", "diff", gateway.config, gateway.config, "--provider", "sms_us").returncode == 0
    assert "sms_us" in run("policy", "show", "sms_us", "--config", gateway.config).stdout
    types = run("policy", "types", "--config", gateway.config).stdout
    assert "function phone_otp(settings) end" in types and "moongate.Instance" in types
