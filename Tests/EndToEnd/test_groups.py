"""Groups and claims: `moongate group`, the admin listener, routes, services, and the page of a refused user (docs:
Documentation/guides/who-may-go-where.md)."""

import base64
import json
import re
import subprocess
import time

import pytest
import requests

from local_gateway import BIN, LocalGateway, problem, wait_for
from manual import blocks
from test_forward import Service

ACCOUNTS = """return accounts {
  groups = {
    ops = members(), billing = members(), ["night, shift"] = members(),
    phones = function(f) return f.account.phone_verified and starts_with(f.phone.e164, "+91") end,
    failing = function(f) if f.account.email_verified then return f.email.address + 1 end return false end,
  },
  claims = { level = function(f) return f.session.aal end },
}
"""
ROUTES = """return routes {{
  {{ path = "/echo/ops/**", to = "{0}", require = {{ group = "ops" }}, websocket = true }},
  {{ path = "/echo/any/**", to = "{0}", require = {{ group = any_of {{ "ops", "billing" }} }} }},
  {{ path = "/echo/decide/**", to = "{0}", decide = function(f) if f.session.groups.billing then return allow end return deny "not_billed" end }},
  {{ path = "/**", to = "{0}" }},
}}
"""
PHONE = "+919876500411"


def tool(gateway, *words):
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", gateway.config], capture_output=True, text=True, timeout=60, cwd="/"
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("groups"))
    (gateway.config / "accounts.lua").write_text(ACCOUNTS)
    gateway.edit("routes.lua", lambda _: ROUTES.format(f"http://127.0.0.1:{gateway.ports[2]}"))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def person(place):
    done = place.register(PHONE)
    return {
        "id": done["account"]["id"],
        "headers": {"Authorization": f"Bearer {done['session']['token']}"},
        "token": done["session"]["token"],
    }


def get(place, person, path, **headers):
    return requests.get(place.url + path, headers={**person["headers"], **headers}, allow_redirects=False, timeout=10)


def echoed(answer):
    """The headers that the service received, with names in lower case."""
    return {field["name"].lower(): field["value"] for field in answer.json()["headers"]}


def claims(fields):
    part = fields["x-moongate-assertion"].split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_user_without_a_group_sees_the_reason(place, person):
    refused = problem(get(place, person, "/echo/ops/x"), 403, "forbidden")
    assert refused["group"] == "ops"
    assert problem(get(place, person, "/echo/any/x"), 403, "forbidden")["group"] == ["ops", "billing"]
    status, text, _ = tool(place, "policy", "explain", refused["decision_id"])
    assert status == 0 and "f.session.groups = { phones }" in text and "{ ops }" in text, text
    page = get(place, person, "/echo/ops/x?a=1", Accept="text/html")
    assert page.status_code == 403 and "location" not in page.headers
    assert "Your account does not have access to this page." in page.text
    assert re.search(r"You are signed in as [^<]*•11\.", page.text) and PHONE not in page.text
    link = re.search(r'href="([^"]*/auth/logout\?return_to=[^"]*)"[^>]*>Sign in as someone else', page.text)
    assert link and "%2Fecho%2Fops%2Fx%3Fa%3D1" in link[1], page.text
    # As another user: signed out here, and led back to the original target.
    browser = requests.Session()
    browser.cookies.set("moongate", person["token"], domain="localhost.local", path="/")
    browser.headers["Accept"] = "text/html"
    form = browser.get(link[1].replace("&amp;", "&"), timeout=10)
    assert form.status_code == 200 and f'value="{place.url}/echo/ops/x?a=1"' in form.text


