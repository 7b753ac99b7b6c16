"""Access tokens: what they open and how they end. test_token_clients.py covers real clients."""

import base64
import json
import re
import subprocess
import time

import pytest
import requests

from local_gateway import BIN, LocalGateway, problem, wait_for
from manual import blocks
from services import Handler, HTTPService
from test_accounts import tool

GUIDE = "guides/programs-without-a-person.md"
ROUTES = """return routes {
  { path = "/any/**", to = "http://127.0.0.1:3000", tokens = true },
  { path = "/ci/**", to = "http://127.0.0.1:3000", tokens = { "ci" } },
  { path = "/deploy/**", to = "http://127.0.0.1:3000", tokens = true, require = { group = "deployers" } },
  { path = "/own/**", to = "http://127.0.0.1:3000", tokens = { personal = true } },
  { path = "/**", to = "http://127.0.0.1:3000" },
}
"""


class Service(HTTPService):
    """The service behind the gateway, which responds with the received head."""

    def __init__(self):
        service = self
        self.seen = []

        class Answers(Handler):
            def answer(self, status, body=b"", **fields):
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def handle_any(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.seen.append((self.command, self.path, dict(self.headers)))
                return self.answer(
                    200, json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
                )

            do_GET = do_HEAD = do_POST = handle_any

        super().__init__(Answers)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    service, gateway = Service(), LocalGateway(tmp_path_factory.mktemp("tokens"))
    gateway.edit("routes.lua", lambda _: ROUTES.replace("3000", str(service.port)))
    gateway.edit(
        "accounts.lua",
        lambda text: text.replace(
            "return accounts {", "return accounts {\n  groups = { deployers = members(), staff = members() },", 1
        ),
    )
    gateway.edit("policies/phone_otp.lua", lambda text: text.replace('"60s", "120s"', '"1s"'))
    gateway.service = service
    try:
        yield gateway.start()
    finally:
        gateway.stop()
        service.end()


def create(gateway, name, *options):
    status, text, complaint = tool(gateway, "token", "create", name, *options)
    assert status == 0, complaint
    assert re.fullmatch(r"mgt_[A-Za-z0-9_-]{43}\n", text), text
    return text.strip()


@pytest.fixture(scope="module")
def token(place):
    return create(place, "tools")


def get(gateway, path, **options):
    options.setdefault("timeout", 10)
    return requests.get(gateway.url + path, allow_redirects=False, **options)


def with_token(secret):
    return {"headers": {"Authorization": f"Bearer {secret}"}}


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, **options)


def no_service_saw(gateway, secret):
    told = json.dumps(gateway.service.seen)
    pairs = {base64.b64encode(f"{user}:{secret}".encode()).decode() for user in ("any", "me", "login")}
    return secret not in told and not any(pair in told for pair in pairs) and "mgt_" not in told


def test_curl_by_basic_and_by_bearer(place, token):
    for words in (["-u", f"any:{token}"], ["-H", f"Authorization: Bearer {token}"]):
        done = run("curl", "-sS", "-i", *words, f"{place.url}/any/x")
        assert done.returncode == 0 and done.stdout.startswith("HTTP/1.1 200"), done
        assert '"remote-user": "token:tools"' in done.stdout
    without = run("curl", "-sS", "-i", f"{place.url}/any/x").stdout
    assert without.startswith("HTTP/1.1 401") and without.count("WWW-Authenticate") == 1
    assert re.search('\nWWW-Authenticate: Basic realm="[^"]*", charset="UTF-8", Bearer\n', without), without
    people = run("curl", "-sS", "-i", "-u", f"any:{token}", f"{place.url}/people").stdout
    assert people.startswith("HTTP/1.1 401") and "WWW-Authenticate" not in people
    assert no_service_saw(place, token)


def test_the_command_and_the_admin_api_tell_the_same(place):
    made = tool(
        place,
        "token",
        "create",
        "same",
        "--expires",
        "90d",
        "--network",
        "127.0.0.0/8",
        "--group",
        "staff",
        "--group",
        "deployers",
        "--json",
    )
    assert made[0] == 0, made
    made = json.loads(made[1])
    assert made.pop("token").startswith("mgt_")
    assert "Times of last use can be up to 30 seconds old." in tool(place, "token", "list")[2]

    def told_alike():
        listed = json.loads(tool(place, "token", "list", "--json")[1])
        return listed if listed == requests.get(f"{place.admin}/tokens", timeout=10).json() else None

    # An earlier use may be recorded between the two.
    listed = wait_for(told_alike, "the same list from both")
    assert next(entry for entry in listed if entry["name"] == "same") == made
    assert made["groups"] == ["deployers", "staff"] and made["networks"] == ["127.0.0.0/8"]
    other = requests.post(f"{place.admin}/tokens", json={"name": "by-admin", "groups": ["staff"]}, timeout=10)
    assert other.status_code == 201 and set(other.json()) == set(made) | {"token"}
    assert get(place, "/any/x", **with_token(other.json()["token"])).json()["remote-groups"] == "staff"
    for words, sentence in (
        (("create", "same"), "The token same already exists"),
        (("create", "CI"), "is not a token name"),
        (("create", "x", "--group", "stafff"), 'defines no group "stafff"'),
        (("revoke", "nobody"), "There is no token nobody"),
        (("rotate", "nobody"), "There is no token nobody"),
        (("create", "x", "--expires", "soon"), "is not a length of time"),
    ):
        status, text, complaint = tool(place, "token", *words)
        assert status in (1, 2) and text == "" and sentence in complaint, complaint


