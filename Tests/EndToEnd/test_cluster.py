"""Issue 8: several gateways on one PostgreSQL. Three of them, of which one's clock is a minute ahead; the files are those of Documentation/guides/several-gateways.md."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
import requests

from cluster import PASSWORD, Cluster, Node, Postgres, missing
from local_gateway import Client, problem, wait_for, wrong
from processes import BIN, Program, free_port

LACKING = missing("initdb", "postgres", "psql", "nginx")
pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(LACKING), reason=f"needs {LACKING}")]

# The monotonic clock is not changed, because machines agree on the length of a second.
AHEAD = ("faketime", "--exclude-monotonic", "-f", "+60s") if shutil.which("faketime") else ()


class Gateway(Node, Client):
    """A node with the test client."""

    def start(self, **options):
        return super().start(**options)

    def echo(self, token, timeout=10):
        """A proxied request."""
        return requests.get(
            f"{self.url}/echo", headers={"Authorization": f"Bearer {token}"}, timeout=timeout, allow_redirects=False
        ).status_code

    def session(self, token):
        return self.api("GET", "/session", headers={"Authorization": f"Bearer {token}"})

    def is_ready(self):
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self.admin}/readyz", timeout=5).status_code == 200
        return False

    def metric(self, name):
        text = requests.get(f"{self.admin}/metrics", timeout=10).text
        found = re.search(rf"^{name} (\S+)$", text, re.M)
        return float(found[1]) if found else None


def many(cluster):
    """The default limits per user, without those per address, because all test requests come from one address."""
    file = cluster.config / "policies/phone_otp.lua"
    text = file.read_text()
    changed = text.replace('"60s", "120s"', '"1s"').replace('max = 30, window = "1h"', 'max = 100000, window = "1h"')
    changed = changed.replace('max = 4, window = "15m"', 'max = 400, window = "15m"')
    assert changed != text
    file.write_text(changed)
    # Other tests run the folder's test cases; here gateways are restarted often.
    shutil.rmtree(cluster.config / "tests")
    return cluster


@pytest.fixture(scope="module")
def postgres():
    server = Postgres("max_connections=80")
    try:
        yield server.make().start()
    finally:
        server.remove()


@pytest.fixture(scope="module")
def cluster(postgres, tmp_path_factory):
    cluster = many(Cluster(tmp_path_factory.mktemp("cluster"), postgres, 3, kind=Gateway).database().start_around())
    cluster.nodes[2].within = AHEAD
    for node in cluster.nodes:
        node.launch()
    try:
        for node in cluster.nodes:
            node.ready()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def nodes(cluster):
    for node in cluster.nodes:
        if not node.program.runs:
            node.start()
    return cluster.nodes


def begun(node, phone, flow="login"):
    flow = node.flow(flow)
    answer = node.begin(flow, phone)
    assert answer.status_code == 200, answer.text
    return flow, node.code(phone)


def within(seconds, condition, what):
    """Waits for the condition and returns the elapsed time."""
    began = time.monotonic()
    wait_for(condition, what, seconds)
    return time.monotonic() - began


def lock(node, phone):
    """Creates a reported lock. Returns a flow and the right code."""
    flow, code = begun(node, phone)
    for _ in range(4):
        problem(node.submit(flow, wrong(code)), 401, "invalid_code")
    problem(node.submit(flow, wrong(code)), 429, "too_many_attempts")
    return flow, code


def lived_in(node, number, other_number):
    """A signed-in user and another user's lock. Returns a token, a flow, and the right code."""
    token = node.register(number)["session"]["token"]
    locked = other_number()
    node.register(locked)
    return token, *lock(node, locked)


