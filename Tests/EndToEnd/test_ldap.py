"""Sign-in by a directory: a real slapd, and servers that pretend to be one (docs: Plugins/LDAP/README.md)."""

import json
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from directory_server import (
    BASE,
    BIND,
    BOUND,
    DONE,
    FOUND,
    PASSWORD,
    SEARCH,
    SEARCHER,
    SEARCHER_PASSWORD,
    DirectoryServer,
    FalseServer,
    StrippingProxy,
    ber,
    certificate,
    dn,
    group,
    message,
    person,
    result,
    text,
)
from local_gateway import BIN, LocalGateway, problem, wait_for
from processes import free_port

POLICY = """return policy "directory" {
  limits = {
    verify = { on = "verify", per = "identifier", max = 3, window = "24h", counts = "failures", lock = "30m" },
  },
}
"""
NAMES_OF_USER = '"(&(objectClass=person)(|(uid={name})(mail={name})))"'
FLOW = """return flow "work" {
  account = "any", steps = { { "directory" } }, next = { new = "/home", returning = "/home" },
}
"""
ACCOUNTS = """return accounts {
  recovery_delay = "0s",
  groups = {
    ops = function(f) local site = f.account.identities.directory return site and site.groups.ops end,
    all = function(f) local site = f.account.identities.directory return site and site.groups.all end,
  },
  claims = {
    department = function(f)
      local site = f.account.identities.directory
      return site and site.data.departmentNumber
    end,
  },
}
"""
ROUTES = """return routes {{
  {{ path = "/echo/ops/**", to = "{0}", require = {{ group = "ops" }} }},
  {{ path = "/echo/all/**", to = "{0}", require = {{ group = "all" }} }},
  {{ path = "/**", to = "{0}" }},
}}
"""


NOBODY = f'{{ dn = "cn=nobody,{BASE}", password = env "DIRECTORY_PASSWORD" }}'


def with_directory(gateway, url, **more):
    """Adds a provider `directory` and a flow for it."""
    policy = more.pop("policy", POLICY)
    fields = {
        "url": f'"{url}"',
        "base": f'"{BASE}"',
        "bind": f'{{ dn = "{SEARCHER}", password = env "DIRECTORY_PASSWORD" }}',
        "groups": '"(&(objectClass=groupOfNames)(member={dn}))"',
        "group_base": f'"ou=groups,{BASE}"',
        **more,
    }
    entry = "directory = ldap { " + ", ".join(f"{name} = {value}" for name, value in fields.items() if value) + " },"
    gateway.edit("gateway.lua", lambda text: text.replace("providers = {", "providers = {\n    " + entry, 1))
    if policy:
        (gateway.config / "policies/directory.lua").write_text(policy)
    (gateway.config / "flows/work.lua").write_text(FLOW)
    (gateway.config / "accounts.lua").write_text(ACCOUNTS)
    gateway.edit("routes.lua", lambda _: ROUTES.format(f"http://127.0.0.1:{gateway.ports[2]}"))
    return gateway


def sign_in(gateway, name, password=PASSWORD, flow="work", **options):
    id = gateway.flow(flow)
    fields = {"provider": "directory", "username": name, "password": password}
    return gateway.api("POST", f"/flows/{id}/begin", fields, **options)


def get(gateway, answer, path):
    own = {"Authorization": f"Bearer {answer.json()['session']['token']}"}
    return requests.get(gateway.url + path, headers=own, allow_redirects=False, timeout=10)


