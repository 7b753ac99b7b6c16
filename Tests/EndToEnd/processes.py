"""The built programs as processes, and what starting them needs. Uses only the standard library, because `make
cluster` runs without the test packages."""

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
    """The port range of this process. Parallel test processes have separate ranges, so that a port found free is not
    taken by another process."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    width = 1200
    first = 10240 + worker * width
    assert first + width <= 20000, "too many processes of tests at once"
    return range(first, first + width)


def free_port():
    """A port outside the range of outgoing connections, which could take it before the program starts. Never returns
    the same port twice."""
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
    """Polls until the condition returns a true value and returns it; fails after the time limit. The interval grows,
    because the awaited program needs the processor."""
    deadline = time.monotonic() + seconds
    pause = 0.01
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(pause)
        pause = min(pause * 1.4, 0.2)


class Program:
    """A process whose output is read continuously."""

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
