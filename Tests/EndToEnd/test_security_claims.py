"""Claims of Documentation/security that no other test covers."""

import base64
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from attack import Person, bearer, log_in_by_password, new_email, prove, relaxed, texts
from local_gateway import wait_for, wrong
from processes import ROOT
from screens import Screen
from test_accounts import tool


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    yield gateway.start()
    gateway.stop()


def test_password_fields_mask_and_help_password_managers(gateway):
    for path, autocomplete in (
        ("/auth/login?with=email", "current-password"),
        ("/auth/register?with=email", "new-password"),
    ):
        page = requests.get(gateway.url + path, headers={"Accept": "text/html"}, timeout=20).text
        field = re.search(r'<input[^>]*name="password"[^>]*>', page)[0]
        assert 'type="password"' in field and f'autocomplete="{autocomplete}"' in field, field
        assert not re.search(r"onpaste|oncopy|readonly|autocomplete=\"off\"", field), field
        assert re.search(r'<input[^>]*name="email"[^>]*autocomplete="(username|email)( webauthn)?"', page)


def test_long_password_is_pasted_whole(gateway, driver):
    """Attack: a field that truncates pasted text stores a shorter password than the user believes."""
    email, password = new_email(), "".join(f"{number:04d} " for number in range(200)).strip()
    assert len(password) == 999
    screen = Screen(driver, gateway).forget().opens("/auth/register?with=email")
    screen.fills("first_name", "Asha").fills("last_name", "Rao").fills("email", email)
    field = screen.find("#password")
    field.click()
    driver.execute_cdp_cmd("Input.insertText", {"text": password})
    assert field.get_attribute("value") == password
    screen.presses("Create Account").at("/auth/email").presses("Skip for now").at("/profile-setup")
    assert log_in_by_password(gateway, email, password).json()["status"] == "complete"
    assert log_in_by_password(gateway, email, password[:-1]).status_code == 401


def test_new_store_has_no_accounts(new_gateway):
    new_gateway.start()
    assert tool(new_gateway, "account", "list", "--json")[1].split() == ["[", "]"]


def test_secrets_differ_under_load(gateway, other_number):
    """Tokens and flow ids of concurrent requests: 256 bits each, and unique."""
    people = [Person(gateway, phone=other_number()).signs_in() for _ in range(4)]
    with ThreadPoolExecutor(32) as pool:
        flows = list(pool.map(lambda _: gateway.flow("login"), range(400)))
    assert len(set(flows)) == 400 and all(re.fullmatch(r"fl_[\w-]{43}", flow) for flow in flows)
    tokens = [person.token for person in people]
    assert len(set(tokens)) == len(tokens)
    for secret in [*tokens, *(flow.removeprefix("fl_") for flow in flows)]:
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32


def test_authenticator_keys_have_160_bits_and_differ(gateway, other_number):
    keys = [Person(gateway, phone=other_number()).signs_in().sets_up_app()[0].key for _ in range(3)]
    assert len(set(keys)) == 3 and all(len(key) == 20 for key in keys)


def test_user_is_notified_of_changes(gateway, number):
    """By mail, which the browser or app that made the change does not see."""
    person = Person(gateway, phone=number, email=new_email()).signs_in()

    def told():
        return " ".join(entry["text"] for entry in gateway.outbox() if entry["to"] == person.email)

    person.sets_pin("482915")
    wait_for(lambda: "passcode was set" in told(), "a notice of the PIN")
    person.takes(gateway.api("POST", "/verify-passcode", {"passcode": "482915"}, **person.own))
    person.sets_up_app()
    wait_for(lambda: "was set up for your account" in told(), "a notice of the authenticator app")


def test_sign_ins_and_refusals_are_in_the_audit_trail(gateway, number):
    gateway.register(number)
    flow = gateway.flow("login")
    wait_for(lambda: gateway.begin(flow, number).status_code == 200, "permission to send a code")
    code = gateway.code(number)
    refused = gateway.submit(flow, wrong(code)).json()["decision_id"]
    done = gateway.submit(flow, code).json()

    def trail():
        events = requests.get(f"{gateway.admin}/events?limit=1000", timeout=20).json()
        started = any(event["kind"] == "session_started" for event in events)
        return events if started and any(event["id"] == refused for event in events) else None

    # The trail is written behind the answers.
    events = wait_for(trail, "the refusal in the trail")
    failure = next(event for event in events if event["id"] == refused)
    assert failure["kind"] == "refused" and failure["code"] == "invalid_code" and failure["provider"] == "phone_otp"
    started = next(
        event
        for event in events
        if event["kind"] == "session_started" and event.get("account") == done["account"]["id"]
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", started["at"])
    assert done["session"]["token"] not in str(list(texts(events)))
    assert gateway.api("GET", "/session", **bearer(done["session"]["token"])).status_code == 200


def test_example_on_entry_points_requires_the_app_of_everybody(tmp_path, number):
    """Documentation/security/entry-points.md: its example is a valid file and works as described."""
    text = (ROOT / "Documentation/security/entry-points.md").read_text()
    gateway = relaxed(tmp_path)
    (gateway.config / "accounts.lua").write_text(re.search(r"```lua\n-- accounts\.lua\n(.*?)```", text, re.S)[1])
    gateway.start()
    try:
        Person(gateway, phone=number)
        asked = prove(gateway, gateway.flow("login"), "phone_otp", number)
        assert (asked["status"], asked["choices"], asked["session"]) == ("pending", ["totp"], None), asked
    finally:
        gateway.stop()
