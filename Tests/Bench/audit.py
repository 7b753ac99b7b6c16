"""Measures the cost of audit sinks for sign-ins, and checks that an outage loses no event:
`python3 Tests/Bench/audit.py`.

1. The p99 of requests of paced sign-ins by phone code: without a sink, with a working webhook, and with a failing
  webhook, in turns; ratios are computed within a round.
2. The webhook fails for a while under the same load, and the gateway is killed (SIGKILL) and restarted. Afterwards
  the webhook must have received each event of the trail at least once, in order, and no other event. `--outage 3600`
  runs an outage of an hour.
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
        for flow, account in (("login", "existing"), ("register", "new")):
            (self.folder / f"flows/{flow}.lua").write_text(FLOW.format(name=flow, account=account))
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

    def load(self, seconds, rate, workers=24, until=lambda: False):
        """Starts sign-ins at a fixed rate. Returns the milliseconds of all requests and the number of failed
        sign-ins."""
        turns, taken, failed = itertools.count(), [], []
        began = time.monotonic()

        def work():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            while not until():
                turn = next(turns)
                due = began + turn / rate
                if due > began + seconds:
                    return
                time.sleep(max(0, due - time.monotonic()))
                try:
                    taken.extend(self.sign_in(connection, "login", self.people[turn % len(self.people)]))
                except Exception as error:  # the gateway is killed meanwhile
                    failed.append(repr(error))
                    connection.close()
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                    time.sleep(0.2)

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return taken, failed

    def trail(self):
        with sqlite3.connect(self.folder / "data/moongate.db", timeout=20) as database:
            return [row[0] for row in database.execute("SELECT id FROM event ORDER BY number")]


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rate", type=int, default=200, help="sign-ins a second")
    options.add_argument("--seconds", type=int, default=8, help="of one measurement")
    options.add_argument("--rounds", type=int, default=5, help="all figures are medians")
    options.add_argument("--outage", type=int, default=60, help="seconds for which the webhook is down")
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()
    runs, figures = Runs(), {}
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch, backend = pathlib.Path(scratch), free_port()
        sites, quiet = Sites(), Sites()
        people = options.rate * 3
        try:
            without = Gateway(runs, scratch, "without", quiet, backend, False, people)
            audited = Gateway(runs, scratch, "audited", sites, backend, True, people)
            rounds = []
            for _ in range(options.rounds):
                entry = {}
                for name, gateway, up in (("without", without, True), ("up", audited, True), ("down", audited, False)):
                    sites.is_up = up
                    taken, failed = gateway.load(options.seconds, options.rate)
                    if failed:
                        sys.exit(f"{len(failed)} sign-ins failed: {failed[0]}")
                    entry[name] = p99(taken)
                rounds.append(entry)
            figures["p99"] = {
                "rounds": rounds,
                **{name: statistics.median(entry[name] for entry in rounds) for name in ("without", "up", "down")},
                **{
                    f"ratio_{name}": statistics.median(entry[name] / entry["without"] for entry in rounds)
                    for name in ("up", "down")
                },
            }

            # Delivered events may be pruned from the trail, so an event is invented only if the trail never contained
            # it.
            known = set(audited.trail())
            sites.is_up = False
            over = threading.Event()
            result = []
            loader = threading.Thread(
                target=lambda: result.append(audited.load(options.outage, options.rate, until=over.is_set))
            )
            began = time.monotonic()
            loader.start()
            time.sleep(options.outage / 2)
            audited.process.send_signal(signal.SIGKILL)
            audited.process.wait()
            audited.start()
            loader.join()
            over.set()
            taken, failed = result[0]
            outage = time.monotonic() - began
            trail = audited.trail()
            sites.is_up = True
            began = time.monotonic()
            while time.monotonic() - began < 90 + len(trail) / 1000:
                firsts = sites.events()
                if set(trail) <= set(firsts):
                    break
                time.sleep(1)
            caught_up = time.monotonic() - began
            known |= set(trail) | set(audited.trail())
            place = {event: index for index, event in enumerate(firsts)}
            missing = [event for event in trail if event not in place]
            order = [place[event] for event in trail if event in place]
            figures["outage"] = {
                "seconds": outage,
                "sign_ins": len(taken) // 3,
                "failed_by_the_kill": len(failed),
                "events": len(trail),
                "missing": len(missing),
                "out_of_order": sum(a > b for a, b in itertools.pairwise(order)),
                "invented": len(set(firsts) - known),
                "twice": sites.came - len(firsts),
                "caught_up_seconds": caught_up,
            }
        finally:
            runs.end()
    f = figures["p99"]
    print(
        f"\nRequests of {options.rate} sign-ins a second: p99 {f['without']:.2f} ms without a sink, {f['up']:.2f} ms with a webhook "
        f"({f['ratio_up']:.2f}), {f['down']:.2f} ms while it is down ({f['ratio_down']:.2f})"
    )
    f = figures["outage"]
    print(
        f"Webhook down for {f['seconds']:.0f} s, gateway killed in between: {f['sign_ins']:,} sign-ins ({f['failed_by_the_kill']} failed by the kill), "
        f"{f['events']:,} events in the trail; {f['missing']} missing, {f['out_of_order']} out of order, {f['invented']} invented, "
        f"{f['twice']} came again; all there after {f['caught_up_seconds']:.0f} s"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    if f["missing"] or f["out_of_order"] or f["invented"]:
        sys.exit("The webhook does not have what the trail has.")


if __name__ == "__main__":
    main()
