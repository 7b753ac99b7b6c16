"""Measures services of HTTP/2: beside a service of HTTP/1.1 behind the same gateway, and calls of gRPC beside nginx and
Envoy that only proxy, in one run.

First, GET of 40 bytes with a live session, by wrk and HTTP/1.1 without TLS: the route leads to a service of HTTP/1.1,
and to the same nginx by HTTP/2. Then unary calls with a live session, by h2load and TLS, to a service of HTTP/2. Rounds
interleaved, medians; a ratio divides figures of the same round.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import peers
from bench import BIN, Runs, configuration, envoy, flows, free_port, wrk
from http2 import certificate, processor_time, session, speak_tls

# The least ratio of a service of HTTP/2 to one of HTTP/1.1.
GOAL = 0.8
HTTP1, HTTP2 = "HTTP/1.1 to the service", "HTTP/2 to the service"

ROUTES = """return routes {{
  {{ path = "/h1/**", to = "http://127.0.0.1:{http1}" }},
  {{ path = "/**", to = "h2c://127.0.0.1:{http2}" }},
}}
"""


def calls(port, message, connections, streams, seconds, headers=()):
    """Calls a second. Stops the run where one failed: that would be no measurement."""
    command = ["h2load", "-c", str(connections), "-m", str(streams), "-D", str(seconds), "--warm-up-time", "1"]
    fields = ["content-type: application/grpc", "te: trailers", *headers]
    told = subprocess.run(
        [*command, "-d", message, *[part for field in fields for part in ("-H", field)]]
        + [f"https://localhost:{port}/demo.Echo/Unary"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    done, failed, errored, wrong = (
        int(re.search(rf"(\d+) {word}", told)[1]) for word in ("succeeded", "failed", "errored", "5xx")
    )
    if not done or failed or errored or wrong or not re.search(rf"{done} 2xx", told):
        sys.exit(f"port {port}: {told}")
    return float(re.search(r"finished in [^,]+, ([\d.]+) req/s", told)[1])


def trailers_arrive(port, message, headers):
    """Whether the status of the call comes behind the message."""
    fields = ["content-type: application/grpc", "te: trailers", *headers]
    told = subprocess.run(
        ["curl", "-sk", "--http2", "-v", "-o", "-", "--data-binary", f"@{message}"]
        + [part for field in fields for part in ("-H", field)]
        + [f"https://localhost:{port}/demo.Echo/Unary"],
        capture_output=True,
    )
    return told.stdout == b"\0\0\0\0\5hello" and b"< grpc-status: 0" in told.stderr


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=4, help="of one measurement")
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--streams", type=int, nargs="*", default=[1, 8])
    options.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options = options.parse_args()

    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        http1, http2 = free_port(), free_port()
        cert, key = certificate(scratch)
        message = scratch / "message"
        message.write_bytes(b"\0\0\0\0\5hello")
        processes, contenders = {}, {}

        def gateway(name, folder, is_secure):
            port, admin = free_port(), free_port()
            folder.mkdir()
            configuration(folder / "config", port, admin, http1)
            (folder / "config/routes.lua").write_text(ROUTES.format(http1=http1, http2=http2))
            if is_secure:
                speak_tls(folder / "config", port, cert, key)
            command = [str(BIN / "moongate"), "serve", "--config", str(folder / "config")]
            processes[name] = runs.start(command, port, folder)
            return port, admin

        def measure(name, work):
            """The figure of the work, and the processor time of the program for each request."""
            before = processor_time(processes[name])
            figure, seconds = work()
            return figure, 1e6 * (processor_time(processes[name]) - before) / (figure * seconds)

        try:
            runs.start(peers.services(scratch / "services", http1, http2), http2, scratch / "services")
            plain, admin = gateway("plain", scratch / "plain", False)
            cookie = f"Cookie: moongate={flows(plain, admin, 1)[0]}"
            port, admin = gateway("Moongate, session checked", scratch / "secure", True)
            contenders["Moongate, session checked"] = (port, [f"Cookie: __Host-moongate={session(port, admin)}"])
            port = free_port()
            processes["nginx, no check"] = runs.start(
                peers.nginx_grpc(scratch / "nginx", port, http2, cert, key), port, scratch / "nginx"
            )
            contenders["nginx, no check"] = (port, [])
            program = envoy()
            if program:
                port = free_port()
                processes["Envoy, no check"] = runs.start(
                    peers.envoy_grpc(scratch / "envoy", port, http2, program, cert, key), port, scratch / "envoy"
                )
                contenders["Envoy, no check"] = (port, [])
            for name, (port, headers) in contenders.items():
                if not trailers_arrive(port, message, headers):
                    sys.exit(f"{name}: the call has no status")
            versions = {HTTP1: [], HTTP2: []}
            rounds = {streams: {name: [] for name in contenders} for streams in options.streams}
            for _ in range(options.rounds):
                for version, path in ((HTTP1, "/h1/small"), (HTTP2, "/h2/small")):
                    told = lambda: wrk(plain, options.connections, options.seconds, [cookie], path)["per_second"]
                    versions[version].append(measure("plain", lambda: (told(), options.seconds)))
                for streams in options.streams:
                    for name, (port, headers) in contenders.items():
                        # The warm-up is a second more.
                        work = lambda: (
                            calls(port, message, options.connections, streams, options.seconds, headers),
                            options.seconds + 1,
                        )
                        rounds[streams][name].append(measure(name, work))
        finally:
            runs.end()

    ratios, missed = {}, []

    def report(title, figures, first):
        for name, theirs in figures.items():
            ratio = statistics.median(mine[0] / other[0] for mine, other in zip(figures[first], theirs))
            ratios[f"{title}: {name}"] = ratio
            speed, cost = (statistics.median(figure[index] for figure in theirs) for index in (0, 1))
            print(f"{name:28}{title:>24}{speed:12,.0f}{cost:13.1f}{ratio:11.2f}")

    print(f"\nServices of HTTP/2, {options.connections} connections, medians of {options.rounds} rounds\n")
    print(f"{'':28}{'':24}{'requests/s':>12}{'CPU µs each':>13}{'first ÷':>11}")
    report("GET, HTTP/1.1 client", versions, HTTP2)
    for streams, figures in rounds.items():
        report(f"gRPC, {streams} streams", figures, "Moongate, session checked")
    if not program:
        print("Envoy could not be had from its package registry: left out.")
    if (ratio := ratios[f"GET, HTTP/1.1 client: {HTTP1}"]) < GOAL:
        missed.append(f"{HTTP2}: {ratio:.2f} of {HTTP1} where {GOAL} is expected")
    for line in missed:
        print(line)
    if options.json:
        options.json.write_text(json.dumps({"versions": versions, "rounds": rounds, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
