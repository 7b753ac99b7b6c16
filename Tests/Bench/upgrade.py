"""Upgrades of a running gateway, including processes that are killed during one.

    MOONGATE_BIN=… python3 Tests/Bench/upgrade.py --upgrades 100 --kills 200

First, repeated upgrades under wrk, with open WebSockets and unfinished sign-ins. wrk must see no error and no status
but 200; every WebSocket must still echo; every sign-in must complete with its code; a lock and a session must still
exist.

Then, upgrades in which the old or the new process is killed (SIGKILL) at a random time. This program holds the
listening sockets open, like systemd socket units. If no process serves, the gateway is started again, like systemd
does. Connections must never be refused; only requests in flight in a killed process may fail; a process must serve
within ten seconds; sessions and locks must be unchanged.

Exits with 1 if a condition does not hold. The last line is a summary.
"""

import argparse
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "EndToEnd"))
import requests  # noqa: E402
import websockets.sync.client  # noqa: E402
from local_gateway import wrong  # noqa: E402
from processes import BIN, wait_for  # noqa: E402
from test_http2 import routed  # noqa: E402
from test_systemd import listening, serve  # noqa: E402
from test_websocket import EchoService  # noqa: E402
from upgrades import Upgraded, lives  # noqa: E402


def number(index):
    return f"+9198765{index:05d}"


def prepared(folder, drain):
    gateway = Upgraded(folder)
    gateway.edit("gateway.lua", lambda text: text.replace("providers = {", f'drain = "{drain}", providers = {{', 1))
    # All sign-ins come from one address.
    for policy in (gateway.config / "policies").glob("*.lua"):
        gateway.edit(
            f"policies/{policy.name}", lambda text: re.sub(r'(per = "(?:ip|network)", max = )\d+', r"\g<1>1000", text)
        )
    return gateway


def lock(gateway, phone):
    gateway.register(phone)
    flow = gateway.flow()
    assert gateway.begin(flow, phone).status_code == 200
    code = gateway.code(phone)
    for _ in range(5):
        last = gateway.submit(flow, wrong(code))
    assert last.status_code == 429, last.text
    return lambda: (
        gateway.submit(flow, code).status_code in (429, 410)
        and requests.get(f"{gateway.admin}/locks", timeout=10).json() != []
    )