def test_members_are_added_listed_and_removed(place, person):
    status, text, error = tool(place, "group", "add", "ops", PHONE, "--json")
    assert status == 0, error
    assert json.loads(text) == [{"group": "ops", "account": person["id"], "member": True, "changed": True}]
    answer = wait_for(lambda: (found := get(place, person, "/echo/ops/x")).status_code == 200 and found, "access", 2)
    fields = echoed(answer)
    assert fields["remote-groups"] == "ops,phones"
    assert claims(fields)["groups"] == ["ops", "phones"] and claims(fields)["claims"] == {"level": 1}
    assert "already in ops" in tool(place, "group", "add", "ops", person["id"])[1]
    listed = json.loads(tool(place, "group", "list", "--json")[1])
    assert {group["group"]: (group["kind"], group["members"]) for group in listed} == {
        "ops": ("members", 1),
        "billing": ("members", 0),
        "night, shift": ("members", 0),
        "phones": ("computed", None),
        "failing": ("computed", None),
    }
    members = json.loads(tool(place, "group", "list", "ops", "--json")[1])
    assert members["members"][0]["account"] == person["id"] and members["members"][0]["identifiers"] == [PHONE]
    # The admin listener returns the same fields.
    assert requests.get(f"{place.admin}/groups", timeout=10).json() == listed
    assert requests.get(f"{place.admin}/groups/ops", timeout=10).json() == members
    assert json.loads(tool(place, "account", "show", person["id"], "--json")[1])["groups"] == ["ops"]
    assert requests.get(f"{place.admin}/accounts/{person['id']}", timeout=10).json()["groups"] == ["ops"]
    started = time.monotonic()
    assert tool(place, "group", "remove", "ops", person["id"])[0] == 0
    wait_for(lambda: get(place, person, "/echo/ops/x").status_code == 403, "the end of access", 2)
    assert time.monotonic() - started < 10
    kinds = [event["kind"] for event in requests.get(f"{place.admin}/events?limit=200", timeout=10).json()]
    assert kinds.count("group_added") == 1 and kinds.count("group_removed") == 1


def test_the_admin_listener_changes_members_at_once(place, person):
    path = f"{place.admin}/groups/night%2C%20shift/members/{PHONE}"
    assert requests.put(path, timeout=10).json() == {
        "group": "night, shift",
        "account": person["id"],
        "member": True,
        "changed": True,
    }
    # The response means that this node has discarded its cache.
    assert echoed(get(place, person, "/echo/x")).get("remote-groups") == "night%2C shift,phones"
    assert requests.delete(path, timeout=10).json()["changed"] is True
    assert echoed(get(place, person, "/echo/x")).get("remote-groups") == "phones"
    problem(requests.put(f"{place.admin}/groups/phones/members/{person['id']}", timeout=10), 422, "invalid_input")
    problem(requests.put(f"{place.admin}/groups/opps/members/{person['id']}", timeout=10), 422, "invalid_input")
    problem(requests.put(f"{place.admin}/groups/ops/members/ac_nobody", timeout=10), 404, "not_found")
    problem(requests.get(f"{place.admin}/groups/a%0D%0Ab", timeout=10), 422, "invalid_input")


def test_mistakes_are_reported(place, person):
    status, _, error = tool(place, "group", "add", "opps", person["id"])
    assert status == 1 and 'defines no group "opps"' in error and 'Did you mean "ops"?' in error
    status, _, error = tool(place, "group", "add", "phones", person["id"])
    assert status == 1 and "computed" in error
    assert tool(place, "group", "add", "ops", "nobody@example.com")[0] == 1
    assert tool(place, "group", "list", "opps")[0] == 1


def test_claimed_address_identifies_no_account(place):
    """Attack: someone registers with Asha's address without verifying it, and waits until the operator adds it to a
    group."""
    claimed = place.api(
        "POST",
        "/register",
        {"email": "asha@example.com", "password": "correct horse battery", "first_name": "M", "last_name": "A"},
    )
    assert claimed.status_code in (200, 201), claimed.text
    status, _, error = tool(place, "group", "add", "ops", "asha@example.com")
    assert status == 1 and "No account has verified asha@example.com" in error
    problem(requests.put(f"{place.admin}/groups/ops/members/asha@example.com", timeout=10), 422, "invalid_input")
    assert json.loads(tool(place, "group", "list", "ops", "--json")[1])["members"] == []


