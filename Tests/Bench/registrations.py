"""Measures the effect of a flood of registrations on PIN checks: `make bench`.

PIN checks from one address: alone, while another address sends 200 concurrent registrations, and one second after
they have ended. Ten registrations per hour succeed. The p99 of the PIN checks must stay within twice the idle
figure. The default policies apply, except the PIN's own limit on wrong attempts, because all checks are right.
"""

import argparse
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

from bench import BIN, Runs, ROOT, free_port
import shutil

FLOOD, OTHER = "127.0.0.1", "127.0.0.2"
AT_ONCE = 200


def call(port, address, method, path, body, headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))
    try:
        connection.request(
            method,
            path,
            json.dumps(body),
            {"Content-Type": "application/json", "Host": f"localhost:{port}", **dict(headers)},
        )
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def register(port, address, number):
    status, flow = call(port, address, "POST", "/api/auth/flows", {"flow": "register_email"})
    if status != 201:
        return status
    return call(
        port,
        address,
        "POST",
        f"/api/auth/flows/{flow['id']}/begin",
        {
            "provider": "password",
            "email": f"person{number}@example.com",
            "password": f"correct horse {number}",
            "first_name": "Asha",
            "last_name": "Rao",
        },
    )[0]


def person(port, admin):
    """Creates a user with a PIN and returns the token."""
    _, flow = call(port, OTHER, "POST", "/api/auth/flows", {"flow": "register"})
    call(
        port, OTHER, "POST", f"/api/auth/flows/{flow['id']}/begin", {"provider": "phone_otp", "phone": "+919999999999"}
    )
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=30)
    connection.request("GET", "/outbox")
    code = json.loads(connection.getresponse().read())[0]["code"]
    _, done = call(port, OTHER, "POST", f"/api/auth/flows/{flow['id']}/submit", {"code": code})
    bearer = lambda token: {"Authorization": f"Bearer {token}"}
    _, changed = call(
        port, OTHER, "POST", "/api/auth/set-passcode", {"passcode": "739164"}, bearer(done["session"]["token"])
    )
    return changed["token"]


def check(port, token):
    """Verifies a right PIN. Returns the duration in milliseconds and the new token."""
    headers = {"Authorization": f"Bearer {token}"}
    _, flow = call(port, OTHER, "POST", "/api/auth/flows", {"flow": "pin_unlock"}, headers)
    began = time.monotonic()
    status, done = call(
        port, OTHER, "POST", f"/api/auth/flows/{flow['id']}/begin", {"provider": "pin", "pin": "739164"}, headers
    )
    took = (time.monotonic() - began) * 1000
    if status != 200:
        sys.exit(f"a PIN check was refused: {status} {done}")
    return took, done["session"]["token"]


def checks(port, token, seconds):
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        milliseconds, token = check(port, token)
        took.append(milliseconds)
    return took, token


def p99(figures):
    return sorted(figures)[min(len(figures) - 1, int(len(figures) * 0.99))]


def flood(port, over, told):
    """Runs in its own process with low priority, so that the checks do not wait for Python's lock and the cost of
    the clients is not charged to the gateway. In production, clients run on other machines."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    number, statuses = 0, []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        while not over.is_set():
            statuses += list(pool.map(lambda one: register(port, FLOOD, one), range(number, number + AT_ONCE)))
            number += AT_ONCE
            over.wait(1)
    told.put(statuses)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=10, help="of one measurement")
    options.add_argument("--rounds", type=int, default=3, help="all figures are medians")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    runs = Runs()
    rounds = []
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        folder = pathlib.Path(scratch) / "config"
        shutil.copytree(ROOT / "config", folder, ignore=shutil.ignore_patterns("data"))
        port, admin = free_port(), free_port()
        text = (folder / "gateway.lua").read_text().replace(":8080", f":{port}").replace(":9901", f":{admin}")
        (folder / "gateway.lua").write_text(text)
        try:
            runs.start([str(BIN / "moongate"), "serve", "--config", str(folder)], port, pathlib.Path(scratch))
            token = person(port, admin)
            statuses = []
            for _ in range(options.rounds):
                alone, token = checks(port, token, options.seconds)
                over, told = multiprocessing.Event(), multiprocessing.Queue()
                process = multiprocessing.Process(target=flood, args=(port, over, told))
                process.start()
                beside, token = checks(port, token, options.seconds)
                over.set()
                statuses += told.get()
                process.join()
                rounds.append({"alone": p99(alone), "beside": p99(beside), "checks": len(beside)})
        finally:
            runs.end()
    median = lambda figure: statistics.median(entry[figure] for entry in rounds)
    ratio = median("beside") / median("alone")
    made = statuses.count(200)
    print(
        f"\nPIN checks: p99 {median('alone'):.1f} ms alone, {median('beside'):.1f} ms while {AT_ONCE} registrations at a time come from another "
        f"address: {ratio:.2f} times (aim: at most 2)"
    )
    print(f"registrations: {made} of {len(statuses)} made accounts (ten an hour), {statuses.count(429)} answered 429")
    if options.json:
        options.json.write_text(
            json.dumps({"rounds": rounds, "ratio": ratio, "registrations": made, "of": len(statuses)}, indent=2)
        )
    if ratio > 2 or made != 10:
        sys.exit(1)


if __name__ == "__main__":
    main()
