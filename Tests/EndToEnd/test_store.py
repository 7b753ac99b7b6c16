"""A store is checked and copied, and sessions of the original work with the copy."""

import contextlib
import os
import re
import shutil
import signal
import socketserver
import subprocess
import threading

import pytest
import requests

from cluster import PASSWORD, Postgres, missing
from cluster import tool as program
from local_gateway import BIN, problem, wait_for
from manual import block, page_text
from test_accounts import tool
from test_keys import bearer


def store(*arguments, **environment):
    """Runs `moongate store`. Returns exit status, output and errors."""
    done = subprocess.run(
        [BIN / "moongate", "store", *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    return done.returncode, done.stdout, done.stderr


def test_gateway_continues_from_a_copy(gateway, number):
    person = gateway.register(number)
    token = person["session"]["token"]
    status, text, complaint = tool(gateway, "store", "check")
    assert status == 0 and "No problems found." in text, text + complaint
    source = f"sqlite:{gateway.config}/data/moongate.db"
    status, text, complaint = store("copy", source, f"sqlite:{gateway.config}/data/copy.db")
    assert (status, text) == (1, "") and re.search(
        rf"is served by \S+ 127\.0\.0\.1:{gateway.ports[0]}; nothing was changed", complaint
    ), complaint
    gateway.server.end(15)
    status, text, complaint = store("copy", source, f"sqlite:{gateway.config}/data/copy.db")
    assert status == 0, complaint
    assert re.search(r"^account +1 rows, SHA-256 [0-9a-f]{64} on both sides$", text, re.M), text
    gateway.edit("gateway.lua", lambda text: text.replace("moongate.db", "copy.db"))
    gateway.start()
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 200


@pytest.mark.skipif(bool(missing("initdb", "postgres", "psql")), reason="needs PostgreSQL")
def test_commands_make_nothing_in_an_empty_database(new_gateway):
    gateway = new_gateway
    postgres = Postgres()
    try:
        postgres.make().start()
        url = postgres.url(user="postgres", password="postgres", database="postgres")
        gateway.edit("gateway.lua", lambda text: re.sub(r'store *= *"[^"]*"', f'store = "{url}"', text))
        assert url in (gateway.config / "gateway.lua").read_text()
        key = gateway.config / "data/master.key"
        commands = (
            ("account", "list"),
            ("account", "show", "x"),
            ("account", "sessions", "x"),
            ("account", "lock", "x"),
            ("account", "unlock", "x"),
            ("account", "disable", "x"),
            ("account", "delete", "x", "--yes"),
            ("account", "export"),
            ("invite", "create"),
            ("invite", "list"),
            ("invite", "revoke", "x"),
            ("locks", "list"),
            ("locks", "clear", "--all"),
            ("policy", "explain", "dc_1"),
            ("store", "check"),
            ("keys", "retire", "00000000"),
            ("keys", "rotate"),
        )
        for command in commands:
            status, out, told = tool(gateway, *command)
            assert status in (1, 2) and out == "" and told.count("\n") == 1, (command, out, told)
            assert not key.exists(), command
        key.parent.mkdir(exist_ok=True)
        key.write_bytes(b"0123456789abcdef0123456789abcdef")
        key.chmod(0o600)
        tool(gateway, "keys", "add")
        ring = [line.split()[1].decode() for line in key.read_bytes().splitlines()]
        people = '{"identifiers":[{"phone":"+919999999999","verified":true}]}\n'
        for command in (
            *commands[:-2],
            ("account", "import", "-"),
            ("account", "import", "-", "--dry-run"),
            ("keys", "retire", ring[1]),
        ):
            status, out, told = tool(gateway, *command, text=people)
            assert status == 2 and out == "", (command, status, out, told)
            assert (
                f"There is no store at postgres://127.0.0.1:{postgres.port}/postgres yet." in told
                and told.count("\n") == 1
            ), (command, told)
        status, out, told = tool(gateway, "keys", "show")
        assert status == 0 and out.count("\n") == 2 and "the store was not counted. There is no store at" in told
        source = store("copy", url, f"sqlite:{gateway.config}/data/copy.db")
        assert source[0] == 2 and "There is no store at" in source[2] and not (gateway.config / "data/copy.db").exists()
        assert postgres.ask("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == "0"
        # `store migrate` creates a store without binding it to a key.
        assert tool(gateway, "store", "migrate")[0] == 0
        assert tool(gateway, "account", "list")[0] == 2
        assert postgres.ask("SELECT count(*) FROM meta") == "0"
    finally:
        postgres.remove()


def commands(database):
    """What the guide says to back up a database, and to restore it: the commands of two cells."""
    row = re.search(rf"^\| {database} \| (.*) \| (.*) \|$", page_text("guides/backup-and-keys.md"), re.M)
    return [re.findall(r"`([^`]+)`", cell) for cell in row.groups()]


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="needs sqlite3")
@pytest.mark.parametrize("way", [0, 1])
def test_a_backup_of_sqlite_is_restored(new_gateway, number, other_number, way):
    gateway = new_gateway
    gateway.start()
    token = gateway.register(number)["session"]["token"]
    (first, second, *_), (copy, place, *leftovers) = commands("SQLite")
    command = first if way == 0 else first[: first.index('"')] + second
    done = subprocess.run(command, shell=True, cwd=gateway.config, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    later = gateway.register(other_number())["session"]["token"]
    gateway.server.end()
    data = gateway.config / "data"
    (gateway.config / copy).rename(data / place)
    for name in leftovers:
        (data / name).unlink(missing_ok=True)
    gateway.start()
    assert gateway.api("GET", "/session", **bearer(token)).status_code == 200
    assert gateway.api("GET", "/session", **bearer(later)).status_code == 401


@pytest.mark.skipif(bool(missing("initdb", "postgres", "psql", "pg_dump")), reason="needs PostgreSQL")
def test_a_backup_of_postgres_is_restored(new_gateway, number, other_number):
    gateway = new_gateway
    postgres = Postgres()
    try:
        postgres.make().start()
        postgres.ask(block("cluster.sql"))
        gateway.edit("gateway.lua", lambda text: re.sub(r'store *= *"[^"]*"', f'store = "{postgres.url()}"', text))
        gateway.start()
        token = gateway.register(number)["session"]["token"]

        def run(command):
            words = command.replace("DATABASE", "moongate" if "pg_dump" in command else "restored").split()
            environment = {
                **os.environ,
                "PGHOST": postgres.address,
                "PGPORT": str(postgres.port),
                "PGUSER": "postgres",
                "PGPASSWORD": "postgres",
            }
            done = subprocess.run(
                [program(words[0]), *words[1:]], cwd=gateway.config, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr

        back_up, restore = commands("PostgreSQL")
        run(back_up[0])
        later = gateway.register(other_number())["session"]["token"]
        gateway.server.end()
        for command in restore:
            run(command)
        gateway.edit("gateway.lua", lambda text: text.replace("/moongate\"", "/restored\""))
        assert "/restored" in (gateway.config / "gateway.lua").read_text()
        status, text, complaint = tool(gateway, "store", "check")
        assert status == 0, text + complaint
        gateway.start()
        assert gateway.api("GET", "/session", **bearer(token)).status_code == 200
        assert gateway.api("GET", "/session", **bearer(later)).status_code == 401
        # The next version's tables can be created in it too.
        postgres.ask("CREATE TABLE next (id BIGINT)", "restored", "moongate", PASSWORD)
    finally:
        gateway.stop()
        postgres.remove()


def test_messages(tmp_path):
    first = f"sqlite:{tmp_path}/first.db"
    none = f"moongate: There is no store at {first} yet. A gateway creates it at its first start; if one has used it before, `store` names another place.\n"
    assert store("check", first) == (2, "", none)
    assert store("copy", first, f"sqlite:{tmp_path}/second.db") == (2, "", none)
    assert not list(tmp_path.iterdir())
    newest = re.search(r" to (\d+)\.$", store("migrate", first, "--dry-run")[1])[1]
    assert store("migrate", first, "--dry-run")[1] == f"{first}: the schema would be migrated from 0 to {newest}.\n"
    assert store("migrate", first) == (0, f"{first}: the schema was migrated from 0 to {newest}.\n", "")
    assert store("migrate", first) == (0, f"{first}: the schema is already {newest}.\n", "")
    assert store("check", first)[0] == 0
    status, _, complaint = store(
        "check", "postgres://somebody:a-secret@127.0.0.1:1/moongate", PGPASSWORD="another-secret"
    )
    assert status == 2 and "127.0.0.1:1/moongate" in complaint
    assert "secret" not in complaint and "somebody" not in complaint
    assert (
        store("check", "a-secret")[2]
        == "moongate: That is not a store. Write sqlite:data/moongate.db or postgres://user@host/database.\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_full_disk_is_not_ready(new_gateway, number, other_number):
    gateway = new_gateway
    disk = gateway.config / "data"
    disk.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a disk: {mounted.stderr}")

    def ready():
        return requests.get(f"{gateway.admin}/readyz", timeout=10)

    try:
        gateway.start()
        gateway.register(number)
        assert ready().status_code == 200
        with open(disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 4096)
        wait_for(lambda: ready().status_code == 503, "the full disk to be noticed", 30)
        assert "The store cannot be written: " in ready().json()["reasons"][0]
        assert requests.get(f"{gateway.admin}/healthz", timeout=10).status_code == 200
        problem(gateway.begin(gateway.flow("register"), other_number()), 503, "store_unavailable")
        assert ready().status_code == 503
        (disk / "filler").unlink()
        wait_for(lambda: ready().status_code == 200, "the gateway to be ready again", 10)
        gateway.register(other_number())
    finally:
        gateway.server.end()
        subprocess.run(["umount", str(disk)], check=True)


def test_a_gateway_that_stops_is_not_ready(new_gateway):
    """From SIGTERM on, and the open request is completed."""
    begun, may_end = threading.Event(), threading.Event()

    class Slow(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            begun.set()
            may_end.wait(20)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")

    service = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    route = f'{{ path = "/slow", to = "http://127.0.0.1:{service.server_address[1]}", allow = true }},\n'
    new_gateway.edit("routes.lua", lambda text: text.replace("return routes {\n", "return routes {\n" + route, 1))
    try:
        new_gateway.start()
        answers = []
        client = threading.Thread(target=lambda: answers.append(requests.get(f"{new_gateway.url}/slow", timeout=30)))
        client.start()
        assert begun.wait(20)
        assert requests.get(f"{new_gateway.admin}/readyz", timeout=10).status_code == 200
        new_gateway.server.process.send_signal(signal.SIGTERM)
        stopping = wait_for(
            lambda: requests.get(f"{new_gateway.admin}/readyz", timeout=10).json().get("reasons"), "the gateway to stop", 10
        )
        assert stopping == ["The gateway is stopping."]
        assert requests.get(f"{new_gateway.admin}/healthz", timeout=10).status_code == 200
        may_end.set()
        client.join(20)
        assert [(answer.status_code, answer.text) for answer in answers] == [(200, "done")]
        assert new_gateway.server.process.wait(20) == 0
    finally:
        may_end.set()
        service.shutdown()
        service.server_close()