def test_closed_registration_holds_on_every_node(nodes, number):
    """Attack: a code is requested at one gateway while registration is open, and entered at another after it was
    closed."""
    flow, code = begun(nodes[0], number, "register")
    accounts = nodes[0].cluster.config / "accounts.lua"
    before, active = accounts.read_text(), nodes[0].policy()["active"]
    try:
        accounts.write_text(before.replace('registration = "open"', 'registration = "closed"'))
        for node in nodes:
            node.wait_generation(active)
        problem(nodes[1].submit(flow, code), 403, "registration_closed")
        problem(nodes[2].api("POST", "/flows", {"flow": "register"}), 403, "registration_closed")
        problem(nodes[2].begin(nodes[2].flow("enter"), number), 403, "registration_closed")
    finally:
        accounts.write_text(before)
        for node in nodes:
            wait_for(lambda node=node: node.policy()["active"] == active, "the earlier generation")
    nodes[1].register(number)


def test_all_nodes_know_the_serving_nodes(cluster, nodes, postgres):
    wait_for(lambda: [node.metric("moongate_nodes") for node in nodes] == [3, 3, 3], "three nodes", 25)
    assert [node.metric("moongate_generations") for node in nodes] == [1, 1, 1]
    told = nodes[0].policy()
    assert len(told["nodes"]) == 3 and {node["generation"] for node in told["nodes"]} == {told["active"]}
    assert len({node["id"] for node in told["nodes"]}) == 3
    moment = "(SELECT max(seen_at) FROM node)"
    postgres.ask(
        f"INSERT INTO node (id, generation, seen_at, keys) VALUES ('another', 'older', {moment}, '')",
        "moongate",
        "moongate",
        PASSWORD,
    )
    wait_for(
        lambda: nodes[1].metric("moongate_generations") == 2 and nodes[1].metric("moongate_nodes") == 4,
        "the other generation",
        10,
    )
    postgres.ask("DELETE FROM node WHERE id = 'another'", "moongate", "moongate", PASSWORD)


def test_the_manuals_files_serve(cluster, nodes, number):
    """Through nginx, whichever gateway a request reaches."""
    front = Client()
    front.url = cluster.url
    flow = front.flow("register")
    assert front.begin(flow, number).status_code == 200
    code = next(node.code(number) for node in nodes if any(entry["to"] == number for entry in node.outbox()))
    done = front.submit(flow, code)
    assert done.status_code == 200, done.text
    token = done.json()["session"]["token"]
    for _ in range(6):
        answer = requests.get(f"{cluster.url}/echo", headers={"Authorization": f"Bearer {token}"}, timeout=10)
        assert answer.status_code == 200 and done.json()["account"]["id"] in answer.text
    page = requests.get(f"{cluster.url}/home", headers={"Accept": "text/html"}, timeout=10, allow_redirects=False)
    assert page.status_code == 302 and page.headers["Location"].startswith("/auth/login")
    nodes[1].end(signal.SIGKILL)
    # nginx skips the gateway that is down.
    assert all(
        front.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 200 for _ in range(12)
    )


def test_flow_started_on_one_node_ends_on_another(nodes, number):
    one, two, three = nodes
    flow, code = begun(one, number, "register")
    done = two.submit(flow, code)
    assert done.status_code == 200, done.text
    token = done.json()["session"]["token"]
    assert [node.session(token).status_code for node in nodes] == [200, 200, 200]
    assert [node.echo(token) for node in nodes] == [200, 200, 200]
    flow, code = begun(three, number)
    problem(one.submit(flow, wrong(code)), 401, "invalid_code")
    assert two.submit(flow, code).status_code == 200
    problem(three.submit(flow, code), 409, "step_not_open")
    # Created at one gateway, begun at another, resent by the third, and submitted at the first.
    flow = one.flow()
    time.sleep(1.1)
    assert two.begin(flow, number).status_code == 200
    first = two.code(number)
    time.sleep(1.1)
    again = three.api("POST", f"/flows/{flow}/resend", {})
    assert again.status_code == 200, again.text
    if first != three.code(number):
        problem(one.submit(flow, first), 401, "invalid_code")
    assert one.submit(flow, three.code(number)).status_code == 200