def explained(gateway, refused):
    command = [BIN / "moongate", "policy", "explain", refused["decision_id"], "--config", gateway.config]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/").stdout


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    old = "20200101000000Z"
    server = DirectoryServer(
        tmp_path_factory.mktemp("directory"),
        person("ada", departmentNumber="42"),
        person("bob", "Bob Nobody"),
        person("carol", "Carol Careful"),
        person("dora", "Dora Fox"),
        person("eve", "Eve (Evil)*", mail="ada@example.com"),
        person("gwen", "Gwen Gate", pwdAccountLockedTime="000001010000Z"),
        person("reset", "Re Set", pwdReset="TRUE"),
        person("old", "Ol D", pwdPolicySubentry=f"cn=aged,{BASE}", pwdChangedTime=old),
        group("ops", dn("ada")),
        group("all", f"cn=ops,ou=groups,{BASE}", dn("bob")),
        # Attack: somebody makes a group of the same name elsewhere.
        group("ops", dn("bob"), below="other"),
    )
    yield server
    server.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory, directory):
    """A gateway with the directory over StartTLS."""
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    with_directory(
        gateway, directory.url, ca=f'"{directory.authority}"', nested_groups="true", user=NAMES_OF_USER,
        attributes='{ "departmentNumber" }', email_verified='"always"', trusted_domains='{ "example.com" }',
    )
    gateway.start(DIRECTORY_PASSWORD=SEARCHER_PASSWORD)
    yield gateway
    gateway.stop()


@pytest.fixture
def other(tmp_path):
    """Starts a gateway with another server or other settings."""
    started = []

    def start(url, **more):
        gateway = with_directory(LocalGateway(tmp_path / f"gateway{len(started)}"), url, **more)
        started.append(gateway)
        return gateway.start(DIRECTORY_PASSWORD=SEARCHER_PASSWORD)

    yield start
    for gateway in started:
        gateway.stop()


def test_signs_in_with_groups_and_data(place, directory):
    done = sign_in(place, " Ada ")
    assert done.status_code == 200, done.text
    account = done.json()["account"]
    assert account["email"] == "ada@example.com" and account["is_email_verified"] is True, account
    assert get(place, done, "/echo/ops/x").status_code == 200
    # By a group of the group.
    assert get(place, done, "/echo/all/x").status_code == 200
    assert PASSWORD not in place.log and SEARCHER_PASSWORD not in place.log
    assert "STARTTLS" in directory.log and "TLS established" in directory.log


def test_group_elsewhere_does_not_count(place):
    done = sign_in(place, "bob")
    assert done.status_code == 200, done.text
    # The same account by the address.
    assert sign_in(place, "Bob@Example.com").json()["account"]["id"] == done.json()["account"]["id"]
    assert problem(get(place, done, "/echo/ops/x"), 403, "forbidden")["group"] == "ops"
    assert get(place, done, "/echo/all/x").status_code == 200


def test_members_of_one_group_only(other, directory):
    staff = f"cn=staff,ou=groups,{BASE}"
    directory.change(
        f"dn: {staff}\nchangetype: add\nobjectClass: groupOfNames\ncn: staff\nmember: {dn('bob')}\n"
    )
    gateway = other(
        directory.url, ca=f'"{directory.authority}"', user=f'"(&(|(uid={{name}})(mail={{name}}))(memberOf={staff}))"'
    )
    assert sign_in(gateway, "bob").status_code == 200
    refused = problem(sign_in(gateway, "ada"), 401, "invalid_credentials")
    assert "no entry" in explained(gateway, refused)


def test_removed_from_a_group_at_the_next_sign_in(place, directory):
    group_name = f"cn=all,ou=groups,{BASE}"
    directory.change(f"dn: {group_name}\nchangetype: modify\nadd: member\nmember: {dn('carol')}\n")
    first = sign_in(place, "carol")
    assert get(place, first, "/echo/all/x").status_code == 200
    directory.change(f"dn: {group_name}\nchangetype: modify\ndelete: member\nmember: {dn('carol')}\n")
    second = sign_in(place, "carol")
    assert second.json()["account"]["id"] == first.json()["account"]["id"]
    wait_for(lambda: get(place, second, "/echo/all/x").status_code == 403, "the group to be gone")
    wait_for(lambda: get(place, first, "/echo/all/x").status_code == 403, "the group to be gone everywhere")