def signed_in(gateway, token):
    return gateway.api("GET", "/session", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def upgrades(arguments, folder):
    gateway = prepared(folder, "10m")
    routed(gateway, EchoService().port)
    gateway.start()
    problems = []
    try:
        token = gateway.register(number(1))["session"]["token"]
        still_locked = lock(gateway, number(2))
        opened = [
            websockets.sync.client.connect(
                f"ws://localhost:{gateway.ports[0]}/closed/echo",
                additional_headers={"Authorization": f"Bearer {token}"},
                ping_interval=None,
            ).__enter__()
            for _ in range(arguments.sockets)
        ]
        flows = [(number(100 + index), gateway.flow("register")) for index in range(arguments.flows)]
        # Half of the flows are begun, and half are only created.
        for phone, flow in flows[::2]:
            answer = gateway.begin(flow, phone)
            assert answer.status_code == 200, answer.text
        script = folder / "count.lua"
        script.write_text(
            'wrk.headers["Authorization"] = "Bearer ' + token + '"\n'
            "local threads = {}\nfunction setup(thread) table.insert(threads, thread) end\n"
            "function init() wrongs = 0 first = '' end\n"
            "function response(status, headers, body) if status ~= 200 then wrongs = wrongs + 1 first = status .. ' ' .. body end end\n"
            'function done(summary) local all = 0 for _, thread in ipairs(threads) do all = all + thread:get("wrongs") end\n'
            'for _, thread in ipairs(threads) do print(thread:get("first")) end print(string.format("requests=%d wrongs=%d connect=%d read=%d write=%d timeout=%d", summary.requests, all, summary.errors.connect, '
            "summary.errors.read, summary.errors.write, summary.errors.timeout)) end\n"
        )
        load = subprocess.Popen(
            [
                "wrk",
                "-t2",
                f"-c{arguments.clients}",
                "-d3600s",
                "-s",
                str(script),
                f"http://localhost:{gateway.ports[0]}/home",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        took = []
        for index in range(arguments.upgrades):
            began = time.monotonic()
            status, text = gateway.upgrade()
            took.append(time.monotonic() - began)
            if status != 0:
                problems.append(f"upgrade {index}: {text.strip()}")
        load.send_signal(signal.SIGINT)
        told = load.communicate(timeout=60)[0]
        counts = dict(re.findall(r"(\w+)=(\d+)", told))
        # Requests that were open when wrk was stopped are not failures.
        if any(int(counts.get(name, 1)) for name in ("wrongs", "connect", "read", "write", "timeout")):
            problems.append(f"wrk: {told.strip()[-1500:]}")
        for index, tunnel in enumerate(opened):
            try:
                tunnel.send(str(index))
                assert tunnel.recv(timeout=10) == str(index)
            except Exception as error:  # noqa: BLE001
                problems.append(f"WebSocket {index}: {error!r}")
        for index, (phone, flow) in enumerate(flows):
            if index % 2:
                answer = gateway.begin(flow, phone)
                if answer.status_code != 200:
                    problems.append(f"flow {index} is not begun: {answer.text[:200]}")
                    continue
            answer = gateway.submit(flow, gateway.code(phone))
            if answer.status_code != 200:
                problems.append(f"flow {index} is not completed: {answer.text[:200]}")
        if not signed_in(gateway, token):
            problems.append("the session is gone")
        if not still_locked():
            problems.append("the lock is gone")
        for tunnel in opened:
            tunnel.close()
        took.sort()
        print(
            f"{arguments.upgrades} upgrades, {took[len(took) // 2]:.2f} s each (longest {took[-1]:.2f}), {counts.get('requests')} requests by wrk, "
            f"{len(opened)} WebSockets, {len(flows)} sign-ins: {len(problems)} problems",
            flush=True,
        )
    finally:
        gateway.stop()
    return problems


# Requests that the prober has in flight.
CONCURRENCY = 1
# Seconds in which a killed process may still accept a connection.
DYING = 0.1


def excess(failed, killed):
    """Problems with failed requests beyond those that were in flight in a killed process.

    - failed: [(began, ended, reason)] of each failed request.
    - killed: [(before, after)] the moments around each SIGKILL."""
    problems = [
        f"a request failed while no process was killed: {reason}"
        for began, ended, reason in failed
        if not any(began <= after + DYING and ended >= before for before, after in killed)
    ]
    most = CONCURRENCY * len(killed)
    if len(failed) > most:
        problems.append(f"{len(failed)} requests failed, more than the {most} that can have been in flight")
    return problems


class Prober:
    """Sends requests continuously on new connections, one at a time, and records refused and failed ones and the
    longest outage."""

    def __init__(self, port):
        self.port, self.refused, self.failed, self.count, self.longest = port, 0, [], 0, 0.0
        self.answered = time.monotonic()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.over.is_set():
            self.count += 1
            began = time.monotonic()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=15) as made:
                    made.sendall(
                        b"GET /api/auth/phone/format?region=IN&input=9 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                    )
                    answer = made.recv(12)
                    if answer == b"HTTP/1.1 200":
                        self.longest = max(self.longest, time.monotonic() - self.answered)
                        self.answered = time.monotonic()
                    else:
                        self.failed.append((began, time.monotonic(), repr(answer)))
            except ConnectionRefusedError:
                self.refused += 1
            except OSError as error:
                self.failed.append((began, time.monotonic(), repr(error)))
            time.sleep(0.01)


def children(process):
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()
    return [int(child) for child in found if lives(int(child))]


def kills(arguments, folder):
    gateway = prepared(folder, "1s")
    public, operator = listening(gateway.ports[0]), listening(gateway.ports[1])
    problems = []
    counts = {"old": 0, "new": 0, "restarts": 0, "upgraded": 0}
    killed = []

    def kill(process):
        before = time.monotonic()
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            return
        killed.append((before, time.monotonic()))

    def begin():
        gateway.server = serve(gateway, [("listen", public), ("admin", operator)])
        gateway.server.wait_line(" ready ", 90)
        gateway.process = gateway.server.process.pid
        alive.append(gateway.process)

    alive = []
    begin()
    try:
        token = gateway.register(number(1))["session"]["token"]
        still_locked = lock(gateway, number(2))
        prober = Prober(gateway.ports[0])
        for index in range(arguments.kills):
            old = gateway.process
            asked = subprocess.Popen(
                [str(BIN / "moongate"), "upgrade", "--config", str(gateway.config), "--within", "20s"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            new = wait_for(lambda: children(old), "the new process", 30)[0]
            alive.append(new)
            # From its start to shortly after it serves.
            time.sleep(random.uniform(0, arguments.window))
            which = random.choice(["old", "new"])
            kill(old if which == "old" else new)
            counts[which] += 1
            asked.communicate(timeout=60)
            survivor = new if which == "old" else old
            # The replaced process ends by itself.
            deadline = time.monotonic() + 10
            while lives(survivor) and time.monotonic() < deadline:
                try:
                    if requests.get(f"{gateway.admin}/readyz", timeout=2).status_code == 200:
                        break
                except requests.RequestException:
                    pass
            if which == "new" and lives(old) and gateway.server.process.pid == old:
                gateway.server.process.poll()
            serving = lives(survivor)
            if serving and which == "new":
                # It may be finishing its connections if the new one is already serving.
                time.sleep(0.2)
                try:
                    serving = requests.get(f"{gateway.admin}/readyz", timeout=3).status_code == 200
                except requests.RequestException:
                    serving = False
            if serving:
                counts["upgraded"] += which == "old"
                gateway.process = survivor
            else:
                counts["restarts"] += 1
                for process in {old, new}:
                    if lives(process):
                        kill(process)
                begin()
            try:
                if not signed_in(gateway, token):
                    problems.append(f"round {index}: the session is gone")
            except requests.RequestException as error:
                states = {
                    name: lives(process) for name, process in (("old", old), ("new", new), ("serving", gateway.process))
                }
                problems.append(
                    f"round {index}: nobody answers after {which} was killed, {states}: {error!r}\n{gateway.server.output[-3000:]}"
                )
                break
            if prober.longest > 10:
                problems.append(f"round {index}: nobody answered for {prober.longest:.1f} s")
                prober.longest = 0
        if not still_locked():
            problems.append("the lock is gone")
        prober.over.set()
        prober.thread.join(20)
        if prober.refused:
            problems.append(f"{prober.refused} connections were refused")
        problems += excess(prober.failed, killed)
        print(
            f"{arguments.kills} kills ({counts['old']} of the old process, {counts['new']} of the new one; {counts['upgraded']} went on in the new one, "
            f"{counts['restarts']} restarts): {prober.count} connections, {prober.refused} refused, {len(prober.failed)} failed, longest silence "
            f"{prober.longest:.1f} s: {len(problems)} problems",
            flush=True,
        )
    finally:
        for process in alive:
            if lives(process):
                os.kill(process, signal.SIGTERM)
        gateway.demo and gateway.demo.end()
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--upgrades", type=int, default=100)
    parser.add_argument("--sockets", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16, help="connections of wrk")
    parser.add_argument("--flows", type=int, default=50)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument(
        "--window",
        type=float,
        default=1.5,
        help="seconds after the new process was started in which one of the two is killed",
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    problems = []
    for run, count in ((upgrades, arguments.upgrades), (kills, arguments.kills)):
        if count:
            with tempfile.TemporaryDirectory(prefix="moongate-upgrade-") as folder:
                problems += run(arguments, pathlib.Path(folder))
    for problem in problems[:40]:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
