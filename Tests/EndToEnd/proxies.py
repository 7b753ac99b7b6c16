"""The proxies of Documentation/guides/proxies.md: the configurations on their pages, run by the real programs."""

import os
import pathlib
import re
import shutil
import socket
import sys

import requests

from local_gateway import Program, free_port, wait_for
from manual import block

NGINX = """daemon off; pid nginx.pid; {user} worker_processes 1; error_log stderr error;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
{text} }}
"""


def packaged(name):
    """A program installed by pip: beside this Python or inside its package."""
    beside = pathlib.Path(sys.executable).parent / name
    inside = [file for folder in sys.path for file in pathlib.Path(folder).glob(f"{name}/_bin/{name}")]
    return next((str(file) for file in [*inside, beside] if file.is_file() and os.access(file, os.X_OK)), None)


OPEN, CLOSED = "open.localhost", "closed.localhost"


def _two_servers(text, closed):
    """nginx.conf: a server block for each host."""
    start = text.index("server {\n")
    end = text.rindex("}\n}") + 3
    server = text[start:end]
    servers = [
        server.replace("listen 8000;", f"listen 8000; server_name {CLOSED};").replace("http://service", "http://closed"),
        server.replace("listen 8000;", f"listen 8000; server_name {OPEN};"),
    ]
    return text[:start].replace("upstream service", f"upstream closed {{ server {closed}; }}\nupstream service") + (
        "\n".join(servers) + text[end:]
    )


def _two_sites(text, closed):
    """Caddyfile: a site block for each host."""
    start = text.index("http://:8000 {")
    site = text[start:]
    return (
        text[:start]
        + site.replace("http://:8000", f"http://{CLOSED}:8000").replace("127.0.0.1:3000", closed)
        + site.replace("http://:8000", f"http://{OPEN}:8000")
    )


def _two_routers(text, closed):
    """moongate.yml: a router for each host."""
    start, end = text.index("    service:\n      rule:"), text.index("  middlewares:\n")
    router = text[start:end]
    first = router.replace("    service:\n", "    closed:\n").replace("service: service", "service: closed")
    return (
        text[:start]
        + first.replace("PathPrefix(`/`)", f"Host(`{CLOSED}`)")
        + router.replace("PathPrefix(`/`)", f"Host(`{OPEN}`)")
        + text[end:]
        + f'    closed: {{ loadBalancer: {{ servers: [{{ url: "http://{closed}" }}] }} }}\n'
    )


def _two_clusters(text, closed):
    """envoy.yaml: a route for each host."""
    address, port = closed.split(":")
    last = "              - match: { prefix: \"/\" }\n                route: { cluster: service }\n"
    host = f'{{ name: ":authority", string_match: {{ prefix: "{CLOSED}" }} }}'
    start = text.index("  - name: service\n    connect_timeout")
    cluster = text[start:].replace("service", "closed").replace("127.0.0.1, port_value: 3000", f"{address}, port_value: {port}")
    return text.replace(last, last.replace('"/" }', f'"/", headers: [{host}] }}').replace("service", "closed") + last) + cluster


def _two_backends(text, closed):
    """haproxy.cfg: a backend for each host."""
    return text.replace("  default_backend service\n", f"  use_backend closed if {{ hdr(host) -m beg {CLOSED} }}\n  default_backend service\n") + (
        f"backend closed\n  server closed {closed}\n"
    )


TWO_HOSTS = {
    "nginx.conf": _two_servers,
    "Caddyfile": _two_sites,
    "moongate.yml": _two_routers,
    "envoy.yaml": _two_clusters,
    "haproxy.cfg": _two_backends,
}


def _system(name):
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


def printed_files(text):
    """The files of a configuration that `moongate proxy` printed: the first line of each names it."""
    starts = [*re.finditer(r"^(?:#|--) (nginx\.conf|traefik\.yml|moongate\.yml|Caddyfile|envoy\.yaml|haproxy\.cfg|moongate\.lua)\b.*$", text, re.M)]
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {start[1]: text[start.start() : end] for start, end in zip(starts, ends)}


class FrontProxy:
    """A proxy in front of a gateway and a service."""

    NAMES = ("nginx", "traefik", "caddy", "envoy", "haproxy")

    def __init__(self, name, folder, port, gateway, service, closed=None, printed=None):
        """With `closed`, the page's configuration is copied for two hosts: requests for CLOSED go to the service at
        that port, and requests for OPEN to the other one. `printed` is what `moongate proxy` printed, in place of the
        page's configuration."""
        self.printed = printed and printed_files(printed)
        self.name, self.folder, self.port = name, folder, port
        self.places = {"8000": port, "8080": gateway, "3000": service}
        self.closed = closed
        folder.mkdir()
        self.program = Program(*getattr(self, f"_{name}")())

    def _write(self, name, text=None):
        """The block of the page, at the places of this test."""
        text = self._text(name) if text is None else text
        if self.closed:
            text = TWO_HOSTS.get(name, lambda text, _: text)(text, f"127.0.0.1:{self.closed}")
        text = re.sub(r"/etc/\w+/", f"{self.folder}/", text)
        text = re.sub(r"\b(8000|8080|3000)\b", lambda found: str(self.places[found[1]]), text)
        file = self.folder / name
        file.write_text(text)
        return file

    def _text(self, name):
        return self.printed[name] if self.printed else block(name)

    def _nginx(self):
        user = "user root;" if os.geteuid() == 0 else ""
        self._write("nginx.conf", NGINX.format(user=user, text=self._text("nginx.conf")))
        return _system("nginx"), "-p", self.folder, "-c", "nginx.conf", "-e", "stderr"

    def _traefik(self):
        self._write("moongate.yml")
        return packaged("traefik"), f"--configFile={self._write('traefik.yml')}"

    def _caddy(self):
        return packaged("caddy"), "run", "--adapter", "caddyfile", "--config", self._write("Caddyfile")

    def _envoy(self):
        return (
            packaged("envoy"),
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
        self.statistics = free_port()
        listen = f"listen statistics\n  bind 127.0.0.1:{self.statistics}\n  stats enable\n  stats uri /\n"
        return _system("haproxy"), "-db", "-f", self._write("haproxy.cfg", self._text("haproxy.cfg") + listen)

    def wait(self):
        def listens():
            assert self.program.process.poll() is None, f"{self.name} ended:\n{self.program.output}"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for(listens, f"{self.name} to listen", 30)
        return self

    def check_status(self):
        """The result of HAProxy's last check of the gateway, such as L7OK."""
        table = requests.get(f"http://127.0.0.1:{self.statistics}/;csv", timeout=10).text.splitlines()
        names = table[0].removeprefix("# ").split(",")
        rows = [dict(zip(names, row.split(","))) for row in table[1:]]
        return next((row["check_status"] for row in rows if row["svname"] == "moongate"), None)

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
