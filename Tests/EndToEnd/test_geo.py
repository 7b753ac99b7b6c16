"""Countries and networks of client addresses: `geo` of gateway.lua with databases made here, in decisions, limits,
events and the doctor (docs: Documentation/guides/limits-and-locks.md)."""

import json
import os
import subprocess
import time

import pytest
import requests

import mmdb
from local_gateway import BIN, LocalGateway, wait_for
from test_accounts import tool
from test_tokens import Service

# The address of the proxy, which names those of the clients.
PROXY = "127.0.0.1"
GERMANY, INDIA, FRANCE, NOWHERE = "198.51.100.7", "203.0.113.9", "2001:db8::1", "192.0.2.1"
ROUTES = """return routes {
  { path = "/country/**", to = "http://127.0.0.1:3000", decide = function(f)
      if f.client.country == "IN" then return allow end
      return deny "elsewhere"
    end },
  { path = "/system/**", to = "http://127.0.0.1:3000", decide = function(f)
      if f.client.asn == 64500 then return allow end
      return deny "elsewhere"
    end },
  { path = "/**", to = "http://127.0.0.1:3000" },
}
"""
LIMIT = 'send_country = { on = "send", per = "client_country", max = 3, window = "1h" }'


def countries(built=None, india="IN"):
    networks = {"198.51.100.0/24": "DE", "203.0.113.0/24": india, "2001:db8::/32": "FR"}
    data = {network: mmdb.country(code) for network, code in networks.items()}
    return mmdb.database(data, built or int(time.time()), "Test-Country")


def systems():
    return mmdb.database({"203.0.113.0/24": mmdb.system(64500)}, int(time.time()), "Test-ASN")


def put(file, data):
    """Replaces a file as geoipupdate does."""
    draft = file.with_suffix(".new")
    draft.write_bytes(data)
    os.replace(draft, file)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    service, gateway = Service(), LocalGateway(tmp_path_factory.mktemp("geo"))
    put(gateway.config / "country.mmdb", countries())
    put(gateway.config / "asn.mmdb", systems())
    settings = f'trusted_proxies = {{ "{PROXY}/32" }}, geo = {{ database = "country.mmdb", asn = "asn.mmdb" }},'
    gateway.edit("gateway.lua", lambda text: text.replace("return gateway {", f"return gateway {{\n  {settings}", 1))
    gateway.edit("routes.lua", lambda _: ROUTES.replace("3000", str(service.port)))
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace("  limits = {", f"  limits = {{\n    {LIMIT},", 1))
    try:
        yield gateway.start()
    finally:
        gateway.stop()
        service.end()


@pytest.fixture(scope="module")
def person(place):
    return {"Authorization": f"Bearer {place.register('+919876500771')['session']['token']}"}


def ask(place, path, address, headers=None):
    return requests.get(
        place.url + path, headers={"X-Forwarded-For": address, **(headers or {})}, allow_redirects=False, timeout=10
    )


def send(place, address, phone):
    """Asks for a code to register the number, from an address."""
    headers = {"X-Forwarded-For": address}
    flow = place.api("POST", "/flows", {"flow": "register"}, headers=headers)
    assert flow.status_code == 201, flow.text
    fields = {"provider": "phone_otp", "phone": phone}
    return place.api("POST", f"/flows/{flow.json()['id']}/begin", fields, headers=headers)


def events(place, **wanted):
    answer = requests.get(f"{place.admin}/events", params={"limit": 200}, timeout=10)
    assert answer.status_code == 200, answer.text
    return [event for event in answer.json() if all(event[name] == value for name, value in wanted.items())]


def test_decide_knows_country_and_system(place, person):
    expected = {INDIA: (200, 200), GERMANY: (403, 403), FRANCE: (403, 403), NOWHERE: (403, 403)}
    for address, statuses in expected.items():
        found = tuple(ask(place, f"/{path}/x", address, person).status_code for path in ("country", "system"))
        assert found == statuses, address


