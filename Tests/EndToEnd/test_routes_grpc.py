"""gRPC through the gateway, with clients and services of grpcio and without generated code: calls of all four kinds,
errors, metadata, time and access."""

import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
import requests

from local_gateway import LocalGateway, wait_for
from test_routes_http2 import lines
from test_tls import certificate, speak_tls


class Service:
    """`demo.Echo`, whose messages are bytes."""

    def __init__(self, port=0, grace=5):
        self.seen, self.cancelled, self.grace = [], threading.Event(), grace
        self.server = grpc.server(ThreadPoolExecutor(64), options=[("grpc.max_receive_message_length", 64 << 20)])
        self.server.add_generic_rpc_handlers([Handlers(self)])
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def stop(self):
        self.server.stop(self.grace).wait()

    def note(self, context):
        self.seen.append(dict(context.invocation_metadata()))

    def unary(self, request, context):
        self.note(context)
        if request.startswith(b"fail"):
            context.set_trailing_metadata((("x-why", "said so"), ("x-why-bin", b"\x00\xff")))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "não é possível")
        if request == b"slow":
            context.add_callback(self.cancelled.set)
            time.sleep(5)
        context.set_trailing_metadata((("x-after", "1"), ("x-after-bin", b"\x00\x01\xff")))
        return request

    def downstream(self, request, context):
        """The number of messages, the seconds between them, and their size."""
        count, pause, size = request.split(b",")
        for number in range(int(count)):
            yield b"%d" % number + b"x" * int(size)
            time.sleep(float(pause))

    def upstream(self, requests, context):
        sizes = [len(request) for request in requests]
        return b"%d,%d" % (len(sizes), sum(sizes))

    def both(self, requests, context):
        for request in requests:
            if request == b"enough":
                return
            if request == b"fail":
                context.abort(grpc.StatusCode.ABORTED, "in the middle")
            yield b"re: " + request


class Handlers(grpc.GenericRpcHandler):
    def __init__(self, service):
        self.kinds = {
            "/demo.Echo/Unary": grpc.unary_unary_rpc_method_handler(service.unary),
            "/demo.Echo/Down": grpc.unary_stream_rpc_method_handler(service.downstream),
            "/demo.Echo/Up": grpc.stream_unary_rpc_method_handler(service.upstream),
            "/demo.Echo/Both": grpc.stream_stream_rpc_method_handler(service.both),
        }

    def service(self, details):
        return self.kinds.get(details.method)


class Client:
    """The four calls of `demo.Echo` on a channel of its own."""

    def __init__(self, target, certificate=None, options=()):
        options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1), *options]
        if certificate:
            self.channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(certificate), options)
        else:
            self.channel = grpc.insecure_channel(target, options)
        self.unary = self.channel.unary_unary("/demo.Echo/Unary")
        self.down = self.channel.unary_stream("/demo.Echo/Down")
        self.up = self.channel.stream_unary("/demo.Echo/Up")
        self.both = self.channel.stream_stream("/demo.Echo/Both")

    def close(self):
        self.channel.close()


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, service):
    folder = tmp_path_factory.mktemp("gateway")
    gateway = LocalGateway(folder)
    cert, key = certificate(folder, "one")
    gateway.certificate = cert
    speak_tls(gateway, cert, key)
    to = f'to = "h2c://127.0.0.1:{service.port}"'
    # Calls have no path that tells routes apart, so their hosts do: localhost is open.
    gateway.edit(
        "routes.lua",
        lines(
            f'path = "/demo.Echo/**", host = "localhost", {to}, allow = true, timeout = "2s", body = "64MiB"',
            f'path = "/demo.Echo/**", host = "127.0.0.1", {to}, tokens = true',
            f'path = "/demo.Echo/**", {to}, require = {{ group = "staff" }}, tokens = true',
        ),
    )
    (gateway.config / "accounts.lua").write_text("return accounts { groups = { staff = members() } }\n")
    os.environ["REQUESTS_CA_BUNDLE"] = str(cert)
    try:
        yield gateway.start()
    finally:
        del os.environ["REQUESTS_CA_BUNDLE"]
        gateway.stop()