def test_rechecks(other, directory):
    directory.change(person("faye", "Faye Fleet").replace("\n", "\nchangetype: add\n", 1))
    group_name = f"cn=all,ou=groups,{BASE}"
    directory.change(f"dn: {group_name}\nchangetype: modify\nadd: member\nmember: {dn('faye')}\n")
    gateway = other(directory.url, ca=f'"{directory.authority}"', recheck='"1s"')
    done = sign_in(gateway, "faye")
    assert get(gateway, done, "/echo/all/x").status_code == 200
    # A user who is renamed is the same.
    change = f"dn: {dn('faye')}\nchangetype: modrdn\nnewrdn: uid=faye.fox\ndeleteoldrdn: 1\n"
    directory.change(f"dn: {group_name}\nchangetype: modify\ndelete: member\nmember: {dn('faye')}\n" + "\n" + change)
    wait_for(lambda: get(gateway, done, "/echo/all/x").status_code == 403, "the group to be gone")
    assert get(gateway, done, "/echo/x").status_code == 200
    directory.change(f"dn: {dn('faye.fox')}\nchangetype: delete\n")
    wait_for(lambda: get(gateway, done, "/echo/x").status_code != 200, "the session to end")


def test_renamed_entry_is_the_same_account(place, directory):
    before = sign_in(place, "dora").json()["account"]["id"]
    change = f"dn: {dn('dora')}\nchangetype: modrdn\nnewrdn: uid=dora.fox\ndeleteoldrdn: 1\n"
    directory.change(change)
    after = sign_in(place, "dora.fox")
    assert after.json()["account"]["id"] == before, after.text


def test_wrong_and_unknown_look_the_same(place):
    wrong = problem(sign_in(place, "bob", "wrong horse"), 401, "invalid_credentials")
    unknown = problem(sign_in(place, "nobody-here", "wrong horse"), 401, "invalid_credentials")
    own = {"decision_id", "instance"}
    assert {k: v for k, v in wrong.items() if k not in own} == {k: v for k, v in unknown.items() if k not in own}
    assert "wrong password" in explained(place, wrong) and "no entry" in explained(place, unknown)
    assert "wrong horse" not in place.log


@pytest.mark.timed
def test_wrong_and_unknown_take_the_same_time(place):
    def taken(name):
        began = time.monotonic()
        assert sign_in(place, name, "wrong").status_code == 401
        return time.monotonic() - began

    taken("old")
    times = [taken(f"stranger{number}") for number in range(5)] + [taken("old")]
    assert min(times) >= 0.25 and max(times) < 0.75, times


@pytest.mark.parametrize("name, code, said", [
    ("old", "password_expired", "password expired"),
    ("reset", "password_expired", "password must be changed"),
    ("gwen", "invalid_credentials", "account locked"),
])
def test_policy_of_the_directory(other, directory, name, code, said):
    gateway = other(directory.url, ca=f'"{directory.authority}"')
    refused = problem(sign_in(gateway, name), 401, code)
    assert said in explained(gateway, refused)
    # Attack: a stranger learns that the account is locked, or has an old password.
    stranger = problem(sign_in(gateway, name, "wrong"), 401, "invalid_credentials")
    assert stranger["detail"] == "Incorrect user name or password."


def test_attempts_are_counted_before_the_directory(other, directory):
    """Attack: a stranger locks somebody out of the directory by wrong passwords."""
    gateway = other(directory.url, ca=f'"{directory.authority}"')
    answers = [sign_in(gateway, name, "wrong") for name in ("bob", "BOB", " ｂｏｂ", "b\u00adob", "bob", "bob")]
    assert [answer.json()["code"] for answer in answers] == ["invalid_credentials"] * 2 + ["too_many_attempts"] * 4
    failures = directory.read(dn("bob"), "pwdFailureTime").count("pwdFailureTime")
    assert failures <= 4, "the one of another test and three of this one"
    # The right one is not tried either.
    assert sign_in(gateway, "bob").json()["code"] == "too_many_attempts"


