"""Random frames of services of HTTP/2, compared with what PyPI h2 reads of the same streams. Whatever a service sends,
each client gets the response to its own request, and nothing that is incomplete looks complete.

`make fuzz-http2` runs 100,000 streams.
"""

import collections
import os
import random
import socket
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import hpack
import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from local_gateway import LocalGateway, wait_for
from test_routes_http2 import lines
from test_tls import certificate, speak_tls
from wire import H2Client

SEED = int(os.environ.get("HTTP2_FUZZ_SEED", "20240229"))
STREAMS = int(os.environ.get("HTTP2_FUZZ_STREAMS", "3000"))
# Fewer streams on a machine that is busy.
SECONDS = float(os.environ.get("HTTP2_FUZZ_SECONDS", "15"))

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# Fields that make a response malformed.
BAD = [
    *[("x", text) for text in [" a", "a ", "\ta", "a\nb", "a\r\nb: c", "a\0", "a\r\n\r\nHTTP/1.1 200 OK"]],
    *[("connection", "close"), ("keep-alive", "1"), ("transfer-encoding", "chunked"), ("upgrade", "h2c")],
    *[("X-Upper", "a"), ("a b", "c"), (":status", "201"), (":path", "/")],
]
GOOD = [("x-long", "y" * 3000), ("x-inner", "a b\tc"), ("x-empty", ""), ("set-cookie", "a=b"), ("date", "now")]


class Script:
    """What a service sends on a stream: heads as lists of fields, DATA as bytes, resets as codes."""

    def __init__(self, name, generator):
        self.name, self.random = name, generator
        self.is_clean = generator.random() < 0.5
        self.steps = list(self._steps())

    def _steps(self):
        choice, chance = self.random.choice, self.random.random
        for _ in range(choice([0, 0, 0, 1, 2])):
            yield ("head", [(":status", choice(["100", "103"])), ("x-name", self.name)], False)
        pieces = [self._piece() for _ in range(choice([0, 0, 1, 1, 2, 5]))]
        length = sum(map(len, pieces))
        fields = [(":status", choice(["200", "200", "404", "500"])), ("x-name", self.name)]
        fields += self.random.sample(GOOD, choice([0, 0, 1, 2]))
        fault = None if self.is_clean else choice(["length", "field", "early", "reset", "again", "trailers", "never"])
        if chance() < 0.5 or fault == "length":
            fields.append(("content-length", str(max(0, length + (choice([-1, 1, 10]) if fault == "length" else 0)))))
        if fault == "field":
            fields.insert(self.random.randrange(1, len(fields) + 1), choice(BAD))
        if fault == "early":
            yield ("data", self._piece() or b"x", chance() < 0.5)
        ends = "data" if chance() < 0.7 or fault in ("length", "field") else "trailers"
        yield ("head", fields, not pieces and ends == "data" and fault in (None, "length", "field"))
        for place, piece in enumerate(pieces):
            is_last = place == len(pieces) - 1 and ends == "data" and fault in (None, "length", "field")
            yield ("data", piece, is_last)
        if fault == "reset":
            yield ("reset", self.random.randrange(14), True)
        elif fault == "again":
            yield ("head", fields, chance() < 0.5)
        elif fault == "trailers":
            yield ("head", [choice([field for field in BAD if field[0] != "content-length"])], True)
        elif fault in (None, "early") and ends == "trailers":
            yield ("head", [("x-trailer", self.name)], True)
        elif fault == "never":
            yield ("reset", 2, True)
        elif fault == "early" or not pieces and fault is None and ends != "data":
            yield ("data", b"", True)

    def _piece(self):
        hidden = f"HTTP/1.1 200 OK\r\nX-Name: {self.name}\r\nContent-Length: 0\r\n\r\n"
        text = self.random.choice([hidden, "0\r\n\r\n" + hidden, "5\r\nhello\r\n", self.name, "", self.name * 300])
        return text.encode()

    def expected(self):
        """What h2 reads: the status, the body, the trailers and whether the response is whole."""
        client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        client.initiate_connection()
        client.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")], True)
        encoder, status, body, trailers, is_whole = hpack.Encoder(), None, b"", {}, False
        try:
            client.receive_data(SettingsFrame(0).serialize())
            for kind, content, ends in self.steps:
                data = b"".join(frame.serialize() for frame in frames(encoder, 1, kind, content, ends))
                for event in client.receive_data(data):
                    if isinstance(event, h2.events.ResponseReceived):
                        status = int(dict(event.headers)[":status"])
                    elif isinstance(event, h2.events.DataReceived):
                        body += event.data
                    elif isinstance(event, h2.events.TrailersReceived):
                        trailers = dict(event.headers)
                    elif isinstance(event, h2.events.StreamEnded):
                        is_whole = True
        except (h2.exceptions.H2Error, UnicodeDecodeError):
            is_whole = False
        return status, body, trailers, is_whole


