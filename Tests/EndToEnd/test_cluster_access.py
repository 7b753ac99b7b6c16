"""Access on three gateways with one PostgreSQL, one of them with a clock that is a minute ahead: a removed member, a
revoked token, and a sign-in on another root domain are consistent on all nodes. `make soak` runs a thousand rounds
and prints durations."""

import asyncio
import contextlib
import http.client
import os
import re
import statistics
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import websockets.asyncio.client
import websockets.exceptions

from cluster import Cluster, Postgres
from local_gateway import wait_for
from test_cluster import AHEAD, LACKING, Gateway, many
from test_websocket import EchoService

pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(LACKING), reason=f"needs {LACKING}")]

ROUNDS = int(os.environ.get("MOONGATE_ACCESS_ROUNDS", "6"))
LANES = int(os.environ.get("MOONGATE_ACCESS_LANES", "2"))
# From the response that confirms the change to the last request that is allowed anywhere.
BOUND = 1.0
HOME, APP = "auth.example.com", "app.example.org"
ROUTES = """return routes {{
  {{ host = "{home}", path = "/echo/ops/ws", to = "http://127.0.0.1:{echo}", websocket = true, require = {{ group = "ops" }} }},
  {{ host = "{home}", path = "/echo/ops/**", to = "http://127.0.0.1:{service}", require = {{ group = "ops" }} }},
  {{ host = "{home}", path = "/echo/ci/ws", to = "http://127.0.0.1:{echo}", websocket = true, tokens = true }},
  {{ host = "{home}", path = "/echo/ci/**", to = "http://127.0.0.1:{service}", tokens = true }},
  {{ host = "{home}", path = "/**", to = "http://127.0.0.1:{service}" }},
  {{ host = "{app}", path = "/**", to = "http://127.0.0.1:{service}" }},
}}
"""


class DomainGateway(Gateway):
    """A node that is called by host names that exist only in these tests."""

    def ask(self, method, path, host=HOME, **options):
        headers = {"Host": f"{host}:{self.cluster.ports['front']}", **options.pop("headers", {})}
        return requests.request(method, self.url + path, headers=headers, allow_redirects=False, timeout=20, **options)

    def api(self, method, path, body=None, **options):
        return self.ask(method, f"/api/auth{path}", json=body, **options)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    postgres = Postgres("max_connections=80")
    cluster = None
    try:
        postgres.make().start()
        cluster = many(Cluster(tmp_path_factory.mktemp("access"), postgres, 3, kind=DomainGateway).database())
        echo = EchoService()
        gateway = cluster.config / "gateway.lua"
        public = (
            f'public_url = "http://{HOME}:{cluster.ports["front"]}",\n  domains = {{ "example.com", "example.org" }},'
        )
        gateway.write_text(
            re.sub(r'public_url = ".*?",', public, gateway.read_text()).replace(
                "outbox()", "outbox { allow_public = true }"
            )
        )
        (cluster.config / "routes.lua").write_text(
            ROUTES.format(home=HOME, app=APP, echo=echo.port, service=cluster.ports["service"])
        )
        (cluster.config / "accounts.lua").write_text("return accounts { groups = { ops = members() } }\n")
        # An ended token counts as wrong, and all programs here have one address.
        token = cluster.config / "policies/token.lua"
        token.write_text(token.read_text().replace("max = 60", "max = 1000000"))
        cluster.start_service()
        cluster.nodes[2].within = AHEAD
        cluster.start()
        yield cluster.nodes
    finally:
        if cluster:
            cluster.stop()
        postgres.remove()