def test_defaults_stay_below_the_lockout(other, directory):
    """Attack: a stranger locks somebody out of the directory, by each of the names that the entry has."""
    directory.change(person("frank").rstrip().replace("\n", "\nchangetype: add\n", 1) + "\n")
    gateway = other(directory.url, ca=f'"{directory.authority}"', user=NAMES_OF_USER, policy="")
    for name in ("frank", "frank@example.com") * 3:
        assert sign_in(gateway, name, "wrong").status_code in (401, 429)
    assert directory.read(dn("frank"), "pwdFailureTime").count("pwdFailureTime:") <= 4
    assert "pwdAccountLockedTime" not in directory.read(dn("frank"), "pwdAccountLockedTime")


NAMES = ["*", "a*", "ada)(uid=*", "*)(uid=*))(|(uid=*", "ada\\2a", "ada)(|(userPassword=*", "(&)", "ada\\", "uid=ada"]


@pytest.mark.parametrize("name", NAMES)
def test_injection(place, directory, name):
    """Attack: a user name that is a filter."""
    before = directory.log.count('filter="')
    problem(sign_in(place, name), 401, "invalid_credentials")
    filters = [line for line in directory.log.splitlines() if 'filter="' in line][before:]
    assert all(line.count("(uid=") == 1 and line.count("(mail=") == 1 for line in filters if "(uid=" in line), filters


def test_malformed_input_reaches_no_directory(place, directory):
    """Attack: an empty password is an anonymous bind, which succeeds."""
    def binds():
        # The gateway binds as the account that searches when it starts.
        return directory.log.count("BIND dn=") - directory.log.count(f'BIND dn="{SEARCHER}"')

    before = binds()
    passwords = ["", "\0", "\0" + PASSWORD, "x" * 2000]
    names = ["", " \u200b", "a\0", "a\nb", "a" * 129]
    for name, password in [("ada", one) for one in passwords] + [(one, "x") for one in names]:
        answer = sign_in(place, name, password)
        # The API itself refuses NUL, except in passwords.
        expected = 400 if "\0" in name else 422
        assert answer.status_code == expected, (name, password, answer.text)
    assert sign_in(place, "ada", None).status_code in (200, 422)
    assert binds() == before


def test_claimed_address_of_another_joins_nothing(other, directory):
    """Attack: somebody edits their own entry and says that Ada's address is theirs."""
    gateway = other(directory.url, ca=f'"{directory.authority}"', user=NAMES_OF_USER)
    ada = sign_in(gateway, "ada").json()["account"]
    eve = sign_in(gateway, "eve").json()["account"]
    assert ada["id"] != eve["id"] and ada["is_email_verified"] is False and eve["is_email_verified"] is False
    # Two entries have the name: nobody is signed in by it.
    refused = problem(sign_in(gateway, "ada@example.com"), 401, "invalid_credentials")
    assert "several entries" in explained(gateway, refused)


def test_several_servers(other, directory):
    gateway = other(
        f"ldap://127.0.0.1:{free_port()}", ca=f'"{directory.authority}"',
        also=f'{{ "{directory.tls_url}", "{directory.url}" }}',
    )
    done = sign_in(gateway, "ada")
    assert done.status_code == 200, done.text


def test_directory_that_is_down_refuses_nobody(other, directory):
    gateway = other(f"ldap://127.0.0.1:{free_port()}")
    for _ in range(5):
        problem(sign_in(gateway, "ada"), 503, "busy")
    wait_for(lambda: "connecting to ldap://127.0.0.1" in gateway.log, "the reason in the log")


