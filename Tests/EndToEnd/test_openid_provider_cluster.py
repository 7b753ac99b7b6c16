"""Apps on three gateways with one PostgreSQL, one of them with a clock that is a minute ahead, while gateways and the
database are killed: a code is redeemed once, a refresh family ends everywhere, and so does access.
`MOONGATE_APPS_ROUNDS=1000` runs a thousand rounds of each."""

import contextlib
import os
import random
import secrets
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from cluster import Cluster, Postgres
from local_gateway import wait_for
from openid_provider import ACCOUNTS, OTHER, WEB, Browser, RelyingParty
from test_cluster import AHEAD, LACKING, Gateway, many

pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(LACKING), reason=f"needs {LACKING}")]

ROUNDS = int(os.environ.get("MOONGATE_APPS_ROUNDS", "6"))
# From the answer that confirms the end to the last answer that anything is still valid.
BOUND = 1.0
LIFETIME = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    postgres, cluster = Postgres("max_connections=80"), None
    try:
        postgres.make().start()
        cluster = many(Cluster(tmp_path_factory.mktemp("apps"), postgres, 3, kind=Gateway).database())
        apps = {
            "web": WEB,
            "staffed": OTHER + f' require = {{ group = "staff" }}, lifetimes = {{ access_token = "{LIFETIME}s" }},',
        }
        (cluster.config / "secrets").mkdir(mode=0o700)
        for name in apps:
            file = cluster.config / "secrets" / name
            file.write_text(secrets.token_urlsafe(32))
            file.chmod(0o600)
        entries = "".join(f"  {name} = app {{ {fields.replace('NAME', name)} }},\n" for name, fields in apps.items())
        (cluster.config / "apps.lua").write_text(f"return apps {{\n{entries}}}\n")
        (cluster.config / "accounts.lua").write_text(ACCOUNTS)
        # Wrong codes and tokens of all rounds come from one address.
        token = cluster.config / "policies/token.lua"
        token.write_text(token.read_text().replace("max = 60", "max = 1000000"))
        cluster.start_around()
        cluster.nodes[2].within = AHEAD
        cluster.start()
        for node in cluster.nodes:
            node.issuer, node.config = cluster.url, cluster.config
        cluster.postgres = postgres
        yield cluster
    finally:
        if cluster:
            cluster.stop()
        postgres.remove()


@pytest.fixture
def nodes(cluster):
    for node in cluster.nodes:
        if not node.program.runs:
            node.start()
        wait_for(node.is_ready, "a node that is ready", 60)
    return cluster.nodes


class Trouble(threading.Thread):
    """Kills a gateway or the database, starts it again, and so on."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.ended, self.killed, self.failure = cluster, threading.Event(), 0, None

    def run(self):
        try:
            while not self.ended.wait(random.uniform(0.5, 2)):
                # The first gateway stays, so that each round has one that answers unless the database is down.
                node = random.choice([*self.cluster.nodes[1:], None])
                if node:
                    node.end(signal.SIGKILL)
                    node.start()
                else:
                    self.cluster.postgres.kill()
                    self.cluster.postgres.start()
                self.killed += 1
        except Exception as failure:
            self.failure = failure

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(120)
        assert self.failure is None, self.failure


def tries(call):
    """The answer; None if the node or its store is down."""
    with contextlib.suppress(requests.RequestException):
        answer = call()
        return answer if answer.status_code < 500 else None
    return None


def insists(call, what):
    """The first answer of a node whose store is up."""
    # An answer of 400 is false for `requests`.
    return wait_for(lambda: [answer for answer in [tries(call)] if answer is not None], what, 90)[0]


def person(nodes, phone):
    """A signed-in browser of a new account, made while everything runs."""
    browser = Browser(nodes[0]).signs_in(phone)
    wait_for(lambda: nodes[1].session(browser.token).status_code == 200, "the session elsewhere")
    return browser


def parties(nodes, name="web"):
    return [RelyingParty(node, name) for node in nodes]


def code_at(app, browser):
    """A code; a node that is killed meanwhile loses the request, which is repeated."""

    def asks():
        with contextlib.suppress(requests.RequestException, AssertionError):
            asked = app.asks()
            return app.arrived(asked, browser.follows(asked.address)), asked
        return None

    return wait_for(asks, "a code", 90)


def is_dead(app, access):
    answer = tries(lambda: app.userinfo(access))
    return answer is not None and answer.status_code == 401


def redeem_races(nodes, browser, rounds):
    """Returns how often a code was redeemed. No round has two answers with tokens."""
    apps, redeemed = parties(nodes), 0
    for _ in range(rounds):
        code, asked = code_at(apps[0], browser)
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda app: tries(lambda: app.redeems(code, asked.verifier)), apps * 2))
        won = [answer for answer in answers if answer is not None and answer.status_code == 200]
        assert len(won) <= 1, [answer.text for answer in won]
        lost = [answer.json()["error"] for answer in answers if answer is not None and answer.status_code == 400]
        assert set(lost) <= {"invalid_grant"}, lost
        redeemed += len(won)
        # A further use ends what the first one got, on every node.
        insists(lambda: apps[1].redeems(code, asked.verifier), "the refusal of a used code")
        for answer in won:
            wait_for(lambda: all(is_dead(app, answer.json()["access_token"]) for app in apps), "its end", 90)
    return redeemed


def refresh_families(nodes, browser, rounds):
    """Attack: a stolen refresh token at another gateway than the app's."""
    apps = parties(nodes)
    for turn in range(rounds):
        code, asked = code_at(apps[0], browser)
        answer = tries(lambda: apps[0].redeems(code, asked.verifier))
        if answer is None or answer.status_code != 200:
            continue
        chain = [answer.json()]
        for step in range(2):
            app = apps[(turn + step) % 3]
            # A lost answer is repeated within ten seconds, and gets the same result. A later one is a theft.
            began = time.monotonic()
            renewed = insists(lambda app=app: app.refreshes(chain[-1]["refresh_token"]), "a refresh")
            if renewed.status_code != 200:
                assert time.monotonic() - began > 9, renewed.text
                break
            chain.append(renewed.json())
        stolen = insists(lambda: apps[turn % 3].refreshes(chain[0]["refresh_token"]), "the refusal of a stolen token")
        assert stolen.status_code == 400 and stolen.json()["error"] == "invalid_grant", stolen.text
        for app in apps:
            refused = insists(lambda app=app: app.refreshes(chain[-1]["refresh_token"]), "the end of the family")
            assert refused.status_code == 400 and refused.json()["error"] == "invalid_grant", refused.text
            wait_for(lambda app=app: is_dead(app, chain[-1]["access_token"]), "the end of the access token", 90)


