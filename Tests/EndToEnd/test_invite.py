"""Invitations: `moongate invite`, and flows that begin with one (docs: Documentation/guides/people-and-locks.md)."""

import json
import re
import socket
import subprocess
import threading

import pytest
import requests

from local_gateway import BIN, LocalGateway, problem
from processes import free_port

ACCOUNTS = """return accounts {
  registration = { "invited", domains = { "example.com" } },
  groups = { staff = members(), all = function(f) return true end },
}
"""
NUMBER = "+919876500611"


def others():
    """Numbers without an account. A code to one of them delays the next one to it."""
    yield from (f"+9198765006{number}" for number in range(20, 90))


OTHERS = others()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("invite"))
    (gateway.config / "accounts.lua").write_text(ACCOUNTS)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def tool(gateway, *words):
    done = subprocess.run(
        [BIN / "moongate", *words, "--config", gateway.config], capture_output=True, text=True, timeout=60, cwd="/"
    )
    return done.returncode, done.stdout, done.stderr


def register(gateway, number, code):
    """Registers a number with an invitation; the answer of the last call."""
    made = gateway.api("POST", "/flows", {"flow": "register", "invitation": code})
    if made.status_code != 201:
        return made
    flow = made.json()["id"]
    begun = gateway.begin(flow, number)
    if begun.status_code != 200:
        return begun
    return gateway.submit(flow, gateway.code(number))


def test_an_invitation_creates_one_account_in_its_groups(place):
    status, out, err = tool(place, "invite", "create", NUMBER, "--group", "staff", "--expires", "3d")
    code = out.strip().removeprefix(f"{place.url}/auth/invite?code=")
    assert status == 0 and re.fullmatch(r"mgi_[A-Za-z0-9_-]{43}", code) and "shown only once" in err
    (listed,) = json.loads(tool(place, "invite", "list", "--json")[1])
    assert listed["recipient"] == NUMBER and listed["groups"] == ["staff"] and "code" not in listed
    # Attack: the number of somebody else, with the invitation.
    refused = problem(register(place, next(OTHERS), code), 403, "invitation_invalid")
    assert refused["reason"] == "other_recipient" and NUMBER not in refused["detail"], refused
    done = register(place, NUMBER, code)
    assert done.status_code == 200, done.text
    account = done.json()["account"]["id"]
    assert json.loads(tool(place, "account", "show", account, "--json")[1])["groups"] == ["staff"]
    assert "invitation_used" in tool(place, "account", "history", account)[1]
    assert tool(place, "invite", "list")[1] == "no invitations\n"
    refused = problem(register(place, next(OTHERS), code), 403, "invitation_invalid")
    assert refused["reason"] == "used" and refused["detail"].startswith("This invitation was used already."), refused
    # Attack: a guessed code.
    refused = problem(register(place, next(OTHERS), "mgi_" + 43 * "A"), 403, "invitation_invalid")
    assert "reason" not in refused, refused


def test_a_revoked_invitation_creates_no_account(place):
    made = json.loads(tool(place, "invite", "create", "--json")[1])
    assert made["recipient"] is None and made["code"].startswith("mgi_")
    flow = place.api("POST", "/flows", {"flow": "register", "invitation": made["code"]}).json()["id"]
    number = next(OTHERS)
    assert place.begin(flow, number).status_code == 200
    assert tool(place, "invite", "revoke", made["id"])[:2] == (0, f"{made['id']} is revoked\n")
    refused = problem(place.submit(flow, place.code(number)), 403, "invitation_invalid")
    assert refused["reason"] == "revoked" and "was withdrawn" in refused["detail"], refused
    page = requests.get(f"{place.url}/auth/invite", params={"code": made["code"]}, timeout=10)
    assert page.status_code == 403 and "was withdrawn" in page.text
    assert tool(place, "invite", "revoke", made["id"])[0] == 1
    problem(place.begin(place.flow("enter"), next(OTHERS)), 403, "invitation_required")


def sent_code(place, recipient):
    """The code in the last message to the recipient, and its entry in the outbox."""
    entry = next(entry for entry in place.outbox() if entry["to"] == recipient)
    return re.search(re.escape(f"{place.url}/auth/invite?code=") + r"(mgi_[A-Za-z0-9_-]{43})", entry["text"])[1], entry


def test_the_gateway_sends_the_link(place):
    number = next(OTHERS)
    status, out, err = tool(place, "invite", "create", number, "--send", "--expires", "2h", "--as", "ravi")
    assert status == 0 and f"is sent to {number}" in out and "mgi_" not in out + err, out + err
    code, entry = sent_code(place, number)
    assert entry["channel"] == "sms" and len(entry["text"]) <= 160 and entry["code"] is None
    opened = requests.get(f"{place.url}/auth/invite", params={"code": code}, allow_redirects=False, timeout=10)
    assert opened.status_code == 303 and "moongate-invitation" in opened.headers["Set-Cookie"]
    # Attack: the number of somebody else, with an invitation that was forwarded.
    problem(register(place, next(OTHERS), code), 403, "invitation_invalid")
    assert register(place, number, code).status_code == 200
    # Attack: the code in the log or the audit trail.
    events = requests.get(f"{place.admin}/events", params={"kind": "invitation_sent"}, timeout=10).json()
    assert events[0]["detail"]["channel"] == "sms" and events[0]["operator"] == "ravi"
    assert code not in place.log + json.dumps(events)


