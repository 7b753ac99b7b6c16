"""Requirements on PostgreSQL at a start and while serving: strict TLS, a standby, and a full disk for its log."""

import os
import subprocess
import time

import pytest

from cluster import Postgres, missing
from local_gateway import problem, wait_for
from processes import BIN
from test_cluster import fill, lived_in, mounted, pair, refusal, single  # noqa: F401  (fixtures among them)

LACKING = missing("initdb", "postgres", "psql")
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"needs {LACKING}")


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(
        folder,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.pem",
    )


def test_tls_to_the_store(tmp_path, number):
    server = Postgres("max_connections=40", "ssl=on")
    files = server.folder
    server.settings += [f"ssl_cert_file={files}/server.pem", f"ssl_key_file={files}/server.key"]
    cluster = None
    try:
        authority(files, "authority")
        authority(files, "stranger")
        openssl(
            files,
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        )
        openssl(
            files,
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "authority.pem",
            "-CAkey",
            "authority.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-copy_extensions",
            "copy",
            "-out",
            "server.pem",
        )
        if server.owner:
            os.chown(files / "server.key", server.owner["user"], server.owner["group"])
        server.make()
        with (server.data / "pg_hba.conf").open("w") as rules:
            rules.write("hostssl all moongate all scram-sha-256\nhost all postgres all scram-sha-256\n")
        server.start()
        cluster = single(tmp_path, server)
        place = server.url().replace("127.0.0.1", "localhost") + "?hostaddr=127.0.0.1&sslmode="
        shown = f"postgres://localhost:{server.port}/moongate"
        cluster.store = f"{place}verify-full&sslrootcert={files}/authority.pem"
        node = cluster.nodes[0].start()
        token = node.register(number)["session"]["token"]
        assert node.session(token).status_code == 200
        lines = server.ask(
            "SELECT bool_and(ssl), count(*) > 1 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'moongate'"
        )
        assert lines == "t|t", "every connection is"
        told, _ = refusal(cluster, f"{place}verify-full&sslrootcert={files}/stranger.pem")
        assert told.startswith(
            f"moongate: The certificate of {shown} is not signed by an authority of `sslrootcert`."
        ), told
        told, _ = refusal(
            cluster, place.replace("localhost", "127.0.0.1") + f"verify-full&sslrootcert={files}/authority.pem"
        )
        assert told.startswith(
            f"moongate: The certificate of postgres://127.0.0.1:{server.port}/moongate is for another host."
        ), told

        def check(store):
            done = subprocess.run(
                [BIN / "moongate", "store", "check", store], capture_output=True, text=True, timeout=60
            )
            return done.returncode, done.stdout + done.stderr

        status, told = check(cluster.store)
        assert status == 0 and "No problems found." in told, told
        for query, words in {
            f"verify-full&sslrootcert={files}/stranger.pem": f"The certificate of {shown} is not signed by an authority of `sslrootcert`.",
            "verify-full&sslrootcert=/nowhere.pem": f"`sslmode` verifies who signed the certificate of {shown}, but the file of authorities is missing",
            "disable": f"PostgreSQL does not admit this user to {shown}",
        }.items():
            status, told = check(place + query)
            assert status == 2 and told.startswith(f"moongate: {words}") and told.count("\n") == 1, told
    finally:
        if cluster:
            cluster.stop()
        server.remove()


def test_a_standby_is_waited_for_and_passed_over(pair, tmp_path, number, other_number):  # noqa: F811
    first, second = pair
    second.stop()
    second.settings.append("log_connections=on")
    second.start()
    cluster = single(tmp_path, first, 2)
    waiting, other = cluster.nodes
    try:
        # Of several servers, the writable one is used, in any position.
        cluster.store = second.url().replace(f":{second.port}/", f":{second.port},127.0.0.1:{first.port}/")
        other.start()
        token = other.register(number)["session"]["token"]
        # A single standby is polled less and less often, and used after its promotion.
        before = second.process.output.count("connection authorized: user=moongate")
        waiting.launch(store=second.url())
        wait_for(lambda: "the store is not available yet" in waiting.program.output, "a gateway that waits", 30)
        assert "is read-only: a standby, or default_transaction_read_only is on." in waiting.program.output
        time.sleep(3)
        assert 2 <= second.process.output.count("connection authorized: user=moongate") - before <= 6
        assert waiting.program.runs and " ready " not in waiting.program.output
        first.kill()
        second.ask("ALTER SYSTEM SET synchronous_standby_names = ''")
        second.ask("SELECT pg_promote()")
        waiting.ready()
        wait_for(other.is_ready, "the other gateway", 20)
        assert [node.session(token).status_code for node in (waiting, other)] == [200, 200]
        waiting.register(other_number())
    finally:
        cluster.stop()


def test_a_full_disk_of_the_stores_log(tmp_path, number, other_number):
    """PostgreSQL panics, and stops if it cannot recover. Its operator restarts it when there is space."""
    with mounted("tmpfs", "-o", "size=80m") as disk:
        server = Postgres("max_connections=40", "max_wal_size=32MB", "min_wal_size=32MB")
        cluster = None
        try:
            server.make()
            subprocess.run(["cp", "-a", server.data / "pg_wal", disk / "wal"], check=True)
            subprocess.run(["rm", "-r", server.data / "pg_wal"], check=True)
            (server.data / "pg_wal").symlink_to(disk / "wal")
            if server.owner:
                os.chown(disk, server.owner["user"], server.owner["group"])
            server.start()
            cluster = single(tmp_path, server)
            node = cluster.nodes[0].start()
            token, flow, code = lived_in(node, number, other_number)
            filler = fill(disk)
            tokens, statuses = [token], []

            def act():
                phone = other_number()
                answer = node.api("POST", "/flows", {"flow": "register"})
                if answer.status_code == 201:
                    id = answer.json()["id"]
                    answer = node.begin(id, phone)
                    if answer.status_code == 200:
                        answer = node.submit(id, node.code(phone))
                        if answer.status_code == 200:
                            tokens.append(answer.json()["session"]["token"])
                statuses.append(answer.status_code)
                if answer.status_code == 503:
                    problem(answer, 503, "store_unavailable")
                return statuses.count(503) >= 3

            # Another client writes a lot; its failure is expected.
            much = "SELECT count(pg_logical_emit_message(false, 'x', repeat('y', 100000))) FROM generate_series(1, 20)"

            def fills():
                if server.process.runs:
                    server.ask(much, fails="")
                return act()

            wait_for(fills, "a log that is full", 60)
            assert "PANIC" in server.process.output and set(statuses) <= {200, 503}, (
                statuses,
                server.process.output[-1000:],
            )
            assert node.program.runs and len(tokens) > 1, statuses
            filler.unlink()
            if not server.process.runs or "startup process failure" in server.process.output:
                server.stop()
                server.start()
            wait_for(node.is_ready, "recovery by itself", 20)
            assert [node.session(each).status_code for each in tokens] == [200] * len(tokens), (
                "what was acknowledged is there"
            )
            assert problem(node.submit(flow, code), 429, "too_many_attempts")["retry_after"] > 600
            node.register(other_number())
        finally:
            if cluster:
                cluster.stop()
            server.remove()
