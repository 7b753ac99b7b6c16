"""Measures an import of many accounts with hashes of other programs, and the sign-ins beside it.

    MOONGATE_BIN=$(swift build -c release --show-bin-path) python3 Tests/Bench/imports.py --store sqlite

One gateway serves sign-ins by phone code, one after another: alone, beside `moongate account import --dry-run`, beside
the import itself, and beside a second one of the same file, which finds that every account exists. Prints the duration
and the peak memory of each command, and the median, the p99 and the longest of the sign-ins. It exits with 1 if a
command does not end as it should, or a sign-in was refused.
"""

import argparse
import base64
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from bench import BIN, Runs, run_flows
from crowd import Gateway, PostgreSQL, SQLite, sign_in
from signins import people


def text(count):
    return base64.b64encode(os.urandom(count)).decode()


# The digests are random: an import reads a hash and compares nothing.
FORMATS = (
    lambda: f"pbkdf2_sha256$100000${os.urandom(11).hex()}${text(32)}",
    lambda: f"$pbkdf2-sha256$27500${text(16)}${text(64)}",
    lambda: base64.b64encode(bytes.fromhex("0100000002000186a000000010") + os.urandom(48)).decode(),
    lambda: "{SSHA512}" + text(72),
    lambda: "$2b$10$" + "C" * 53,
    lambda: None,
)


def line(number):
    names = [
        {"phone": f"+9197{number:08d}", "verified": True},
        {"email": f"moved{number}@example.com", "verified": True},
    ]
    made = FORMATS[number % len(FORMATS)]()
    return json.dumps({"identifiers": names, "first_name": "Asha", **({"password": made} if made else {})})


class SignIns:
    """Sign-ins one after another, with accounts and devices in turns."""

    def __init__(self, gateway, who, devices):
        self.gateway, self.turns = gateway, itertools.cycle(list(zip(who, devices)))
        self.refused = []

    def run(self, goes_on):
        took = []
        while goes_on():
            connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=120)
            outbox = http.client.HTTPConnection("127.0.0.1", self.gateway.admin, timeout=120)
            began = time.perf_counter()
            try:
                took.append(sign_in(connection, outbox, *next(self.turns)))
            except (SystemExit, OSError) as problem:
                self.refused.append(f"after {time.perf_counter() - began:.1f} s: {problem}")
            finally:
                connection.close()
                outbox.close()
        return took


def command(gateway, file, *words):
    return subprocess.Popen(
        [BIN / "moongate", "account", "import", file, "--config", gateway.folder / "config", *words],
        stdout=subprocess.DEVNULL,
        stderr=open(gateway.folder / "stderr", "ab"),
    )


def beside(signins, process, status):
    """The figures of a command, and of the sign-ins until it has ended."""
    began, ended = time.monotonic(), []

    def goes_on():
        if not ended:
            waited, code, usage = os.wait4(process.pid, os.WNOHANG)
            if waited:
                process.returncode = os.waitstatus_to_exitcode(code)
                ended.append(usage.ru_maxrss / 1024)
        return not ended

    took = signins.run(goes_on)
    if process.returncode != status:
        sys.exit(f"the import ended with {process.returncode} instead of {status}")
    return {"seconds": time.monotonic() - began, "peak": ended[0], "signins": took}


def prepare(folder, kind, server, runs, count):
    """A gateway with passwords and without a limit on codes, and the people who sign in."""
    gateway = Gateway(folder, kind, server)
    settings = folder / "config/gateway.lua"
    settings.write_text(settings.read_text().replace("pin = {}", "pin = {}, password = {}"))
    policy = folder / "config/policies/phone_otp.lua"
    policy.write_text(policy.read_text().replace("max = 4", "max = 1000000"))
    gateway.start(runs)
    who = people("phone_otp", count)
    done, _ = run_flows([gateway.port], [gateway.admin], "register", who)
    return SignIns(gateway, who, [answer["device_token"] for answer in done])


def told(name, figures):
    took = sorted(figures["signins"])
    if not took:
        return print(f"{name}: no sign-in")
    parts = [f"{len(took)} sign-ins, median {statistics.median(took) * 1000:.1f} ms"]
    p99 = took[min(len(took) - 1, len(took) * 99 // 100)]
    parts.append(f"p99 {p99 * 1000:.1f} ms, longest {took[-1] * 1000:.0f} ms")
    if "peak" in figures:
        parts.insert(0, f"{figures['seconds']:.1f} s, {figures['peak']:.0f} MiB at most")
    print(f"{name}: {'; '.join(parts)}")


def main():
    kinds = {"sqlite": SQLite, "postgres": PostgreSQL}
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", choices=kinds, default="sqlite")
    options.add_argument("--accounts", type=int, default=100_000)
    options.add_argument("--people", type=int, default=100, help="who sign in, in turns")
    options.add_argument("--seconds", type=int, default=10, help="of the sign-ins alone")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    runs, rounds = Runs(), {}
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moongate-bench-")))
        server = stack.enter_context(kinds[options.store].server())
        stack.callback(runs.end)
        folder = scratch / "imports"
        folder.mkdir()
        signins = prepare(folder, kinds[options.store], server, runs, options.people)
        file = scratch / "people.jsonl"
        with file.open("w") as lines:
            lines.writelines(line(number) + "\n" for number in range(options.accounts))
        until = time.monotonic() + options.seconds
        rounds["alone"] = {"signins": signins.run(lambda: time.monotonic() < until)}
        for name, words, status in (("dry run", ["--dry-run"], 0), ("import", [], 0), ("again", [], 1)):
            rounds[name] = beside(signins, command(signins.gateway, file, *words), status)
    print(f"\n{options.accounts} accounts, {options.store}")
    for name, figures in rounds.items():
        told(name, figures)
    print(f"refused sign-ins: {len(signins.refused)}", *signins.refused[:5], sep="\n  ")
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "refused": signins.refused}, indent=2))
    if signins.refused:
        sys.exit(1)


if __name__ == "__main__":
    main()
