"""Measures the cost of audit sinks for sign-ins, and checks that an outage loses no event:
`python3 Tests/Bench/audit.py`.

1. p99 of the requests of paced sign-ins by phone code, without a sink, with a webhook that answers and with one that is down, in turns; ratios within a
   round.
2. The webhook is down for a while under the same sign-ins, and the gateway is killed (SIGKILL) in between and started again. Afterwards the webhook has
   each event of the trail at least once, in order, and none that the trail does not have. `--outage 3600` is the hour.

Every measurement ends at its time, also if the gateway does not keep up with the rate. SIGINT or SIGTERM ends the current measurement: the webhook
answers again, and the figures so far are printed.
"""

import argparse
import hashlib
import hmac
import http.client
import http.server
import itertools
import json
import pathlib
import queue
import re
import signal
import sqlite3
import statistics
import sys
import tempfile
import threading
import time

from bench import BIN, FLOW, ROUTES, Runs, call, free_port

SECRET = "the key of the signature"
INTERRUPTED = threading.Event()
GATEWAY = """return gateway {{
  listen = "127.0.0.1:{port}", admin = "127.0.0.1:{admin}", public_url = "http://localhost:{port}", store = "sqlite:data/moongate.db",
  key = file "data/master.key", region = "IN", service = "Moongate", {audit}
  providers = {{ phone_otp = {{ sms = webhook {{ url = "http://127.0.0.1:{sites}/sms" }} }} }},
}}
"""
AUDIT = 'audit = {{ webhook {{ url = "http://127.0.0.1:{sites}/audit", secret = file "secret" }} }},'
# All load comes from one address, and users sign in repeatedly, so raise the limits that would otherwise be measured.
POLICY = """return policy "phone_otp" {
  timers = { resend_after = { "1s" } },
  limits = { verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures", lock = { "15m" } } },
}
"""


