"""Several gateways with one PostgreSQL behind nginx, with the files of config/README.md on free ports. `make
cluster` runs it as a program; tests import it. Uses only the standard library."""

import contextlib
import glob
import os
import pathlib
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from manual import block, block_under
from processes import BIN, ROOT, Program, free_port, wait_for

PASSWORD = "change me"
MANUAL = "Several gateways, one store"


def tool(name):
    """The path of a PostgreSQL program or nginx. Debian keeps those of PostgreSQL outside PATH."""
    places = [
        os.environ["PATH"],
        "/usr/sbin",
        "/usr/local/sbin",
        *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True),
    ]
    return shutil.which(name, path=":".join(places))


def missing(*names):
    """The missing programs."""
    return ", ".join(name for name in names if not tool(name))


def nginx_text(folder, text):
    """A complete nginx configuration around a block for http { … }."""
    user = "user root;" if os.geteuid() == 0 else ""
    return f"""daemon off; pid {folder}/nginx.pid; {user} worker_processes 1; error_log stderr error;
events {{ worker_connections 1024; }}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{text} }}
"""


class Postgres:
    """A PostgreSQL server on loopback TCP with passwords."""

    def __init__(self, *settings, address="127.0.0.1", port=None, network=None):
        # PostgreSQL does not run as root and must be able to reach its folder.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="moongate-pg-"))
        self.data = self.folder / "data"
        self.address, self.port, self.settings, self.network = address, port or free_port(), list(settings), network
        self.owner = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.owner = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.process = None

    def run(self, *command):
        # In its own session, so that Ctrl-C reaches only this program.
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            cwd=self.folder,
            start_new_session=True,
            **self.owner,
        )
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"

    def make(self):
        """Creates an empty database."""
        secret = self.folder / "password"
        secret.write_text("postgres")
        secret.chmod(0o644)
        self.run(
            tool("initdb"),
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "scram-sha-256",
            "--pwfile",
            secret,
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 scram-sha-256\nhost replication all 0.0.0.0/0 scram-sha-256\n")
        return self

    def start(self, seconds=30):
        options = [
            f"-c{setting}"
            for setting in (
                "listen_addresses=" + self.address,
                f"port={self.port}",
                f"unix_socket_directories={self.folder}",
                "shared_buffers=32MB",
                *self.settings,
            )
        ]
        command, owner = [tool("postgres"), "-D", self.data, *options], self.owner
        if self.network:
            # Only root can enter a network namespace; drop the privileges afterwards.
            drop = (
                ["setpriv", f"--reuid={owner['user']}", f"--regid={owner['group']}", "--clear-groups"] if owner else []
            )
            command, owner = ["ip", "netns", "exec", self.network, *drop, *command], {}
        self.process = Program(*command, cwd=self.folder, start_new_session=True, **owner)
        wait_for(self._answers, "PostgreSQL to answer", seconds)
        return self

    def _answers(self):
        assert self.process.runs, self.process.output
        return self.ask("SELECT 1", fails=None) == "1"

    def ask(self, sql, database="postgres", user="postgres", password="postgres", fails=True, seconds=60):
        """The output of the statements; the error text if they fail and `fails` is set."""
        done = subprocess.run(
            [
                tool("psql"),
                "-XAtq",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                self.address,
                "-p",
                str(self.port),
                "-U",
                user,
                "-d",
                database,
                "-f",
                "-",
            ],
            input=sql,
            capture_output=True,
            text=True,
            cwd="/",
            env={**os.environ, "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "5"},
            timeout=seconds,
            start_new_session=True,
        )
        if done.returncode != 0:
            assert fails is not True, done.stderr
            return fails
        return done.stdout.strip()

    def url(self, user="moongate", password=PASSWORD, database="moongate", query=""):
        return f"postgres://{user}:{password.replace(' ', '%20')}@{self.address}:{self.port}/{database}{query}"

    def kill(self):
        """Kills the server like a power failure: nothing is written and no client is notified."""
        main = self.process.process.pid
        children = pathlib.Path(f"/proc/{main}/task/{main}/children").read_text().split()
        self.process.process.kill()
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.process.wait(10)
        wait_for(
            lambda: not any(pathlib.Path(f"/proc/{child}").exists() for child in children),
            "PostgreSQL's children to end",
        )

    def stop(self, how=signal.SIGINT):
        if self.process and self.process.runs:
            self.process.end(how)

    def remove(self):
        # Immediate shutdown: its data is deleted with the folder anyway.
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


class Node:
    """One gateway of a cluster."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.port, self.admin_port = free_port(), free_port()
        self.address = "127.0.0.1"
        self.url, self.admin = f"http://localhost:{self.port}", f"http://127.0.0.1:{self.admin_port}"
        self.logs = []
        self.program = None
        # A command that wraps the gateway, for example to change its clock.
        self.within = ()

    def launch(self, store=None, **env):
        """Starts the gateway without waiting."""
        lines = [line for line in block("cluster.sh").splitlines() if line.startswith("moongate serve ")]
        words = shlex.split(lines[self.number % len(lines)].removesuffix("&"))[1:]
        for option, value in (
            ("--config", self.cluster.config),
            ("--listen", f"{self.address}:{self.port}"),
            ("--admin", f"127.0.0.1:{self.admin_port}"),
        ):
            words[words.index(option) + 1] = value
        self.program = Program(
            *self.within,
            BIN / "moongate",
            *words,
            env={"MOONGATE_STORE": store or self.cluster.store, **env},
            start_new_session=True,
        )
        self.logs.append(self.program)
        return self

    def ready(self):
        self.program.wait_line(" ready ", 120)
        return self

    def start(self, **options):
        return self.launch(**options).ready()

    @property
    def log(self):
        return "".join(program.output for program in self.logs)

    def tell(self, how):
        # Include the wrapping command.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.program.process.pid, how)

    def end(self, how=signal.SIGTERM):
        if self.program:
            self.tell(how)
            return self.program.end(how)


class Cluster:
    """A folder with the manual's files, the gateways that use it, and their environment."""

    # The addresses in the manual's files.
    PLACES = {"front": "8000", "service": "3000", "postgres": "5432"}

    def __init__(self, folder, postgres, nodes=2, kind=Node):
        self.folder, self.postgres = pathlib.Path(folder), postgres
        self.config = self.folder / "config"
        shutil.copytree(ROOT / "config", self.config, ignore=shutil.ignore_patterns("data"))
        self.ports = {"front": free_port(), "service": free_port(), "postgres": postgres.port}
        self.nodes = [kind(self, number) for number in range(nodes)]
        self.url = f"http://localhost:{self.ports['front']}"
        (self.config / "gateway.lua").write_text(self.here(block_under(MANUAL, "gateway.lua")))
        routes = self.config / "routes.lua"
        routes.write_text(self.here(routes.read_text()))
        self.store = postgres.url()
        self.demo = self.front = None

    def here(self, text):
        """Replaces the manual's addresses with those of this test."""
        for name, port in self.PLACES.items():
            text = re.sub(rf"\b((?:127\.0\.0\.1|localhost):|listen ){port}\b", rf"\g<1>{self.ports[name]}", text)
        # Use as many servers as there are gateways; the manual has two.
        servers = re.findall(r"^ *server 127\.0\.0\.1:808\d.*\n", text, re.M)
        if servers:
            text = text.replace(
                "".join(servers), "".join(re.sub(r"808\d", str(node.port), servers[0]) for node in self.nodes)
            )
        return text

    def database(self):
        """Creates the database as described in the manual."""
        self.postgres.ask(block("cluster.sql"))
        return self

    def start_around(self):
        return self.start_service().start_front()

    def start_service(self):
        self.demo = Program(BIN / "demo-service", "--port", self.ports["service"], start_new_session=True)
        self.demo.wait_line("listens on")
        return self

    def start_front(self):
        folder = self.folder / "nginx"
        folder.mkdir(exist_ok=True)
        (folder / "nginx.conf").write_text(nginx_text(folder, self.here(block("cluster.conf"))))
        self.front = Program(tool("nginx"), "-p", folder, "-c", "nginx.conf", "-e", "stderr", start_new_session=True)

        def listens():
            assert self.front.runs, self.front.output
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.ports["front"])) == 0

        wait_for(listens, "nginx to listen", 30)
        return self

    def start(self):
        # Start one after the other: each runs the folder's test cases, whose time limit would be exceeded on a busy
        # machine.
        one_by_one = (self.config / "tests").exists()
        for node in self.nodes:
            node.launch()
            if one_by_one:
                node.ready()
        for node in self.nodes:
            node.ready()
        return self

    def stop(self):
        for node in self.nodes:
            if node.program and node.program.runs:
                node.tell(signal.SIGTERM)
        for node in self.nodes:
            node.end()
        for program in (self.front, self.demo):
            if program:
                program.end()


