"""The built programs, running on free ports with a copy of the shipped config/, and what tests ask of them."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build" / "debug"))
# The addresses that the shipped files and README name, in the order of House.ports.
SHIPPED = ("8080", "9901", "3000")


_given = set()


def free_port():
    """One outside of the range from which the system takes the ports of outgoing connections: one of those may be somebody's before the
    program that it was meant for has started. Never the same twice."""
    while True:
        port = random.randrange(10240, 20000)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


def wait_for(condition, what, seconds=20):
    """Asks until the answer is true, and gives it back; fails at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.02)


class Program:
    """One process, its output read as it comes."""

    def __init__(self, *command, env=None):
        self.lines = []
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})}, cwd="/")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace"))

    @property
    def output(self):
        return "".join(self.lines)

    def wait_line(self, text, seconds=30):
        def seen():
            assert text in self.output or self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.output}"
            return text in self.output

        wait_for(seen, f"{text!r} in:\n{self.output}", seconds)

    def end(self, how=signal.SIGTERM, seconds=20):
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
        self.reader.join(5)
        return status


class House:
    """A gateway, the demo service behind it, and their folder."""

    def __init__(self, folder):
        self.config = folder / "config"
        shutil.copytree(ROOT / "config", self.config, ignore=shutil.ignore_patterns("data"))
        self.ports = [free_port() for _ in SHIPPED]
        for name in ("gateway.lua", "routes.lua"):
            self.edit(name, self.here)
        self.url = f"http://localhost:{self.ports[0]}"
        self.admin = f"http://127.0.0.1:{self.ports[1]}"
        self.logs = []
        self.gateway = self.demo = None

    def here(self, text):
        """The shipped addresses, as they are in this house."""
        for shipped, port in zip(SHIPPED, self.ports):
            text = re.sub(rf"\b(127\.0\.0\.1|localhost):{shipped}\b", rf"\1:{port}", text)
        return text

    def edit(self, name, change):
        file = self.config / name
        before = file.read_text()
        after = change(before)
        # As editors do: a new file in the old one's place.
        draft = file.with_name("." + file.name)
        draft.write_text(after)
        draft.rename(file)
        return before

    def serve(self, **env):
        return Program(BIN / "moongate", "serve", "--config", self.config, env=env)

    def start(self, **env):
        if self.demo is None:
            self.demo = Program(BIN / "demo-service", "--port", self.ports[2])
            self.demo.wait_line("listens on")
        self.gateway = self.serve(**env)
        self.logs.append(self.gateway)
        # On a machine that is busy with other things, too.
        self.gateway.wait_line(" ready ", 90)
        return self

    def restart(self, how):
        self.gateway.end(how)
        self.start()

    def stop(self):
        for program in (self.gateway, self.demo):
            if program:
                program.end()

    @property
    def log(self):
        return "".join(program.output for program in self.logs)

    # What a client asks.

    def api(self, method, path, body=None, **options):
        return requests.request(method, f"{self.url}/api/auth{path}", json=body, timeout=20, allow_redirects=False, **options)

    def flow(self, name="login"):
        answer = self.api("POST", "/flows", {"flow": name})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def begin(self, flow, phone, **fields):
        return self.api("POST", f"/flows/{flow}/begin", {"provider": "phone_otp", "phone": phone, **fields})

    def submit(self, flow, code):
        return self.api("POST", f"/flows/{flow}/submit", {"code": code})

    def outbox(self):
        answer = requests.get(f"{self.admin}/outbox", timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def code(self, phone):
        """The last code that went to the number."""
        return next(entry["code"] for entry in self.outbox() if entry["to"] == phone and entry["code"])

    def register(self, phone):
        """A new account; the completed flow."""
        flow = self.flow("register")
        begun = self.begin(flow, phone)
        assert begun.status_code == 200, begun.text
        done = self.submit(flow, self.code(phone))
        assert done.status_code == 200, done.text
        return done.json()

    def policy(self):
        answer = requests.get(f"{self.admin}/policy", timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_generation(self, old):
        return wait_for(lambda: self.policy()["active"] != old and self.policy(), "a new generation")


def wrong(code):
    """A code that is not this one."""
    return str((int(code) + 1) % 10 ** len(code)).zfill(len(code))


def problem(answer, status, code):
    """The refusal's document, after it was held to its form."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"].startswith("application/problem+json"), answer.headers
    document = json.loads(answer.content)
    assert document["code"] == code, document
    assert document["status"] == status
    assert document["decision_id"] and document["title"] and document["detail"] and document["type"]
    return document