def test_events_have_country_and_system(place, person, number):
    told = {}
    for address in (INDIA, GERMANY, FRANCE, NOWHERE):
        refused = ask(place, "/none-of-them", address)
        assert refused.status_code == 401, refused.text
        told[address] = refused.json()["decision_id"]
    found = {event["id"]: (event["country"], event["asn"]) for event in events(place)}
    assert [found[told[one]] for one in (INDIA, GERMANY, FRANCE, NOWHERE)] == [
        ("IN", 64500),
        ("DE", None),
        ("FR", None),
        (None, None),
    ]
    one = requests.get(f"{place.admin}/decisions/{told[INDIA]}", timeout=10).json()
    assert one["country"] == "IN" and one["asn"] == 64500
    # Events of transactions as well.
    assert send(place, GERMANY, number).status_code == 200
    wait_for(lambda: events(place, kind="code_sent", country="DE", address=GERMANY), "the event of the code")
    # What a decision read is recorded with it.
    refused = ask(place, "/country/x", FRANCE, person).json()
    detail = requests.get(f"{place.admin}/decisions/{refused['decision_id']}", timeout=10).json()["detail"]
    assert detail["fact.client.country"] == "FR" and detail["rule"] == "routes[1].decide", detail


def test_limits_count_by_country(place, other_number):
    answers = [send(place, f"2001:db8:{one}::1", other_number()) for one in range(1, 6)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429], [one.text for one in answers]
    assert answers[3].json()["code"] == "rate_limited"
    assert send(place, INDIA, other_number()).status_code == 200
    # An address that no database knows does not count.
    for one in range(1, 6):
        assert send(place, f"192.0.2.{one}", other_number()).status_code == 200


def test_a_changed_database_is_read_while_the_gateway_runs(place, person):
    assert ask(place, "/country/x", INDIA, person).status_code == 200
    generation = place.policy()["active"]
    put(place.config / "country.mmdb", countries(india="PK"))
    wait_for(lambda: ask(place, "/country/x", INDIA, person).status_code == 403, "the new database")
    # A file that is not a database, or is cut in place, changes nothing.
    for spoil in (b"rubbish", b""):
        (place.config / "country.mmdb").write_bytes(spoil)
        time.sleep(3)
        assert ask(place, "/country/x", GERMANY, person).status_code == 403
        assert ask(place, "/none-of-them", GERMANY).status_code == 401
    put(place.config / "country.mmdb", countries())
    wait_for(lambda: ask(place, "/country/x", INDIA, person).status_code == 200, "the old country")
    assert place.policy()["active"] == generation, "no reload of the configuration"
    assert place.log.count("a geo database cannot be read") == 2, place.log
    assert place.log.count("geo database reloaded") == 2


def test_check_and_doctor_judge_the_databases(tmp_path):
    gateway = LocalGateway(tmp_path)
    config = gateway.config

    def check():
        done = subprocess.run(
            [BIN / "moongate", "check", "--config", config], capture_output=True, text=True, timeout=60, cwd="/"
        )
        return done.returncode, done.stdout + done.stderr

    def doctor():
        status, out, complaint = tool(gateway, "doctor", "--json")
        checks = [one for one in json.loads(out)["checks"] if one["check"] == "geo"]
        return {(one["state"], "more than 60 days ago" in one["message"]) for one in checks}

    plain = (config / "gateway.lua").read_text()
    for geo, words in (
        ('geo = { database = "none.mmdb" },', "geo.database: none.mmdb: No such file or directory"),
        ('geo = { database = "gateway.lua" },', "geo.database: gateway.lua: it is not a database"),
        ('geo = { database = "asn.mmdb" },', "geo.database: asn.mmdb: it has no countries"),
        ("geo = {},", "geo: names no database"),
    ):
        put(config / "asn.mmdb", systems())
        (config / "gateway.lua").write_text(plain.replace("return gateway {", f"return gateway {{\n  {geo}", 1))
        status, told = check()
        assert status == 1 and words in told and "gateway.lua:" in told, told
    (config / "routes.lua").write_text(ROUTES)
    (config / "gateway.lua").write_text(plain)
    status, told = check()
    assert status == 1 and "`f.client.country` is always nil: gateway.lua has no geo.database" in told, told
    geo = 'geo = { database = "country.mmdb", asn = "asn.mmdb" },'
    (config / "gateway.lua").write_text(plain.replace("return gateway {", f"return gateway {{\n  {geo}", 1))
    put(config / "country.mmdb", countries(built=int(time.time()) - 61 * 86_400))
    status, told = check()
    assert status == 0, told
    assert doctor() == {("warning", True), ("ok", False)}
