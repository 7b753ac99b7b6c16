"""Monitoring: /metrics, the access log, trace context."""

import json
import re
import stat

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from local_gateway import wait_for, wrong
from test_http2 import routed
from wire import Upstream


@pytest.fixture
def upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


@pytest.fixture
def logged(new_gateway, upstream, tmp_path):
    gateway = new_gateway
    routed(gateway, upstream.port)
    gateway.access = tmp_path / "access.log"
    gateway.start(MOONGATE_ACCESS_LOG=str(gateway.access))
    gateway.upstream = upstream
    return gateway


def metrics(gateway):
    answer = requests.get(f"{gateway.admin}/metrics", timeout=10)
    assert answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.name not in families, f"{family.name} twice"
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        families[family.name] = family
    return families


def value(families, family, **labels):
    values = [
        sample.value
        for sample in families[family].samples
        if sample.name in (family, family + "_total") and labels.items() <= sample.labels.items()
    ]
    assert values, f"{family} has no sample with {labels}"
    return sum(values)


def test_metrics(gateway):
    families = metrics(gateway)
    for sample in (sample for family in families.values() for sample in family.samples):
        assert re.fullmatch(r"[a-z_][a-z0-9_]*", sample.name)
    token = gateway.register("+919876500300")["session"]["token"]
    cookie = {"Cookie": f"moongate={token}"}
    for _ in range(5):
        assert requests.get(f"{gateway.url}/echo", headers=cookie, timeout=10).status_code == 200
    assert requests.get(f"{gateway.url}/echo", timeout=10).status_code == 401
    assert (
        requests.get(
            f"{gateway.url}/echo", headers={"Accept": "text/html"}, timeout=10, allow_redirects=False
        ).status_code
        == 302
    )
    assert requests.get(f"{gateway.url}//", timeout=10).status_code == 400
    families = metrics(gateway)
    route = "/**"
    assert value(families, "moongate_requests", route=route, outcome="passed", status="2xx") == 5
    assert value(families, "moongate_requests", route=route, outcome="refused", status="4xx") == 1
    assert value(families, "moongate_requests", route=route, outcome="redirected", status="3xx") == 1
    assert value(families, "moongate_requests", route="(none)", outcome="refused", status="4xx") == 1
    assert value(families, "moongate_requests", route="(own)", outcome="own") >= 3
    assert value(families, "moongate_refusals", code="unauthenticated") >= 1
    assert (
        value(families, "moongate_session_lookups", result="live")
        + value(families, "moongate_session_lookups", result="asked")
        >= 5
    )
    assert value(families, "moongate_upstream_connections_opened") >= 1
    assert value(families, "moongate_deliveries", channel="sms", outcome="delivered") == 1
    assert value(families, "process_resident_memory_bytes") > 1e6
    histogram = families["moongate_request_duration_seconds"]
    mine = [sample for sample in histogram.samples if sample.labels.get("route") == route]
    buckets = [sample.value for sample in mine if sample.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == 7
    assert next(sample.value for sample in mine if sample.name.endswith("_count")) == 7
    assert token not in requests.get(f"{gateway.admin}/metrics", timeout=10).text


def test_the_outcomes_of_a_bad_upstream(logged):
    gateway = logged
    gateway.upstream.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"
    assert requests.get(f"{gateway.url}/open/lies", timeout=10).status_code == 502
    families = metrics(gateway)
    assert value(families, "moongate_requests", route="/open/**", outcome="failed", status="5xx") == 1
    [line] = wait_for(lambda: lines(gateway), "the line")
    assert line["outcome"] == "failed" and line["status"] == 502 and line["decision"].startswith("dc_")


def lines(gateway):
    return [json.loads(line) for line in gateway.access.read_text().splitlines()] if gateway.access.exists() else []


def found(gateway, path):
    return wait_for(lambda: [line for line in lines(gateway) if line.get("path") == path], f"the line of {path}")[-1]


def test_the_access_log(logged):
    gateway = logged
    assert stat.S_IMODE(gateway.access.stat().st_mode) == 0o600
    done = gateway.register("+919876500301")
    token = done["session"]["token"]
    assert (
        requests.post(
            f"{gateway.url}/closed/a?secret=1", data="12345", headers={"Cookie": f"moongate={token}"}, timeout=10
        ).status_code
        == 200
    )
    line = found(gateway, "/closed/a")
    assert line["method"] == "POST" and line["status"] == 200 and line["bytes"] == 5 and line["outcome"] == "passed"
    assert line["route"] == "/closed/**" and line["account"] == done["account"]["id"] and line["client"] == "127.0.0.1"
    assert line["host"] == f"localhost:{gateway.ports[0]}" and line["protocol"] == "http/1.1" and 0 <= line["ms"] < 10_000
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    refused = requests.get(f"{gateway.url}/closed/b", timeout=10).json()
    assert found(gateway, "/closed/b")["decision"] == refused["decision_id"]
    # A reader of the log cannot take over a flow.
    flow = gateway.flow()
    gateway.begin(flow, "+919876500302")
    gateway.submit(
        flow,
        wrong(gateway.code("+919876500302")) if any(e["to"] == "+919876500302" for e in gateway.outbox()) else "000000",
    )
    wait_for(lambda: any(line.get("path", "").endswith("/submit") for line in lines(gateway)), "the submit")
    text = gateway.access.read_text()
    for secret in (token, flow, "secret=1", "+9198765"):
        assert secret not in text, secret
    # Client values cannot forge log lines.
    before = len(lines(gateway))
    requests.get(f'{gateway.url}/open/"quoted"\\and{{braces}}', timeout=10)
    assert found(gateway, '/open/%22quoted%22%5Cand%7Bbraces%7D') or len(lines(gateway)) == before + 1


def test_the_log_is_reopened_at_sighup(logged):
    import signal

    gateway = logged
    requests.get(f"{gateway.url}/open/one", timeout=10)
    found(gateway, "/open/one")
    gateway.access.rename(gateway.access.with_suffix(".1"))
    gateway.server.process.send_signal(signal.SIGHUP)
    wait_for(gateway.access.exists, "a new file")
    requests.get(f"{gateway.url}/open/two", timeout=10)
    found(gateway, "/open/two")
    assert "/open/two" not in gateway.access.with_suffix(".1").read_text()


def test_unopenable_log_is_reported_at_the_start(new_gateway):
    server = new_gateway.serve(MOONGATE_ACCESS_LOG="/nowhere/at/all.log")
    assert server.process.wait(30) == 2
    server.reader.join(5)
    assert "/nowhere/at/all.log" in server.output


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def asked(gateway, path, headers):
    assert requests.get(f"{gateway.url}{path}", headers=headers, timeout=10).status_code == 200
    head = gateway.upstream.all[gateway.upstream.all.rindex(b"GET " + path.encode()) :].split(b"\r\n\r\n")[0].decode()
    return [line.split(": ", 1)[1] for line in head.split("\r\n") if line.lower().startswith("traceparent:")], [
        line.split(": ", 1)[1] for line in head.split("\r\n") if line.lower().startswith("tracestate:")
    ]


def test_trace_is_continued(logged):
    [parent], state = asked(logged, "/open/t1", {"traceparent": PARENT, "tracestate": "a=1,b=2"})
    assert (
        parent[:36] == PARENT[:36]
        and parent[36:52] != PARENT[36:52]
        and parent.endswith("-01")
        and state == ["a=1,b=2"]
    )
    line = found(logged, "/open/t1")
    assert line["trace"] == PARENT[3:35] and line["span"] == parent[36:52]


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "",
        "00",
        PARENT.upper(),
        PARENT + "-x",
        PARENT.replace("00-", "ff-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        PARENT.replace("-", "_"),
        "0" * 5000,
    ],
)
def test_a_trace_begins(logged, sent):
    headers = {"tracestate": "a=1"}
    if sent is not None:
        headers["traceparent"] = sent
    [parent], state = asked(logged, "/open/t2", headers)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-03", parent) and parent[3:35] != PARENT[3:35] and state == []
    assert found(logged, "/open/t2")["trace"] == parent[3:35]


def test_later_version_of_the_header_is_accepted(logged):
    [parent], _ = asked(logged, "/open/t3", {"traceparent": PARENT.replace("00-", "cc-", 1) + "-what-follows"})
    assert parent.startswith("00-" + PARENT[3:35])


def test_without_a_log_headers_pass_as_they_came(new_gateway, upstream):
    routed(new_gateway, upstream.port)
    new_gateway.start()
    new_gateway.upstream = upstream
    assert asked(new_gateway, "/open/t4", {"traceparent": PARENT, "tracestate": "a=1"}) == ([PARENT], ["a=1"])
    assert asked(new_gateway, "/open/t5", {}) == ([], [])