def test_groups_of_a_token(place, token):
    with_group = create(place, "deployer", "--group", "deployers")
    passed = get(place, "/deploy/x", **with_token(with_group))
    assert passed.status_code == 200 and passed.json()["remote-groups"] == "deployers"
    assertion = passed.json()["x-moongate-assertion"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(assertion + "=" * (-len(assertion) % 4)))
    assert claims["sub"] == "token:deployer" and claims["amr"] == ["token"] and claims["groups"] == ["deployers"]
    problem(get(place, "/deploy/x", **with_token(token)), 403, "forbidden")
    problem(get(place, "/ci/x", **with_token(token)), 403, "denied")


@pytest.mark.alone
def test_revoked_within_a_second_by_another_process(place):
    secret = create(place, "brief")
    assert get(place, "/any/x", **with_token(secret)).status_code == 200
    rotated = json.loads(tool(place, "token", "rotate", "brief", "--overlap", "1h", "--json")[1])["token"]
    assert (
        get(place, "/any/x", **with_token(secret)).status_code == 200
        and get(place, "/any/x", **with_token(rotated)).status_code == 200
    )
    assert tool(place, "token", "revoke", "brief")[0] == 0
    revoked = time.monotonic()
    wait_for(lambda: get(place, "/any/x", **with_token(secret)).status_code == 401, "the end of the old secret", 2)
    wait_for(lambda: get(place, "/any/x", **with_token(rotated)).status_code == 401, "the end of the new secret", 2)
    assert time.monotonic() - revoked < 1.5
    # Both uses are recorded, although neither was stored before the token ended.
    for kind in "token_created", "token_used", "token_rotated", "token_revoked":
        wait_for(lambda: requests.get(f"{place.admin}/events?kind={kind}", timeout=10).json(), kind)


def test_personal_tokens_are_their_owner(place, number):
    person = place.register(number)
    owner = with_token(person["session"]["token"])
    made = place.api("POST", "/tokens", {"name": "laptop"}, **owner)
    assert made.status_code == 201, made.text
    secret = made.json()["token"]
    seen = get(place, "/own/x", **with_token(secret))
    assert (
        seen.status_code == 200
        and seen.json()["remote-user"] == person["account"]["id"]
        and seen.json()["remote-phone"] == number
    )
    problem(get(place, "/any/x", **with_token(secret)), 403, "denied")
    problem(place.api("GET", "/session", **with_token(secret)), 401, "unauthenticated")
    # Attack: a token together with another user's cookie.
    both = {"headers": {"Authorization": f"Bearer {secret}", "Cookie": f"moongate={person['session']['token']}"}}
    problem(get(place, "/own/x", **both), 400, "bad_request")
    used = wait_for(lambda: place.api("GET", "/tokens", **owner).json()[0]["last_used_from"], "the last use", 5)
    assert used == "127.0.0.0/24"
    # Attack: a stolen token stays valid after the owner has signed out everywhere else.
    assert place.api("DELETE", "/sessions", **owner).status_code == 204
    wait_for(lambda: get(place, "/own/x", **with_token(secret)).status_code == 401, "the token's end", 2)
    assert place.api("GET", "/tokens", **owner).json() == []


def test_the_guides_examples_are_right(new_gateway):
    """Documentation/guides/programs-without-a-person.md: its files load, and its commands work as described."""
    files = [re.match(r"-- (\S+)\n(.*)", text, re.S).groups() for text in blocks("lua", GUIDE)]
    assert [name for name, _ in files] == ["routes.lua", "accounts.lua", "routes.lua", "routes.lua"]
    for name, text in files:
        (new_gateway.config / name).write_text(text)
        if name == "routes.lua" and "deployers" in text:
            continue
        checked = subprocess.run(
            [BIN / "moongate", "check", "--config", new_gateway.config], capture_output=True, text=True, timeout=120
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
    shown = subprocess.run(
        [BIN / "moongate", "policy", "show", "token", "--config", new_gateway.config],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "limits.wrong.max" in shown.stdout and "60" in shown.stdout and "policies/token.lua" in shown.stdout
    new_gateway.start()
    commands = [
        line
        for block in blocks("sh", GUIDE)
        for line in block.splitlines()
        if line.startswith("moongate ")
    ]
    assert len(commands) == 4
    for line in commands:
        status, _, complaint = tool(new_gateway, *line.partition(" > ")[0].split()[1:])
        assert status == 0, f"{line}: {complaint}"