def test_certificate_of_another_authority(other, directory, tmp_path):
    """Attack: a server in the middle has a certificate of its own."""
    (tmp_path / "foreign").mkdir()
    foreign = certificate(tmp_path / "foreign")
    # The certificate is for the address, not for the name.
    for url in (directory.url, directory.tls_url, directory.tls_url.replace("127.0.0.1", "localhost")):
        authority = directory.authority if "localhost" in url else foreign
        gateway = other(url, ca=f'"{authority}"')
        before = directory.binds(SEARCHER)
        problem(sign_in(gateway, "ada"), 503, "busy")
        assert directory.binds(SEARCHER) == before
        wait_for(lambda: "check the certificate, the host in it, and `ca`" in gateway.log, "the reason in the log")


@pytest.mark.parametrize("code", [2, 53, 0])
def test_stripped_start_tls(other, directory, code):
    """Attack: a proxy in the middle answers StartTLS itself, so that passwords come unencrypted."""
    proxy = StrippingProxy(directory, code)
    try:
        gateway = other(proxy.url, ca=f'"{directory.authority}"')
        problem(sign_in(gateway, "ada"), 503, "busy")
        assert PASSWORD.encode() not in proxy.received and SEARCHER_PASSWORD.encode() not in proxy.received
        assert SEARCHER.encode() not in proxy.received
    finally:
        proxy.stop()


def found(name, **attributes):
    lists = [ber(0x30, text(key), ber(0x31, *[text(one) for one in values])) for key, values in attributes.items()]
    return ber(FOUND, text(name), ber(0x30, *lists))


def pretending(other, answer, **more):
    """A gateway and a false server, which accepts every bind unless the function answers it."""
    def judge(client, number, tag, whole):
        said = answer(client, number, tag, whole)
        if said is not None or tag not in (BIND, SEARCH):
            return said
        return message(number, result(BOUND if tag == BIND else DONE, 0))

    server = FalseServer(judge)
    return server, other(server.url, **more)


def test_referrals_are_not_followed(other):
    """Attack: a referral leads to a server of the attacker's, which gets the password."""
    thief = FalseServer(lambda client, number, tag, whole: message(number, result(BOUND, 0)))
    link = ber(0xA3, text(f"{thief.url}/{BASE}"))

    def answer(client, number, tag, whole):
        if tag == SEARCH:
            reference = message(number, ber(0x73, text(f"{thief.url}/{BASE}")))
            return reference + message(number, result(DONE, 10, "", link))
        return None

    server, gateway = pretending(other, answer)
    problem(sign_in(gateway, "ada"), 503, "busy")
    assert thief.received == b""

    def at_the_bind(client, number, tag, whole):
        if tag == SEARCH:
            entry = found(dn("ada"), uid=["ada"], entryUUID=["1246eef6-7fba-1041-99dc-d3be810c51f6"])
            return message(number, entry) + message(number, result(DONE, 0))
        return message(number, result(BOUND, 10, "", link)) if b"people" in whole else None

    server, gateway = pretending(other, at_the_bind)
    problem(sign_in(gateway, "ada"), 401, "invalid_credentials")
    assert thief.received == b"" and PASSWORD.encode() in server.received


@pytest.mark.parametrize("size", [900_000, 10_000_000, 200_000_000])
def test_huge_entry(other, size):
    """Attack: an entry of 10 MB, and one that only claims to be large."""
    def answer(client, number, tag, whole):
        if tag != SEARCH:
            return None
        if size > 100_000_000:
            return b"\x30\x84" + size.to_bytes(4, "big") + bytes([2, 1, number])
        entry = found(dn("ada"), uid=["ada"], description=["x" * size])
        return message(number, entry) * 2 + message(number, result(DONE, 0))

    server, gateway = pretending(other, answer)
    before = memory(gateway)
    assert sign_in(gateway, "ada").status_code in (401, 503)
    assert memory(gateway) - before < 30_000_000


