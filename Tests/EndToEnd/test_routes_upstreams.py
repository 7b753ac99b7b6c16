"""Several upstreams of a route: they die, fail and come back. TLS with certificates on both sides."""

import collections
import http.server
import json
import socket
import ssl
import subprocess
import threading

import pytest
import requests

from local_gateway import LocalGateway, wait_for
from processes import free_port
from test_metrics import metrics, value


class Service:
    """A service on a fixed port that can die, with all its connections, and come back."""

    def __init__(self, name, tls=None):
        self.name, self.tls = name, tls
        self.port = free_port()
        self.requests = []
        self.status, self.health = 200, 204
        self.start()

    def start(self):
        service = self
        connections = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Each response is one write, so that a service that dies leaves no half of one.
            wbufsize = 65536

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/healthz":
                    self.send_response(service.health)
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                seen = {
                    "service": service.name,
                    "method": self.command,
                    "path": self.path,
                    "body": body.decode(),
                    "headers": sorted(name.lower() for name in self.headers.keys()),
                    "client": service.client(self.connection),
                }
                service.requests.append(seen)
                answer = json.dumps(seen).encode()
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_PUT = do_POST = do_DELETE = answer

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def get_request(self):
                connection, address = super().get_request()
                connections.append(connection)
                return connection, address

            def handle_error(self, *_):
                pass

        self.connections = connections
        self.server = Server(("127.0.0.1", self.port), Handler)
        if self.tls:
            self.server.socket = self.tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    @staticmethod
    def client(connection):
        """The name in the certificate of the client."""
        if not isinstance(connection, ssl.SSLSocket) or not (found := connection.getpeercert()):
            return None
        return dict(pair for part in found["subject"] for pair in part)["commonName"]

    def die(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    @property
    def address(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"


@pytest.fixture
def services():
    services = [Service(name) for name in ("one", "two", "three")]
    yield services
    for service in services:
        service.die()


@pytest.fixture
def routed(tmp_path, services):
    """A function that starts a gateway whose route /several/** has the services and these fields."""
    gateways = []

    def start(fields):
        gateway = LocalGateway(tmp_path)
        gateways.append(gateway)
        targets = ", ".join(f'"{service.address}"' for service in services)
        route(gateway, f'path = "/several/**", to = {{ {targets} }}, {fields}')
        return gateway.start()

    yield start
    for gateway in gateways:
        gateway.stop()


def route(gateway, *routes):
    """Puts the routes in front of the others."""
    text = ", ".join(f"{{ {fields} }}" for fields in routes)
    gateway.edit("routes.lua", lambda known: known.replace("return routes {", f"return routes {{ {text},", 1))


def get(gateway, path="/several/x", **options):
    return requests.get(gateway.url + path, timeout=20, **options)


def users_meanwhile(gateway, path, work):
    """Requests of several clients on connections that they keep, while the work is done: the statuses."""
    statuses, over = collections.Counter(), threading.Event()

    def ask():
        with requests.Session() as session:
            while not over.is_set():
                try:
                    statuses[session.get(gateway.url + path, timeout=20).status_code] += 1
                except requests.RequestException as fault:
                    statuses[type(fault).__name__] += 1

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        work(statuses)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return statuses


@pytest.mark.parametrize("balance", ["first", "round_robin", "least_busy"])
def test_upstreams_die_and_come_back(routed, services, balance):
    gateway = routed(f'allow = true, balance = "{balance}", retry = {{ on = {{ "connect" }}, times = 3 }}')

    def each_dies_once(statuses):
        for service in services:
            service.die()
            before = sum(statuses.values())
            wait_for(lambda: sum(statuses.values()) >= before + 100, "requests without it")
            service.start()
            before = len(service.requests)
            # `first` uses the others only while the first one is away.
            if balance != "first" or service is services[0]:
                wait_for(lambda: len(service.requests) > before, "requests with it")

    statuses = users_meanwhile(gateway, "/several/x", each_dies_once)
    assert set(statuses) == {200}, statuses
    lines = [line for line in gateway.log.splitlines() if "an upstream failed, and the request was retried" in line]
    assert any(services[0].address in line for line in lines), lines
    assert value(metrics(gateway), "moongate_upstream_retries", upstream=services[0].address) >= 1


def test_all_upstreams_die_and_come_back(routed, services):
    gateway = routed('allow = true, balance = "round_robin", retry = { on = { "connect" }, times = 5 }')
    assert get(gateway).status_code == 200
    for service in services:
        service.die()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(get(gateway)))
    asking.start()
    wait_for(lambda: "the request was retried" in gateway.log, "an attempt")
    services[1].start()
    asking.join()
    assert answers[0].status_code == 200 and answers[0].json()["service"] == "two"
    services[1].die()
    refused = get(gateway)
    assert refused.status_code == 502 and refused.json()["code"] == "upstream_unavailable"
    for service in services:
        service.start()
    wait_for(lambda: get(gateway).status_code == 200, "the upstreams")


def test_a_failing_upstream_gets_no_second_response_out(routed, services):
    """The statuses that `retry` names are dropped for idempotent requests, whose body is sent again."""
    gateway = routed('allow = true, retry = { on = { "503" }, times = 1 }')
    services[0].status = 503
    for method, body in [("GET", ""), ("PUT", "hello"), ("PUT", "a" * 60_000), ("DELETE", "")]:
        answer = requests.request(method, f"{gateway.url}/several/{method}", data=body, timeout=20)
        seen = answer.json()
        assert answer.status_code == 200 and seen["service"] == "two"
        assert seen["method"] == method and seen["body"] == body
    assert [seen["body"] for seen in services[0].requests] == [seen["body"] for seen in services[1].requests]
    asked = len(services[1].requests)
    for method, body in [("POST", "hello"), ("PUT", "a" * 70_000)]:
        answer = requests.request(method, f"{gateway.url}/several/{method}", data=body, timeout=20)
        assert answer.status_code == 503 and answer.json()["service"] == "one"
    assert len(services[1].requests) == asked
    # If every attempt fails, the last response is the user's.
    services[1].status = 503
    answer = get(gateway)
    assert answer.status_code == 503 and answer.json()["service"] == "two"
    assert value(metrics(gateway), "moongate_upstream_retries", upstream=services[0].address, cause="status") == 5


def test_an_account_keeps_its_upstream(routed, services):
    """Attack: a cookie or a header tells which account, or which upstream, a request has."""
    gateway = routed('balance = "sticky"')
    old = gateway.policy()["active"]
    route(gateway, f'path = "/plain/**", to = "{services[0].address}"')
    gateway.wait_generation(old)
    cookies = [
        {"Cookie": f"moongate={gateway.register(f'+9198765008{number:02}')['session']['token']}"} for number in range(6)
    ]
    plain = get(gateway, "/plain/x", headers=cookies[0]).json()["headers"]

    def places():
        """The upstreams of each account, on several connections and so on several event loops."""
        found = []
        for cookie in cookies:
            answers = [get(gateway, headers=cookie) for _ in range(6)]
            assert all(answer.status_code == 200 and "Set-Cookie" not in answer.headers for answer in answers)
            assert {name.lower() for name in answers[0].headers} == {"server", "date", "content-length"}
            assert all(answer.json()["headers"] == plain for answer in answers)
            found.append({answer.json()["service"] for answer in answers})
        return found

    first = places()
    assert all(len(place) == 1 for place in first), first
    gone = next(service for service in services if {service.name} == first[0])
    gone.die()
    # A request that finds the upstream gone is served by the next one.
    without = places()
    for before, now in zip(first, without):
        assert gone.name not in now and len(now) == 1
        assert now == before or before == {gone.name}, "the others stay"
    gone.start()
    wait_for(lambda: places() == first, "the accounts of the upstream")


def test_an_upstream_that_fails_its_checks_is_left(routed, services):
    gateway = routed('allow = true, health = { path = "/healthz", every = "1s" }')
    assert get(gateway).json()["service"] == "one"
    services[0].health = 503
    wait_for(lambda: get(gateway).json()["service"] == "two", "the next upstream")
    [line] = [line for line in gateway.log.splitlines() if "an upstream fails its health check" in line]
    assert services[0].address in line and "it answered with 503" in line and "/healthz" in line
    families = metrics(gateway)
    assert value(families, "moongate_upstream_healthy", upstream=services[0].address) == 0
    assert value(families, "moongate_upstream_healthy", upstream=services[1].address) == 1
    assert value(families, "moongate_upstream_health_checks", upstream=services[0].address, outcome="failed") >= 2
    services[0].health = 204
    wait_for(lambda: get(gateway).json()["service"] == "one", "the first upstream")
    assert "an upstream passes its health check again" in gateway.log
    # A service that died is found before a request needs it.
    services[1].die()
    wait_for(
        lambda: value(metrics(gateway), "moongate_upstream_healthy", upstream=services[1].address) == 0, "the check"
    )
    assert get(gateway).json()["service"] == "one"


# Certificates.


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder, name):
        self.folder, self.pem, self.key = folder, folder / f"{name}.pem", folder / f"{name}.key"
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2),
            *("-subj", f"/CN={name}", "-keyout", self.key, "-out", self.pem),
        )

    def issue(self, name, file, names="DNS:wiki.internal"):
        """A certificate with its key."""
        cert, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        request, fields = self.folder / f"{file}.csr", self.folder / f"{file}.fields"
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", key, "-out", request),
        )
        fields.write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        openssl(
            *("x509", "-req", "-in", request, "-CA", self.pem, "-CAkey", self.key, "-CAcreateserial", "-days", 2),
            *("-extfile", fields, "-out", cert),
        )
        return cert, key


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "ours")


