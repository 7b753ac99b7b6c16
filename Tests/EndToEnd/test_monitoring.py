"""The alert rules and the dashboard, run by the real Prometheus against a gateway whose faults are made to happen."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import requests

from house import wait_for, wrong
from test_http2 import routed
from test_metrics import metrics, value

MONITORING = Path(__file__).parents[2] / "config/monitoring"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def names_in(text):
    return {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in re.findall(r"\b(?:moongate|process)_[a-z_]+", text)}


def test_rules_fire_when_they_should_and_only_then():
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    alerts = re.findall(r"alert: (\w+)", (MONITORING / "alerts.yml").read_text())
    tested = (MONITORING / "alerts_test.yml").read_text()
    assert [alert for alert in alerts if f'alertname="{alert}"' not in tested] == []


@pytest.fixture
def prometheus(tmp_path):
    """Starts Prometheus over a gateway; its rules look at seconds in place of minutes."""
    running = []

    def start(house):
        rules = re.sub(r"for: \w+", "for: 0s", (MONITORING / "alerts.yml").read_text())
        (tmp_path / "alerts.yml").write_text(re.sub(r"\[(5|10)m\]", "[15s]", rules))
        target = house.admin.removeprefix("http://")
        (tmp_path / "prometheus.yml").write_text(
            "global: { scrape_interval: 500ms, evaluation_interval: 500ms }\nrule_files: [alerts.yml]\n"
            f"scrape_configs:\n  - job_name: moongate\n    static_configs: [{{ targets: ['{target}'] }}]\n")
        port = free_port()
        log = (tmp_path / "prometheus.log").open("w")
        running.append(subprocess.Popen(
            ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log))
        return f"http://127.0.0.1:{port}/api/v1"

    yield start
    for process in running:
        process.terminate()
        process.wait(20)


def test_prometheus_scrapes_the_gateway_and_alerts(empty_house, prometheus, number):
    house = empty_house
    dead = free_port()
    routed(house, dead)
    house.start()
    house.register(number)
    flow = house.flow("login")
    house.begin(flow, number)
    house.submit(flow, wrong("000000"))
    families = metrics(house)
    used = names_in((MONITORING / "alerts.yml").read_text()) | names_in((MONITORING / "dashboard.json").read_text())
    # Without a certificate and without sinks these are not there.
    absent = {"moongate_certificate_expiry_timestamp_seconds", "moongate_audit_lag_seconds"}
    assert used - absent - {name.removesuffix("_total") for name in families} == set()
    assert all("Counted by" not in family.documentation for name, family in families.items() if name.startswith("moongate"))
    assert value(families, "moongate_build_info") == 1 and value(families, "process_start_time_seconds") > 1.6e9
    assert value(families, "moongate_sends", provider="phone_otp", channel="sms", country="IN", outcome="delivered") >= 1
    assert value(families, "moongate_attempts", provider="phone_otp", outcome="verified") == 1
    assert sum(s.value for s in families["moongate_sign_ins"].samples if s.labels["outcome"] == "completed") == 1
    assert value(families, "moongate_store_bytes", part="database") > 0

    api = prometheus(house)

    def firing():
        try:
            alerts = requests.get(f"{api}/alerts", timeout=5).json()["data"]["alerts"]
        except requests.ConnectionError:
            return set()
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def scraped():
        try:
            [target] = requests.get(f"{api}/targets", timeout=5).json()["data"]["activeTargets"]
        except (requests.ConnectionError, ValueError):
            return False
        return target["health"] == "up"

    wait_for(scraped, "Prometheus to scrape the gateway", 30)
    assert firing() == set()

    def upstream_alert():
        decisions.append(requests.get(f"{house.url}/open/x", timeout=10).json()["decision_id"])
        return "MoongateUpstreamErrors" in firing()

    decisions = []
    wait_for(upstream_alert, "the alert of a dead upstream", 30)
    # One line in the log, with the decision that a person was told, whose cause the operator sees.
    told = [line for line in house.log.splitlines() if "an upstream failed" in line]
    assert len(told) == 1 and len(decisions) > 1, told
    assert f"127.0.0.1:{dead}" in told[0] and decisions[0] in told[0] and "it cannot be reached" in told[0]
    decision = requests.get(f"{house.admin}/decisions/{decisions[0]}", timeout=10).json()
    assert "it cannot be reached" in json.dumps(decision)
    assert value(metrics(house), "moongate_upstream_errors", route="/open/**", cause="unreachable") == len(decisions)

    house.edit("policies/phone_otp.lua", lambda text: text + "\nthis is no Lua")
    wait_for(lambda: "MoongateCandidateRefused" in firing(), "the alert of a refused candidate", 60)
    os.kill(house.gateway.process.pid, signal.SIGTERM)
    house.gateway.end()
    wait_for(lambda: "MoongateDown" in firing(), "the alert of a gateway that is down", 30)
