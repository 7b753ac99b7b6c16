"""Checks that the gateway's memory does not grow: RSS after a warm-up, and after another million proxied requests.

Every request has a live session; connections are closed and opened between the parts.
"""

import argparse
import pathlib
import sys
import tempfile

from bench import BIN, Runs, configuration, flows, free_port, wrk
import peers


def memory(process, figure):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(figure + ":")).split()[1]) / 1024


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--requests", type=int, default=1_000_000)
    options.add_argument(
        "--parts", type=int, default=5, help="of the load, each with new connections; one more comes first, to warm up"
    )
    options = options.parse_args()
    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, gateway, admin = (free_port() for _ in range(3))
        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            configuration(scratch / "config", gateway, admin, backend)
            process = runs.start(
                [str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], gateway, scratch
            )
            token, _ = flows(gateway, admin, 100)
            cookie = f"Cookie: moongate={token}"
            pace = wrk(gateway, 256, 10, [cookie])["per_second"]
            warm = memory(process, "VmRSS")
            print(f"{'requests':>12}{'RSS MiB':>10}{'growth MiB':>12}")
            print(f"{round(pace * 10):12,}{warm:10.2f}{'warmed up':>12}", flush=True)
            done = 0
            while done < options.requests:
                seconds = max(2, round(options.requests / options.parts / pace))
                done += round(wrk(gateway, 256, seconds, [cookie])["per_second"] * seconds)
                now = memory(process, "VmRSS")
                print(f"{done:12,}{now:10.2f}{now - warm:12.2f}", flush=True)
            print(f"Peak: {memory(process, 'VmHWM'):.0f} MiB (at most 150)")
            if now - warm >= 1:
                sys.exit("It grew by a mebibyte or more.")
        finally:
            runs.end()


if __name__ == "__main__":
    main()