def connect(gateway, host="localhost", **options):
    """A client whose calls are for the host."""
    named = [("grpc.ssl_target_name_override", "localhost"), ("grpc.default_authority", host)]
    return Client(f"127.0.0.1:{gateway.ports[0]}", gateway.certificate.read_bytes(), named, **options)


@pytest.fixture
def client(gateway):
    client = connect(gateway)
    yield client
    client.close()


# Calls of all kinds.


def test_a_unary_call(service, client):
    answer, call = client.unary.with_call(b"hello", timeout=10, metadata=[("x-own", "a b"), ("x-own-bin", b"\x00\xfe")])
    assert answer == b"hello" and call.code() == grpc.StatusCode.OK
    assert dict(call.trailing_metadata()) == {"x-after": "1", "x-after-bin": b"\x00\x01\xff"}
    seen = service.seen[-1]
    assert seen["x-own"] == "a b" and seen["x-own-bin"] == b"\x00\xfe" and seen["x-forwarded-proto"] == "https"


def test_many_calls_at_once(client):
    calls = [client.unary.future(b"%d" % number, timeout=30) for number in range(500)]
    assert [call.result() for call in calls] == [b"%d" % number for number in range(500)]


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_large_messages(client, compression):
    message = os.urandom(1 << 20) * 5
    assert client.unary(message, timeout=30, compression=compression) == message


def test_messages_of_the_service(client):
    answers = list(client.down(b"1000,0,100", timeout=30))
    assert answers == [b"%d" % number + b"x" * 100 for number in range(1000)]
    assert sum(map(len, client.down(b"40,0,500000", timeout=30))) == 40 * 500_000 + sum(len(str(n)) for n in range(40))


def test_messages_of_the_client(client):
    assert client.up(iter([b"x" * 1000] * 3000), timeout=30) == b"3000,3000000"
    assert client.up(iter([]), timeout=10) == b"0,0"


def test_messages_both_ways_in_turns(client):
    questions = queue.Queue()
    call = client.both(iter(questions.get, None), timeout=30)
    for number in range(20):
        questions.put(b"%d" % number)
        assert next(call) == b"re: %d" % number
    questions.put(None)
    assert list(call) == [] and call.code() == grpc.StatusCode.OK


def test_a_service_that_ends_first(client):
    questions = queue.Queue()
    call = client.both(iter(questions.get, None), timeout=10)
    questions.put(b"a")
    assert next(call) == b"re: a"
    questions.put(b"enough")
    assert list(call) == [] and call.code() == grpc.StatusCode.OK
    questions.put(None)


# Errors.


def code(call):
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code()


def test_errors_have_their_details(client):
    with pytest.raises(grpc.RpcError) as refused:
        client.unary(b"fail", timeout=10)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert refused.value.details() == "não é possível"
    # Without a message, the head of the response is all that there is, with its own fields.
    assert {"x-why": "said so", "x-why-bin": b"\x00\xff"}.items() <= dict(refused.value.trailing_metadata()).items()


def test_an_error_within_a_stream(client):
    call = client.both(iter([b"a", b"fail"]), timeout=10)
    assert next(call) == b"re: a"
    assert code(lambda: next(call)) == grpc.StatusCode.ABORTED and call.details() == "in the middle"


def test_a_method_that_does_not_exist(client):
    assert code(lambda: client.channel.unary_unary("/demo.Echo/None")(b"", timeout=10)) == grpc.StatusCode.UNIMPLEMENTED
    # A route for users, which a call without a session or a token does not pass.
    assert code(lambda: client.channel.unary_unary("/none.At/All")(b"", timeout=10)) == grpc.StatusCode.UNAUTHENTICATED


def test_a_deadline_cancels_the_call(service, client):
    began = time.monotonic()
    assert code(lambda: client.unary(b"slow", timeout=0.5)) == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 2 and service.cancelled.wait(5)