def frames(encoder, number, kind, content, ends, split=None):
    """The frames of a step of a stream, a head in several if `split` says where."""
    if kind == "data":
        return [DataFrame(number, content, flags=["END_STREAM"] if ends else [])]
    if kind == "reset":
        return [RstStreamFrame(number, error_code=content)]
    block = encoder.encode([(name.encode("latin-1"), text.encode("latin-1")) for name, text in content])
    flags = ["END_STREAM"] if ends else []
    if split is None:
        return [HeadersFrame(number, block, flags=["END_HEADERS", *flags])]
    at = int(split * len(block))
    return [HeadersFrame(number, block[:at], flags=flags), ContinuationFrame(number, block[at:], flags=["END_HEADERS"])]


class Connection(threading.Thread):
    """A connection of the gateway, on which the steps of all streams are sent in a random order."""

    def __init__(self, service, sock, generator):
        super().__init__(daemon=True)
        self.service, self.socket, self.random = service, sock, generator
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.block, self.left = b"", {}
        self.has_lethal = generator.random() < 0.1

    def run(self):
        try:
            with self.socket, self.socket.makefile("rb") as stream:
                if stream.read(len(PREFACE)) != PREFACE:
                    return self.service.faults.append("no preface")
                self.socket.sendall(SettingsFrame(0, settings=self.random.choice([{}, {3: 7}, {4: 100}])).serialize())
                while head := stream.read(9):
                    length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
                    self.note(kind, flags, int.from_bytes(head[5:]), stream.read(length))
                    # Streams gather, so that their frames mix.
                    if not stream.peek(1)[:1] or self.random.random() < 0.3 or len(self.left) > 20:
                        self.send()
        except OSError:
            pass

    def note(self, kind, flags, number, payload):
        if kind in (1, 9):
            self.block += payload
            if flags & 4:
                path, self.block = dict(self.decoder.decode(self.block))[":path"], b""
                name = path.rpartition("/")[2]
                self.service.asked[name] += 1
                self.left[number] = list(self.service.scripts[name].steps)
                self.send()
        elif kind == 3:
            self.left.pop(number, None)
        elif kind == 4 and not flags & 1:
            self.socket.sendall(SettingsFrame(0, flags=["ACK"]).serialize())

    def send(self):
        batch = b""
        while self.left:
            number = self.random.choice(list(self.left))
            step = self.left[number].pop(0)
            if not self.left[number]:
                del self.left[number]
            split = self.random.random() if self.random.random() < 0.1 else None
            made = frames(self.encoder, number, *step, split=split)
            if step[0] == "data" and self.random.random() < 0.1:
                made[0].flags.add("PADDED")
                made[0].pad_length = self.random.randrange(200)
            batch += b"".join(frame.serialize() for frame in made)
            if self.random.random() < 0.1:
                batch += self.noise(number)
            if self.random.random() < 0.3:
                self.socket.sendall(batch)
                batch = b""
        self.socket.sendall(batch)

    def noise(self, number):
        choice = self.random.choice
        if self.has_lethal and self.random.random() < 0.05:
            return choice(
                [
                    WindowUpdateFrame(0, window_increment=2**31 - 1).serialize() * 2,
                    ContinuationFrame(number, b"\x88").serialize(),
                    DataFrame(number + 1000, b"x").serialize(),
                    SettingsFrame(0, settings={5: 5}).serialize(),
                    GoAwayFrame(0, last_stream_id=number, error_code=choice([0, 2, 11])).serialize(),
                    self.random.randbytes(30),
                ]
            )
        unknown = bytes([0, 0, 9, self.random.randrange(20, 256), 0, 0, 0, 0, 1]) + b"HTTP/1.1 "
        return choice(
            [
                WindowUpdateFrame(0, window_increment=choice([1, 5, 1000])).serialize(),
                SettingsFrame(0, settings={choice([1, 6, 99]): choice([16384, 65535])}).serialize(),
                PriorityFrame(number, depends_on=0, stream_weight=1).serialize(),
                PingFrame(0, b"12345678").serialize(),
                unknown,
            ]
        )


