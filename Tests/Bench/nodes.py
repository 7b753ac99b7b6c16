"""Measures the cost of sign-ins with PostgreSQL, with one and several gateways, beside SQLite and pgbench.

    MOONGATE_BIN=$(swift build -c release --show-bin-path) python3 Tests/Bench/nodes.py

In turns in one run: sign-ins per second (create, begin and submit with existing accounts and devices) of one gateway
with SQLite, and of one, two and three gateways with PostgreSQL; the processor time of gateways and PostgreSQL;
statements and round trips. For comparison, pgbench on the same server updates one row per transaction, as often as
those sign-ins write rows (like bare SQLite in `signins.py`). All processes share this machine, so more gateways are
not faster here, but the cost per sign-in must not grow with them.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor

from bench import BIN, CLIENTS, Runs, free_port, run_flows
from signins import configuration, count_writes, people

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "EndToEnd"))
from cluster import PASSWORD, Postgres, missing, tool  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(process):
    """The processor time of a process and its children, including ended ones."""
    total = 0
    for each in (process, *pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += sum(map(int, fields[11 : 15 if each == process else 13]))
    return total / TICK


def metric(admin, name):
    text = urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=10).read().decode()
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)} (\S+)$", text, re.M))


def sign_in(place, who, devices, flow="login"):
    port, admin = place
    done, seconds = run_flows([port], [admin], flow, who, devices)
    return [(answer["session"]["token"], answer["device_token"]) for answer in done], seconds


class Setup:
    """Several gateways with one store."""

    def __init__(self, scratch, count, postgres):
        self.postgres, self.name = postgres, f"{count} with PostgreSQL" if postgres else "1 with SQLite"
        self.places = [(free_port(), free_port()) for _ in range(count)]
        self.runs, self.folder = Runs(), scratch / self.name.replace(" ", "-")
        self.database = f"bench{count}"
        configuration(self.folder, *self.places[0], free_port())
        if postgres:
            postgres.ask(f"CREATE DATABASE {self.database} OWNER moongate")
            file = self.folder / "gateway.lua"
            file.write_text(
                file.read_text().replace('"sqlite:data/moongate.db"', f'"{postgres.url(database=self.database)}"')
            )
        self.gateways = [
            self.runs.start(
                [
                    str(BIN / "moongate"),
                    "serve",
                    "--config",
                    str(self.folder),
                    "--listen",
                    f"127.0.0.1:{port}",
                    "--admin",
                    f"127.0.0.1:{admin}",
                ],
                port,
                self.folder,
            )
            for port, admin in self.places
        ]

    def spread(self, act, who, devices):
        """Runs an action for each gateway's part of the users concurrently. Returns the results in order and the
        total duration."""
        count = len(self.places)
        with ProcessPoolExecutor(count) as pool:
            began = time.monotonic()
            parts = [
                pool.submit(act, place, who[index::count], devices and devices[index::count])
                for index, place in enumerate(self.places)
            ]
            done = [part.result()[0] for part in parts]
            seconds = time.monotonic() - began
        return [done[index % count][index // count] for index in range(len(who))], seconds

    def register(self, who):
        self.who = who
        self.devices = [device for _, device in self.spread(register, who, None)[0]]

    def rows(self):
        """The number of rows that a sign-in writes, for SQLite."""
        store, who = self.folder / "data/moongate.db", people("phone_otp", 20, 9_000_000)
        devices = [device for _, device in self.spread(register, who, None)[0]]
        # Include what is written after the response.
        time.sleep(1)
        count_writes(store, True)
        self.spread(sign_in, who, devices)
        time.sleep(1)
        return count_writes(store, False) / len(who)

    def counters(self):
        gateways = sum(processor_seconds(gateway.pid) for gateway in self.gateways)
        if not self.postgres:
            return gateways, 0, 0, 0, 0
        said = [
            sum(metric(admin, name) for _, admin in self.places)
            for name in (
                'moongate_store_transactions_total{outcome="committed"}',
                "moongate_store_statements_total",
                "moongate_store_round_trips_total",
            )
        ]
        return gateways, processor_seconds(self.postgres.process.process.pid), *said

    def round(self):
        before = self.counters()
        _, seconds = self.spread(sign_in, self.who, self.devices)
        each = [(after - start) / len(self.who) for start, after in zip(before, self.counters())]
        return dict(
            zip(("gateway_ms", "postgres_ms", "transactions", "statements", "round_trips"), each),
            per_second=len(self.who) / seconds,
        )


def register(place, who, devices):
    return sign_in(place, who, devices, "register")


def pgbench(postgres, seconds):
    """Transactions per second that update one row by its key."""
    script = postgres.folder / "update.sql"
    script.write_text("\\set id random(1, 10000)\nUPDATE rows SET n = n + 1 WHERE id = :id;\n")
    done = subprocess.run(
        [
            tool("pgbench"),
            "-h",
            postgres.address,
            "-p",
            str(postgres.port),
            "-U",
            "moongate",
            "-n",
            "-M",
            "prepared",
            "-c",
            str(CLIENTS),
            "-j",
            "1",
            "-T",
            str(seconds),
            "-f",
            str(script),
            "pgbench",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PGPASSWORD": PASSWORD},
        check=True,
    )
    return float(re.search(r"tps = ([\d.]+) \(without", done.stdout)[1])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--people", type=int, default=500, help="who sign in, at each setup")
    options.add_argument(
        "--rounds", type=int, default=3, help="all figures are medians; no person may sign in more often than that"
    )
    options.add_argument("--json", type=pathlib.Path)
    chosen = options.parse_args()
    if lacking := missing("initdb", "postgres", "psql", "pgbench"):
        sys.exit(f"Missing: {lacking}. On Debian: apt-get install postgresql")
    postgres = Postgres("max_connections=100")
    setups = []
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        try:
            postgres.make().start()
            postgres.ask(f"CREATE ROLE moongate LOGIN PASSWORD '{PASSWORD}'; CREATE DATABASE pgbench OWNER moongate")
            postgres.ask(
                "CREATE TABLE rows (id int PRIMARY KEY, n int); INSERT INTO rows SELECT i, 0 FROM generate_series(1, 10000) i",
                "pgbench",
                "moongate",
                PASSWORD,
            )
            setups = [
                Setup(scratch, count, store)
                for count, store in ((1, None), (1, postgres), (2, postgres), (3, postgres))
            ]
            for number, setup in enumerate(setups):
                setup.register(people("phone_otp", chosen.people, number * 1_000_000))
            rows, rounds = setups[0].rows(), []
            for _ in range(min(3, chosen.rounds)):
                rounds.append([setup.round() for setup in setups] + [pgbench(postgres, 4)])
        finally:
            for setup in setups:
                setup.runs.end()
            postgres.remove()
    middle = lambda figure: statistics.median(figure(entry) for entry in rounds)
    bare = middle(lambda entry: entry[-1])
    figures = {"pgbench_per_second": bare, "rows": rows, "rounds": rounds}
    print(
        f"\nSign-ins, medians of {len(rounds)}; each writes {rows:.1f} rows. pgbench updates one row {bare:,.0f} times a second, each in a transaction of its own\n"
    )
    print(
        f"{'':20}{'sign-ins/s':>11}{'gateways':>11}{'PostgreSQL':>12}{'statements':>12}{'round trips':>13}{'transactions':>14}{'÷ pgbench: rows':>17}{'transactions':>14}"
    )
    for index, setup in enumerate(setups):
        one = {name: middle(lambda entry: entry[index][name]) for name in rounds[0][index]}
        ratio = middle(lambda entry: entry[index]["per_second"] * rows / entry[-1])
        by_transactions = middle(lambda entry: entry[index]["per_second"] * entry[index]["transactions"] / entry[-1])
        figures[setup.name] = {**one, "ratio": ratio, "ratio_by_transactions": by_transactions}
        print(f"{setup.name:20}{one['per_second']:11,.0f}{one['gateway_ms'] * 1000:8.2f} ms", end="")
        if setup.postgres:
            print(
                f"{one['postgres_ms'] * 1000:9.2f} ms{one['statements']:12.1f}{one['round_trips']:13.1f}{one['transactions']:14.1f}{ratio:17.2f}{by_transactions:14.2f}",
                end="",
            )
        print()
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
