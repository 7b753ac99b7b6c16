"""Measures the p99 of a whole sign-in with a store of a million accounts and ten million events, beside an empty
store.

Both gateways run at the same time and are called in turns. The large one also prunes its events, as in production,
and that cost is part of the figure. The target is at most twice the p99 of the empty store.
"""

import argparse
import contextlib
import http.client
import json
import pathlib
import sqlite3
import statistics
import sys
import tempfile
import time

from bench import BIN, ROOT, Runs, call, free_port, run_flows
from signins import configuration, people

sys.path.insert(0, str(ROOT / "Tests" / "EndToEnd"))
from cluster import Postgres, missing  # noqa: E402

# Rows as in a real store: an account with one verified number, and an event of a sign-in. `{n}` is the row number,
# `{id}` its first 16 characters.
ROWS = {
    "account": "SELECT 'crowd' || {id}, NULL, NULL, {now}, {now}, 0",
    "identifier": "SELECT 'crowd' || {id}, 0, 'phone', '+1415' || {id}, '+1415' || {id}, '{{\"country\":\"US\"}}', {now}",
    "event": "SELECT {n}, 'dc_' || {id}, {now}, {json}",
}
EVENT = (
    '{"account":"acct_PCyRAIYZvWwnPNNbS1VzFg","address":"127.0.0.1","at":"2026-01-01T00:00:00.000Z","detail":{"purpose":"login"},'
    '"flow":"login","flow_prefix":"fl_8rKq","id":"dc_0000000000000000","kind":"session_started","provider":"phone_otp"}'
)
COLUMNS = {
    "account": "id, first_name, last_name, created_at, last_seen_at, is_locked",
    "identifier": "account, position, kind, value, display, attributes, verified_at",
    "event": "number, id, at, event",
}


class SQLite:
    """The store of one gateway in a file."""

    @staticmethod
    @contextlib.contextmanager
    def server():
        yield None

    def __init__(self, folder, _):
        self.file = folder / "config/data/moongate.db"
        self.address = "sqlite:data/moongate.db"

    def fill(self, accounts, events, now):
        with sqlite3.connect(self.file, isolation_level=None) as database:
            database.executescript(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA cache_size = -400000"
            )
            for table, count in (("account", accounts), ("identifier", accounts), ("event", events)):
                first = (
                    (database.execute("SELECT max(number) FROM event").fetchone()[0] or 0) if table == "event" else 0
                )
                row = ROWS[table].format(n="n", id="printf('%016d', n)", now=now, json=f"CAST('{EVENT}' AS BLOB)")
                database.execute("BEGIN")
                database.execute(
                    f"WITH RECURSIVE series (n) AS (SELECT {first + 1} UNION ALL SELECT n + 1 FROM series WHERE n < {first + count}) "
                    f"INSERT INTO {table} ({COLUMNS[table]}) {row} FROM series"
                )
                database.execute("COMMIT")
            database.executescript("PRAGMA journal_mode = WAL")

    def events(self):
        with sqlite3.connect(self.file, timeout=20) as database:
            return database.execute("SELECT max(number) - min(number) + 1 FROM event").fetchone()[0]


class PostgreSQL:
    """The store of one gateway in a database."""

    @staticmethod
    @contextlib.contextmanager
    def server():
        lacking = missing("initdb", "postgres", "psql")
        if lacking:
            sys.exit(f"Missing: {lacking}. On Debian: apt-get install postgresql")
        server = Postgres("shared_buffers=256MB")
        try:
            yield server.make().start()
        finally:
            server.remove()

    def __init__(self, folder, server):
        self.server, self.name = server, folder.name
        server.ask(f"CREATE DATABASE {self.name}")
        self.address = server.url("postgres", "postgres", self.name)

    def fill(self, accounts, events, now):
        for table, count in (("account", accounts), ("identifier", accounts), ("event", events)):
            first = (
                int(self.server.ask("SELECT coalesce(max(number), 0) FROM event", self.name, "postgres"))
                if table == "event"
                else 0
            )
            row = ROWS[table].format(
                n="n", id="lpad(CAST(n AS TEXT), 16, '0')", now=now, json=f"convert_to('{EVENT}', 'UTF8')"
            )
            self.server.ask(
                f"INSERT INTO {table} ({COLUMNS[table]}) {row} FROM generate_series({first + 1}, {first + count}) n",
                self.name,
                seconds=600,
            )
        self.server.ask(
            "SELECT setval(pg_get_serial_sequence('event', 'number'), (SELECT max(number) FROM event))", self.name
        )
        self.server.ask("VACUUM ANALYZE", self.name, seconds=600)

    def events(self):
        return int(self.server.ask("SELECT max(number) - min(number) + 1 FROM event", self.name))


