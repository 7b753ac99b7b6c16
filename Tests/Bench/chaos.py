"""Sign-in attempts at three gateways with one PostgreSQL, while gateways and PostgreSQL are killed at random.

    MOONGATE_BIN=… python3 Tests/Bench/chaos.py --rounds 1000

In each round, a user registers and signs in with wrong codes and possibly the right one, at all gateways
concurrently. In some rounds, a gateway or PostgreSQL is killed (SIGKILL) at a random time and restarted during the
next rounds. These statements must hold at the end of each round and of the run:

- No excess guesses: of all attempts for a code, at most four get `invalid_code`, regardless of kills. Once a lock
  was reported, no code is accepted.
- No reported lock, session or account is lost.
- Every gateway serves again within `--again` seconds after PostgreSQL and the gateway are running.

Exits with 1 if a statement does not hold. The last line is a summary.
"""

import argparse
import http.client
import json
import pathlib
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "EndToEnd"))
from cluster import Cluster, Node, Postgres, missing  # noqa: E402

# The statuses that clients may see while processes are killed.
UNAVAILABLE = {None, 502, 503}


class Gateway(Node):
    """A node with minimal requests: a status and a document."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # Serializes starts and kills. Two concurrent starts would kill each other.
        self.turn = threading.Lock()
        self.is_starting = False

    def ask(self, method, path, body=None, token=None, admin=False, timeout=15):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port if admin else self.port, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            if body is not None:
                headers["Content-Type"] = "application/json"
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else {}
        except (OSError, http.client.HTTPException, socket.timeout):
            return None, {}
        finally:
            connection.close()

    def is_ready(self):
        return self.ask("GET", "/readyz", admin=True, timeout=5)[0] == 200

    def code(self, phone):
        status, entries = self.ask("GET", "/outbox", admin=True)
        return (
            next((entry["code"] for entry in entries if entry["to"] == phone and entry["code"]), None)
            if status == 200
            else None
        )


class Chaos:
    def __init__(self, cluster, postgres, generator, nodes_killed, stores_killed, again):
        self.cluster, self.postgres, self.generator, self.again = cluster, postgres, generator, again
        self.nodes_killed, self.stores_killed = nodes_killed, stores_killed
        self.mending = []
        self.kills = {"gateway": 0, "PostgreSQL": 0}
        self.broken = []
        # Everything that was reported to users and must still exist.
        self.accounts, self.sessions, self.locks = [], [], []
        self.counts = {"attempts": 0, "unavailable": 0, "right": 0}
        self.slowest = 0
        self.lock = threading.Lock()

    def found(self, what):
        with self.lock:
            self.broken.append(what)
        print(f"BROKEN  {what}", flush=True)

    # Killing and restarting.

    def kill_node(self):
        node = self.generator.choice(self.cluster.nodes)
        with node.turn:
            if not node.program.runs:
                return
            node.end(signal.SIGKILL)
            self.kills["gateway"] += 1
            if node.is_starting:
                return
            node.is_starting = True
        self.mend(lambda: self.start(node))

    def start(self, node):
        # A gateway that starts while PostgreSQL is down exits with a message and is started again. It may also be
        # killed again.
        for _ in range(60):
            with node.turn:
                node.launch()
            deadline = time.monotonic() + 90
            while time.monotonic() < deadline and node.program.runs and " ready " not in node.program.output:
                time.sleep(0.1)
            with node.turn:
                if node.program.runs and " ready " in node.program.output:
                    node.is_starting = False
                    return
                node.end(signal.SIGKILL)
            time.sleep(0.5)
        self.found(f"gateway {node.number} does not start:\n{node.program.output}")

    def kill_store(self):
        if self.mending_store():
            return
        self.postgres.kill()
        self.kills["PostgreSQL"] += 1
        self.mend(lambda: (time.sleep(self.generator.uniform(0, 2)), self.postgres.start(60)), store=True)

    def mend(self, work, store=False):
        thread = threading.Thread(target=work, daemon=True)
        thread.store = store
        thread.start()
        self.mending = [each for each in self.mending if each.is_alive()] + [thread]

    def mending_store(self):
        return any(each.is_alive() and each.store for each in self.mending)

    def watch(self, node):
        """Checks that a gateway recovers after kills. The next kill of the gateway or of PostgreSQL stops the clock."""
        waited, before = 0, time.monotonic()
        while True:
            program = node.program
            serves = node.is_ready() and (
                not self.sessions
                or node.ask("GET", "/api/auth/session", token=self.sessions[-1][0], timeout=5)[0] == 200
            )
            now = time.monotonic()
            if serves or not node.program.runs or node.program is not program:
                waited = 0
            elif not self.mending_store() and self.postgres.process.runs:
                waited += now - before
                self.slowest = max(self.slowest, waited)
                if waited > self.again:
                    self.found(
                        f"gateway {node.number} does not serve again after {waited:.0f} s with PostgreSQL:\n{node.program.output[-1000:]}"
                    )
                    return
            before = now
            time.sleep(0.1)

    def whole(self, seconds=180):
        for each in self.mending:
            each.join(seconds)
        deadline = time.monotonic() + seconds
        for node in self.cluster.nodes:
            while not node.is_ready():
                if time.monotonic() > deadline:
                    self.found(f"gateway {node.number} is not ready after {seconds} s")
                    return
                time.sleep(0.05)

    # Actions of users.

    def until(self, act, seconds=90):
        """Repeats an action at any gateway until one answers."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            node = self.generator.choice(self.cluster.nodes)
            status, told = act(node)
            if status not in UNAVAILABLE:
                return node, status, told
            time.sleep(0.05)
        self.found(f"no gateway answered for {seconds} s")
        raise SystemExit(1)

    def begun(self, flow, phone):
        """Starts a flow whose code was sent. Returns its id and code. Starts again if the flow is lost."""
        for _ in range(40):
            node, status, told = self.until(lambda node: node.ask("POST", "/api/auth/flows", {"flow": flow}))
            if status != 201:
                continue
            id = told["id"]
            status, told = node.ask(
                "POST", f"/api/auth/flows/{id}/begin", {"provider": "phone_otp", "phone": phone, "region": "IN"}
            )
            if status == 200 and (code := node.code(phone)):
                return id, code
            if status == 429:
                time.sleep(min(2, told.get("retry_after", 1)))
            elif status not in UNAVAILABLE | {200}:
                return status, None
        raise SystemExit(f"no code went out to {phone}")

    def register(self, phone):
        while True:
            id, code = self.begun("register", phone)
            if code is None:
                # The registration has succeeded, but its response was lost.
                if id == 409:
                    return None
                raise SystemExit(f"a registration answered {id}")
            node, status, told = self.until(
                lambda node: node.ask("POST", f"/api/auth/flows/{id}/submit", {"code": code})
            )
            if status == 200:
                self.accounts.append((told["account"]["id"], phone))
                self.sessions.append((told["session"]["token"], told["account"]["id"]))
                return told["account"]["id"]
            # 409: an earlier attempt succeeded, but its response was lost. Otherwise start again.
            if status == 409:
                return None

    def round(self, number):
        phone = f"+9190{number:08d}"
        self.register(phone)
        id, code = self.begun("login", phone)
        if code is None:
            return self.found(f"round {number}: {phone} is registered, and its sign-in answered {id}")
        wrong = str((int(code) + 1) % 1_000_000).zfill(6)
        guesses = [wrong] * self.generator.choice([4, 8, 12])
        if self.generator.random() < 0.5:
            guesses[self.generator.randrange(len(guesses))] = code
        places = [self.generator.choice(self.cluster.nodes) for _ in guesses]
        draw = self.generator.random()
        kill = (
            self.kill_node
            if draw < self.nodes_killed
            else self.kill_store
            if draw < self.nodes_killed + self.stores_killed
            else None
        )
        pause = self.generator.uniform(0, 0.15)
        with ThreadPoolExecutor(len(guesses)) as pool:
            attempts = [
                pool.submit(node.ask, "POST", f"/api/auth/flows/{id}/submit", {"code": guess})
                for guess, node in zip(guesses, places)
            ]
            if kill:
                time.sleep(pause)
                kill()
            answers = [each.result() for each in attempts]
        self.judge(number, phone, id, code, guesses, answers)

    def judge(self, number, phone, id, code, guesses, answers):
        statuses = [status for status, _ in answers]
        self.counts["attempts"] += len(statuses)
        self.counts["unavailable"] += sum(status in UNAVAILABLE for status in statuses)
        if strange := set(statuses) - UNAVAILABLE - {200, 401, 409, 429}:
            self.found(
                f"round {number}: answers {sorted(strange)}: {[told for status, told in answers if status in strange][:1]}"
            )
        if statuses.count(401) > 4:
            self.found(f"round {number}: {statuses.count(401)} wrong codes were compared and told so: {statuses}")
        for guess, (status, told) in zip(guesses, answers):
            if status != 200:
                continue
            self.counts["right"] += 1
            if guess != code:
                self.found(f"round {number}: a wrong code was right")
            self.sessions.append((told["session"]["token"], told["account"]["id"]))
        if statuses.count(200) > 1:
            self.found(f"round {number}: {statuses.count(200)} sessions of one code")
        # A lock starts with its full length; "wait a second" for pending attempts is not a lock. If the right code was
        # among the earlier attempts, there are fewer failures than were reported to the last one.
        is_right = any(guess == code and status != 429 for guess, (status, _) in zip(guesses, answers))
        if not is_right and any(status == 429 and told.get("retry_after", 0) > 60 for status, told in answers):
            self.locks.append((phone, id, code))
            self.look_at_lock(self.locks[-1])

    def look_at_lock(self, kept):
        """Checks that the right code is refused after a lock was reported."""
        phone, id, code = kept
        _, status, told = self.until(lambda node: node.ask("POST", f"/api/auth/flows/{id}/submit", {"code": code}))
        if status != 429:
            self.found(f"{phone} was told of a lock, and the right code answered {status} {told.get('code')}")

    def last_look(self):
        """Checks at the end of the run that everything that was reported still exists."""

        def session(kept):
            token, account = kept
            node, status, told = self.until(lambda node: node.ask("GET", "/api/auth/session", token=token))
            return (
                None
                if status == 200 and told["account"]["id"] == account
                else f"a session of {account} is lost: {status}"
            )

        def account(kept):
            id, phone = kept
            node, status, told = self.until(lambda node: node.ask("GET", f"/accounts/{id}", admin=True))
            return (
                None
                if status == 200 and phone in json.dumps(told)
                else f"the account {id} of {phone} is lost: {status}"
            )

        with ThreadPoolExecutor(8) as pool:
            for look, all in (
                (session, self.sessions),
                (account, self.accounts),
                (self.look_at_lock, self.locks_that_stand()),
            ):
                for problem in filter(None, pool.map(look, all)):
                    self.found(problem)

    def locks_that_stand(self):
        # Only codes that have not expired yet.
        return [lock for lock in self.locks if time.monotonic() - self.times.get(lock[0], 0) < 500]

    def run(self, rounds, seconds):
        self.times = {}
        began = time.monotonic()
        for node in self.cluster.nodes:
            threading.Thread(target=self.watch, args=(node,), daemon=True).start()
        done = 0
        while done < rounds and time.monotonic() - began < seconds and len(self.broken) < 10:
            before = len(self.locks)
            self.round(done)
            for lock in self.locks[before:]:
                self.times[lock[0]] = time.monotonic()
            done += 1
            if done % 50 == 0:
                print(
                    f"{done} rounds in {time.monotonic() - began:.0f} s, {self.kills['gateway']} gateways and "
                    f"{self.kills['PostgreSQL']} times PostgreSQL killed",
                    flush=True,
                )
        self.whole()
        looked = len(self.locks_that_stand())
        self.last_look()
        return done, looked, time.monotonic() - began


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=3600, help="no round begins after that")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument(
        "--gateway-kills", type=float, default=0.15, help="in what part of the rounds a gateway is killed"
    )
    options.add_argument(
        "--store-kills", type=float, default=0.08, help="in what part of the rounds PostgreSQL is killed"
    )
    options.add_argument(
        "--again",
        type=float,
        default=20,
        help="within how many seconds of PostgreSQL's and its own start a gateway must serve",
    )
    chosen = options.parse_args()
    if lacking := missing("initdb", "postgres", "psql"):
        sys.exit(f"Missing: {lacking}. On Debian: apt-get install postgresql")
    seed = chosen.seed if chosen.seed is not None else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="moongate-chaos-")
    postgres = Postgres("max_connections=80")
    cluster = None
    try:
        postgres.make().start()
        cluster = Cluster(folder, postgres, 3, kind=Gateway).database()
        file = cluster.config / "policies/phone_otp.lua"
        text = (
            file.read_text()
            .replace('"60s", "120s"', '"1s"')
            .replace('max = 30, window = "1h"', 'max = 1000000, window = "1h"')
        )
        # The test cases of the folder would dominate the restart time.
        file.write_text(text.replace('max = 4, window = "15m"', 'max = 400, window = "15m"'))
        shutil.rmtree(cluster.config / "tests")
        cluster.start()
        chaos = Chaos(cluster, postgres, random.Random(seed), chosen.gateway_kills, chosen.store_kills, chosen.again)
        rounds, locks, seconds = chaos.run(chosen.rounds, chosen.seconds)
        print(
            f"{rounds} rounds of {chosen.rounds} in {seconds:.0f} s: {chaos.kills['gateway']} gateways and {chaos.kills['PostgreSQL']} times PostgreSQL "
            f"killed; {chaos.counts['attempts']} attempts, {chaos.counts['unavailable']} of them unanswered or 503; looked for again at the end: "
            f"{len(chaos.accounts)} accounts, {len(chaos.sessions)} sessions, {locks} of {len(chaos.locks)} locks; "
            f"every gateway served again within {chaos.slowest:.1f} s; {len(chaos.broken)} broken promises (seed {seed})",
            flush=True,
        )
        sys.exit(1 if chaos.broken else 0)
    finally:
        if cluster:
            cluster.stop()
        postgres.remove()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
