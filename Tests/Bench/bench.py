"""Measures the gateway beside nginx and Envoy as plain proxies, in one run: `make bench`.

Proxied requests: GET of 40 bytes with a live session, with wrk, in interleaved rounds; medians. Ratios are computed
within a round.
Forward-auth: the gateway's response to nginx's request, beside an nginx that always responds 200.
Flows: create, begin and submit of new accounts with SQLite. Memory: the gateway's peak after 1,000 sessions.
Load generator, contenders and backend share the machine, so compare the figures instead of quoting them.
"""

import argparse
import http.client
import itertools
import json
import os
import pathlib
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import peers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build" / "release"))
CLIENTS = 16

GATEWAY = """return gateway {{
  listen = "127.0.0.1:{port}", admin = "127.0.0.1:{admin}", public_url = "http://localhost:{port}", store = "sqlite:data/moongate.db",
  key = file "data/master.key", region = "IN", service = "Moongate", providers = {{ phone_otp = {{ sms = outbox() }} }},
  trusted_proxies = {{ "127.0.0.1/32" }},
}}
"""
# The backend answers below any path. A second route asks a function about each request.
ROUTES = '''return routes {{
  {{ path = "/decided/**", to = "http://127.0.0.1:{backend}",
    decide = function(f) if f.session.age > 43200 then return deny "too_old" end return allow end }},
  {{ path = "/**", to = "http://127.0.0.1:{backend}" }},
}}
'''
# A route with a group requirement, and as many groups and claims as in a large organization.
GROUP_ROUTES = 'return routes {{ {{ path = "/**", to = "http://127.0.0.1:{backend}", require = {{ group = any_of {{ "ops", "phones" }} }} }} }}\n'
ACCOUNTS = (
    """return accounts {
  groups = { phones = function(f) return f.account.phone_verified end, ops = members(), """
    + ", ".join(f"g{n} = members()" for n in range(48))
    + """ },
  claims = { age = function(f) return f.account.age end, plan = function(f) return "new" end },
}
"""
)
# All load comes from one address, whose limit would otherwise be measured.
POLICY = """return policy "phone_otp" {
  limits = {
    send   = { on = "send",   per = "phone", max = 4, window = "15m" },
    verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h" } },
  },
}
"""
FLOW = (
    'return flow "{name}" {{ purpose = "{purpose}", account = "{account}", steps = {{ {{ "phone_otp" }} }}, lifetime = "15m", '
    'session = {{ lifetime = "12h", idle = "1h" }}, next = {{ new = "/", returning = "/" }} }}\n'
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


OTHER = "the other build"


class Runs:
    """The processes of a run, which end with it."""

    def __init__(self):
        self.running = []

    def start(self, command, port, folder):
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=open(folder / "stderr", "ab"))
        self.running.append(process)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if process.poll() is not None:
                sys.exit(f"{command[0]} ended:\n{(folder / 'stderr').read_text()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return process
            time.sleep(0.05)
        sys.exit(f"{command[0]} does not listen on port {port}")

    def end(self):
        for process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def call(connection, method, path, body=None):
    connection.request(
        method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    content = answer.read()
    if answer.status not in (200, 201):
        raise RuntimeError(f"{method} {path}: {answer.status} {content.decode()}")
    return json.loads(content)


class Client:
    """A connection that always has an open call. It uses plain sockets, because a busy client would take processor
    time from the measured program."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.index = None
        self.received = b""

    def send(self, index, request):
        self.index, self.received = index, b""
        self.socket.sendall(request)

    def answer(self):
        """The body of a complete response; None otherwise."""
        more = self.socket.recv(65536)
        self.received += more
        head, end, content = self.received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head) if end else None
        if not more or (end and (length is None or not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")))):
            raise RuntimeError(self.received.decode())
        return content if length and len(content) >= int(length[1]) else None


def posts(ports, calls):
    """POSTs each (path, body, device token) with one open call per client. Returns the responses in order and the
    duration in seconds. With several gateways, calls are distributed in turn."""
    requests = [[] for _ in ports]
    for index, (path, body, device) in enumerate(calls):
        port = ports[index % len(ports)]
        body = json.dumps(body).encode()
        fields = {
            "Host": f"localhost:{port}",
            "Content-Type": "application/json",
            "Content-Length": len(body),
            **({"Moongate-Device": device} if device else {}),
        }
        requests[index % len(ports)].append(
            (
                index,
                f"POST {path} HTTP/1.1\r\n".encode()
                + b"".join(f"{name}: {value}\r\n".encode() for name, value in fields.items())
                + b"\r\n"
                + body,
            )
        )
    answers = [None] * len(calls)
    chooser = selectors.DefaultSelector()
    began = time.monotonic()
    for number, (port, waiting) in enumerate(zip(ports, map(iter, requests))):
        # The total number of clients is the same for any number of gateways.
        for index, request in itertools.islice(waiting, (CLIENTS + number) // len(ports)):
            client = Client(port)
            chooser.register(client.socket, selectors.EVENT_READ, (client, waiting))
            client.send(index, request)
    left = len(calls)
    while left:
        for key, _ in chooser.select(30):
            client, waiting = key.data
            content = client.answer()
            if content is None:
                continue
            answers[client.index] = content
            left -= 1
            following = next(waiting, None)
            if following:
                client.send(*following)
    seconds = time.monotonic() - began
    for key in list(chooser.get_map().values()):
        key.fileobj.close()
    return [json.loads(answer) for answer in answers], seconds


def outbox(admin):
    return call(http.client.HTTPConnection("127.0.0.1", admin, timeout=30), "GET", "/outbox")


def sent_since(known, admin):
    """Addresses and codes of new messages, oldest first."""
    return [
        (entry["to"], entry["code"]) for entry in reversed(outbox(admin)) if entry["id"] not in known and entry["code"]
    ]


def run_flows(ports, admins, name, who, devices=None):
    """Runs the flow for each `begin` body with its device and the codes of the outbox. Returns the responses and the
    duration of the three calls in seconds."""
    devices = devices or [None] * len(who)
    before = [{entry["id"] for entry in outbox(admin)} for admin in admins]
    created, creating = posts(ports, [("/api/auth/flows", {"flow": name}, device) for device in devices])
    _, beginning = posts(
        ports,
        [
            (f"/api/auth/flows/{flow['id']}/begin", person, device)
            for flow, person, device in zip(created, who, devices)
        ],
    )
    # The response of a step may arrive before its message is sent.
    codes, until = {}, time.monotonic() + 30
    while len(codes) < len(who) and time.monotonic() < until:
        codes = {to: code for admin, known in zip(admins, before) for to, code in sent_since(known, admin)}
    done, submitting = posts(
        ports,
        [
            (f"/api/auth/flows/{flow['id']}/submit", {"code": codes[person.get("phone") or person["email"]]}, device)
            for flow, person, device in zip(created, who, devices)
        ],
    )
    return done, creating + beginning + submitting


def flows(port, admin, count):
    """Registers users. Returns the token of the last one, and flows per second over the three calls."""
    done, seconds = run_flows(
        [port], [admin], "register", [{"provider": "phone_otp", "phone": f"+9198{index:08d}"} for index in range(count)]
    )
    return done[-1]["session"]["token"], count / seconds


def wrk(port, connections, seconds, headers=(), path="/small", script="wrk.lua", scheme="http"):
    command = [
        "wrk",
        "-t",
        "2",
        "-c",
        str(connections),
        "-d",
        f"{seconds}s",
        "-s",
        str(HERE / script),
        f"{scheme}://127.0.0.1:{port}{path}",
    ]
    told = subprocess.run(
        command + [part for header in headers for part in ("-H", header)], capture_output=True, text=True, check=True
    ).stdout
    figures = json.loads(next(line[5:] for line in told.splitlines() if line.startswith("JSON ")))
    if figures["refused"] or figures["broken"]:
        sys.exit(f"port {port}: {figures['refused']} refused, {figures['broken']} broken: not a measurement")
    return figures


def peak_memory(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def envoy():
    """Installs Envoy's package into a folder; None if that is not possible."""
    venv = ROOT / ".build-bench"
    if not (venv / "ready").exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            subprocess.run(
                [
                    str(venv / "bin/pip"),
                    "install",
                    "-q",
                    "--disable-pip-version-check",
                    "-r",
                    str(HERE / "requirements.txt"),
                ],
                check=True,
            )
            (venv / "ready").touch()
        except subprocess.CalledProcessError:
            return None
    return next(
        (str(found) for found in sorted(venv.rglob("envoy")) if found.is_file() and os.access(found, os.X_OK)), None
    )


def configuration(folder, port, admin, backend, groups=False):
    for inner in ("policies", "flows"):
        (folder / inner).mkdir(parents=True)
    (folder / "gateway.lua").write_text(GATEWAY.format(port=port, admin=admin))
    (folder / "routes.lua").write_text((GROUP_ROUTES if groups else ROUTES).format(backend=backend))
    if groups:
        (folder / "accounts.lua").write_text(ACCOUNTS)
    (folder / "policies/phone_otp.lua").write_text(POLICY)
    for name, purpose, account in (("login", "sign_in", "existing"), ("register", "register", "new")):
        (folder / f"flows/{name}.lua").write_text(FLOW.format(name=name, purpose=purpose, account=account))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=4, help="of one measurement")
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--flows", type=int, default=1000)
    options.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options.add_argument("--against", type=pathlib.Path, help="a folder with another build of the gateway, measured too")
    options = options.parse_args()

    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="moongate-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        backend, gateway, admin, nginx, envoy_port, auth, group_gateway, group_admin = (free_port() for _ in range(8))
        try:
            runs.start(peers.backend(scratch / "backend", backend), backend, scratch / "backend")
            configuration(scratch / "config", gateway, admin, backend)
            process = runs.start(
                [str(BIN / "moongate"), "serve", "--config", str(scratch / "config")], gateway, scratch
            )
            contenders = {"Moongate, session checked": gateway}
            other, other_admin = free_port(), free_port()
            if options.against:
                configuration(scratch / "other" / "config", other, other_admin, backend)
                command = [str(options.against / "moongate"), "serve", "--config", str(scratch / "other" / "config")]
                runs.start(command, other, scratch / "other")
            (scratch / "groups").mkdir()
            configuration(scratch / "groups" / "config", group_gateway, group_admin, backend, groups=True)
            runs.start(
                [str(BIN / "moongate"), "serve", "--config", str(scratch / "groups" / "config")],
                group_gateway,
                scratch / "groups",
            )
            contenders["Moongate, session and group checked"] = group_gateway
            runs.start(peers.plain_nginx(scratch / "nginx", nginx, backend), nginx, scratch / "nginx")
            contenders["Moongate, session checked, decide"] = gateway
            contenders["nginx, no check"] = nginx
            runs.start(peers.auth_200(scratch / "auth", auth), auth, scratch / "auth")
            program = envoy()
            if program:
                runs.start(
                    peers.plain_envoy(scratch / "envoy", envoy_port, backend, program), envoy_port, scratch / "envoy"
                )
                contenders["Envoy, no check"] = envoy_port
            if options.against:
                contenders[OTHER] = other

            token, per_second = flows(gateway, admin, options.flows)
            cookie = f"Cookie: moongate={token}"
            member, _ = flows(group_gateway, group_admin, 1)
            cookies = {gateway: [cookie], group_gateway: [f"Cookie: moongate={member}"]}

            def question(port):
                about = [f"X-Original-URL: http://localhost:{port}/small", "X-Original-Method: GET"]
                return [*cookies.get(port, [cookie]), *about, "X-Forwarded-For: 203.0.113.7"]

            questions = {
                "Moongate, asked by nginx's dialect": (gateway, "/auth/forward/nginx"),
                "nginx, always 200": (auth, "/"),
            }
            if options.against:
                token, other_per_second = flows(other, other_admin, options.flows)
                cookies[other] = [f"Cookie: moongate={token}"]
                questions[OTHER] = (other, "/auth/forward/nginx")
            memory = peak_memory(process)
            rounds = {name: [] for name in contenders}
            answers = {name: [] for name in questions}
            for _ in range(options.rounds):
                for name, port in contenders.items():
                    path = "/decided/small" if name.endswith("decide") else "/small"
                    rounds[name].append(wrk(port, options.connections, options.seconds, cookies.get(port, ()), path))
                for name, (port, path) in questions.items():
                    answers[name].append(wrk(port, options.connections, options.seconds, question(port), path))
            under_load = peak_memory(process)
        finally:
            runs.end()

    def table(title, figures):
        print(f"\n{title}, {options.connections} connections, medians of {options.rounds} rounds\n")
        print(f"{'':36}{'requests/s':>12}{'p50 ms':>10}{'p99 ms':>10}")
        for name, entries in figures.items():
            median = lambda figure: statistics.median(entry[figure] for entry in entries)
            print(f"{name:36}{median('per_second'):12,.0f}{median('p50_ms'):10.2f}{median('p99_ms'):10.2f}")

    table("Proxied requests", rounds)
    ratios = {}
    ours = rounds["Moongate, session checked"]
    grouped = rounds["Moongate, session and group checked"]
    ratios["group requirement"] = statistics.median(
        theirs["per_second"] / mine["per_second"] for mine, theirs in zip(ours, grouped)
    )
    decided = rounds["Moongate, session checked, decide"]
    ratios["decide"] = statistics.median(
        theirs["per_second"] / mine["per_second"] for mine, theirs in zip(ours, decided)
    )
    print(
        f"\n{ratios['group requirement']:.2f} of the plain session check with a group requirement (0.95 at least)"
        f"\n{ratios['decide']:.2f} of the plain session check with decide (0.9 at least)",
        end="",
    )
    for name in list(contenders)[3:]:
        ratios[name] = statistics.median(
            mine["per_second"] / theirs["per_second"] for mine, theirs in zip(ours, rounds[name])
        )
        print(f"\n{ratios[name]:.2f} of {name}", end="")
    print()
    table("Forward-auth, asked directly", answers)
    asked, *others = answers
    shares = {
        name: statistics.median(
            mine["per_second"] / theirs["per_second"] for mine, theirs in zip(answers[asked], answers[name])
        )
        for name in others
    }
    ratios["forward-auth of nginx's always 200"] = shares["nginx, always 200"]
    print(f"\n{shares['nginx, always 200']:.2f} of nginx's own answer (0.5 at least)")
    if options.against:
        ratios[f"forward-auth of {OTHER}"] = shares[OTHER]
        print(f"{shares[OTHER]:.2f} of {OTHER}, {per_second / other_per_second:.2f} in flows")
    print(f"\nFlows (create, begin, submit) on SQLite: {per_second:,.0f}/s")
    print(f"Peak memory: {memory:.0f} MiB with {options.flows} sessions, {under_load:.0f} MiB after the load")
    if not program:
        print("Envoy could not be had from its package registry: left out.")
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "rounds": rounds,
                    "forward_auth": answers,
                    "ratios": ratios,
                    "flows_per_second": per_second,
                    "peak_mib": memory,
                    "peak_mib_after_load": under_load,
                },
                indent=2,
            )
        )


if __name__ == "__main__":
    main()