def test_failing_function_refuses_and_is_reported_with_its_line(place):
    """Attack: a failing function must neither admit a user nor remove a group silently."""
    answer = place.api(
        "POST",
        "/register",
        {"email": "ben@example.com", "password": "correct horse battery", "first_name": "B", "last_name": "B"},
    )
    token = answer.json()["token"]
    code = wait_for(
        lambda: next((entry["code"] for entry in place.outbox() if entry["to"] == "ben@example.com"), None), "the mail"
    )
    token = place.api("POST", "/verify-email", {"code": code}, headers={"Authorization": f"Bearer {token}"}).json()[
        "token"
    ]
    refused = problem(get(place, {"headers": {"Authorization": f"Bearer {token}"}}, "/echo/x"), 503, "policy_error")
    status, text, _ = tool(place, "policy", "explain", refused["decision_id"])
    assert status == 0 and "accounts.lua:5" in text, text
    assert "accounts.lua:5" in place.log


def test_reason_has_the_words_of_the_policy(place, person):
    old = place.policy()["active"]
    place.edit(
        "policies/phone_otp.lua",
        lambda text: text.replace(
            'policy "phone_otp" {', 'policy "phone_otp" {\n  reasons = { not_billed = "Ask billing for access." },', 1
        ),
    )
    place.wait_generation(old)
    assert problem(get(place, person, "/echo/decide/x"), 403, "not_billed")["detail"] == "Ask billing for access."
    assert "Ask billing for access." in get(place, person, "/echo/decide/x", Accept="text/html").text
    old = place.policy()["active"]
    (place.config / "pages").mkdir(exist_ok=True)
    (place.config / "pages" / "hi.words").write_text("[sentences]\nnot_billed = बिलिंग से पूछें।\n")
    place.wait_generation(old)
    assert "बिलिंग से पूछें।" in get(place, person, "/echo/decide/x", Accept="text/html", **{"Accept-Language": "hi"}).text


def test_export_and_deletion_include_groups(place, person):
    assert tool(place, "group", "add", "ops", person["id"])[0] == 0
    export = place.api("GET", "/account/export", headers=person["headers"])
    assert export.status_code == 200, export.text
    assert [entry["group"] for entry in export.json()["groups"]] == ["ops"]
    lines = tool(place, "account", "export")[1].splitlines()
    assert [line["groups"] for line in map(json.loads, lines) if line["id"] == person["id"]] == [["ops"]]
    assert place.api("DELETE", "/account", headers=person["headers"]).status_code == 204
    assert json.loads(tool(place, "group", "list", "ops", "--json")[1])["members"] == []


# The guide: all its files are loaded in order over the default folder.
GUIDE = "guides/who-may-go-where.md"


def test_guide_to_access_by_groups(tmp_path):
    gateway = LocalGateway(tmp_path)
    files = {}
    for text in blocks("lua", GUIDE):
        files.setdefault(re.match(r"-- (\S+)", text)[1], []).append(text)
    assert set(files) == {"accounts.lua", "routes.lua", "guarantees.lua", "tests/groups.lua", "policies/phone_otp.lua"}

    def check(**shown):
        for name, text in shown.items():
            file = gateway.config / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        status, text, error = tool(gateway, "check")
        assert status == 0, f"{shown.keys()}: {text}{error}"

    check(**{"accounts.lua": files["accounts.lua"][0], "routes.lua": files["routes.lua"][0]})
    check(**{"accounts.lua": files["accounts.lua"][2]})
    check(**{"accounts.lua": files["accounts.lua"][1], "routes.lua": files["routes.lua"][1]})
    check(
        **{
            "routes.lua": files["routes.lua"][2],
            "guarantees.lua": files["guarantees.lua"][0],
            "tests/groups.lua": files["tests/groups.lua"][0],
        }
    )
    check(**{"policies/phone_otp.lua": files["policies/phone_otp.lua"][0]})
    # Without the requirement, the guarantee refuses the folder.
    (gateway.config / "routes.lua").write_text(files["routes.lua"][2].replace(', require = { group = "ops" }', ""))
    status, text, error = tool(gateway, "check")
    assert status == 1 and "operators alone reach /ops" in text + error


