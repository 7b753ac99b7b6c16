"""Invitations: `moongate invite`, and flows that begin with one (docs: Documentation/guides/people-and-locks.md)."""

import json
import re
import subprocess

import pytest

from local_gateway import BIN, LocalGateway, problem

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
    problem(register(place, next(OTHERS), code), 403, "invitation_invalid")
    done = register(place, NUMBER, code)
    assert done.status_code == 200, done.text
    account = done.json()["account"]["id"]
    assert json.loads(tool(place, "account", "show", account, "--json")[1])["groups"] == ["staff"]
    assert "invitation_used" in tool(place, "account", "history", account)[1]
    assert tool(place, "invite", "list")[1] == "no invitations\n"
    problem(register(place, next(OTHERS), code), 403, "invitation_invalid")


def test_a_revoked_invitation_creates_no_account(place):
    made = json.loads(tool(place, "invite", "create", "--json")[1])
    assert made["recipient"] is None and made["code"].startswith("mgi_")
    flow = place.api("POST", "/flows", {"flow": "register", "invitation": made["code"]}).json()["id"]
    number = next(OTHERS)
    assert place.begin(flow, number).status_code == 200
    assert tool(place, "invite", "revoke", made["id"])[:2] == (0, f"{made['id']} is revoked\n")
    problem(place.submit(flow, place.code(number)), 403, "invitation_invalid")
    assert tool(place, "invite", "revoke", made["id"])[0] == 1
    problem(place.begin(place.flow("enter"), next(OTHERS)), 403, "invitation_required")


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