class Watcher(threading.Thread):
    """Repeatedly requests a page from one node until it is refused twice in a row. `last_pass` is when the last
    allowed request was sent. A node that cannot read the store in time answers 503, which counts as neither."""

    def __init__(self, node, path, credential, refusal):
        super().__init__(daemon=True)
        self.node, self.path, self.refusal = node, path, refusal
        self.headers = {"Host": f"{HOME}:{node.cluster.ports['front']}", "Authorization": f"Bearer {credential}"}
        self.last_pass, self.failure, self.passed, self.statuses = 0.0, None, threading.Event(), set()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=10)
        refused = 0
        try:
            while refused < 2:
                sent = time.monotonic()
                connection.request("GET", self.path, headers=self.headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.last_pass, refused = sent, 0
                    self.passed.set()
                elif self.passed.is_set():
                    self.statuses.add(answer.status)
                    refused += answer.status == self.refusal
                time.sleep(0.02)
        except Exception as failure:
            self.failure = failure
            self.passed.set()
        finally:
            connection.close()


class Sockets(threading.Thread):
    """A WebSocket at each node, and when each of them was closed."""

    def __init__(self, nodes, path, credential):
        super().__init__(daemon=True)
        self.nodes, self.path, self.credential = nodes, path, credential
        self.opened, self.closed, self.failure = threading.Barrier(2), [], None

    def run(self):
        asyncio.run(self.all())

    async def all(self):
        headers = {"Authorization": f"Bearer {self.credential}"}
        async with contextlib.AsyncExitStack() as stack:
            try:
                sockets = [await self.open(node, stack, headers) for node in self.nodes]
                for socket in sockets:
                    await socket.send("x")
                    assert await socket.recv() == "x"
            except Exception as failure:
                self.failure = failure
                self.opened.wait(30)
                return
            await asyncio.to_thread(self.opened.wait, 30)
            self.closed = await asyncio.gather(*(self.end(socket) for socket in sockets))

    async def open(self, node, stack, headers):
        """Each thread of a node receives changes separately, so retry a refused open for as long as a change may
        take."""
        address = f"ws://{HOME}:{node.cluster.ports['front']}{self.path}"
        for attempt in range(20):
            with contextlib.suppress(*[websockets.exceptions.InvalidStatus] * (attempt < 19)):
                return await stack.enter_async_context(
                    websockets.asyncio.client.connect(
                        address,
                        host="127.0.0.1",
                        port=node.port,
                        additional_headers=headers,
                        ping_interval=None,
                        close_timeout=1,
                    )
                )
            await asyncio.sleep(0.05)

    async def end(self, socket):
        with contextlib.suppress(websockets.exceptions.ConnectionClosed, TimeoutError):
            async with asyncio.timeout(10):
                await socket.recv()
            return float("inf")
        return time.monotonic()


def end_access(nodes, path, credential, change, refusal):
    """Uses a page and a WebSocket at all nodes, makes the change, and waits until access has ended everywhere.
    Returns how long after the response the last request was allowed and the last socket was closed."""
    watchers = [Watcher(node, f"{path}/x", credential, refusal) for node in nodes]
    sockets = Sockets(nodes, f"{path}/ws", credential)
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        assert watcher.passed.wait(20), f"{path} is open at no time"
    sockets.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        sockets.opened.wait(30)
    assert sockets.failure is None, sockets.failure
    change()
    changed = time.monotonic()
    for thread in (*watchers, sockets):
        thread.join(30)
        assert not thread.is_alive(), f"{path} does not end"
    assert [watcher.failure for watcher in watchers] == [None] * len(nodes)
    assert {status for watcher in watchers for status in watcher.statuses} <= {refusal, 503}
    return max(watcher.last_pass for watcher in watchers) - changed, max(sockets.closed) - changed


class Lane:
    """One user and one token name, for all rounds."""

    def __init__(self, nodes, number, name):
        self.nodes, self.name = nodes, name
        done = nodes[0].register(number)
        self.account, self.session = done["account"]["id"], done["session"]["token"]

    def member(self, node, method):
        answer = requests.request(method, f"{node.admin}/groups/ops/members/{self.account}", timeout=10)
        assert answer.status_code == 200, answer.text

    def revoke(self, node):
        answer = requests.delete(f"{node.admin}/tokens/{self.name}", timeout=10)
        assert answer.status_code in (200, 204), answer.text

    def round(self, turn):
        """Each change is made at one node, in turns, and seen by all."""
        node = self.nodes[turn % 3]
        self.member(self.nodes[(turn + 1) % 3], "PUT")
        group = end_access(self.nodes, "/echo/ops", self.session, lambda: self.member(node, "DELETE"), 403)
        made = requests.post(f"{self.nodes[(turn + 1) % 3].admin}/tokens", json={"name": self.name}, timeout=10)
        assert made.status_code == 201, made.text
        token = end_access(self.nodes, "/echo/ci", made.json()["token"], lambda: self.revoke(node), 401)
        return {
            "group removed: requests": group[0],
            "group removed: sockets": group[1],
            "token revoked: requests": token[0],
            "token revoked: sockets": token[1],
        }


def test_no_group_or_token_passes_a_second_after_its_end(nodes, other_number):
    """Attack: a removed member continues at a node that has not received the change, or in an open socket."""
    lanes = [Lane(nodes, other_number(), f"lane-{index}") for index in range(LANES)]
    rounds, turns = [], iter(range(ROUNDS))

    def run(lane):
        for turn in turns:
            rounds.append(lane.round(turn))

    try:
        with ThreadPoolExecutor(LANES) as pool:
            for running in [pool.submit(run, lane) for lane in lanes]:
                running.result()
    finally:
        print(f"\n{len(rounds)} rounds on three nodes; seconds after the change was confirmed:")
        for what in rounds[0] if rounds else ():
            took = sorted(figures[what] for figures in rounds)
            print(
                f"{what:28} median {statistics.median(took):6.3f}   99 % {took[int(len(took) * 0.99)]:6.3f}   longest {took[-1]:6.3f}",
                flush=True,
            )
    assert len(rounds) == ROUNDS and all(took <= BOUND for figures in rounds for took in figures.values())


class Browser:
    """Stores cookies by host, which is enough because no two hosts of one domain are used."""

    def __init__(self, session):
        self.cookies = {HOME: {"moongate": session}, APP: {}}

    def get(self, node, address):
        url = urllib.parse.urlsplit(address)
        cookies = self.cookies[url.hostname]
        answer = node.ask(
            "GET",
            url.path + (f"?{url.query}" if url.query else ""),
            host=url.hostname,
            headers={"Accept": "text/html", "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())},
        )
        for line in answer.raw.headers.getlist("Set-Cookie"):
            name, _, value = line.split(";")[0].partition("=")
            if value:
                cookies[name] = value
        return answer

    def code(self, one, two):
        """Starts a handoff at one node and gets its code from another."""
        app = f"http://{APP}:{one.cluster.ports['front']}"
        begun = self.get(one, f"{app}/auth/handoff?return_to=%2Fin%2Fx")
        issued = self.get(two, begun.headers["Location"])
        assert issued.status_code == 303 and issued.headers["Location"].startswith(f"{app}/auth/handoff?code="), (
            issued.headers
        )
        return issued.headers["Location"]


def test_code_of_one_node_is_redeemed_at_another_once(nodes, number):
    """Attack: one code is redeemed concurrently at several gateways."""
    done = nodes[0].register(number)
    browser = Browser(done["session"]["token"])
    for turn in range(3):
        begins, issues, redeems = (nodes[(turn + offset) % 3] for offset in range(3))
        redeemed = browser.get(redeems, browser.code(begins, issues))
        assert redeemed.status_code == 303 and redeemed.headers["Location"].endswith("/in/x"), redeemed.text
    code = browser.code(nodes[0], nodes[2])
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda turn: browser.get(nodes[turn % 3], code), range(30)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(303) == 1 and statuses.count(403) == 29, statuses
    for node in nodes:
        again = browser.get(node, code)
        reference = re.search(r"dc_[A-Za-z0-9_-]+", again.text)[0]
        decision = wait_for(
            lambda: (
                (found := requests.get(f"{node.admin}/decisions/{reference}", timeout=10)).status_code == 200 and found
            ),
            "the decision",
        )
        assert "the code was used before" in decision.text
    # Signing out at one node on one domain signs out on all nodes and both domains.
    second = {"Cookie": f"moongate={browser.cookies[APP]['moongate']}"}
    first = {"Authorization": f"Bearer {done['session']['token']}"}
    signed_in = lambda: {
        node.ask("GET", "/echo/x", host=host, headers=headers).status_code
        for node in nodes
        for host, headers in ((APP, second), (HOME, first))
    }
    assert signed_in() == {200}
    late = browser.code(nodes[1], nodes[0])
    front = nodes[0].cluster.ports["front"]
    ended = nodes[1].api("DELETE", "/session", host=APP, headers={**second, "Origin": f"http://{APP}:{front}"})
    assert ended.status_code == 204, ended.text
    began = time.monotonic()
    wait_for(lambda: signed_in() == {401}, "the sign-out everywhere", 3)
    assert time.monotonic() - began < 1.5
    assert browser.get(nodes[2], late).status_code == 403, "a code from before the sign-out"
