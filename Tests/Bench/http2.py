"""Measures HTTP/2 by TLS beside nginx and Envoy that only proxy, in one run.

GET of 40 bytes with a live session that is checked at each request, by h2load, rounds interleaved, medians; a ratio divides figures of
the same round. One stream at a time on each connection (`-m1`), and eight (`-m8`). Then full handshakes: the same
request by HTTP/1.1 and wrk, each on a new connection.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import ssl
import statistics
import subprocess
import sys
import tempfile

import peers
from bench import BIN, ROUTES, Runs, call, configuration, envoy, free_port, outbox, wrk

# The least ratio to each peer, of requests in streams and of full handshakes.
GOALS = {"Envoy": 1.2, "nginx": 0.6}
HANDSHAKE_GOALS = {"nginx": 1.0}
HANDSHAKES = "handshakes"


def certificate(folder):
    """A certificate for localhost and its key, as browsers' are: P-256."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName=DNS:localhost -keyout {key} -out {cert}".split(),
        check=True,
        capture_output=True,
    )
    return cert, key


def speak_tls(config, port, cert, key):
    file = config / "gateway.lua"
    text = file.read_text()
    file.write_text(
        text.replace('public_url = "http://', f'tls = {{ cert = "{cert}", key = "{key}" }}, public_url = "https://')
    )


def session(port, admin):
    """The token of a new account's session."""
    context = ssl._create_unverified_context()
    gateway = http.client.HTTPSConnection("localhost", port, timeout=30, context=context)
    flow = call(gateway, "POST", "/api/auth/flows", {"flow": "register"})["id"]
    call(gateway, "POST", f"/api/auth/flows/{flow}/begin", {"provider": "phone_otp", "phone": "+919876500001"})
    code = next(entry["code"] for entry in outbox(admin) if entry["code"])
    return call(gateway, "POST", f"/api/auth/flows/{flow}/submit", {"code": code})["session"]["token"]


def h2load(port, connections, streams, seconds, headers=()):
    """Requests a second. Stops the run where a request failed: that would be no measurement."""
    command = ["h2load", "-c", str(connections), "-m", str(streams), "-D", str(seconds), "--warm-up-time", "1"]
    told = subprocess.run(
        [*command, *[part for header in headers for part in ("-H", header)], f"https://localhost:{port}/small"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    total, done, failed, errored = (
        int(re.search(rf"(\d+) {word}", told)[1]) for word in ("total", "succeeded", "failed", "errored")
    )
    if not done or failed or errored or "h2" not in re.search(r"Application protocol: (\S+)", told)[1]:
        sys.exit(f"port {port}: {told}")
    refused = re.search(r"(\d+) 3xx, (\d+) 4xx, (\d+) 5xx", told)
    if any(map(int, refused.groups())):
        sys.exit(f"port {port}: refused: {told}")
    return float(re.search(r"finished in [^,]+, ([\d.]+) req/s", told)[1])


def handshakes(port, connections, seconds, headers=()):
    """Requests a second, each on a connection of its own with a full handshake: wrk resumes no session."""
    own = ["Connection: close", f"Host: localhost:{port}"]
    return wrk(port, connections, seconds, [*own, *headers], scheme="https")["per_second"]


def processor_time(process):
    """Seconds that the process and its children have had of the processors."""
    ticks = 0
    pids = [process.pid]
    while pids:
        pid = pids.pop()
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
        pids += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=4, help="of one measurement")
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--streams", type=int, nargs="*", default=[1, 8])
    options.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options.add_argument("--against", type=pathlib.Path, help="a folder with another build of the gateway, measured too")
    options = options.parse_args()

    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, nginx, envoy_port = (free_port() for _ in range(3))
        cert, key = certificate(scratch)
        contenders, processes = {}, {}

        def gateway(name, folder, program):
            port, admin = free_port(), free_port()
            folder.mkdir()
            configuration(folder / "config", port, admin, backend)
            (folder / "config/routes.lua").write_text(ROUTES.format(backend=backend))
            speak_tls(folder / "config", port, cert, key)
            command = [str(program), "serve", "--config", str(folder / "config")]
            processes[name] = runs.start(command, port, folder)
            contenders[name] = (port, [f"Cookie: __Host-moongate={session(port, admin)}"])

        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            gateway("Moongate, session checked", scratch / "one", BIN / "moongate")
            if options.against:
                gateway("the other build", scratch / "other", options.against / "moongate")
            processes["nginx, no check"] = runs.start(
                peers.nginx_tls(scratch / "nginx", nginx, backend, cert, key), nginx, scratch / "nginx"
            )
            contenders["nginx, no check"] = (nginx, [])
            program = envoy()
            if program:
                processes["Envoy, no check"] = runs.start(
                    peers.envoy_tls(scratch / "envoy", envoy_port, backend, program, cert, key),
                    envoy_port,
                    scratch / "envoy",
                )
                contenders["Envoy, no check"] = (envoy_port, [])
            measures = [*options.streams, HANDSHAKES]
            rounds = {measure: {name: [] for name in contenders} for measure in measures}
            costs = {measure: {name: [] for name in contenders} for measure in measures}
            for _ in range(options.rounds):
                for measure in measures:
                    for name, (port, headers) in contenders.items():
                        before = processor_time(processes[name])
                        if measure == HANDSHAKES:
                            figure = handshakes(port, options.connections, options.seconds, headers)
                            seconds = options.seconds
                        else:
                            figure = h2load(port, options.connections, measure, options.seconds, headers)
                            # The warm-up is a second more.
                            seconds = options.seconds + 1
                        rounds[measure][name].append(figure)
                        spent = processor_time(processes[name]) - before
                        costs[measure][name].append(1e6 * spent / (figure * seconds))
        finally:
            runs.end()

    print(f"\nHTTP/2 and handshakes by TLS, {options.connections} connections, medians of {options.rounds} rounds\n")
    print(f"{'':32}{'streams':>12}{'requests/s':>12}{'CPU µs each':>13}{'gateway ÷':>11}")
    ratios = {}
    missed = []
    for measure, figures in rounds.items():
        ours = figures["Moongate, session checked"]
        for name, theirs in figures.items():
            ratio = statistics.median(mine / other for mine, other in zip(ours, theirs))
            ratios[f"{name}, {measure}"] = ratio
            cost = statistics.median(costs[measure][name])
            print(f"{name:32}{measure:>12}{statistics.median(theirs):12,.0f}{cost:13.1f}{ratio:11.2f}")
            goal = (HANDSHAKE_GOALS if measure == HANDSHAKES else GOALS).get(name.split(",")[0])
            if goal and ratio < goal:
                missed.append(f"{name}, {measure}: {ratio:.2f} where {goal} is expected")
    if not program:
        print("Envoy could not be had from its package registry: left out.")
    for line in missed:
        print(line)
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "cpu": costs, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