class Sites:
    """The sites that receive codes and events."""

    def __init__(self):
        self.codes, self.bodies, self.is_up = {}, [], True
        self.firsts, self.verified, self.came = {}, 0, 0
        sites = self

        class Answers(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = 200
                if self.path == "/sms":
                    message = json.loads(body)
                    # Notices arrive here too.
                    if code := re.search(r"\d{6}", message["text"]):
                        sites.codes[message["to"]].put(code.group())
                elif sites.is_up:
                    sites.bodies.append((self.headers["Moongate-Signature"], body))
                else:
                    status = 503
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        server.daemon_threads = True
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def events(self):
        """The ids of all received events in order of first arrival. Verifies each signature."""
        for signature, body in self.bodies[self.verified :]:
            moment, code = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", signature).groups()
            if not hmac.compare_digest(
                code, hmac.new(SECRET.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
            ):
                sys.exit("a signature does not verify")
            for line in body.splitlines():
                self.firsts.setdefault(json.loads(line)["metadata"]["uid"])
                self.came += 1
            self.verified += 1
        return list(self.firsts)


class Gateway:
    """A gateway with its folder and users."""

    def __init__(self, runs, scratch, name, sites, backend, audit, people):
        self.runs, self.folder = runs, scratch / name
        self.port, self.admin, self.sites = free_port(), free_port(), sites
        for inner in ("policies", "flows"):
            (self.folder / inner).mkdir(parents=True)
        audit = AUDIT.format(sites=sites.port) if audit else ""
        (self.folder / "gateway.lua").write_text(
            GATEWAY.format(port=self.port, admin=self.admin, sites=sites.port, audit=audit)
        )
        (self.folder / "secret").write_text(SECRET)
        (self.folder / "secret").chmod(0o600)
        (self.folder / "routes.lua").write_text(ROUTES.format(backend=backend))
        (self.folder / "policies/phone_otp.lua").write_text(POLICY)
        for flow, purpose, account in (("login", "sign_in", "existing"), ("register", "register", "new")):
            (self.folder / f"flows/{flow}.lua").write_text(FLOW.format(name=flow, purpose=purpose, account=account))
        self.start()
        self.people = [f"+9197{index:08d}" for index in range(people)]
        for person in self.people:
            sites.codes.setdefault(person, queue.Queue())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for person in self.people:
            self.sign_in(connection, "register", person)

    def start(self):
        self.process = self.runs.start(
            [str(BIN / "moongate"), "serve", "--config", str(self.folder)], self.port, self.folder
        )

    def sign_in(self, connection, flow, person):
        """Signs in and returns the milliseconds of each request."""
        taken = []

        def timed(path, body):
            began = time.monotonic()
            try:
                return call(connection, "POST", path, body)
            finally:
                taken.append((time.monotonic() - began) * 1000)

        while not self.sites.codes[person].empty():
            self.sites.codes[person].get()
        path = f"/api/auth/flows/{timed('/api/auth/flows', {'flow': flow})['id']}"
        timed(f"{path}/begin", {"provider": "phone_otp", "phone": person})
        timed(f"{path}/submit", {"code": self.sites.codes[person].get(timeout=10)})
        return taken

    def load(self, seconds, rate, workers=24):
        """Sign-ins at a rate that does not wait for answers, until the time is over or the bench is interrupted."""
        turns, load = itertools.count(), Load()
        began = time.monotonic()

        def work():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            while True:
                turn = next(turns)
                due = began + turn / rate
                # A gateway that is slower than the rate leaves turns over: they are not made up for.
                if max(due, time.monotonic()) > began + seconds or INTERRUPTED.wait(max(0, due - time.monotonic())):
                    return
                try:
                    load.milliseconds.extend(self.sign_in(connection, "login", self.people[turn % len(self.people)]))
                except Exception as error:  # The gateway is killed under it.
                    load.failures.append(repr(error))
                    connection.close()
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                    time.sleep(0.2)

        # Daemons: what waits for an answer does not hold up the end of the program.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        load.seconds = time.monotonic() - began
        return load

    def trail(self):
        with sqlite3.connect(self.folder / "data/moongate.db", timeout=20) as database:
            return [row[0] for row in database.execute("SELECT id FROM event ORDER BY number")]


class Load:
    """What came of some seconds of sign-ins."""

    def __init__(self):
        self.milliseconds, self.failures, self.seconds = [], [], 0.0

    @property
    def sign_ins(self):
        return len(self.milliseconds) // 3

    @property
    def rate(self):
        return self.sign_ins / self.seconds if self.seconds else 0

    @property
    def p99(self):
        return sorted(self.milliseconds)[int(len(self.milliseconds) * 0.99)] if self.milliseconds else 0


def measure_p99(gateways, options, figures):
    """p99 without a sink, with one and while it is down, in turns. An interrupted round does not count."""
    rounds = []
    for _ in range(options.rounds):
        entry, rates = {}, []
        for name, (gateway, sites, up) in gateways.items():
            sites.is_up = up
            load = gateway.load(options.seconds, options.rate)
            if INTERRUPTED.is_set():
                return
            if load.failures:
                sys.exit(f"{len(load.failures)} sign-ins failed: {load.failures[0]}")
            entry[name] = load.p99
            rates.append(load.rate)
        rounds.append(entry)
        print(
            f"round {len(rounds)}: p99 {', '.join(f'{name} {value:.1f} ms' for name, value in entry.items())}, "
            f"{min(rates):.0f} to {max(rates):.0f} sign-ins/s",
            flush=True,
        )
        figures["p99"] = {
            "rounds": rounds,
            **{name: statistics.median(entry[name] for entry in rounds) for name in gateways},
            **{
                f"ratio_{name}": statistics.median(entry[name] / entry["without"] for entry in rounds)
                for name in ("up", "down")
            },
        }


def measure_outage(audited, sites, options, figures):
    """The webhook is down, the gateway is killed in between, and then the webhook gets everything."""
    # What a sink has may leave the trail once there is much of it: an event counts as invented where the trail never
    # had it.
    known = set(audited.trail())
    sites.is_up = False
    result = []
    loader = threading.Thread(target=lambda: result.append(audited.load(options.outage, options.rate)), daemon=True)
    began = time.monotonic()
    loader.start()
    INTERRUPTED.wait(options.outage / 2)
    audited.process.send_signal(signal.SIGKILL)
    audited.process.wait()
    audited.start()
    loader.join()
    load = result[0]
    outage = time.monotonic() - began
    print(f"webhook was down for {outage:.0f} s: {load.sign_ins:,} sign-ins, {load.rate:.0f} a second", flush=True)
    trail = audited.trail()
    sites.is_up = True
    began = time.monotonic()
    while True:
        firsts = sites.events()
        if set(trail) <= set(firsts) or time.monotonic() - began > 90 + len(trail) / 200:
            break
        time.sleep(1)
    caught_up = time.monotonic() - began
    known |= set(trail) | set(audited.trail())
    place = {event: index for index, event in enumerate(firsts)}
    order = [place[event] for event in trail if event in place]
    figures["outage"] = {
        "seconds": outage,
        "sign_ins": load.sign_ins,
        "sign_ins_per_second": load.rate,
        "p99": load.p99,
        "failed_by_the_kill": len(load.failures),
        "events": len(trail),
        "missing": sum(event not in place for event in trail),
        "out_of_order": sum(a > b for a, b in itertools.pairwise(order)),
        "invented": len(set(firsts) - known),
        "twice": sites.came - len(firsts),
        "signatures": sites.verified,
        "caught_up_seconds": caught_up,
    }


def report(figures, options):
    """Prints the figures that there are; the program fails where the webhook does not have what the trail has."""
    if INTERRUPTED.is_set():
        print("\nInterrupted: the figures so far.")
    if f := figures.get("p99"):
        print(
            f"\nRequests of {options.rate} sign-ins a second, {len(f['rounds'])} rounds: p99 {f['without']:.2f} ms without a sink, "
            f"{f['up']:.2f} ms with a webhook ({f['ratio_up']:.2f}), {f['down']:.2f} ms while it is down ({f['ratio_down']:.2f})"
        )
    f = figures.get("outage")
    if f:
        print(
            f"Webhook down for {f['seconds']:.0f} s, gateway killed in between: {f['sign_ins']:,} sign-ins ({f['sign_ins_per_second']:.0f} a "
            f"second, p99 {f['p99']:.2f} ms, {f['failed_by_the_kill']} failed by the kill), {f['events']:,} events in the trail; "
            f"{f['missing']} missing, {f['out_of_order']} out of order, {f['invented']} invented, {f['twice']} came again, "
            f"{f['signatures']} signatures verified; all there after {f['caught_up_seconds']:.0f} s"
        )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    if f and (f["missing"] or f["out_of_order"] or f["invented"]):
        sys.exit("The webhook does not have what the trail has.")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rate", type=int, default=200, help="sign-ins a second")
    options.add_argument("--seconds", type=int, default=8, help="of one measurement")
    options.add_argument("--rounds", type=int, default=5, help="all figures are medians")
    options.add_argument("--outage", type=int, default=60, help="seconds for which the webhook is down; 0: no outage")
    options.add_argument("--people", type=int, help="accounts that sign in in turn; three times the rate unless given")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: INTERRUPTED.set())
    runs, figures = Runs(), {}
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch, backend = pathlib.Path(scratch), free_port()
        sites, quiet = Sites(), Sites()
        people = options.people or options.rate * 3
        try:
            without = Gateway(runs, scratch, "without", quiet, backend, False, people)
            audited = Gateway(runs, scratch, "audited", sites, backend, True, people)
            gateways = {
                "without": (without, quiet, True),
                "up": (audited, sites, True),
                "down": (audited, sites, False),
            }
            measure_p99(gateways, options, figures)
            if options.outage and not INTERRUPTED.is_set():
                measure_outage(audited, sites, options, figures)
        finally:
            runs.end()
            report(figures, options)


if __name__ == "__main__":
    main()
