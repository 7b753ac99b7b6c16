"""Measures the gateway's memory for clients that request a large file and do not read it: while they wait and after
they have gone.

Attack: slow readers. Each makes the gateway buffer a part of a response; the buffers must be bounded and released.
"""

import argparse
import asyncio
import multiprocessing
import pathlib
import resource
import socket
import sys
import tempfile
import time

from bench import BIN, Runs, free_port
from memory import memory

GATEWAY = """return gateway {{
  listen = "127.0.0.1:{port}", admin = "127.0.0.1:{admin}", public_url = "http://localhost:{port}", store = "sqlite:data/moongate.db",
  key = file "data/master.key", region = "IN", providers = {{ phone_otp = {{ sms = outbox() }} }},
}}
"""
ROUTES = 'return routes {{ {{ path = "/**", to = "http://127.0.0.1:{backend}", allow = true, timeout = "10m" }} }}\n'
FLOW = 'return flow "login" {{ account = "existing", steps = {{ {{ "phone_otp" }} }}, next = {{ returning = "/" }} }}\n'


def backend(port, size):
    """A service that responds with a large file to every request."""
    answer = memoryview(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))

    async def serve(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                for start in range(0, len(answer), 65536):
                    writer.write(answer[start : start + 65536])
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def run():
        await (await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)).serve_forever()

    asyncio.run(run())


def rush(port, clients, seconds):
    """Runs many concurrent clients, each of which sends a request and reads nothing for the given time."""
    readers = []
    for _ in range(clients):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n")
        readers.append(client)
    time.sleep(seconds)
    return readers


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clients", type=int, default=1500)
    options.add_argument("--size", type=int, default=4 << 20, help="of the file, in bytes")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--most", type=float, default=160, help="MiB that the gateway may grow by while they wait")
    options.add_argument(
        "--after", type=float, default=32, help="MiB that it may keep of that a minute after they have gone"
    )
    options = options.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        service, gateway, admin = (free_port() for _ in range(3))
        config = scratch / "config"
        for name, text in {"gateway.lua": GATEWAY, "routes.lua": ROUTES, "flows/login.lua": FLOW}.items():
            (config / name).parent.mkdir(parents=True, exist_ok=True)
            (config / name).write_text(text.format(port=gateway, admin=admin, backend=service))
        process = multiprocessing.Process(target=backend, args=(service, options.size), daemon=True)
        process.start()
        try:
            moongate = runs.start([str(BIN / "moongate"), "serve", "--config", str(config)], gateway, scratch)
            time.sleep(2)
            quiet = memory(moongate, "VmRSS")
            print(f"{'':>12}{'RSS MiB':>10}{'growth MiB':>12}\n{'quiet':>12}{quiet:10.0f}", flush=True)
            for round in range(options.rounds):
                readers = rush(gateway, options.clients, 5)
                held = memory(moongate, "VmRSS")
                print(f"{f'{options.clients} wait':>12}{held:10.0f}{held - quiet:12.0f}", flush=True)
                for reader in readers:
                    reader.close()
                deadline = time.monotonic() + 60
                while (left := memory(moongate, "VmRSS")) - quiet > options.after and time.monotonic() < deadline:
                    time.sleep(1)
                print(
                    f"{'gone':>12}{left:10.0f}{left - quiet:12.0f}  after {60 - (deadline - time.monotonic()):.0f} s",
                    flush=True,
                )
                if held - quiet > options.most or left - quiet > options.after:
                    sys.exit(
                        f"It may grow by {options.most:.0f} MiB while they wait, and by {options.after:.0f} after."
                    )
        finally:
            runs.end()
            process.kill()


if __name__ == "__main__":
    main()
