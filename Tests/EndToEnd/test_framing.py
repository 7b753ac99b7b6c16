"""Malformed requests in the gateway, h11 and llhttp: the gateway must never interpret bytes as another request than
they do."""

import os
import random
import socket
import threading
import time

import pytest

import framing
from framing import Message
from local_gateway import LocalGateway
from test_http2 import routed

# `make soak` sets a longer time.
SECONDS = float(os.environ.get("MOONGATE_FRAMING_SECONDS", "8"))
SEED = int(os.environ.get("MOONGATE_FRAMING_SEED", "1"))


class Service:
    """Parses the gateway's requests, which have only one form, and numbers them in its responses."""

    def __init__(self):
        self.requests = []
        self.faults = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            try:
                while request := self._request(stream):
                    self.requests.append(request)
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\nX-Number: %d\r\nContent-Length: 0\r\n\r\n" % (len(self.requests) - 1)
                    )
            except OSError:
                pass
            except (ValueError, EOFError) as fault:
                if not isinstance(fault, EOFError):
                    self.faults.append(repr(fault))

    @staticmethod
    def _line(stream):
        line = stream.readline()
        if not line:
            raise EOFError
        if not line.endswith(b"\r\n"):
            # The gateway may cut off a request that it gave up; anything else is an error.
            if line.endswith(b"\n"):
                raise ValueError(line)
            raise EOFError
        return line[:-2]

    def _exactly(self, stream, count):
        data = stream.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def _request(self, stream):
        method, target, version = self._line(stream).split(b" ")
        if version != b"HTTP/1.1":
            raise ValueError(version)
        fields = []
        while line := self._line(stream):
            name, _, value = line.partition(b":")
            fields.append((name.lower(), value.strip(b" \t")))
        lengths = [value for name, value in fields if name == b"content-length"]
        codings = [value for name, value in fields if name == b"transfer-encoding"]
        if len(lengths) + len(codings) > 1 or codings and codings != [b"chunked"]:
            raise ValueError(fields)
        body = b""
        if lengths:
            body = self._exactly(stream, int(lengths[0]))
        elif codings:
            while size := int(self._line(stream), 16):
                body += self._exactly(stream, size)
                if self._line(stream):
                    raise ValueError("a chunk's end")
            if self._line(stream):
                raise ValueError("trailers")
        # Headers that the gateway sets itself.
        ours = (
            b"host",
            b"content-length",
            b"transfer-encoding",
            b"x-forwarded-for",
            b"x-forwarded-proto",
            b"x-forwarded-host",
        )
        return Message(method, target, [field for field in fields if field[0] not in ours], body, True)

    def close(self):
        self.listener.close()


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.close()


@pytest.fixture(scope="module")
def wired(tmp_path_factory, service):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    routed(gateway, service.port)
    # All requests come from one address, so refusals are part of the results.
    try:
        yield gateway.start()
    finally:
        gateway.stop()


def answers(connect, data):
    """The heads of the gateway's responses, as lists of lines."""
    with connect() as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        raw = b""
        try:
            while more := client.recv(65536):
                raw += more
        except ConnectionResetError:
            pass
    heads = []
    while raw:
        head, end, raw = raw.partition(b"\r\n\r\n")
        assert end and head.startswith(b"HTTP/1.1 "), head
        lines = head.split(b"\r\n")
        if lines[0].startswith(b"HTTP/1.1 1"):
            continue
        heads.append(lines)
        length = next((int(line[16:]) for line in lines if line.lower().startswith(b"content-length: ")), 0)
        raw = raw[length:]
    return heads


def forwarded(service, heads):
    """For each response, the request that was sent upstream, or None."""
    numbers = [next((int(line[10:]) for line in lines if line.startswith(b"X-Number: ")), None) for lines in heads]
    return [None if number is None else service.requests[number] for number in numbers]


def compare(connect, service):
    """Sends malformed requests on connections, and compares what the gateway makes of them with other parsers."""
    generator = random.Random(SEED)
    deadline = time.monotonic() + SECONDS
    tried = passed = refused = 0
    while time.monotonic() < deadline:
        data = framing.case(generator)
        before = len(service.requests)
        heads = answers(connect, data)
        messages = forwarded(service, heads)
        tried += 1
        passed += any(message is not None for message in messages)
        refused += any(lines[0].startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")) for lines in heads)
        found = framing.violations(data, messages)
        assert not found, f"case {tried} of seed {SEED}: {data!r}\n" + "\n".join(found)
        # No complete request went upstream without a response.
        assert len(service.requests) - before == sum(message is not None for message in messages), (
            f"case {tried} of seed {SEED}: {data!r}"
        )
    assert not service.faults, service.faults
    print(f"{tried} connections, {passed} with requests that were forwarded, {refused} with refusals (seed {SEED})")
    assert tried > 100 and passed > tried // 5 and refused > tried // 5


def test_forwarded_requests_are_read_alike_by_other_servers(wired, service):
    compare(lambda: socket.create_connection(("127.0.0.1", wired.ports[0]), 10), service)
    assert wired.server.process.poll() is None


@pytest.mark.parametrize(
    "data,wrong",
    [
        # As if Content-Length had priority over chunked; as if whitespace before the colon were allowed; as if a folded
        # line were a field.
        (
            b"POST /open/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            [Message(b"POST", b"/open/a", [], b"5\r\n", True)],
        ),
        (
            b"GET /open/a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /open/b HTTP/1.1\r\nHost: localhost\r\n\r\n",
            [Message(b"GET", b"/open/a", [], b"", True), Message(b"GET", b"/open/c", [], b"", True)],
        ),
        (b"GET /open/a HTTP/1.1\r\nHost: localhost\r\n\r\n", [Message(b"GET", b"/open/a", [(b"x", b"y")], b"", True)]),
        (
            b"POST /open/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc",
            [Message(b"POST", b"/open/a", [], b"abc", True)],
        ),
        (b"GET /open/a HTTP/1.1\r\nHost : localhost\r\n\r\n", [Message(b"GET", b"/open/a", [], b"", True)]),
    ],
)
def test_the_comparison_detects_differences(data, wrong):
    assert framing.violations(data, wrong)
    assert not framing.violations(data, [None] * len(wrong))
