"""Users who sign in by a name: `identify_by = { "name", "email" }` of the password."""

import json

import pytest
import requests

from local_gateway import LocalGateway, problem
from test_accounts import tool

SECRET = "correct horse battery"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit(
        "gateway.lua", lambda text: text.replace("password = {}", 'password = { identify_by = { "name", "email" } }')
    )
    limit = '{ on = "verify", per = "identifier", max = 50, window = "1h" }'
    (gateway.config / "policies/password.lua").write_text(
        f'return policy "password" {{ limits = {{ verify = {limit} }} }}\n'
    )
    yield gateway.start()
    gateway.stop()


def register(gateway, **identifier):
    flow = gateway.flow("register_email")
    fields = {"provider": "password", "password": SECRET, "first_name": "Asha", "last_name": "Rao", **identifier}
    answer = gateway.api("POST", f"/flows/{flow}/begin", fields)
    return gateway.api("POST", f"/flows/{flow}/skip") if answer.status_code == 200 else answer


def sign_in(gateway, password=SECRET, **identifier):
    flow = gateway.flow("login_password")
    return gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": password, **identifier})


def test_a_name_signs_in_in_every_spelling(gateway):
    done = register(gateway, name="Asha.Rao")
    assert done.status_code == 200, done.text
    account = done.json()["account"]
    assert account["name"] == "asha.rao" and account["email"] is None and not account["is_email_verified"]
    for spelling in ("asha.rao", "ASHA.RAO", " ａｓｈａ.ｒａｏ "):
        answer = sign_in(gateway, name=spelling)
        assert answer.status_code == 200 and answer.json()["account"]["id"] == account["id"], answer.text
    problem(sign_in(gateway, name="asha.rao", password="wrong horse"), 401, "invalid_password")
    problem(sign_in(gateway, name="nobody.at.all", password="wrong horse"), 401, "invalid_password")
    # An address still identifies, and only one of the two is given.
    assert register(gateway, email="asha@example.com").status_code == 200
    assert "name" not in sign_in(gateway, email="asha@example.com").json()["account"]
    problem(sign_in(gateway, name="asha.rao", email="asha@example.com"), 422, "invalid_input")


@pytest.mark.parametrize(
    "name",
    ["as", "919999999999", "+919999999999", "ada@example.com", "аda-lovelace", "ad\u200da", "\u0301ada", "ac_ab", "a b"],
)
def test_what_is_no_name_is_refused(gateway, name):
    """Attack: a name that is taken for a number, an address, an ID, or another name."""
    answer = problem(register(gateway, name=name), 422, "invalid_input")
    assert answer["field"] == "name"


def test_a_name_that_looks_like_another_is_taken(gateway):
    """Attack: a name whose letters are Cyrillic, or with a digit in place of a letter."""
    assert register(gateway, name="scope1").status_code == 200
    for name in ("scope1", "SCOPE1", "scopel", "ѕсоре1"):
        answer = problem(register(gateway, name=name), 409, "already_registered")
        assert answer["detail"] == "This name is taken. Please choose another."


def test_operators_find_import_and_export_names(gateway):
    lines = [
        {"identifiers": [{"name": "Moved.In"}, {"email": "moved@example.com"}]},
        {"identifiers": [{"name": "moved.twice"}]},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    status, out, error = tool(gateway, "account", "import", "-", text=text)
    assert status == 0, (out, error)
    status, out, _ = tool(gateway, "account", "show", "MOVED.in")
    assert status == 0 and "user name  moved.in\n" in out, out
    assert "email      moved@example.com  claimed" in out, out
    status, out, _ = tool(gateway, "account", "list", "moved.in")
    assert status == 0 and out.endswith("  moved.in, moved@example.com (claimed)\n"), out
    exported = [json.loads(line) for line in tool(gateway, "account", "export")[1].splitlines()]
    moved = next(line for line in exported if {"name": "moved.in", "verified": False} in line["identifiers"])
    assert len(moved["identifiers"]) == 2
    # Attack: an import makes a name verified, or brings a second account with a name that looks the same.
    for line, message in (
        ({"name": "verified.name", "verified": True}, "a name is never verified"),
        ({"name": "ab"}, "is not a valid name"),
    ):
        status, out, _ = tool(gateway, "account", "import", "-", text=json.dumps({"identifiers": [line]}))
        assert status == 1 and message in out, out
    twice = json.dumps({"identifiers": [{"name": "rnoved.in"}]})
    assert tool(gateway, "account", "import", "-", text=twice)[0] == 1
    both = "".join(json.dumps({"identifiers": [{"name": name}]}) + "\n" for name in ("pair1", "pairl"))
    assert tool(gateway, "account", "import", "-", text=both)[0] == 1


def test_the_pages_ask_for_a_name_or_an_address(gateway):
    page = requests.get(f"{gateway.url}/auth/login?with=email", timeout=20).text
    assert ">User name or email</label>" in page
    assert 'type="text" autocapitalize="none"' in page and 'autocomplete="username' in page
    page = requests.get(f"{gateway.url}/auth/register?with=email", timeout=20).text
    assert ">User name or email</label>" in page


def test_nothing_of_a_name_reaches_the_log(gateway):
    """Attack: names in logs, from which they go to everyone who reads those."""
    register(gateway, name="zanzibar-quast")
    sign_in(gateway, name="zanzibar-quast", password="wrong horse")
    assert "zanzibar" not in gateway.log()


def test_an_operators_link_sets_a_password_once(gateway):
    """Attack: a link that works twice, signs in, or says who it is for."""
    assert register(gateway, name="link.user").status_code == 200
    words = ("account", "reset", "link.user", "--provider", "password", "--link")
    status, out, error = tool(gateway, *words, "--valid", "10m", "--json")
    assert status == 0, error
    made = json.loads(out)
    assert made["done"] == "link" and made["link"].startswith(f"{gateway.url}/auth/login?id=fl_"), made
    problem(sign_in(gateway, name="link.user"), 401, "invalid_password")
    visitor = requests.Session()
    page = visitor.get(made["link"], headers={"Accept": "text/html"}, timeout=20)
    assert page.status_code == 200 and 'autocomplete="new-password"' in page.text and "link.user" not in page.text
    flow = made["link"].split("id=")[1]
    answer = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": "another horse 77"})
    assert answer.status_code == 200, answer.text
    done = answer.json()
    assert done["status"] == "complete" and done["session"] is None and done["account"] is None, done
    assert sign_in(gateway, name="link.user", password="another horse 77").status_code == 200
    again = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": "a third horse 77"})
    problem(again, 409, "step_not_open")
    status, out, _ = tool(gateway, "account", "history", "link.user")
    assert status == 0 and "with a link until" in out and flow not in out, out
    for bad in (("--valid", "30d"), ("--valid", "1s")):
        assert tool(gateway, *words, *bad)[0] == 2
    assert tool(gateway, "account", "reset", "link.user", "--provider", "pin", "--link")[0] == 2
