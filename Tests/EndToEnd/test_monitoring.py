"""The alert rules and the dashboard in a real Prometheus, with a gateway whose faults are provoked."""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from local_gateway import wait_for, wrong
from services import Handler, HTTPService
from test_http2 import routed
from test_metrics import metrics, value
from test_tls import certificate, speak_tls

MONITORING = Path(__file__).parents[2] / "config/monitoring"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def names_in(text):
    return {
        re.sub(r"_(bucket|sum|count|total)$", "", name) for name in re.findall(r"\b(?:moongate|process)_[a-z_]+", text)
    }


def test_rules_fire_when_they_should_and_only_then():
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    alerts = re.findall(r"alert: (\w+)", (MONITORING / "alerts.yml").read_text())
    tested = (MONITORING / "alerts_test.yml").read_text()
    assert [alert for alert in alerts if f'alertname="{alert}"' not in tested] == []


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port):
        self.api = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, what):
        """The result of a query; empty while it starts."""
        try:
            return requests.get(f"{self.api}/{what}", timeout=5).json()["data"]
        except (requests.ConnectionError, ValueError):
            return {"alerts": [], "activeTargets": [], "result": []}

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def scrapes(self):
        return [target["health"] for target in self.ask("targets")["activeTargets"]] == ["up"]

    def has(self, query):
        return self.ask(f"query?query={query}")["result"] != []


