"""Traces: spans of requests and sign-ins at an OpenTelemetry collector, and what they must not contain."""

import json
import re

import pytest
import requests

from local_gateway import wait_for
from services import Handler, HTTPService
from test_attack_floods import From
from test_http2 import routed
from test_metrics import metrics, value
from wire import Upstream

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TOKEN = "a-token-of-the-collector"


class Collector(HTTPService):
    """Receives spans by OTLP over HTTP."""

    def __init__(self):
        self.bodies, self.status = [], 200
        collector = self

        class Answers(Handler):
            protocol_version = "HTTP/1.0"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert (self.path, self.headers["Content-Type"], self.headers["Authorization"]) == (
                    "/v1/traces",
                    "application/json",
                    f"Bearer {TOKEN}",
                )
                if collector.status == 200:
                    collector.bodies.append(body)
                self.send_response(collector.status)
                self.end_headers()

        super().__init__(Answers)

    @property
    def spans(self):
        found = []
        for body in self.bodies:
            [of_resource] = json.loads(body)["resourceSpans"]
            named = {each["key"]: each["value"]["stringValue"] for each in of_resource["resource"]["attributes"]}
            assert named["service.name"] == "Moongate" and named["service.version"] and named["service.instance.id"]
            [of_scope] = of_resource["scopeSpans"]
            found += of_scope["spans"]
        return found

    def named(self, name, trace=None):
        return [span for span in self.spans if re.fullmatch(name, span["name"]) and trace in (None, span["traceId"])]


def attributes(span):
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


@pytest.fixture
def traced(new_gateway):
    """Starts a gateway that records a share of its requests."""
    gateway, upstream, gateway.collector = new_gateway, Upstream(), Collector()

    def start(sample, more=""):
        settings = f'otlp {{ url = "http://127.0.0.1:{gateway.collector.port}", sample = {sample}, headers = {{ ["Authorization"] = env "OTLP" }} }}'
        gateway.edit(
            "gateway.lua", lambda text: text.replace("  region =", f"  tracing = {settings},{more}\n  region =", 1)
        )
        routed(gateway, upstream.port)
        gateway.upstream = upstream
        return gateway.start(OTLP=f"Bearer {TOKEN}")

    yield start
    upstream.close()
    gateway.collector.end()


def test_a_request_and_a_sign_in_are_whole_traces(traced, number):
    gateway = traced("1")
    collector = gateway.collector
    session = gateway.register(number)["session"]["token"]
    sent = {"Cookie": f"moongate={session}", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-00"}
    assert requests.get(f"{gateway.url}/closed/x?secret=in-the-query", headers=sent, timeout=10).status_code == 200
    wait_for(lambda: collector.named("upstream", TRACE) and collector.named("flow submit"), "the spans", 20)

    # The request belongs to the client's trace, and its children to the request.
    [request] = collector.named(r"GET /closed/\*\*", TRACE)
    [judge], [upstream] = collector.named("judge", TRACE), collector.named("upstream", TRACE)
    assert request["parentSpanId"] == "00f067aa0ba902b7" and request["kind"] == 2
    assert judge["parentSpanId"] == upstream["parentSpanId"] == request["spanId"] and upstream["kind"] == 3
    told = attributes(request)
    assert (
        told["http.request.method"] == "GET"
        and told["http.response.status_code"] == "200"
        and told["http.route"] == "/closed/**"
    )
    moments = [
        int(span[key])
        for span, key in (
            (request, "startTimeUnixNano"),
            (judge, "startTimeUnixNano"),
            (judge, "endTimeUnixNano"),
            (upstream, "endTimeUnixNano"),
            (request, "endTimeUnixNano"),
        )
    ]
    assert moments == sorted(moments)
    # The upstream's spans become children of ours.
    assert f"traceparent: 00-{TRACE}-{upstream['spanId']}-01\r\n".encode() in gateway.upstream.received[-1]

    # A sign-in: call, step, store and delivery, each a child of the previous.
    [delivery] = collector.named("deliver sms")
    spans = {span["spanId"]: span for span in collector.spans}
    trace = [span for span in collector.spans if span["traceId"] == delivery["traceId"]]
    assert {span["name"] for span in trace} >= {"POST (own)", "flow begin", "store write", "deliver sms"}
    roots = [span for span in trace if "parentSpanId" not in span]
    assert [span["name"] for span in roots] == ["POST (own)"]
    assert all(span["parentSpanId"] in spans for span in trace if "parentSpanId" in span)
    assert collector.named("flow submit") and collector.named("store read")

    # Attack: a reader of traces learns identities or inputs.
    code = next(entry["code"] for entry in gateway.outbox() if entry["to"] == number and entry["code"])
    everything = b"".join(collector.bodies).decode()
    for secret in (number, number[1:], session, code, "in-the-query", TOKEN, "ac_", "fl_"):
        assert secret not in everything, secret


def test_untrusted_client_cannot_control_sampling(traced):
    gateway = traced("0", ' trusted_proxies = { "127.0.0.2/32" },')
    collector = gateway.collector
    forced = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    # Attack: a client marks all requests as sampled and fills the operator's collector.
    for _ in range(20):
        requests.get(f"{gateway.url}/open/x", headers=forced, timeout=10)
    # A trusted proxy's flag is used.
    with requests.Session() as proxy:
        proxy.mount("http://", From("127.0.0.2"))
        assert (
            proxy.get(
                f"http://127.0.0.1:{gateway.ports[0]}/open/x",
                headers={**forced, "Host": f"localhost:{gateway.ports[0]}"},
                timeout=10,
            ).status_code
            == 200
        )
    wait_for(lambda: collector.named("upstream"), "the proxy's trace", 20)
    assert len(collector.named(r"GET /open/\*\*", TRACE)) == 1


def test_unavailable_collector_delays_no_request(traced):
    gateway = traced("1")
    gateway.collector.status = 503
    for _ in range(5):
        assert requests.get(f"{gateway.url}/open/x", timeout=10).status_code == 200
    dropped = lambda: (
        "moongate_trace_spans" in metrics(gateway) and value(metrics(gateway), "moongate_trace_spans", outcome="dropped")
    )  # noqa: E731
    wait_for(lambda: dropped() >= 15, "the spans to be dropped", 20)
    assert gateway.log.count("spans cannot be sent to the collector") == 1 and TOKEN not in gateway.log
    gateway.collector.status = 200
    requests.get(f"{gateway.url}/open/x", timeout=10)
    wait_for(lambda: gateway.collector.named("upstream"), "spans again", 20)
    # After removing the setting at runtime, nothing is recorded.
    serving = gateway.policy()["active"]
    gateway.edit("gateway.lua", lambda text: re.sub(r"  tracing = .*?\} \},", "  ", text))
    gateway.wait_generation(serving)
    wait_for(lambda: value(metrics(gateway), "moongate_trace_spans", outcome="sent"), "the count", 5)
    before = len(gateway.collector.spans)
    requests.get(f"{gateway.url}/open/x", timeout=10)
    with requests.Session() as session:
        for _ in range(20):
            session.get(f"{gateway.url}/open/x", timeout=10)
    assert len(gateway.collector.spans) <= before + 3
