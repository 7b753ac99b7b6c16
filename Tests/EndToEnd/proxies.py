"""The proxies of Documentation/guides/proxies.md: the configurations on their pages, run by the real programs."""

import os
import pathlib
import re
import shutil
import socket
import sys

from local_gateway import Program, wait_for
from manual import block

NGINX = """daemon off; pid nginx.pid; {user} worker_processes 1; error_log stderr error;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
{text} }}
"""


def _packaged(name):
    """A program installed by pip: beside this Python or inside its package."""
    beside = pathlib.Path(sys.executable).parent / name
    inside = [file for folder in sys.path for file in pathlib.Path(folder).glob(f"{name}/_bin/{name}")]
    return next((str(file) for file in [*inside, beside] if file.is_file() and os.access(file, os.X_OK)), None)


def _system(name):
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


class FrontProxy:
    """A proxy in front of a gateway and a service."""

    NAMES = ("nginx", "traefik", "caddy", "envoy", "haproxy")

    def __init__(self, name, folder, port, gateway, service):
        self.name, self.folder, self.port = name, folder, port
        self.places = {"8000": port, "8080": gateway, "3000": service}
        folder.mkdir()
        self.program = Program(*getattr(self, f"_{name}")())

    def _write(self, name, text=None):
        """The block of the page, at the places of this test."""
        text = block(name) if text is None else text
        text = re.sub(r"/etc/\w+/", f"{self.folder}/", text)
        text = re.sub(r"\b(8000|8080|3000)\b", lambda found: str(self.places[found[1]]), text)
        file = self.folder / name
        file.write_text(text)
        return file

    def _nginx(self):
        user = "user root;" if os.geteuid() == 0 else ""
        self._write("nginx.conf", NGINX.format(user=user, text=block("nginx.conf")))
        return _system("nginx"), "-p", self.folder, "-c", "nginx.conf", "-e", "stderr"

    def _traefik(self):
        self._write("moongate.yml")
        return _packaged("traefik"), f"--configFile={self._write('traefik.yml')}"

    def _caddy(self):
        return _packaged("caddy"), "run", "--adapter", "caddyfile", "--config", self._write("Caddyfile")

    def _envoy(self):
        return (
            _packaged("envoy"),
            "-c",
            self._write("envoy.yaml"),
            "--concurrency",
            "1",
            "--disable-hot-restart",
            "--log-level",
            "error",
            "--use-dynamic-base-id",
        )

    def _haproxy(self):
        self._write("moongate.lua")
        return _system("haproxy"), "-db", "-f", self._write("haproxy.cfg")

    def wait(self):
        def listens():
            assert self.program.process.poll() is None, f"{self.name} ended:\n{self.program.output}"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for(listens, f"{self.name} to listen", 30)
        return self

    def end(self):
        self.program.process.kill()
        self.program.process.wait(10)

    @property
    def url(self):
        return f"http://localhost:{self.port}"

    def raw(self, method, path, headers=(), body=b"", host=None, close=True):
        """Sends exactly these bytes. Returns the status, the headers in lower case (the first of each name; all
        cookies, one per line), and the body."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'localhost:{self.port}'}", *headers]
        if close:
            lines.append("Connection: close")
        if body:
            lines.append(f"Content-Length: {len(body)}")
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
        head, _, rest = received.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        found = {}
        for field in fields:
            name, _, value = field.partition(":")
            if name.lower() == "set-cookie" and name.lower() in found:
                found["set-cookie"] += "\n" + value.strip()
            found.setdefault(name.lower(), value.strip())
        if "chunked" in found.get("transfer-encoding", ""):
            rest = _unchunked(rest)
        return int(first.split()[1]), found, rest


def _unchunked(text):
    whole = b""
    while text:
        size, _, text = text.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        whole, text = whole + text[:length], text[length + 2 :]
        if length == 0:
            break
    return whole