def test_a_service_that_does_not_answer_in_time(client):
    """`timeout` of the route, which a client maps to its own code."""
    assert code(lambda: client.unary(b"slow", timeout=20)) == grpc.StatusCode.UNAVAILABLE


# Time.


def test_a_stream_may_be_silent_for_longer_than_the_timeout(client):
    answers = []
    began = time.monotonic()
    for answer in client.down(b"3,3,0", timeout=60):
        answers.append(answer)
    assert answers == [b"0", b"1", b"2"] and time.monotonic() - began > 6


def test_a_client_may_be_silent_within_its_messages(client):
    """Longer than `body_rate` allows to an upload, once the service has answered."""
    questions = queue.Queue()
    call = client.both(iter(questions.get, None), timeout=60)
    for number in range(2):
        questions.put(b"%d" % number)
        assert next(call) == b"re: %d" % number
        time.sleep(12)
    questions.put(None)
    assert list(call) == []


def test_a_restarted_service_loses_no_call(tmp_path):
    """It says GOAWAY, serves what it has begun, and its successor gets the rest."""
    first = Service()
    gateway = LocalGateway(tmp_path)
    cert, key = certificate(tmp_path, "one")
    gateway.certificate = cert
    speak_tls(gateway, cert, key)
    to = f'to = "h2c://127.0.0.1:{first.port}"'
    gateway.edit("routes.lua", lines(f'path = "/demo.Echo/**", {to}, allow = true'))
    client = None
    try:
        gateway.start()
        client = connect(gateway)
        down = client.down(b"4,0.5,0", timeout=30)
        assert next(down) == b"0"
        ending = threading.Thread(target=first.stop)
        ending.start()
        assert [answer for answer in down] == [b"1", b"2", b"3"]
        ending.join()
        second = Service(first.port)
        assert client.unary(b"after", timeout=10) == b"after"
        second.stop()
        assert code(lambda: client.unary(b"nobody", timeout=10)) == grpc.StatusCode.UNAVAILABLE
    finally:
        if client:
            client.close()
        gateway.stop()


# Access.


@pytest.fixture(scope="module")
def token(gateway):
    answer = requests.post(f"{gateway.admin}/tokens", json={"name": "robot"}, timeout=10)
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


def test_a_call_needs_a_token(gateway, service, token):
    client = connect(gateway, "127.0.0.1")
    assert code(lambda: client.unary(b"", timeout=10)) == grpc.StatusCode.UNAUTHENTICATED
    assert code(lambda: client.unary(b"", timeout=10, metadata=[("authorization", "Bearer mgt_x")])) == (
        grpc.StatusCode.UNAUTHENTICATED
    )
    bearer = [("authorization", f"Bearer {token}"), ("remote-user", "root"), ("x-moongate-assertion", "x")]
    assert client.unary(b"in", timeout=10, metadata=bearer) == b"in"
    seen = service.seen[-1]
    # Attack: a program that names itself as another, and a service that gets the token of its caller.
    assert seen["remote-user"] == "token:robot" and seen["x-moongate-assertion"].count(".") == 2
    assert "authorization" not in seen and token not in str(seen)
    client.close()


def test_a_call_needs_the_group(gateway, token):
    client = connect(gateway, "staff.localhost")
    bearer = [("authorization", f"Bearer {token}")]
    assert code(lambda: client.unary(b"", timeout=10, metadata=bearer)) == grpc.StatusCode.PERMISSION_DENIED
    client.close()


def test_a_revoked_token_ends_its_streams(gateway):
    made = requests.post(f"{gateway.admin}/tokens", json={"name": "short"}, timeout=10).json()
    client = connect(gateway, "127.0.0.1")
    questions = queue.Queue()
    call = client.both(iter(questions.get, None), timeout=60, metadata=[("authorization", f"Bearer {made['token']}")])
    questions.put(b"a")
    assert next(call) == b"re: a"
    assert requests.delete(f"{gateway.admin}/tokens/short", timeout=10).ok
    wait_for(lambda: call.code() is not None if not call.is_active() else False, "the end of the stream", 10)
    assert call.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN)
    questions.put(None)
    client.close()