def test_a_code_is_redeemed_once_anywhere(nodes, number):
    assert redeem_races(nodes, person(nodes, number), ROUNDS) == ROUNDS


def test_a_refresh_family_ends_everywhere(nodes, number):
    refresh_families(nodes, person(nodes, number), ROUNDS)


def test_promises_hold_while_gateways_and_the_database_are_killed(cluster, nodes, number, other_number):
    """Attack: a kill at the right moment gives a second chance with a code or an old refresh token."""
    first, second = person(nodes, number), person(nodes, other_number())
    with Trouble(cluster) as trouble:
        redeem_races(nodes, first, ROUNDS)
        refresh_families(nodes, second, ROUNDS)
        wait_for(lambda: trouble.killed or trouble.failure, "a kill", 120)


def last_valid(apps, access, end):
    """Asks all nodes for userinfo while `end` ends the access. Returns the seconds from the confirmation to the last
    request that was answered."""
    stop, last = threading.Event(), [0.0] * len(apps)

    def watches(place):
        with requests.Session() as session:
            bearer = {"Authorization": f"Bearer {access}"}
            while not stop.is_set():
                sent = time.monotonic()
                if session.get(apps[place].endpoint("userinfo"), headers=bearer, timeout=20).status_code == 200:
                    last[place] = sent
                time.sleep(0.02)

    threads = [threading.Thread(target=watches, args=(place,), daemon=True) for place in range(len(apps))]
    for thread in threads:
        thread.start()
    wait_for(lambda: all(last), "a valid token on every node")
    end()
    confirmed = time.monotonic()
    wait_for(lambda: all(is_dead(app, access) for app in apps), "the end of the token", 30)
    stop.set()
    for thread in threads:
        thread.join(30)
    return max(last) - confirmed


def test_an_ended_session_ends_tokens_everywhere_within_a_second(nodes, other_number):
    """Attack: the tokens of a session that has been ended, at a node that has not heard of it."""
    apps, slowest = parties(nodes), 0.0
    for turn in range(ROUNDS):
        browser = person(nodes, other_number())
        code, asked = code_at(apps[0], browser)
        tokens = insists(lambda: apps[1].redeems(code, asked.verifier), "tokens").json()
        session = {"Authorization": f"Bearer {browser.token}"}

        def signs_out():
            assert nodes[turn % 3].api("DELETE", "/session", headers=session).status_code == 204

        slowest = max(slowest, last_valid(apps, tokens["access_token"], signs_out))
        assert apps[2].refreshes(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert slowest <= BOUND, f"{slowest:.2f} s"


def test_a_removed_member_loses_access_within_the_lifetime_of_a_token(nodes, number):
    """Attack: a removed member continues with tokens of before, at another gateway."""
    apps, browser = parties(nodes, "staffed"), person(nodes, number)

    def member(method, node):
        answer = requests.request(method, f"{node.admin}/groups/staff/members/{browser.account_id}", timeout=20)
        assert answer.status_code < 300, answer.text

    for turn in range(ROUNDS):
        member("PUT", nodes[turn % 3])
        code, asked = code_at(apps[0], browser)
        tokens = insists(lambda: apps[0].redeems(code, asked.verifier), "tokens").json()
        member("DELETE", nodes[(turn + 1) % 3])
        removed = time.monotonic()
        wait_for(lambda: refused_everywhere(apps, tokens["access_token"]), "the end of access", LIFETIME + BOUND + 5)
        assert time.monotonic() - removed <= LIFETIME + BOUND
        wait_for(lambda: apps[2].refreshes(tokens["refresh_token"]).status_code == 400, "the refusal of a refresh", 2)


def refused_everywhere(apps, access):
    return all(app.userinfo(access).status_code in (401, 403) for app in apps)