def main():
    lacking = missing("initdb", "postgres", "psql", "nginx")
    if lacking:
        sys.exit(f"Missing: {lacking}. On Debian: apt-get install postgresql nginx")
    folder = tempfile.mkdtemp(prefix="moongate-cluster-")
    postgres = Postgres()
    cluster = None
    # Treat the end of a terminal or script like Ctrl-C.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        postgres.make().start()
        cluster = Cluster(folder, postgres).database().start_around().start()
        one, two = cluster.nodes
        print(
            f"""
nginx              {cluster.url:<32} open this: it leads to sign-in, then to the service, by either gateway
The gateways       127.0.0.1:{one.port} and 127.0.0.1:{two.port}    kill one: the other goes on (processes {one.program.process.pid} and {two.program.process.pid})
Their outboxes     {one.admin}/outbox and {two.admin}/outbox    a code is shown by the gateway that sent it
Who serves         {one.admin}/policy           under `nodes`
The store          PGPASSWORD='{PASSWORD}' psql -h 127.0.0.1 -p {postgres.port} -U moongate moongate
The configuration  {cluster.config}    shared by both: a change is served by both within two seconds

Ctrl-C ends it all.
""",
            flush=True,
        )
        while True:
            time.sleep(0.5)
            for what, program in (
                ("nginx", cluster.front),
                ("the demo service", cluster.demo),
                ("PostgreSQL", postgres.process),
            ):
                if not program.runs:
                    sys.exit(f"{what} has ended:\n{program.output}")
            for node in cluster.nodes:
                if node.program and not node.program.runs:
                    print(f"The gateway on 127.0.0.1:{node.port} has ended; the other goes on.", flush=True)
                    node.program = None
            if not any(node.program for node in cluster.nodes):
                sys.exit("Both gateways have ended.\n" + cluster.nodes[0].log[-2000:])
    except KeyboardInterrupt:
        print()
    finally:
        if cluster:
            cluster.stop()
        postgres.remove()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
