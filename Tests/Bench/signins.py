"""Measures the cost of sign-ins beside plain SQLite, and the effect of a flood of PINs on proxied requests: `make
bench`.

1. Sign-ins per second by phone code and by email code (create, begin and submit with existing accounts and devices).
  In the same run, plain SQLite writes as many rows as those sign-ins, each in its own transaction, on the same disk
  with the same pragmas.
2. The p99 of proxied requests at half of the maximum load: alone, and while 100 clients send PINs.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from bench import BIN, FLOW, HERE, ROUTES, Runs, free_port, run_flows, wrk
import peers

GATEWAY = """return gateway {{
  listen = "127.0.0.1:{port}", admin = "127.0.0.1:{admin}", public_url = "http://localhost:{port}", store = "sqlite:data/moongate.db",
  key = file "data/master.key", region = "IN", service = "Moongate", app_api = true,
  providers = {{ phone_otp = {{ sms = outbox() }}, email_code = {{ mail = outbox() }}, pin = {{}} }},
}}
"""
# All load comes from one address, and wrong PINs must be hashed without limit: those limits would otherwise be
# measured.
LIMITS = """return policy "{name}" {{
  limits = {{
    send   = {{ on = "send",   per = "{kind}", max = 4, window = "15m" }},
    verify = {{ on = "verify", per = "{kind}", max = 5, window = "24h", counts = "failures", lock = {{ "15m", "1h" }} }},
  }},
}}
"""
# Alternating with plain SQLite; the limits above allow three after the registration.
SIGNINS = 3
PIN = 'return policy "pin" { limits = { verify = { on = "verify", per = "account", max = 1000000, window = "1h" } } }\n'


def configuration(folder, port, admin, backend):
    for inner in ("policies", "flows"):
        (folder / inner).mkdir(parents=True)
    (folder / "gateway.lua").write_text(GATEWAY.format(port=port, admin=admin))
    (folder / "routes.lua").write_text(ROUTES.format(backend=backend))
    for name, kind in (("phone_otp", "phone"), ("email_code", "email")):
        (folder / f"policies/{name}.lua").write_text(LIMITS.format(name=name, kind=kind))
    (folder / "policies/pin.lua").write_text(PIN)
    both = FLOW.replace('{{ "phone_otp" }}', 'any_of {{ "phone_otp", "email_code" }}')
    for name, purpose, account in (("login", "sign_in", "existing"), ("register", "register", "new")):
        (folder / f"flows/{name}.lua").write_text(both.format(name=name, purpose=purpose, account=account))


def people(provider, count, first=0):
    return [
        {
            "provider": provider,
            **({"phone": f"+9198{index:08d}"} if provider == "phone_otp" else {"email": f"p{index}@example.com"}),
        }
        for index in range(first, first + count)
    ]


def count_writes(file, install):
    """Installs a counter of written rows on every table of the store, or reads and removes it."""
    with sqlite3.connect(file, isolation_level=None, timeout=20) as database:
        tables = [
            row[0]
            for row in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'bench_writes'"
            )
        ]
        if install:
            database.execute("CREATE TABLE bench_writes (n INTEGER)")
            database.execute("INSERT INTO bench_writes VALUES (0)")
            for table in tables:
                for event in ("INSERT", "UPDATE", "DELETE"):
                    database.execute(
                        f"CREATE TRIGGER bench_{table}_{event} AFTER {event} ON {table} BEGIN UPDATE bench_writes SET n = n + 1; END"
                    )
            return None
        written = database.execute("SELECT n FROM bench_writes").fetchone()[0]
        for table in tables:
            for event in ("INSERT", "UPDATE", "DELETE"):
                database.execute(f"DROP TRIGGER bench_{table}_{event}")
        database.execute("DROP TABLE bench_writes")
        return written


def bare_sqlite(folder, count):
    """Transactions per second that write one row, with the store's pragmas and random keys, through Python's C
    module."""
    with sqlite3.connect(folder / "bare.db", isolation_level=None) as database:
        database.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA cache_size = -8192;"
        )
        database.execute("CREATE TABLE rows (key BLOB PRIMARY KEY, a BLOB, b INTEGER) WITHOUT ROWID")
        keys = [os.urandom(32) for _ in range(count)]
        began = time.monotonic()
        for index, key in enumerate(keys):
            database.execute("INSERT INTO rows VALUES (?, ?, ?)", (key, b"x" * 64, index))
        return count / (time.monotonic() - began)


def paced(port, connections, seconds, header, per_second):
    """Runs wrk at a part of the maximum load."""
    os.environ["MOONGATE_DELAY"] = str(max(1, round(connections * 1000 / per_second)))
    os.environ["MOONGATE_WRK"] = str(HERE / "wrk.lua")
    return wrk(port, connections, seconds, [header], script="paced.lua")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--people", type=int, default=1000, help="who sign in, by each way")
    options.add_argument("--seconds", type=int, default=4, help="of one measurement of the flood")
    options.add_argument("--rounds", type=int, default=5, help="of the flood; all figures are medians")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    runs = Runs()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, port, admin = (free_port() for _ in range(3))
        store = scratch / "config/data/moongate.db"
        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            configuration(scratch / "config", port, admin, backend)
            runs.start([str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], port, scratch)
            tokens = []
            for provider in ("phone_otp", "email_code"):
                who = people(provider, options.people)
                done, _ = run_flows([port], [admin], "register", who)
                tokens = [answer["session"]["token"] for answer in done]
                devices = [answer["device_token"] for answer in done]
                sample = people(provider, 20, options.people)
                known, _ = run_flows([port], [admin], "register", sample)
                time.sleep(1)
                count_writes(store, True)
                run_flows([port], [admin], "login", sample, [answer["device_token"] for answer in known])
                time.sleep(1)
                rows = count_writes(store, False) / len(sample)
                rounds = []
                for _ in range(SIGNINS):
                    _, seconds = run_flows([port], [admin], "login", who, devices)
                    rounds.append(
                        {
                            "per_second": options.people / seconds,
                            "bare": bare_sqlite(scratch, round(rows * options.people)),
                        }
                    )
                    (scratch / "bare.db").unlink()
                middle = lambda figure: statistics.median(figure(entry) for entry in rounds)
                figures[provider] = {
                    "rounds": rounds,
                    "rows": rows,
                    "per_second": middle(lambda r: r["per_second"]),
                    "bare_rows_per_second": middle(lambda r: r["bare"]),
                    "ratio": middle(lambda r: rows * r["per_second"] / r["bare"]),
                }

            header = f"Cookie: moongate={tokens[0]}"
            possible = wrk(port, 32, options.seconds, [header])["per_second"]
            locked = set_pins(port, tokens[1:101])
            (scratch / "tokens").write_text("\n".join(locked) + "\n")
            rounds = []
            for _ in range(options.rounds):
                alone = paced(port, 32, options.seconds, header, possible / 2)
                flood = subprocess.Popen(
                    [
                        "wrk",
                        "-t",
                        "1",
                        "-c",
                        "100",
                        "-d",
                        f"{options.seconds + 2}s",
                        "-s",
                        str(HERE / "pins.lua"),
                        f"http://127.0.0.1:{port}",
                    ],
                    env={**os.environ, "MOONGATE_TOKENS": str(scratch / "tokens")},
                    stdout=subprocess.PIPE,
                    text=True,
                )
                time.sleep(1)
                beside = paced(port, 32, options.seconds, header, possible / 2)
                rounds.append(
                    {
                        "alone": alone["p99_ms"],
                        "beside": beside["p99_ms"],
                        "pins_per_second": float(
                            re.search(r"Requests/sec:\s+([\d.]+)", flood.communicate()[0]).group(1)
                        ),
                    }
                )
            median = lambda figure: statistics.median(figure(entry) for entry in rounds)
            figures["flood"] = {
                "possible": possible,
                "rounds": rounds,
                "alone": median(lambda r: r["alone"]),
                "beside": median(lambda r: r["beside"]),
                "ratio": median(lambda r: r["beside"] / r["alone"]),
                "pins_per_second": median(lambda r: r["pins_per_second"]),
            }
        finally:
            runs.end()

    print("\nSign-ins a second on SQLite, beside bare SQLite writing the same rows, one transaction each\n")
    print(f"{'':14}{'sign-ins/s':>12}{'rows each':>11}{'bare rows/s':>13}{'of it':>8}{'aim':>7}")
    for provider in ("phone_otp", "email_code"):
        f = figures[provider]
        print(
            f"{provider:14}{f['per_second']:12,.0f}{f['rows']:11.1f}{f['bare_rows_per_second']:13,.0f}{f['ratio']:8.2f}{0.33:7.2f}"
        )
    f = figures["flood"]
    print(
        f"\nProxied requests at half of the possible {f['possible']:,.0f}/s: p99 {f['alone']:.2f} ms alone, {f['beside']:.2f} ms while "
        f"100 clients send {f['pins_per_second']:,.0f} PINs/s: {f['ratio']:.1f} times (aim: at most 5)"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


def set_pins(port, tokens):
    """Sets a PIN for each token and returns the new tokens."""
    changed = []
    for token in tokens:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request(
            "POST",
            "/api/auth/set-passcode",
            '{"passcode":"739164"}',
            {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        )
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != 200:
            sys.exit(f"set-passcode: {answer.status} {content}")
        changed.append(content["token"])
    return changed


if __name__ == "__main__":
    main()