def test_clocks_a_minute_apart_are_one(nodes, number, other_number):
    if not AHEAD:
        pytest.skip("needs faketime")
    one, _, ahead = nodes
    now = time.time()
    shown = subprocess.run([*AHEAD, "date", "+%s"], capture_output=True, text=True)
    assert int(shown.stdout) - now > 55, "the clock that is ahead is"
    token = ahead.register(number)["session"]["token"]
    made = ahead.session(token).json()["session"]
    assert abs(time.mktime(time.strptime(made["passed"][0]["at"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone - now) < 20, (
        made
    )
    flow, code = lock(one, number)
    left = [problem(node.submit(flow, code), 429, "too_many_attempts")["retry_after"] for node in nodes]
    assert max(left) - min(left) <= 5 and 880 <= min(left) <= 900, left


def test_two_hundred_wrong_codes_on_three_nodes_are_five_comparisons(nodes, number):
    nodes[0].register(number)
    flow, code = begun(nodes[1], number)
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda turn: nodes[turn % 3].submit(flow, wrong(code)), range(200)))
    statuses = [answer.status_code for answer in answers]
    # The fifth compared code gets the lock that it starts.
    assert statuses.count(401) == 4 and statuses.count(429) == 196, statuses
    assert sorted(answer.json()["attempts_left"] for answer in answers if answer.status_code == 401) == [1, 2, 3, 4]
    for node in nodes:
        problem(node.submit(flow, code), 429, "too_many_attempts")
    mine = requests.get(f"{nodes[2].admin}/locks", timeout=10).json()
    assert [lock["limit"] for lock in mine].count("verify") >= 1


def test_fifty_right_codes_on_three_nodes_are_one_session(nodes, number):
    token = nodes[0].register(number)["session"]["token"]
    flow, code = begun(nodes[2], number)
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda turn: nodes[turn % 3].submit(flow, code), range(50)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(200) == 1 and set(statuses) <= {200, 409}, statuses
    sessions = nodes[1].api("GET", "/sessions", headers={"Authorization": f"Bearer {token}"}).json()
    assert len(sessions) == 2, "that of the registration, and one"


def test_signing_out_is_seen_everywhere_within_a_second(nodes, number, other_number):
    one, two, three = nodes
    token = one.register(number)["session"]["token"]
    assert [node.echo(token) for node in nodes] == [200] * 3
    assert one.api("DELETE", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 204
    assert within(3, lambda: two.echo(token) == 401 and three.echo(token) == 401, "the sign-out elsewhere") < 1.2
    person = two.register(other_number())
    token, account = person["session"]["token"], person["account"]["id"]
    assert [node.echo(token) for node in nodes] == [200] * 3
    assert requests.post(f"{three.admin}/accounts/{account}/lock", timeout=10).status_code in (200, 204)
    assert within(3, lambda: one.echo(token) == 401 and two.echo(token) == 401, "the lock elsewhere") < 1.2


def test_a_node_that_is_killed_in_the_middle_gives_no_guess_away(nodes, number):
    token = nodes[0].register(number)["session"]["token"]
    flow, code = begun(nodes[0], number)
    answers = []

    def guess(turn):
        try:
            answers.append(nodes[turn % 3].submit(flow, wrong(code)).status_code)
        except requests.RequestException:
            answers.append(None)

    with ThreadPoolExecutor(24) as pool:
        tries = [pool.submit(guess, turn) for turn in range(48)]
        wait_for(lambda: len(answers) >= 2, "answers")
        nodes[1].end(signal.SIGKILL)
        for each in tries:
            each.result()
    assert answers.count(401) <= 4 and set(answers) <= {401, 429, None}, answers
    # Its unfinished attempt counts as wrong within ten seconds; the session is intact.
    for node in (nodes[0], nodes[2]):
        assert node.session(token).status_code == 200
    deadline = time.monotonic() + 15
    while (answer := nodes[2].submit(flow, wrong(code))).status_code != 429 or answer.json()["retry_after"] < 60:
        answers.append(answer.status_code)
        assert time.monotonic() < deadline and answers.count(401) <= 4, answers
        time.sleep(0.5)
    problem(nodes[0].submit(flow, code), 429, "too_many_attempts")


def test_the_store_is_killed_and_comes_back(cluster, nodes, postgres, number, other_number):
    token = nodes[0].register(number)["session"]["token"]
    locked = other_number()
    nodes[0].register(locked)
    flow, code = lock(nodes[1], locked)
    waiting, right = begun(nodes[2], number)
    assert [node.echo(token) for node in nodes] == [200] * 3
    postgres.kill()
    killed = time.monotonic()
    for node in nodes:
        refusal = problem(node.submit(waiting, right), 503, "store_unavailable")
        assert "postgres" not in refusal["detail"].lower()
    assert time.monotonic() - killed < 8
    # A cached session is trusted for a second only.
    within(4, lambda: [node.echo(token) for node in nodes] == [503] * 3, "503 for those who pass through")
    assert not any(node.is_ready() for node in nodes)
    assert all(requests.get(f"{node.admin}/healthz", timeout=5).status_code == 200 for node in nodes)
    postgres.start()
    within(15, lambda: all(node.is_ready() for node in nodes), "recovery by itself")
    assert [node.session(token).status_code for node in nodes] == [200] * 3
    # Requests are allowed again after a successful poll for session changes.
    within(3, lambda: [node.echo(token) for node in nodes] == [200] * 3, "passing through")
    for node in nodes:
        assert problem(node.submit(flow, code), 429, "too_many_attempts")["retry_after"] > 600
    assert nodes[0].submit(waiting, right).status_code == 200, (
        "the code was not spent by a try that could not be judged"
    )
    assert all(node.program.runs for node in nodes)


def test_the_key_is_rotated_while_all_serve(cluster, nodes, postgres, number, other_number):
    def keys(*words):
        return subprocess.run(
            [BIN / "moongate", "keys", *words, "--config", cluster.config],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "MOONGATE_STORE": cluster.store},
        )

    def rings():
        """The last reload message of each gateway; `/policy` reports the same a heartbeat later."""
        rows = "SELECT keys FROM node WHERE seen_at > (SELECT max(seen_at) FROM node) - 15000"
        return [line.split() for line in postgres.ask(rows, "moongate", "moongate", PASSWORD).splitlines()]

    def known(*names):
        return rings() == [list(names)] * 3

    def assertion(node):
        echoed = requests.get(
            f"{node.url}/echo", headers={"Authorization": f"Bearer {token}", "Accept": "application/json"}, timeout=10
        ).text
        return re.search(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", echoed)[0]

    token = nodes[0].register(number)["session"]["token"]
    told = keys("rotate")
    assert told.returncode == 1 and re.search(r"\d gateways use this store", told.stderr), told.stderr
    # Two gateways use the folder's file, and one has its own copy.
    file = cluster.config / "data/master.key"
    copied = cluster.folder / "copied.key"
    shutil.copy2(file, copied)
    nodes[2].tell(signal.SIGTERM)
    nodes[2].end()
    whole = (cluster.config / "gateway.lua").read_text()
    elsewhere = cluster.folder / "elsewhere"
    shutil.copytree(cluster.config, elsewhere, ignore=shutil.ignore_patterns("data"))
    (elsewhere / "gateway.lua").write_text(whole.replace('file "data/master.key"', f'file "{copied}"'))
    cluster.config, home = elsewhere, cluster.config
    nodes[2].start()
    cluster.config = home
    (old,) = json.loads(keys("show", "--json").stdout)["keys"]
    old = old["name"]
    wait_for(
        lambda: [node["keys"] for node in nodes[0].policy()["nodes"]] == [[old]] * 3,
        "all to tell which key they know",
        25,
    )
    # In the end, all use the new key, and no gateway ever meets an unknown key.
    assert keys("add").returncode == 0
    new = json.loads(keys("show", "--json").stdout)["keys"][1]["name"]
    wait_for(lambda: [new in ring for ring in rings()].count(True) == 2, "two to know the new key", 10)
    told = keys("rotate")
    assert told.returncode == 1 and re.search(
        rf"{new} is not yet known to \S+ 127\.0\.0\.1:{nodes[2].port}, and every gateway", told.stderr
    ), told.stderr
    shutil.copy2(file, copied)
    wait_for(lambda: known(old, new), "all to know the new key", 10)
    waiting, old_code = begun(nodes[1], number)
    assert keys("rotate").returncode == 0, "each process knows it"
    wait_for(lambda: [ring[0] for ring in rings()].count(new) == 2, "two to make things with it", 10)
    told = keys("retire", new)
    assert told.returncode == 1 and "is the current key" in told.stderr
    # Two gateways use the new key, one the old one, and each accepts what the others make.
    assert nodes[0].submit(waiting, old_code).status_code == 200
    flow, code = begun(nodes[0], number)
    assert nodes[2].submit(flow, code).status_code == 200
    assert [node.session(token).status_code for node in nodes] == [200] * 3
    for signer in nodes:
        kid = jwt.get_unverified_header(assertion(signer))["kid"]
        for node in nodes:
            published = requests.get(f"{node.url}/.well-known/moongate/jwks.json", timeout=10).json()["keys"]
            assert kid in {key["kid"] for key in published}
    # The oldest key is retired completely only while no gateway counts by it, and no key while a gateway uses it.
    told = keys("retire", old, "--completely")
    assert told.returncode == 1 and "3 gateways serve from this store" in told.stderr, told.stderr
    shutil.copy2(file, copied)
    wait_for(lambda: known(new, old), "all to make things with the new key", 10)
    assert [node.session(token).status_code for node in nodes] == [200] * 3
    # Another rotation that one gateway has not seen: the former key, which is not the oldest, stays as long as that
    # gateway uses it.
    assert keys("add").returncode == 0
    shutil.copy2(file, copied)
    third = json.loads(keys("show", "--json").stdout)["keys"][2]["name"]
    wait_for(lambda: known(new, old, third), "all to know the third key", 10)
    assert keys("rotate").returncode == 0
    wait_for(lambda: [ring[0] for ring in rings()].count(third) == 2, "two to make things with it", 10)
    told = keys("retire", new)
    assert told.returncode == 1 and re.search(
        rf"{new} was not retired: \S+ 127\.0\.0\.1:{nodes[2].port} still uses it", told.stderr
    ), told.stderr
    shutil.copy2(file, copied)
    wait_for(lambda: known(third, new, old), "all to make things with the third key", 10)
    told = keys("retire", new)
    assert told.returncode == 0, told.stderr
    wait_for(lambda: [new in ring for ring in rings()].count(True) == 1, "two to forget it", 10)
    shutil.copy2(file, copied)
    wait_for(lambda: known(third, old), "all to forget it", 10)
    assert [node.session(token).status_code for node in nodes] == [200] * 3
    # The oldest key, with all gateways stopped: a gateway with the old file is told what happened.
    for node in nodes:
        node.tell(signal.SIGTERM)
    for node in nodes:
        node.end()
    told = keys("retire", old, "--completely")
    assert told.returncode == 0 and "Copy the new key file to every gateway" in told.stderr, told.stderr
    cluster.config = elsewhere
    refused = nodes[2].launch().program
    cluster.config = home
    assert refused.process.wait(60) == 1
    refused.reader.join(5)
    assert f"`moongate keys retire {old}` finishes it" in refused.output, refused.output
    cluster.start()
    assert [node.session(token).status_code for node in nodes] == [200] * 3


@contextlib.contextmanager
def mounted(kind, *options):
    """Mounts a small disk; skips the test if that is not allowed."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="moongate-disk-"))
    done = subprocess.run(["mount", "-t", kind, *options, kind, str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        place.rmdir()
        pytest.skip("needs to mount a file system")
    try:
        yield place
    finally:
        for _ in range(50):
            if subprocess.run(["umount", str(place)], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        shutil.rmtree(place, ignore_errors=True)


def single(tmp_path, postgres, nodes=1):
    return many(Cluster(tmp_path, postgres, nodes, kind=Gateway).database().start_service())


def fill(disk):
    """A file that fills the disk."""
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"\0" * 65536):
            pass
    return filler


def test_a_full_disk_of_the_store(tmp_path, number, other_number):
    with mounted("tmpfs", "-o", "size=96m") as disk:
        server = Postgres("max_connections=40")
        data = server.data
        cluster = None
        try:
            server.data = disk / "data"
            if server.owner:
                os.chown(disk, server.owner["user"], server.owner["group"])
            server.make()
            # The write-ahead log is on another disk: PostgreSQL itself fails when that is full, which another test
            # covers.
            wal = server.folder / "wal"
            subprocess.run(["cp", "-a", server.data / "pg_wal", wal], check=True)
            shutil.rmtree(server.data / "pg_wal")
            (server.data / "pg_wal").symlink_to(wal)
            server.start()
            cluster = single(tmp_path, server)
            node = cluster.nodes[0].start()
            token, flow, code = lived_in(node, number, other_number)
            filler = fill(disk)
            statuses = []

            def grows():
                answer = node.api("POST", "/flows", {"flow": "register"})
                if answer.status_code == 201:
                    answer = node.begin(answer.json()["id"], other_number())
                statuses.append(answer.status_code)
                if answer.status_code == 503:
                    problem(answer, 503, "store_unavailable")
                return statuses.count(503) >= 3

            wait_for(grows, "a store that is full", 30)
            assert set(statuses) <= {200, 503}, statuses
            filler.unlink()
            later = other_number()
            wait_for(
                lambda: node.begin(node.flow("register"), later).status_code in (200, 429), "recovery by itself", 15
            )
            wait_for(node.is_ready, "readiness", 10)
            assert node.session(token).status_code == 200
            problem(node.submit(flow, code), 429, "too_many_attempts")
            node.register(other_number())
        finally:
            if cluster:
                cluster.stop()
            server.stop()
            server.data = data
            server.remove()


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


@pytest.fixture
def island():
    """A separate network namespace with one link. Returns its name and address."""
    name = f"moon{free_port()}"
    if not shutil.which("ip") or ip("netns", "add", name).returncode != 0:
        pytest.skip("needs network namespaces")
    wire = name[-6:]
    try:
        made = ip("link", "add", f"v{wire}", "type", "veth", "peer", "name", f"w{wire}", "netns", name)
        if made.returncode != 0:
            pytest.skip(f"needs veth links: {made.stderr.strip()}")
        net = f"10.{int(wire[-5:-3] or 1) % 200 + 20}.{int(wire[-3:]) % 250}"
        for command in (
            ("addr", "add", f"{net}.1/30", "dev", f"v{wire}"),
            ("link", "set", f"v{wire}", "up"),
            ("-n", name, "addr", "add", f"{net}.2/30", "dev", f"w{wire}"),
            ("-n", name, "link", "set", f"w{wire}", "up"),
            ("-n", name, "link", "set", "lo", "up"),
        ):
            done = ip(*command)
            assert done.returncode == 0, f"ip {' '.join(command)}: {done.stderr}"
        yield name, f"{net}.2", f"w{wire}"
    finally:
        ip("netns", "delete", name)


def test_a_network_that_is_cut(island, tmp_path, number, other_number):
    name, address, wire = island
    server = Postgres("max_connections=40", address=address, network=name)
    cluster = None
    try:
        server.make().start()
        cluster = single(tmp_path, server)
        node = cluster.nodes[0].start()
        token, flow, code = lived_in(node, number, other_number)
        assert node.echo(token) == 200
        # The far end becomes silent: nothing is refused and nothing is answered.
        assert ip("-n", name, "link", "set", wire, "down").returncode == 0
        cut = time.monotonic()
        refused = within(6, lambda: node.echo(token, 10) == 503, "503 for those who pass through")
        problem(node.submit(flow, code), 503, "store_unavailable")
        assert time.monotonic() - cut < 8 and refused < 3.5
        # After detection, requests do not wait long.
        began = time.monotonic()
        problem(node.submit(flow, code), 503, "store_unavailable")
        assert time.monotonic() - began < 3
        assert ip("-n", name, "link", "set", wire, "up").returncode == 0
        wait_for(node.is_ready, "recovery by itself", 20)
        assert node.session(token).status_code == 200 and wait_for(lambda: node.echo(token) == 200, "passing through")
        problem(node.submit(flow, code), 429, "too_many_attempts")
        node.register(other_number())
    finally:
        if cluster:
            cluster.stop()
        server.remove()


@pytest.fixture
def pair():
    """A server with a synchronous standby."""
    if missing("pg_basebackup"):
        pytest.skip("needs pg_basebackup")
    first = Postgres("max_connections=60", "wal_level=replica")
    second = Postgres("max_connections=60", "hot_standby=on")
    try:
        first.make().start()
        os.environ["PGPASSWORD"] = "postgres"
        try:
            second.run(
                _tool("pg_basebackup"),
                "-h",
                "127.0.0.1",
                "-p",
                first.port,
                "-U",
                "postgres",
                "-D",
                second.data,
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
            )
        finally:
            del os.environ["PGPASSWORD"]
        conninfo = f"host=127.0.0.1 port={first.port} user=postgres password=postgres application_name=second"
        with (second.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{conninfo}'\n")
        second.start()
        first.ask("ALTER SYSTEM SET synchronous_standby_names = 'second'")
        first.ask("SELECT pg_reload_conf()")
        wait_for(lambda: first.ask("SELECT sync_state FROM pg_stat_replication") == "sync", "a standby in step")
        yield first, second
    finally:
        first.remove()
        second.remove()


def _tool(name):
    from cluster import tool

    return tool(name)


def refusal(cluster, store, **env):
    """The output of `moongate serve` for a refused store (one or two sentences), and the duration."""
    began = time.monotonic()
    program = Program(
        BIN / "moongate",
        "serve",
        "--config",
        cluster.config,
        "--listen",
        f"127.0.0.1:{free_port()}",
        "--admin",
        f"127.0.0.1:{free_port()}",
        env={"MOONGATE_STORE": store, **env},
    )
    status = program.process.wait(90)
    program.reader.join(5)
    lines = [line for line in program.output.splitlines() if line.startswith("moongate: ")]
    assert status == 1 and len(lines) == 1, f"{status}: {program.output}"
    assert not re.search("change(%20| )|Optional\\(|Error", lines[0]), lines[0]
    return lines[0], time.monotonic() - began


def test_failing_over_loses_nothing(pair, tmp_path, number, other_number):
    first, second = pair
    cluster = single(tmp_path, first, 2)
    both = f"postgres://moongate:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{first.port},127.0.0.1:{second.port}/moongate?target_session_attrs=read-write"
    cluster.store = both
    try:
        cluster.start()
        one, two = cluster.nodes
        token = one.register(number)["session"]["token"]
        locked = other_number()
        one.register(locked)
        flow, code = lock(two, locked)
        first.kill()
        problem(one.submit(flow, code), 503, "store_unavailable")
        second.ask("ALTER SYSTEM SET synchronous_standby_names = ''")
        second.ask("SELECT pg_promote()")
        within(25, lambda: one.is_ready() and two.is_ready(), "recovery by the other server")
        assert [node.session(token).status_code for node in (one, two)] == [200, 200]
        within(3, lambda: [node.echo(token) for node in (one, two)] == [200, 200], "passing through")
        for node in (one, two):
            assert problem(node.submit(flow, code), 429, "too_many_attempts")["retry_after"] > 600
        two.register(other_number())
        # The old primary returns like a restarted machine and accepts writes, but no gateway uses it.
        first.start()
        first.ask("ALTER SYSTEM SET synchronous_standby_names = ''")
        first.ask("SELECT pg_reload_conf()")
        one.program.end()
        one.start()
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda index: (one, two)[index % 2].session(token).status_code, range(40)))
        assert set(answers) == {200}
        one.register(other_number())
        wait_for(
            lambda: first.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'moongate'") == "0",
            "the last connection to the old one",
            10,
        )
        assert second.ask("SELECT count(*) FROM account", "moongate") == "4"
        assert first.ask("SELECT count(*) FROM account", "moongate") == "2"
    finally:
        cluster.stop()


def test_unusable_store_is_reported_in_a_sentence(cluster, postgres, tmp_path):
    cluster = many(Cluster(tmp_path, postgres, 0))
    own = ("moongate", "moongate", PASSWORD)
    postgres.ask("CREATE DATABASE foreign_one OWNER moongate; CREATE DATABASE newer OWNER moongate")
    postgres.ask("CREATE TABLE account (id int); INSERT INTO account VALUES (1)", "foreign_one", *own[1:])
    tables = postgres.ask(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'moongate_schema'", *own
    ).split()
    assert "version" in tables, tables
    made = postgres.ask("SELECT * FROM moongate_schema", *own)
    # A newer schema.
    subprocess.run(
        [BIN / "moongate", "store", "migrate", postgres.url(database="newer")],
        check=True,
        capture_output=True,
        timeout=60,
    )
    postgres.ask("UPDATE moongate_schema SET version = version + 1000", "newer", *own[1:])
    postgres.ask(
        "CREATE ROLE crowded LOGIN PASSWORD 'change me' CONNECTION LIMIT 0; CREATE DATABASE crowded OWNER crowded"
    )
    # As a superuser: a standby check on a primary here, and on a real standby elsewhere.
    postgres.ask(
        "CREATE DATABASE readonly OWNER moongate; ALTER DATABASE readonly SET default_transaction_read_only = on"
    )
    # Not the store's. Without it, one of the starts below would make a key, and say that the store's key is missing.
    key = cluster.config / "data/master.key"
    key.parent.mkdir(mode=0o700, exist_ok=True)
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    with ThreadPoolExecutor(8) as pool:
        told = {
            name: pool.submit(refusal, cluster, store)
            for name, store in {
                "password": postgres.url(password="change nothing"),
                "port": f"postgres://moongate:x@127.0.0.1:{free_port()}/moongate",
                "host": "postgres://moongate:x@no-such-host.invalid/moongate",
                "database": postgres.url(database="nowhere"),
                "foreign": postgres.url(database="foreign_one"),
                "crowded": postgres.url(user="crowded", database="crowded"),
                "key": postgres.url(),
                "newer": postgres.url(database="newer"),
                "readonly": postgres.url(database="readonly"),
            }.items()
        }
        told = {name: each.result() for name, each in told.items()}
    for name, words in {
        "password": "refuses the password",
        "port": "Nothing listens",
        "host": "has no address",
        "database": "no database of that name",
        "foreign": "table `account` of another program",
        "crowded": "has no connection left",
        "key": "another master key",
        "newer": "newer Moongate",
        "readonly": "is read-only: a standby, or default_transaction_read_only is on",
    }.items():
        sentence, seconds = told[name]
        assert re.search(words, sentence), f"{name}: {sentence}"
        assert seconds < 60, f"{name}: {seconds}"
    assert postgres.ask("SELECT * FROM moongate_schema", *own) == made