def test_a_mail_is_in_the_language_that_is_named(place):
    # An address outside of `domains` needs the invitation.
    status, out, err = tool(place, "invite", "create", "Asha@mail.example.org", "--send", "--language", "hi", "--json")
    made = json.loads(out)
    assert status == 0 and made["sent"] is True and "code" not in made and "link" not in made
    code, entry = sent_code(place, "asha@mail.example.org")
    assert entry["channel"] == "mail" and entry["subject"].endswith("आपका निमंत्रण")
    assert "Only" not in entry["text"]
    assert "asha@mail.example.org" in entry["text"]
    flow = place.api("POST", "/flows", {"flow": "register_email", "invitation": code})
    assert flow.status_code == 201, flow.text


def test_an_operator_changes_the_words_of_the_message(tmp_path):
    gateway = LocalGateway(tmp_path)
    pages = gateway.config / "pages"
    pages.mkdir(exist_ok=True)
    (pages / "en.words").write_text("[sentences]\nYou are invited to create an account = Welcome aboard\n")
    gateway.start()
    try:
        assert tool(gateway, "invite", "create", NUMBER, "--send")[0] == 0
        _, entry = sent_code(gateway, NUMBER)
        assert "Welcome aboard" in entry["text"]
        # Registration is open here, and the same number gets at most five messages a day.
        answers = [tool(gateway, "invite", "create", NUMBER, "--send") for _ in range(5)]
        assert [status for status, _, _ in answers] == [0, 0, 0, 0, 2] and "Too many invitations" in answers[-1][2]
    finally:
        gateway.stop()


def test_a_message_that_is_refused_loses_nothing(tmp_path):
    gateway = LocalGateway(tmp_path)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace("sms = outbox()", f'sms = webhook {{ url = "http://127.0.0.1:{free_port()}/send" }}'),
    )
    gateway.start()
    try:
        status, out, err = tool(gateway, "invite", "create", NUMBER, "--send")
        assert status == 1 and "was created, but not sent" in err, err
        assert out.startswith(f"{gateway.url}/auth/invite?code=mgi_")
        code = out.strip().partition("code=")[2]
        (event,) = requests.get(f"{gateway.admin}/events", params={"kind": "delivery_failed"}, timeout=10).json()
        assert event["detail"]["invitation"] in err and code not in json.dumps(event) + gateway.log
        (listed,) = json.loads(tool(gateway, "invite", "list", "--json")[1])
        assert tool(gateway, "invite", "revoke", listed["id"])[0] == 0
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    "words, said",
    [
        ((), "--send needs a recipient"),
        (("asha",), "is not an email address or a phone number"),
        # Attack: another header of the mail.
        (("asha@example.com\r\nBcc: x@evil.example",), "is not an email address or a phone number"),
        ((NUMBER, "--language", "xx"), 'There are no texts in "xx"'),
    ],
)
def test_nothing_is_sent_for_invalid_input(place, words, said):
    before = place.outbox()
    status, out, err = tool(place, "invite", "create", *words, "--send")
    assert status == 2 and out == "" and said in err, err
    assert place.outbox() == before


def test_sending_needs_a_running_gateway(tmp_path):
    gateway = LocalGateway(tmp_path)
    status, out, err = tool(gateway, "invite", "create", NUMBER, "--send")
    assert status == 2 and out == "" and "No gateway listens at" in err
    status, out, err = tool(gateway, "invite", "create", NUMBER, "--language", "hi")
    assert status == 2 and "need --send" in err


def test_an_answer_that_is_lost_is_reported(tmp_path):
    gateway = LocalGateway(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        # Ends the connection without an answer.
        closing = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
        closing.start()
        admin = f"127.0.0.1:{server.getsockname()[1]}"
        status, out, err = tool(gateway, "invite", "create", NUMBER, "--send", "--admin", admin)
    assert status == 2 and out == "" and "does not answer" in err and "may have been created" in err, err


@pytest.mark.parametrize(
    "words, said",
    [
        (("asha",), "is not an email address or a phone number"),
        (("--group", "all"), "accounts.lua defines with members()"),
        (("--expires", "30s"), "from 1m to 90d"),
        (("--expires", "91d"), "from 1m to 90d"),
    ],
)
def test_input_that_is_refused(place, words, said):
    status, out, err = tool(place, "invite", "create", *words)
    assert status == 2 and out == "" and said in err


def test_check_and_show_name_the_rule(place):
    out = tool(place, "check")[1]
    assert "creates accounts with an invitation, or a verified address of example.com, by" in out
    shown = subprocess.run(
        [BIN / "moongate", "policy", "show", "accounts", "--config", place.config],
        capture_output=True, text=True, timeout=60,
    )
    assert '{ "invited", domains = { "example.com" } }' in shown.stdout