def test_many_empty_values(other):
    """Attack: an entry with a hundred thousand values, each of which needs more memory than it has bytes."""
    def answer(client, number, tag, whole):
        if tag != SEARCH:
            return None
        entry = found(dn("ada"), uid=["ada"], description=[""] * 100_000)
        return message(number, entry) + message(number, result(DONE, 0))

    server, gateway = pretending(other, answer)
    before = memory(gateway)
    problem(sign_in(gateway, "ada"), 503, "busy")
    assert memory(gateway) - before < 30_000_000


def memory(gateway):
    with open(f"/proc/{gateway.server.process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


@pytest.mark.parametrize("manner", ["silent", "drop by drop"])
def test_slow_server(other, manner):
    """Attack: a server that answers with one byte a second holds a connection for ever."""
    def answer(client, number, tag, whole):
        for byte in message(number, result(BOUND, 0)) * 20:
            time.sleep(0.5)
            if manner != "silent":
                try:
                    client.sendall(bytes([byte]))
                except OSError:
                    return None
        return None

    server, gateway = pretending(other, answer, timeout="2")
    began = time.monotonic()
    problem(sign_in(gateway, "ada"), 503, "busy")
    assert time.monotonic() - began < 6


def test_silent_servers_together_have_one_deadline(other):
    """A call of more than ten seconds would count as a failed attempt."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    first, *rest = [f"ldap://127.0.0.1:{server.getsockname()[1]}" for server in servers]
    gateway = other(first, also="{ " + ", ".join(f'"{url}"' for url in rest) + " }", timeout="4")
    began = time.monotonic()
    problem(sign_in(gateway, "ada"), 503, "busy")
    assert time.monotonic() - began < 9.5
    for server in servers:
        server.close()


def test_server_that_begins_no_tls(other, directory):
    """Attack: a server that takes connections and begins no TLS holds all threads of the gateway."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"ldaps://127.0.0.1:{server.getsockname()[1]}"
        gateway = other(url, ca=f'"{directory.authority}"', timeout="2")
        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            attempts = [pool.submit(sign_in, gateway, f"ada{number}") for number in range(8)]
            # Everything else goes on meanwhile.
            assert requests.get(f"{gateway.url}/auth/login", timeout=10).status_code == 200
            for attempt in attempts:
                problem(attempt.result(), 503, "busy")
        assert time.monotonic() - began < 8


def test_old_versions_of_tls(other, directory):
    """Attack: a server that speaks TLS 1.1 only, for which LDAPTLS_CIPHER_SUITE or ldap.conf may allow anything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(directory.authority, directory.folder / "ca.key")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    agreed = []

    def serve(server):
        while True:
            try:
                with context.wrap_socket(server.accept()[0], server_side=True) as client:
                    agreed.append(client.version())
            except ssl.SSLError:
                pass
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        gateway = other(f"ldaps://127.0.0.1:{server.getsockname()[1]}", ca=f'"{directory.authority}"', timeout="2")
        problem(sign_in(gateway, "ada"), 503, "busy")
    assert agreed == []


def test_doctor_binds(other, directory):
    gateway = other(directory.url, ca=f'"{directory.authority}"')
    command = [BIN / "moongate", "doctor", "--config", gateway.config]
    env = {"PATH": "/usr/bin", "DIRECTORY_PASSWORD": SEARCHER_PASSWORD}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", env=env)
    assert f"directory: {directory.url} accepts the password of bind.dn" in done.stdout, done.stdout + done.stderr


def test_late_answer_to_a_wrong_password_counts(other):
    """Attack: a directory answers wrong passwords later than the timeout. A fault would not be counted, and would tell
    that the guess was wrong."""
    def answer(client, number, tag, whole):
        if tag == SEARCH:
            entry = found(dn("ada"), uid=["ada"], entryUUID=["1246eef6-7fba-1041-99dc-d3be810c51f6"])
            return message(number, entry) + message(number, result(DONE, 0))
        if b"people" in whole and PASSWORD.encode() not in whole:
            time.sleep(3)
        return None

    server, gateway = pretending(other, answer, timeout="1")
    codes = [sign_in(gateway, "ada", "wrong").json()["code"] for _ in range(4)]
    assert codes == ["directory_silent"] * 2 + ["too_many_attempts"] * 2


def test_refused_search_account(other, directory):
    gateway = other(directory.url, ca=f'"{directory.authority}"', bind=NOBODY)
    problem(sign_in(gateway, "ada"), 503, "busy")
    wait_for(lambda: "the bind of `bind.dn` failed with result 49" in gateway.log, "the reason in the log")


def checked(gateway, **env):
    command = [BIN / "moongate", "check", "--config", gateway.config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", env={"PATH": "/usr/bin", **env})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("more, said", [
    ({"url": "https://example.com"}, "is not the address of a server: write ldaps://dc1.example.com"),
    ({"also": '{ "ldaps://a.example.com/dc=x" }'}, "is not the address of a server"),
    ({"user": '"(uid={name}"'}, "has 1 opening and 0 closing parentheses"),
    ({"user": '"(uid=ada)"'}, "must compare {name}"),
    ({"user": '"(uid=*{name}*)"'}, "compares a placeholder in another way than exactly"),
    ({"groups": '"(member={name})"'}, "must not compare {name}"),
    ({"groups": '"(cn=ops)"'}, "finds the same groups for everyone"),
    ({"ca": '"gateway.lua"'}, "has no certificate in PEM form"),
    ({"ca": '"missing.pem"'}, "there is no file missing.pem"),
    ({"bind": '{ password = env "DIRECTORY_PASSWORD" }'}, "providers.directory.bind.dn: is missing"),
    ({"bind": '{ dn = "cn=search" }'}, "providers.directory.bind.password: is missing"),
    ({"bind": '{ dn = "cn=search", passwort = env "X" }'}, "did you mean `password`?"),
    ({"bind": '"cn=search"'}, "must be a table"),
    ({"trusted_domains": '{ "gmail.com" }'}, "is a public mail provider"),
    ({"timeout": "60"}, "timeout"),
])
def test_settings_that_are_wrong(new_gateway, more, said):
    with_directory(new_gateway, **{"url": "ldaps://dc1.example.com", **more})
    status, told = checked(new_gateway, DIRECTORY_PASSWORD="x")
    assert status != 0 and said in told and "gateway.lua:" in told, told


def test_page(place, driver):
    """The page asks for a name and a password at once."""
    driver.get(f"{place.url}/auth/step?flow=work")
    page = driver.page_source
    assert "User name" in page and 'autocomplete="username"' in page and 'autocomplete="current-password"' in page
    driver.find_element("css selector", 'input[autocomplete="username"]').send_keys("ada")
    driver.find_element("css selector", 'input[autocomplete="current-password"]').send_keys("wrong horse")
    driver.find_element("css selector", 'form button[type="submit"]').click()
    wait_for(lambda: "Incorrect user name or password." in driver.page_source, "the refusal")
    # The step is open for this name, which the page shows.
    wait_for(lambda: driver.find_element("css selector", "main .subtitle").text == "ada", "the name on the page")
    assert not driver.find_elements("css selector", 'input[autocomplete="username"]')
    driver.find_element("css selector", 'input[autocomplete="current-password"]').send_keys(PASSWORD)
    driver.find_element("css selector", 'form button[type="submit"]').click()
    wait_for(lambda: driver.current_url.endswith("/home"), "the page after the sign-in")


def test_connecting_and_stepping_up(place, number):
    done = place.register(number)
    own = {"headers": {"Authorization": f"Bearer {done['session']['token']}"}}
    id = place.api("POST", "/flows", {"flow": "directory_join"}, **own).json()["id"]
    fields = {"provider": "directory", "username": "eve", "password": PASSWORD}
    joined = place.api("POST", f"/flows/{id}/begin", fields, **own)
    assert joined.status_code == 200, joined.text
    again = sign_in(place, "eve")
    assert again.json()["account"]["id"] == done["account"]["id"], json.dumps(again.json())