@pytest.fixture
def prometheus(tmp_path):
    """Starts Prometheus for a gateway; its rules use seconds in place of minutes."""
    running = []

    def start(gateway):
        rules = re.sub(r"for: \w+", "for: 0s", (MONITORING / "alerts.yml").read_text())
        rules = rules.replace("moongate_audit_lag_seconds > 900", "moongate_audit_lag_seconds > 3")
        (tmp_path / "alerts.yml").write_text(re.sub(r"\[(5|10)m\]", "[15s]", rules))
        target = gateway.admin.removeprefix("http://")
        (tmp_path / "prometheus.yml").write_text(
            "global: { scrape_interval: 500ms, evaluation_interval: 500ms }\nrule_files: [alerts.yml]\n"
            f"scrape_configs:\n  - job_name: moongate\n    static_configs: [{{ targets: ['{target}'] }}]\n"
        )
        port = free_port()
        log = (tmp_path / "prometheus.log").open("w")
        running.append(
            subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={tmp_path}/prometheus.yml",
                    f"--storage.tsdb.path={tmp_path}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        )
        started = Prometheus(port)
        wait_for(started.scrapes, "Prometheus to scrape the gateway", 30)
        return started

    yield start
    for process in running:
        process.terminate()
        process.wait(20)


def test_prometheus_scrapes_the_gateway_and_alerts(new_gateway, prometheus, number):
    gateway = new_gateway
    dead = free_port()
    routed(gateway, dead)
    gateway.start()
    gateway.register(number)
    flow = gateway.flow("login")
    gateway.begin(flow, number)
    gateway.submit(flow, wrong("000000"))
    families = metrics(gateway)
    used = names_in((MONITORING / "alerts.yml").read_text()) | names_in((MONITORING / "dashboard.json").read_text())
    # These metrics exist only with a certificate and sinks.
    absent = {"moongate_certificate_expiry_timestamp_seconds", "moongate_audit_lag_seconds"}
    assert used - absent - {name.removesuffix("_total") for name in families} == set()
    assert all(
        "Counted by" not in family.documentation for name, family in families.items() if name.startswith("moongate")
    )
    assert value(families, "moongate_build_info") == 1 and value(families, "process_start_time_seconds") > 1.6e9
    assert (
        value(families, "moongate_sends", provider="phone_otp", channel="sms", country="IN", outcome="delivered") >= 1
    )
    assert value(families, "moongate_attempts", provider="phone_otp", outcome="verified") == 1
    assert sum(s.value for s in families["moongate_sign_ins"].samples if s.labels["outcome"] == "completed") == 1
    assert value(families, "moongate_store_bytes", part="database") > 0

    watcher = prometheus(gateway)
    firing = watcher.firing
    assert firing() == set()

    def upstream_alert():
        decisions.append(requests.get(f"{gateway.url}/open/x", timeout=10).json()["decision_id"])
        return "MoongateUpstreamErrors" in firing()

    decisions = []
    wait_for(upstream_alert, "the alert of a dead upstream", 30)
    # One log line with the decision that the user was told, whose cause the operator can look up.
    told = [line for line in gateway.log.splitlines() if "an upstream failed" in line]
    assert len(told) == 1 and len(decisions) > 1, told
    assert f"127.0.0.1:{dead}" in told[0] and decisions[0] in told[0] and "it cannot be reached" in told[0]
    decision = requests.get(f"{gateway.admin}/decisions/{decisions[0]}", timeout=10).json()
    assert "it cannot be reached" in json.dumps(decision)
    assert value(metrics(gateway), "moongate_upstream_errors", route="/open/**", cause="unreachable") == len(decisions)

    gateway.edit("policies/phone_otp.lua", lambda text: text + "\nthis is no Lua")
    wait_for(lambda: "MoongateCandidateRefused" in firing(), "the alert of a refused candidate", 60)
    os.kill(gateway.server.process.pid, signal.SIGTERM)
    gateway.server.end()
    wait_for(lambda: "MoongateDown" in firing(), "the alert of a gateway that is down", 30)


class DeliverySite(HTTPService):
    """A site that accepts messages until it is told to fail."""

    def __init__(self):
        self.status = 200
        delivery = self

        class Answers(Handler):
            protocol_version = "HTTP/1.0"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(delivery.status)
                self.end_headers()

        super().__init__(Answers)


@contextlib.contextmanager
def meanwhile(work):
    """Repeats the work in another thread."""
    over = threading.Event()

    def run():
        while not over.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_each_alert_fires_when_its_fault_happens(new_gateway, prometheus, tmp_path, monkeypatch):
    """The alerts for a dead upstream, a refused candidate and a gateway that is down are in the test above."""
    gateway, delivery, sink = new_gateway, DeliverySite(), free_port()
    # It expires in two days.
    cert, key = certificate(tmp_path, "soon")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    speak_tls(gateway, cert, key)
    gateway.edit(
        "gateway.lua",
        lambda text: (
            text.replace("  region =", '  trusted_proxies = { "127.0.0.1/32" },\n  region =', 1)
            .replace(
                "  admin =",
                f'  audit = {{ webhook {{ url = "http://127.0.0.1:{sink}/", secret = env "SECRET" }} }},\n  admin =',
                1,
            )
            .replace(
                "phone_otp = { sms = outbox() }",
                f'phone_otp = {{ sms = webhook {{ url = "http://127.0.0.1:{delivery.port}/" }} }}',
                1,
            )
        ),
    )
    (gateway.config / "policies/phone_otp.lua").write_text(
        'return policy "phone_otp" { timers = { resend_after = { "1s" } }, limits = {'
        ' verify = { on = "verify", per = "phone", max = 1, window = "1h", counts = "failures", lock = { "1h" } } } }\n'
    )
    (gateway.config / "policies/password.lua").write_text('return policy "password" { limits = {} }\n')
    gateway.edit("gateway.lua", lambda text: re.sub(r"  risk_budget = .*\n", "", text))
    gateway.start(SECRET="a-secret-of-the-sink")
    store = gateway.config / "data/moongate.db"
    watcher = prometheus(gateway)

    def fires(*alerts, seconds=60):
        wait_for(lambda: set(alerts) <= watcher.firing(), f"{alerts}, while {watcher.firing()} fire", seconds)

    people = iter(range(2_000))

    def guess(_=None):
        """Sends a code to a number of a new country and makes wrong guesses, which locks the number."""
        with requests.Session() as session:
            path = f"{gateway.url}/api/auth/flows"
            flow = session.post(path, json={"flow": "register"}, timeout=60).json()["id"]
            phone = f"+1305{2010000 + next(people)}"
            if (
                session.post(
                    f"{path}/{flow}/begin", json={"provider": "phone_otp", "phone": phone}, timeout=60
                ).status_code
                == 200
            ):
                session.post(f"{path}/{flow}/submit", json={"code": "000000"}, timeout=60)

    fires("MoongateCertificateExpires")
    guess()
    wait_for(
        lambda: watcher.has('moongate_sends_total{country="US"}') and watcher.has('moongate_attempts_total'),
        "the first message to be seen",
        30,
    )
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(guess, range(110)))
    fires("MoongateSendsToUnusualCountry", "MoongateAttemptsRefused", "MoongateLocks", "MoongateAuditBehind")
    delivery.status = 500
    with meanwhile(guess):
        fires("MoongateDeliveryFailures", "MoongateDeliveryBreakerOpen")

    def sign_in(index):
        requests.post(
            f"{gateway.url}/api/auth/login",
            json={"email": f"p{index}@example.com", "password": "violet harbour twelve"},
            headers={"X-Forwarded-For": f"203.0.113.{index}"},
            timeout=60,
        )

    with ThreadPoolExecutor(60) as pool, meanwhile(lambda: list(pool.map(sign_in, range(120)))):
        fires("MoongateHashingFull", seconds=120)

    with contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=30)) as database:
        # Another gateway that has not loaded the new files.
        database.execute("INSERT INTO node SELECT 'another', 'older', max(seen_at), '' FROM node")
        fires("MoongateGenerationsDiffer", seconds=30)
        database.execute("DELETE FROM node WHERE id = 'another'")
        # A long-running reader keeps the write-ahead log from being checkpointed.
        with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM node").fetchall()
            database.execute("CREATE TABLE filler (content BLOB)")
            database.execute("INSERT INTO filler VALUES (zeroblob(280000000))")
            fires("MoongateStoreLogGrows", seconds=30)
            reader.execute("ROLLBACK")

    def held(seconds):
        """Another writer."""
        with contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=30)) as database:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            database.execute("ROLLBACK")

    # First with short interruptions, then for longer than the gateway waits.
    with meanwhile(guess):
        with meanwhile(lambda: held(0.9)):
            fires("MoongateStoreSlow")
        with meanwhile(lambda: held(6)):
            fires("MoongateStoreFaults")
    delivery.end()
