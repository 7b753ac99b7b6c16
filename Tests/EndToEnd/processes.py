"""The built programs as processes, and what starting them needs. Nothing but Python's own library: `make cluster` runs without the tests' own."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MOONGATE_BIN", ROOT / ".build" / "debug"))

_given = set()


def own_ports():
    """The ports of this process. Each process of tests that run beside each other has a range of its own: a port that one of them has found
    free must not be taken by another before the program that it is meant for has started."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    width = 1200
    first = 10240 + worker * width
    assert first + width <= 20000, "too many processes of tests at once"
    return range(first, first + width)


def free_port():
    """A port outside of the range that the system uses for outgoing connections: one of those may be taken before the program that it is
    meant for has started. Never the same twice."""
    while True:
        port = random.choice(own_ports())
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
    """Asks until the answer is true, and gives it back; fails at the deadline. Asks less often the longer it takes: what is waited for needs the processor."""
    deadline = time.monotonic() + seconds
    pause = 0.01
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(pause)
        pause = min(pause * 1.4, 0.1)


class Program:
    """One process, its output read as it comes."""

    def __init__(self, *command, env=None, cwd="/", **options):
        self.lines = []
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            **options,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace"))

    @property
    def output(self):
        return "".join(self.lines)

    @property
    def runs(self):
        return self.process.poll() is None

    def wait_line(self, text, seconds=30):
        def seen():
            assert text in self.output or self.process.poll() is None, (
                f"ended with {self.process.returncode}:\n{self.output}"
            )
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