def signed_in(gateway, address):
    """A user who has registered with an address and verified it."""
    answer = gateway.api(
        "POST",
        "/register",
        {"email": address, "password": "correct horse battery", "first_name": "A", "last_name": "B"},
    )
    assert answer.status_code == 201, answer.text
    code = wait_for(
        lambda: next((entry["code"] for entry in gateway.outbox() if entry["to"] == address and entry["code"]), None),
        "the mail",
    )
    token = gateway.api(
        "POST", "/verify-email", {"code": code}, headers={"Authorization": f"Bearer {answer.json()['token']}"}
    ).json()["token"]
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_recipes_of_the_guide_work_as_described(tmp_path):
    """Staff only, a list of users, and a service for each group: the guide's files are used one after the other, and
    its commands are run."""
    gateway = LocalGateway(tmp_path)
    shown = {}
    for text in blocks("lua", GUIDE):
        shown.setdefault(re.match(r"-- (\S+)", text)[1], []).append(text)
    service = {port: Service() for port in ("3000", "3001", "3002")}
    routes = [re.sub(r":(300[0-2])", lambda found: f":{service[found[1]].port}", text) for text in shown["routes.lua"]]
    gateway.demo = next(iter(service.values()))

    def serve(number, accounts):
        old = gateway.server and gateway.policy()["active"]
        (gateway.config / "accounts.lua").write_text(shown["accounts.lua"][accounts])
        (gateway.config / "routes.lua").write_text(routes[number])
        return (
            wait_for(lambda: (told := gateway.policy())["active"] != old and not told["candidate_refused"], "the recipe")
            if old
            else gateway.start()
        )

    def status(person, path):
        return get(gateway, person, path).status_code

    try:
        serve(0, 0)
        staff, guest = signed_in(gateway, "asha@example.com"), signed_in(gateway, "ben@elsewhere.example")
        # Attack: an address with a domain that only ends like the allowed one.
        other = signed_in(gateway, "mallory@notexample.com")
        assert [status(person, "/internal/x") for person in (staff, guest, other)] == [200, 403, 403]
        assert status(guest, "/x") == 200
        serve(1, 1)
        assert status(staff, "/invoices/x") == 403
        commands = [
            line
            for text in blocks("sh", GUIDE)
            for line in text.splitlines()
            if line.startswith("moongate group")
        ]
        assert [line.split()[2] for line in commands] == ["add", "list", "remove"]
        for line in commands[:2]:
            assert tool(gateway, *line.split()[1:])[0] == 0, line
        wait_for(lambda: status(staff, "/invoices/x") == 200, "access", 2)
        # The next request may come to another event loop, which also hears of the change within a second.
        wait_for(lambda: get(gateway, staff, "/ops/x").json()["code"] == "step_up_required", "access to the question", 2)
        assert problem(get(gateway, staff, "/ops/x"), 403, "step_up_required")["provider"] == "phone_otp"
        assert problem(get(gateway, guest, "/ops/x"), 403, "forbidden")["group"] == "ops"
        serve(2, 1)
        for port, path in (("3001", "/ops/x"), ("3000", "/x")):
            assert status(staff, path) == 200 and service[port].seen[-1] == f"GET {path} HTTP/1.1"
        assert status(staff, "/billing/x") == 403 and service["3002"].seen == []
        assert tool(gateway, *commands[2].split()[1:])[0] == 0
        wait_for(lambda: status(staff, "/ops/x") == 403, "the end of access", 2)
    finally:
        gateway.stop()
        for one in service.values():
            one.end()
