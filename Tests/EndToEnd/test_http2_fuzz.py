"""Random HTTP/2 frame sequences. The gateway must keep serving and release every connection."""

import os
import random
import struct
import time

from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from local_gateway import wait_for
from test_http2 import client, curl, gateway, upstream  # noqa: F401
from test_metrics import metrics, value
from wire import H2Client

SEED = int(os.environ.get("HTTP2_FUZZ_SEED", "20240229"))
SECONDS = float(os.environ.get("HTTP2_FUZZ_SECONDS", "0"))
ROUNDS = 60

PATHS = ["/open/a", "/closed/a", "/echo", "/auth/login", "/api/auth/flows", "/nowhere", "*", "/open/" + "x" * 500]
METHODS = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "CONNECT", "G T"]
FIELDS = [
    ("content-length", "5"),
    ("expect", "100-continue"),
    ("connection", "close"),
    ("cookie", "a=1"),
    ("content-type", "application/json"),
    ("x-long", "y" * 3000),
    ("bad name", "1"),
]


class Fuzz:
    """One connection whose frames come from a seeded generator."""

    def __init__(self, port, generator):
        self.random = generator
        settings = generator.choice([None, None, {4: 0}, {4: 1}, {4: 100}])
        self.client = H2Client(port, settings)
        self.streams = [1]
        self.next = 1

    def head(self):
        if self.random.random() < 0.8:
            stream, self.next = self.next, self.next + 2
            self.streams.append(stream)
        else:
            stream = self.random.choice(self.streams)
        fields = self.client.headers(
            self.random.choice(PATHS),
            self.random.choice(METHODS[:5] if self.random.random() < 0.9 else METHODS),
            self.random.sample(FIELDS, self.random.choice([0, 0, 1, 2])),
        )
        flags = ["END_HEADERS"] + (["END_STREAM"] if self.random.random() < 0.5 else [])
        return HeadersFrame(stream, self.client.h2.encoder.encode(fields), flags=flags).serialize()

    def trailers(self):
        fields = [self.random.choice([("x-trailer", "a"), ("X-Upper", "a"), (":path", "/")])]
        flags = ["END_HEADERS"] + (["END_STREAM"] if self.random.random() < 0.8 else [])
        return HeadersFrame(self.stream(), self.client.h2.encoder.encode(fields), flags=flags).serialize()

    def stream(self):
        return self.random.choice(self.streams[-6:])

    def data(self):
        frame = DataFrame(self.stream(), self.random.randbytes(self.random.choice([0, 1, 5, 100, 16384])))
        if len(frame.data) < 16000 and self.random.random() < 0.2:
            frame.flags.add("PADDED")
            frame.pad_length = self.random.randrange(200)
        if self.random.random() < 0.2:
            frame.flags.add("END_STREAM")
        return frame.serialize()

    def reset(self):
        return RstStreamFrame(self.stream(), error_code=self.random.randrange(14)).serialize()

    def window(self):
        size = self.random.choice([1, 5, 1000, 65535, 2**31 - 1])
        return WindowUpdateFrame(self.random.choice([0, self.stream()]), window_increment=size).serialize()

    def settings(self):
        value = self.random.choice([0, 1, 16384, 65535, 2**31 - 1])
        return SettingsFrame(0, settings={self.random.choice([1, 3, 4, 4, 4, 5, 6, 99]): value}).serialize()

    def rare(self):
        frame = self.random.choice(
            [
                PriorityFrame(self.stream(), depends_on=0, stream_weight=1),
                ContinuationFrame(self.stream(), b"\x82"),
                WindowUpdateFrame(self.stream(), window_increment=1),
            ]
        )
        raw = bytearray(frame.serialize())
        raw[self.random.randrange(len(raw))] ^= 1 << self.random.randrange(8)
        return bytes(raw)

    def reset_at_once(self):
        return self.head() + RstStreamFrame(self.streams[-1], error_code=8).serialize()

    def flood(self):
        return DataFrame(self.stream(), b"x").serialize() * 300

    def unknown(self):
        body = self.random.randbytes(self.random.randrange(20))
        kind = self.random.randrange(10, 256)
        return struct.pack(">I", len(body))[1:] + bytes([kind, self.random.randrange(256)]) + b"\0" * 4 + body

    def run(self):
        kinds = [self.head] * 8 + [self.data] * 6 + [self.reset] * 3 + [self.window] * 3 + [self.reset_at_once] * 2
        kinds += [self.settings, self.trailers, self.flood, self.unknown, lambda: PingFrame(0, b"12345678").serialize()]
        if self.random.random() < 0.3:
            kinds.append(self.rare)
        for _ in range(self.random.randrange(1, 25)):
            self.client.raw(b"".join(self.random.choice(kinds)() for _ in range(self.random.randrange(1, 8))))
            if self.client.ended:
                break
            if self.random.random() < 0.3:
                self.read()
        # Some connections end in the middle, with unread data.
        self.client.close()

    def read(self):
        self.client.socket.settimeout(0.005)
        try:
            self.client.ended = not self.client.socket.recv(65536)
        except TimeoutError:
            pass
        except OSError:
            self.client.ended = True


def open_connections(gateway):
    return value(metrics(gateway), "moongate_open_connections", protocol="h2")


def test_random_frames(gateway):  # noqa: F811
    generator = random.Random(SEED)
    deadline = time.monotonic() + SECONDS
    rounds = 0
    while rounds < ROUNDS or time.monotonic() < deadline:
        rounds += 1
        try:
            Fuzz(gateway.ports[0], generator).run()
        except (ConnectionResetError, BrokenPipeError):
            # The gateway may close a connection while the client still sends.
            pass
        assert gateway.server.runs, gateway.server.output[-5000:]
        if rounds % 20 == 0:
            assert curl(gateway, "/open/a")[1][1] == "200"
    assert curl(gateway, "/open/a")[1][1] == "200"
    wait_for(lambda: open_connections(gateway) == 0, "the end of all connections", 20)


def test_a_reset_in_the_same_read_ends_its_stream_only(gateway, client):  # noqa: F811
    """Attack: the response to a stream that the client has already reset ends all other streams."""
    for _ in range(20):
        other = client.ask(client.headers("/open/other", "POST"), b"1", end=False)
        refused = client.h2.get_next_available_stream_id()
        client.h2.send_headers(refused, client.headers("/nowhere"), end_stream=True)
        client.h2.reset_stream(refused, 8)
        client.flush()
        client.h2.send_data(other, b"2", end_stream=True)
        client.flush()
        assert client.answer(other).status == 200
