"""Users who sign in by a name: `identify_by = { "name", "email" }` of the password."""

import html
import json
import re

import pytest
import requests

from local_gateway import LocalGateway, problem, wait_for
from mockgoogle import Visitor
from services import Handler, HTTPService
from test_accounts import ARGON2, tool

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
    return gateway.api("POST", f"/flows/{flow}/skip", {}) if answer.status_code == 200 else answer


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
    for words in (["--dry-run"], []):
        assert tool(gateway, "account", "import", "-", *words, text=twice)[0] == 1
    both = "".join(json.dumps({"identifiers": [{"name": name}]}) + "\n" for name in ("pair1", "pairl"))
    status, out, _ = tool(gateway, "account", "import", "-", text=both)
    assert status == 1 and out.startswith("-:2: the name pairl looks like the name in line 1\n1 problem;"), out


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
    assert "zanzibar" not in gateway.log


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
    # The form of the page, by another link.
    status, out, error = tool(gateway, "account", "reset", "link.user", "--link", "--json")
    assert status == 0 and json.loads(out)["provider"] == "password", error
    visitor = Visitor(gateway)
    page = visitor.get(json.loads(out)["link"])
    answer = visitor.post("/auth/login", password="a horse on a page", **hidden(page.text))
    assert answer.status_code == 303 and visitor.account() is None, answer.text
    assert sign_in(gateway, name="link.user", password="a horse on a page").status_code == 200
    again = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": "a third horse 77"})
    problem(again, 409, "step_not_open")
    status, out, _ = tool(gateway, "account", "history", "link.user")
    assert status == 0 and "with a link until" in out and flow not in out, out
    for bad in (("--valid", "30d"), ("--valid", "1s")):
        assert tool(gateway, *words, *bad)[0] == 2
    assert tool(gateway, "account", "reset", "link.user", "--provider", "pin", "--link")[0] == 2
    assert tool(gateway, "account", "reset", "link.user")[0] == 2
    status, _, error = tool(gateway, "account", "reset", "link.user", "--provider", "password", "--valid", "10m")
    assert status == 2 and "--link" in error
    assert sign_in(gateway, name="link.user", password="a horse on a page").status_code == 200, "nothing was reset"


def test_the_gateway_tells_the_user_of_a_link(gateway):
    """Attack: an operator's link replaces a password, and its owner hears nothing of it."""
    phone = "+919812345678"
    names = [{"phone": phone, "verified": True}, {"name": "told.user"}]
    line = json.dumps({"identifiers": names, "password": ARGON2})
    assert tool(gateway, "account", "import", "-", text=line)[0] == 0
    status, out, error = tool(gateway, "account", "reset", "told.user", "--link", "--json")
    assert status == 0 and json.loads(out)["done"] == "link" and "in English" not in error, error
    sent = wait_for(lambda: [entry for entry in gateway.outbox() if entry["to"] == phone], "the message")
    assert len(sent) == 1 and json.loads(out)["link"] not in sent[0]["text"], sent
    # Nothing was left to remove, so the second link needs no message.
    assert tool(gateway, "account", "reset", "told.user", "--link")[0] == 0
    assert len([entry for entry in gateway.outbox() if entry["to"] == phone]) == 1


def test_a_link_without_a_gateway_says_who_sends_the_message(tmp_path):
    stopped = LocalGateway(tmp_path)
    stopped.start()
    stopped.stop()
    line = json.dumps({"identifiers": [{"email": "told@example.com", "verified": True}], "password": ARGON2})
    assert tool(stopped, "account", "import", "-", text=line)[0] == 0
    status, out, error = tool(stopped, "account", "reset", "told@example.com", "--link")
    assert status == 0 and "/auth/login?id=fl_" in out, error
    assert "No gateway listens at" in error and "sends the message to the user itself, in English" in error, error


def link_beside(folder, answer):
    """Makes a link while `answer(handler, gateway)` answers for the admin listener. Returns what the command did."""
    stopped = LocalGateway(folder)
    stopped.start()
    stopped.stop()
    line = json.dumps({"identifiers": [{"email": "told@example.com", "verified": True}], "password": ARGON2})
    assert tool(stopped, "account", "import", "-", text=line)[0] == 0

    class Listener(Handler):
        def do_DELETE(self):
            answer(self, stopped)

    listener = HTTPService(Listener)
    try:
        stopped.edit("gateway.lua", lambda text: text.replace(f":{stopped.ports[1]}", f":{listener.port}"))
        return tool(stopped, "account", "reset", "told@example.com", "--link")
    finally:
        listener.end()


def test_a_link_that_fails_says_that_the_password_is_gone(tmp_path):
    def deletes_the_account(handler, gateway):
        assert tool(gateway, "account", "delete", "told@example.com", "--yes")[0] == 0
        handler.send_response(204)
        handler.end_headers()
        handler.close_connection = True

    status, out, error = link_beside(tmp_path, deletes_the_account)
    assert status == 1 and "/auth/login?id=fl_" not in out, (status, out, error)
    assert "The gateway has removed password already, and there is no link: run the command again." in error, error