class Service:
    def __init__(self, generator):
        self.scripts, self.asked, self.faults, self.connections = {}, collections.Counter(), [], []
        self.random = generator
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(Connection(self, sock, random.Random(self.random.random())))
            self.connections[-1].start()

    def close(self):
        self.listener.close()


@pytest.fixture(scope="module")
def service():
    service = Service(random.Random(SEED))
    yield service
    service.close()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory, service):
    folder = tmp_path_factory.mktemp("gateway")
    gateway = LocalGateway(folder)
    cert, key = certificate(folder, "one")
    speak_tls(gateway, cert, key)
    to = f'to = "h2c://127.0.0.1:{service.port}"'
    gateway.edit("routes.lua", lines(f'path = "/open/**", {to}, allow = true, timeout = "5s"'))
    try:
        yield gateway.start()
    finally:
        gateway.stop()


def results(client, numbers):
    """The status, body, trailers and end of each stream."""
    deadline = time.monotonic() + 20
    over = set()
    while not client.ended and over < numbers and time.monotonic() < deadline:
        client.listen(lambda event: False, 0.3)
        ends = (h2.events.StreamEnded, h2.events.StreamReset)
        over = {event.stream_id for event in client.events if isinstance(event, ends)}
    found = {number: [None, b"", {}, None] for number in numbers}
    for event in client.events:
        result = found.get(getattr(event, "stream_id", None))
        if result is None:
            continue
        if isinstance(event, h2.events.ResponseReceived):
            result[0] = int(dict(event.headers)[":status"])
        elif isinstance(event, h2.events.DataReceived):
            result[1] += event.data
        elif isinstance(event, h2.events.TrailersReceived):
            result[2] = dict(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            result[3] = "end"
        elif isinstance(event, h2.events.StreamReset):
            result[3] = result[3] or "reset"
    return found


def test_random_answers(fuzzed, service):
    """Attack: response splitting, and responses for others, by frames of a service."""
    generator = random.Random(SEED + 1)
    deadline = time.monotonic() + SECONDS
    counts, findings, examples = collections.Counter(), collections.Counter(), {}
    while counts["streams"] < STREAMS and time.monotonic() < deadline:
        client = H2Client(fuzzed.ports[0])
        asked = {}
        for place in range(generator.randrange(1, 40)):
            name = f"n{counts['connections']}-{place}."
            service.scripts[name] = Script(name, generator)
            method = generator.choice(["GET", "GET", "POST"])
            number = client.h2.get_next_available_stream_id()
            client.h2.send_headers(number, client.headers(f"/open/{name}", method), end_stream=True)
            asked[number] = name
        client.flush()
        found = results(client, set(asked))
        client.close()
        assert fuzzed.server.runs, fuzzed.log[-5000:]
        for number, name in asked.items():
            fault = judge(service.scripts[name], *found[number], counts)
            findings[fault] += 1
            examples.setdefault(fault, (name, service.scripts[name].steps, found[number]))
        counts["connections"] += 1
        counts["streams"] += len(asked)
    del findings[None]
    print(f"seed {SEED}:", dict(counts), dict(findings))
    for fault in findings:
        print(f"{fault}: {str(examples[fault])[:4000]}")
    assert not findings and not service.faults
    # Every connection of the gateway has ended or is idle: nothing waits for ever.
    assert counts["whole"] > counts["streams"] / 4, counts
    wait_for(lambda: "an upstream failed" in fuzzed.log, "the lines about broken responses", 5)


def judge(script, status, body, trailers, end, counts):
    """How the response differs from what h2 reads; None if it does not."""
    wanted, sent, last, is_whole = script.expected()
    counts[end if status != 502 else "502"] += 1
    if end is None:
        return "no end"
    if status == 502 and wanted != 502:
        # Frames for other streams may have ended the connection.
        counts["collateral"] += script.is_clean
        return None if not is_whole or counts["collateral"] < counts["streams"] / 5 + 100 else "a good response is 502"
    if status != wanted:
        return "another status"
    if not sent.startswith(body):
        return "another body"
    if end == "end":
        counts["whole"] += 1
        if not is_whole or body != sent:
            return "a broken response looks complete"
        if trailers != {name: text for name, text in last.items() if name == "x-trailer"}:
            return "other trailers"
    return None
