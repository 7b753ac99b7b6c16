"""Measures the effect of a candidate in shadow mode (`moongate policy shadow`): the p99 of proxied requests with and
without it, in turns, and the gateway's memory with it.

The load is paced: every connection waits between requests, so that the p99 measures latency, not capacity. Sign-ins
also run, so that the candidate counts attempts; it differs from the active configuration in limits and in a route.
Ratios are computed within a round.
"""

import argparse
import itertools
import json
import pathlib
import shutil
import statistics
import sys
import tempfile
import threading
import urllib.parse
import urllib.request

from bench import BIN, Runs, configuration, flows, free_port, run_flows
from memory import memory
from signins import paced
import peers

MOST_P99, MOST_MEMORY = 1.05, 20


def admin(port, method, path):
    with urllib.request.urlopen(
        urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method), timeout=60
    ) as answer:
        return json.loads(answer.read() or b"null")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seconds", type=int, default=8, help="of load, in each half of a round")
    options.add_argument("--connections", type=int, default=64)
    options.add_argument("--rate", type=int, default=3000, help="requests a second, of all connections together")
    options = options.parse_args()
    runs = Runs()
    ratios, grown = [], []
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, gateway, listener = (free_port() for _ in range(3))
        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            configuration(scratch / "config", gateway, listener, backend)
            candidate = scratch / "candidate"
            shutil.copytree(scratch / "config", candidate, ignore=shutil.ignore_patterns("data"))
            policy = candidate / "policies/phone_otp.lua"
            policy.write_text(policy.read_text().replace("max = 5", "max = 4"))
            routes = candidate / "routes.lua"
            routes.write_text(
                routes.read_text().replace(
                    "return routes {", 'return routes { { path = "/nothing", to = "http://127.0.0.1:1" },'
                )
            )
            process = runs.start(
                [str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], gateway, scratch
            )
            token, _ = flows(gateway, listener, 100)
            cookie = f"Cookie: moongate={token}"
            begin = "/policy/shadow?" + urllib.parse.urlencode({"folder": str(candidate)})

            def measure(isOn):
                if isOn:
                    admin(listener, "POST", begin)
                ended = threading.Event()

                def sign_in():
                    while not ended.wait(0.2):
                        who = [{"provider": "phone_otp", "phone": f"+9197{next(numbers):08d}"} for _ in range(10)]
                        run_flows([gateway], [listener], "register", who)

                people = threading.Thread(target=sign_in)
                people.start()
                told = paced(gateway, options.connections, options.seconds, cookie, options.rate)
                ended.set()
                people.join()
                seen = admin(listener, "GET", "/policy")["shadow"]
                if isOn:
                    admin(listener, "DELETE", "/policy/shadow")
                return told, seen, memory(process, "VmRSS")

            measure(False)
            measure(True)
            print(
                f"{'round':>5}{'p99 off ms':>12}{'p99 on ms':>12}{'ratio':>8}{'RSS off':>10}{'RSS on':>9}{'judged':>9}{'dropped':>9}"
            )
            for number in range(options.rounds):
                # Alternate the order, so that warm-up and drift affect both alike.
                halves = {isOn: measure(isOn) for isOn in ((False, True) if number % 2 else (True, False))}
                (off, _, before), (on, seen, after) = halves[False], halves[True]
                ratios.append(on["p99_ms"] / off["p99_ms"])
                grown.append(after - before)
                print(
                    f"{number + 1:5}{off['p99_ms']:12.3f}{on['p99_ms']:12.3f}{ratios[-1]:8.3f}{before:10.1f}{after:9.1f}"
                    f"{sum(seen['judged'].values()):9}{sum(seen['dropped'].values()):9}",
                    flush=True,
                )
        finally:
            runs.end()
    ratio, growth = statistics.median(ratios), statistics.median(grown)
    print(f"p99: {ratio:.3f} times (at most {MOST_P99}). Memory: {growth:+.1f} MiB (at most {MOST_MEMORY}).")
    if ratio > MOST_P99 or growth > MOST_MEMORY:
        sys.exit("It costs more than it may.")


if __name__ == "__main__":
    main()
