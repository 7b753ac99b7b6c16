"""A gateway whose program is replaced at runtime, and clients that must not lose a request."""

import http.client
import os
import pathlib
import signal
import subprocess
import threading

from local_gateway import LocalGateway
from processes import BIN, Program, wait_for


def lives(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"


class Upgraded(LocalGateway):
    """Started from a symbolic link that tests can change. `process` is the serving one."""

    def __init__(self, folder):
        super().__init__(folder)
        self.program = folder / "moongate"
        self.put(BIN / "moongate")
        self.earlier = []

    def put(self, target):
        """Puts another program at the path that the gateway was started from."""
        draft = self.program.with_name(".moongate")
        draft.symlink_to(target)
        draft.rename(self.program)

    def put_script(self, text, mode=0o755):
        script = self.program.with_name("script")
        script.write_text(text)
        script.chmod(mode)
        self.put(script)

    def serve(self, **env):
        return Program(self.program, "serve", "--config", self.config, env=env)

    def start(self, **env):
        super().start(**env)
        self.process = self.server.process.pid
        return self

    def upgrade(self, *options):
        """Runs the command. Returns its exit status and output."""
        done = subprocess.run(
            [str(BIN / "moongate"), "upgrade", "--config", str(self.config), *options],
            capture_output=True,
            text=True,
            timeout=120,
        )
        text = done.stdout + done.stderr
        if done.returncode == 0:
            self.earlier.append(self.process)
            self.process = int(text.split("process ")[1].split()[0])
        return done.returncode, text

    def upgraded(self, *options):
        status, text = self.upgrade(*options)
        assert status == 0, text + self.server.output[-4000:]

    def stop(self):
        if self.server:
            for process in [self.process, *self.earlier]:
                if lives(process):
                    os.kill(process, signal.SIGTERM)
            # The first process is our child and must be reaped.
            self.server.end()
            wait_for(
                lambda: not any(lives(process) for process in [self.process, *self.earlier]), "the gateways to end", 60
            )
        if self.demo:
            self.demo.end()


class PersistentConnection:
    """An HTTP/1.1 connection that stays open as long as the gateway allows."""

    def __init__(self, gateway):
        self.connection = http.client.HTTPConnection("localhost", gateway.ports[0], timeout=20)
        # Connect at once, because the test depends on which process accepts it.
        self.connection.connect()

    def ask(self, method, path, token=None, body=None):
        """The status, the response text, and whether the connection is closed afterwards."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("Connection") == "close"

    def close(self):
        self.connection.close()


class Load:
    """Clients that send requests continuously on kept connections and record failures. A closed connection is opened
    again."""

    def __init__(self, gateway, path, token, clients=4):
        self.failures = []
        self.count = 0
        self.last = 0
        self.gateway, self.path, self.token = gateway, path, token
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        kept = None
        # Not faster than other work allows; a connection is still rarely idle.
        while not self.over.wait(0.002):
            try:
                kept = kept or PersistentConnection(self.gateway)
                status, text, is_last = kept.ask("GET", self.path, self.token)
                self.count += 1
                self.last += is_last
                if status != 200:
                    self.failures.append(f"{status} {text[:200]}")
                if is_last:
                    kept.close()
                    kept = None
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                kept = None
        if kept:
            kept.close()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(30)
        assert self.count > 0
        assert not self.failures, f"{len(self.failures)} of {self.count} failed: {self.failures[:5]}"