class Gateway:
    def __init__(self, folder, kind, server):
        self.folder = folder
        self.port, self.admin, backend = (free_port() for _ in range(3))
        configuration(folder / "config", self.port, self.admin, backend)
        self.store = kind(folder, server)
        settings = folder / "config/gateway.lua"
        settings.write_text(settings.read_text().replace("sqlite:data/moongate.db", self.store.address))
        self.rounds = []

    def start(self, runs):
        self.process = runs.start(
            [str(BIN / "moongate"), "serve", "--config", str(self.folder / "config")], self.port, self.folder
        )

    def stop(self, runs):
        self.process.terminate()
        self.process.wait(20)
        runs.running.remove(self.process)


def sign_in(connection, outbox, person, device):
    """The duration of its three calls in seconds."""
    headers = {"Content-Type": "application/json", "Moongate-Device": device}

    def post(path, body):
        began = time.perf_counter()
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        spent.append(time.perf_counter() - began)
        if answer.status not in (200, 201):
            sys.exit(f"{path}: {answer.status} {content.decode()}")
        return json.loads(content)

    spent = []
    flow = post("/api/auth/flows", {"flow": "login"})["id"]
    post(f"/api/auth/flows/{flow}/begin", person)
    code = next(entry["code"] for entry in call(outbox, "GET", "/outbox") if entry["to"] == person["phone"])
    post(f"/api/auth/flows/{flow}/submit", {"code": code})
    return sum(spent)


def measure(gateway, who, devices):
    """The duration of consecutive sign-ins in seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    outbox = http.client.HTTPConnection("127.0.0.1", gateway.admin, timeout=30)
    return [sign_in(connection, outbox, person, device) for person, device in zip(who, devices)]


def main():
    kinds = {"sqlite": SQLite, "postgres": PostgreSQL}
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", choices=kinds, default="sqlite")
    options.add_argument("--accounts", type=int, default=1_000_000)
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--people", type=int, default=300, help="who sign in, three times each")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch, kinds[options.store].server() as server:
        gateways = {}
        try:
            for name in ("empty", "crowded"):
                folder = pathlib.Path(scratch, name)
                folder.mkdir()
                gateways[name] = Gateway(folder, kinds[options.store], server)
                gateways[name].start(runs)
            crowded = gateways["crowded"]
            crowded.stop(runs)
            began = time.monotonic()
            crowded.store.fill(options.accounts, options.events, int(time.time() * 1000))
            print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
            crowded.start(runs)
            who = people("phone_otp", options.people)
            devices = {
                name: [
                    answer["device_token"] for answer in run_flows([gateway.port], [gateway.admin], "register", who)[0]
                ]
                for name, gateway in gateways.items()
            }
            events, clearing = crowded.store.events(), time.monotonic()
            for _ in range(3):
                for name, gateway in gateways.items():
                    gateway.rounds.append(sorted(measure(gateway, who, devices[name])))
            cleared = (events - crowded.store.events()) / (time.monotonic() - clearing)
        finally:
            runs.end()
    at = lambda sorted_seconds, share: (
        sorted_seconds[min(len(sorted_seconds) - 1, int(len(sorted_seconds) * share))] * 1000
    )
    figures = {
        name: {
            f"p{share * 100:.0f}_ms": statistics.median(at(entry, share) for entry in gateway.rounds)
            for share in (0.5, 0.99)
        }
        for name, gateway in gateways.items()
    }
    ratio = statistics.median(
        at(full, 0.99) / at(empty, 0.99) for full, empty in zip(crowded.rounds, gateways["empty"].rounds)
    )
    print(f"\nA sign-in (three calls, one person at a time) on {options.store}\n\n{'':42}{'p50 ms':>8}{'p99 ms':>8}")
    titles = {"empty": "empty store", "crowded": f"{options.accounts:,} accounts, {options.events:,} events"}
    for name, found in figures.items():
        print(f"{titles[name]:42}{found['p50_ms']:8.2f}{found['p99_ms']:8.2f}")
    print(
        f"\np99 {ratio:.2f} times that of an empty store (aim: at most 2); events cleared meanwhile: {cleared:,.0f}/s"
    )
    if options.json:
        options.json.write_text(json.dumps({**figures, "ratio": ratio, "cleared_per_second": cleared}, indent=2))


if __name__ == "__main__":
    main()
