"""Measures an access token in place of a session on one route of one gateway: a token check must not cost more than
a session check.

GET of 40 bytes with wrk, in interleaved rounds; medians. Ratios are computed within a round. Basic authentication
adds base64 decoding.
"""

import argparse
import base64
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import peers
from bench import BIN, ROUTES, Runs, configuration, flows, free_port, wrk

GOAL = 0.9


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=int, default=4, help="of one measurement")
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options = options.parse_args()

    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, gateway, admin = (free_port() for _ in range(3))
        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            configuration(scratch / "config", gateway, admin, backend)
            routes = ROUTES.format(backend=backend)
            (scratch / "config/routes.lua").write_text(routes.replace(f"{backend}\"", f"{backend}\", tokens = true"))
            runs.start([str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], gateway, scratch)
            session, _ = flows(gateway, admin, 1)
            token = subprocess.run(
                [str(BIN / "moongate"), "token", "create", "bench", "--config", str(scratch / "config")],
                capture_output=True,
                text=True,
                check=True,
                cwd=scratch,
            ).stdout.strip()
            contenders = {
                "session, by cookie": f"Cookie: moongate={session}",
                "session, by Bearer": f"Authorization: Bearer {session}",
                "token, by Bearer": f"Authorization: Bearer {token}",
                "token, by Basic": "Authorization: Basic " + base64.b64encode(f"any:{token}".encode()).decode(),
            }
            rounds = {name: [] for name in contenders}
            for _ in range(options.rounds):
                for name, field in contenders.items():
                    rounds[name].append(wrk(gateway, options.connections, options.seconds, [field]))
        finally:
            runs.end()

    print(f"\nOne route, {options.connections} connections, medians of {options.rounds} rounds\n")
    print(f"{'':36}{'requests/s':>12}{'p50 ms':>10}{'p99 ms':>10}")
    for name, entries in rounds.items():
        median = lambda figure: statistics.median(entry[figure] for entry in entries)
        print(f"{name:36}{median('per_second'):12,.0f}{median('p50_ms'):10.2f}{median('p99_ms'):10.2f}")
    plain = rounds["session, by cookie"]
    ratios = {
        name: statistics.median(mine["per_second"] / theirs["per_second"] for mine, theirs in zip(entries, plain))
        for name, entries in rounds.items()
        if entries is not plain
    }
    for name, ratio in ratios.items():
        print(f"\n{ratio:.2f} of the session by cookie: {name}", end="")
    print(f"\n\nA token by Bearer is to be {GOAL} of a session at least.")
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "ratios": ratios}, indent=2))
    if ratios["token, by Bearer"] < GOAL:
        sys.exit("missed")


if __name__ == "__main__":
    main()