def test_a_gateway_without_an_answer_may_have_sent_the_message(tmp_path):
    def closes(handler, _):
        handler.close_connection = True

    status, out, error = link_beside(tmp_path, closes)
    assert status == 0 and "/auth/login?id=fl_" in out, error
    assert "does not answer. It may have removed password and sent the message, or do so later" in error, error


def hidden(page):
    """The hidden fields of the page's first form with an id."""
    form = next(form for form in re.findall(r"<form.*?</form>", page, re.DOTALL) if 'name="id"' in form)
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form))


def registers_on_the_pages(visitor, name):
    """Registers a name and its password, and returns the address of the next page and the page."""
    fields = {"with": "email", "email": name, "password": SECRET, "first_name": "Asha", "last_name": "Rao"}
    answer = visitor.post("/auth/register", **fields)
    assert answer.status_code == 303, answer.text
    address = answer.headers["Location"]
    return address, visitor.get(address).text


def confirms(gateway, visitor, address, page, email):
    """Enters an address on the page, and the code that is sent to it."""
    answer = visitor.post(address.split("?")[0], email=email, **hidden(page))
    assert answer.status_code == 303, answer.text
    code_page = answer.headers["Location"]
    page = visitor.get(code_page).text
    # Attack: the form of the registration, to which a link led from here, would forget the name.
    assert 'name="code"' in page and "/auth/register?id=" not in page, page
    answer = visitor.post(code_page, code=gateway.code(email))
    assert answer.status_code == 303, answer.text


@pytest.fixture
def configured(tmp_path):
    gateways = []

    def start(kinds, **files):
        gateway = LocalGateway(tmp_path)
        gateways.append(gateway)
        chosen = f"password = {{ identify_by = {{ {kinds} }} }}"
        gateway.edit("gateway.lua", lambda text: text.replace("password = {}", chosen))
        for name, change in files.items():
            gateway.edit(name.replace("__", "/") + ".lua", change)
        return gateway.start()

    yield start
    for gateway in gateways:
        gateway.stop()


def invited(_):
    return 'return accounts { registration = "invited" }\n'


def test_a_name_registers_on_the_pages_where_an_address_is_required(configured):
    gateway = configured(
        '"name", "email"', flows__register_email=lambda text: text.replace(", skippable = true", "")
    )
    visitor = Visitor(gateway)
    address, page = registers_on_the_pages(visitor, "asha.rao")
    assert 'name="email"' in page and 'value="skip"' not in page, page
    wrong = visitor.post(address.split("?")[0], email="no address", **hidden(page))
    assert wrong.status_code != 303 and 'name="email"' in wrong.text, wrong.text
    mistyped = visitor.post(address.split("?")[0], email="ahsa@example.com", **hidden(page))
    code_page = visitor.get(mistyped.headers["Location"]).text
    page = visitor.get(html.unescape(re.search('data-edit href="([^"]+)"', code_page)[1])).text
    assert 'name="email"' in page and 'name="code"' not in page, page
    confirms(gateway, visitor, address, page, "asha@example.com")
    account = visitor.account()
    assert account["name"] == "asha.rao" and account["email"] == "asha@example.com", account
    assert account["is_email_verified"]


def test_a_name_registers_by_an_unbound_invitation(configured):
    gateway = configured('"name", "email"', accounts=invited)
    for number, is_skipped in enumerate((True, False)):
        code = json.loads(tool(gateway, "invite", "create", "--json")[1])["code"]
        visitor = Visitor(gateway)
        assert visitor.get(f"/auth/invite?code={code}").status_code == 303
        address, page = registers_on_the_pages(visitor, f"asha.rao{number}")
        assert 'name="email"' in page and 'value="skip"' in page, page
        if is_skipped:
            answer = visitor.post(address, action="skip")
            assert answer.status_code == 303, answer.text
            # The form in another tab begins no second registration.
            late = visitor.post(address.split("?")[0], email="asha@example.com", **hidden(page))
            assert late.status_code == 303 and "id=" not in late.headers["Location"], late.headers
        else:
            confirms(gateway, visitor, address, page, "asha@example.com")
        account = visitor.account()
        assert account["name"] == f"asha.rao{number}" and account["is_email_verified"] != is_skipped, account


def test_a_name_registers_by_an_invitation_for_an_address(configured):
    gateway = configured('"name"', accounts=invited)
    code = json.loads(tool(gateway, "invite", "create", "bound@example.com", "--json")[1])["code"]
    visitor = Visitor(gateway)
    assert visitor.get(f"/auth/invite?code={code}").status_code == 303
    assert "bound@example.com" not in visitor.get("/auth/register?with=email").text
    address, page = registers_on_the_pages(visitor, "asha.rao")
    assert 'name="email"' in page and 'value="skip"' not in page, page
    assert 'value="bound@example.com"' in page, page
    confirms(gateway, visitor, address, page, "bound@example.com")
    account = visitor.account()
    assert account["name"] == "asha.rao" and account["email"] == "bound@example.com", account