@pytest.fixture
def secured(authority):
    """A service that serves only clients with a certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("wiki", "wiki"))
    context.load_verify_locations(authority.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    service = Service("secured", tls=context)
    yield service
    service.die()


def test_certificates_on_both_sides(new_gateway, tmp_path, authority, secured):
    """Attack: a program at the address of the service, or one that asks the service past the gateway."""
    cert, key = authority.issue("moongate", "moongate", "DNS:moongate.internal")
    other = Authority(tmp_path, "other")
    foreign, foreign_key = other.issue("moongate", "foreign", "DNS:moongate.internal")
    ours = f'ca = "{authority.pem}", cert = "{cert}", key = file "{key}"'
    cases = {
        "good": f'{ours}, name = "wiki.internal"',
        "address": ours,
        "name": f'{ours}, name = "other.internal"',
        "system": f'cert = "{cert}", key = file "{key}", name = "wiki.internal"',
        "authority": f'ca = "{other.pem}", cert = "{cert}", key = file "{key}", name = "wiki.internal"',
        "bare": f'ca = "{authority.pem}", name = "wiki.internal"',
        "foreign": f'ca = "{authority.pem}", cert = "{foreign}", key = file "{foreign_key}", name = "wiki.internal"',
    }
    gateway = new_gateway
    route(
        gateway,
        *(
            f'path = "/{name}/**", to = "{secured.address}", allow = true, upstream_tls = {{ {trust} }}'
            for name, trust in cases.items()
        ),
    )
    gateway.start()
    answer = get(gateway, "/good/x")
    assert answer.status_code == 200 and answer.json()["client"] == "moongate"
    # A connection with one trust is never used for a request of another one.
    # The alert can be lost with the connection.
    unaccepted = ("it does not accept the gateway's certificate", "it closed the connection")
    for name, *causes in [
        ("address", "its certificate is for another name"),
        ("name", "its certificate is for another name"),
        ("system", "is not from an authority that the route trusts"),
        ("authority", "is not from an authority that the route trusts"),
        ("bare", *unaccepted),
        ("foreign", *unaccepted),
    ]:
        refused = get(gateway, f"/{name}/x")
        assert refused.status_code == 502, (name, refused.text)
        decision = requests.get(f"{gateway.admin}/decisions/{refused.json()['decision_id']}", timeout=10).text
        assert any(cause in decision for cause in causes), (name, decision)
    assert [seen["path"] for seen in secured.requests] == ["/good/x"]
    assert "PRIVATE" not in gateway.log
    assert get(gateway, "/good/y").status_code == 200
    # A renewed certificate is used without a restart. The files are replaced one after the other.
    for new, old in zip(authority.issue("renewed", "renewed", "DNS:moongate.internal"), (cert, key)):
        new.rename(old)
    wait_for(lambda: get(gateway, "/good/z").json()["client"] == "renewed", "the new certificate")


def test_checks_and_retries_use_the_certificate(new_gateway, authority, secured):
    cert, key = authority.issue("moongate", "moongate", "DNS:moongate.internal")
    trust = f'upstream_tls = {{ ca = "{authority.pem}", cert = "{cert}", key = file "{key}", name = "wiki.internal" }}'
    gateway = new_gateway
    route(
        gateway,
        f'path = "/several/**", to = {{ "{secured.address}", "https://127.0.0.1:{free_port()}" }}, allow = true, {trust}, '
        'balance = "round_robin", health = { path = "/healthz", every = "1s" }, '
        'retry = { on = { "connect" }, times = 5 }',
    )
    gateway.start()
    for _ in range(4):
        assert get(gateway).json()["client"] == "moongate"
    wait_for(
        lambda: value(metrics(gateway), "moongate_upstream_healthy", upstream=secured.address) == 1
        and value(metrics(gateway), "moongate_upstream_health_checks", upstream=secured.address, outcome="passed") >= 1,
        "a check",
    )
    secured.die()
    secured.start()
    assert get(gateway).json()["client"] == "moongate"
