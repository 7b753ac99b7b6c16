"""Random frames on HTTP/2 streams, compared with what PyPI h2 reads of the same streams. Whatever a client sends, the
services and the gateway's own paths get its well-formed requests and no other byte.

`make fuzz-http2` runs 100,000 streams.
"""

import collections
import json
import os
import random
import re
import socket
import ssl
import struct
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
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from local_gateway import LocalGateway, wait_for
from test_http2 import routed
from test_metrics import metrics, value
from test_tls import certificate, speak_tls

SEED = int(os.environ.get("HTTP2_FUZZ_SEED", "20240229"))
STREAMS = int(os.environ.get("HTTP2_FUZZ_STREAMS", "4000"))
# Fewer streams on a machine that is busy.
SECONDS = float(os.environ.get("HTTP2_FUZZ_SECONDS", "15"))

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STRAY = "STRAY"

# Fields that make a request malformed in HTTP/2, in HTTP/1.1 or in both.
BAD = [
    *[("x", text) for text in [" a", "a ", "\ta", "a\t", " ", "\x7f", "a\x01b", "a\nb", "a\r\nb: c", "a\0"]],
    *[("cookie", " a=1"), ("host", "other.example"), ("host", " h"), ("x-upper\x00", "a"), ("X-Upper", "a")],
    *[("te", "gzip"), ("connection", "close"), ("keep-alive", "1")],
    *[("transfer-encoding", "chunked"), ("upgrade", "h2c")],
    *[("content-length", text) for text in ["x", "-1", "+3", "", " 3", "3, 3", "9" * 25]],
    *[("a b", "c"), ("a:", "c"), (":unknown", "1"), (":status", "200"), (":path", f"/open/echo/{STRAY}")],
]
BAD_PSEUDO = [
    *[(":method", text) for text in ["", "G T", " GET", "CONNECT"]],
    (":method", f"GET /open/echo/{STRAY} HTTP/1.1\r\nhost: h\r\n\r\nGET"),
    *[(":scheme", text) for text in ["", "ftp", " https", "https\r\n"]],
    *[(":path", text) for text in ["", "x", "*", "/a b", f"https://h/{STRAY}"]],
    (":path", f"/a HTTP/1.1\r\n\r\nGET /open/echo/{STRAY}"),
    *[(":authority", text) for text in ["", " h", "h\r\nx: y", "a@b"]],
]
# Of these, the library does not know that the head is malformed. Trailers after one that it has refused itself are an
# error of the connection to it.
KNOWN = {" a", "a ", "\ta", "a\t", " ", "\x7f", "a\x01b", " a=1", " h", "other.example"}
GOOD = [("cookie", "a=1"), ("cookie", "b=2"), ("x-long", "y" * 3000), ("x-inner", "a b\tc"), ("x-empty", "")]
# Fields that the gateway adds.
OWN_FIELDS = ("x-forwarded-", "traceparent")
# Early answers, an end of the connection, a head of several frames.
WAYS = ["echo"] * 8 + ["early", "close", "large"]


class Asked:
    """A request as a service has received it."""

    def __init__(self, method, target):
        self.method, self.target, self.fields = method, target, []
        self.body, self.has_head, self.is_whole, self.length = b"", False, False, None


class Service:
    """Reads the gateway's requests, which have only one form, and keeps every byte as a part of one of them."""

    def __init__(self):
        self.asked, self.faults = collections.defaultdict(list), []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=500)
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
                while self._request(connection, stream):
                    pass
            except (OSError, EOFError):
                pass
            except ValueError as fault:
                self.faults.append(repr(fault))

    def _line(self, stream):
        line = stream.readline()
        # The gateway cuts off a request that it gives up.
        if not line.endswith(b"\n"):
            raise EOFError
        if not line.endswith(b"\r\n"):
            raise ValueError(line)
        return line[:-2].decode("latin-1")

    def _exactly(self, stream, count, asked):
        while count:
            data = stream.read1(count)
            if not data:
                raise EOFError
            asked.body += data
            count -= len(data)

    def _request(self, connection, stream):
        first = stream.readline()
        if not first:
            return False
        found = re.fullmatch(rb"([!-~]+) (/open/(\w+)/(\d+-\d+)) HTTP/1\.1\r\n", first)
        if not found:
            if first.endswith(b"\n"):
                raise ValueError(first)
            raise EOFError
        method, target, way, name = (part.decode() for part in found.groups())
        asked = Asked(method, target)
        self.asked[name].append(asked)
        while line := self._line(stream):
            field, _, text = line.partition(":")
            asked.fields.append((field.lower(), text.strip(" \t")))
        asked.has_head = True
        if way == "close":
            return False
        if way == "early":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        lengths = [text for field, text in asked.fields if field == "content-length"]
        codings = [text for field, text in asked.fields if field == "transfer-encoding"]
        if len(lengths) + len(codings) > 1 or codings and codings != ["chunked"]:
            raise ValueError(asked.fields)
        if lengths:
            asked.length = int(lengths[0])
            self._exactly(stream, asked.length, asked)
        elif codings:
            while size := int(self._line(stream), 16):
                self._exactly(stream, size, asked)
                if self._line(stream):
                    raise ValueError("a chunk's end")
            if self._line(stream):
                raise ValueError("trailers")
        asked.is_whole = True
        if way != "early":
            more = b"X-Large: " + b"0a1B~^" * 5000 + b"\r\n" if way == "large" else b""
            body = b"" if method == "HEAD" else name.encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(name), more, body))
        return True

    def close(self):
        self.listener.close()


class Stream:
    """What a client sends on one stream: heads and trailers as lists of fields, DATA as bytes, resets as codes."""

    def __init__(self, number, name, authority, generator):
        self.number, self.name, self.authority, self.random = number, name, authority, generator
        self.is_clean = generator.random() < 0.4
        # The service `echo` answers with the name of the stream.
        self.way = generator.choice(WAYS)
        self.is_own = generator.random() < 0.15
        self.path = f"/api/auth/{name}" if self.is_own else f"/open/{self.way}/{name}"
        self.steps = list(self._steps())

    def _steps(self):
        choice, chance = self.random.choice, self.random.random
        method = choice(["GET", "POST", "POST", "PUT", "HEAD", "OPTIONS"])
        fields = [(":method", method), (":scheme", "https"), (":authority", self.authority), (":path", self.path)]
        fields += self.random.sample(GOOD, choice([0, 0, 1, 2]))
        may_end_by_head = True
        pieces = [self._piece() for _ in range(choice([0, 0, 1, 1, 2, 5]))]
        if pieces and chance() < 0.5:
            length = sum(map(len, pieces)) + (0 if self.is_clean or chance() < 0.8 else choice([-1, 1, 10]))
            may_end_by_head = length == sum(map(len, pieces))
            fields.append(("content-length", str(max(0, length))))
        if not self.is_clean:
            if chance() < 0.5:
                bad = choice(BAD)
                fields.insert(self.random.randrange(len(fields) + 1) if chance() < 0.1 else len(fields), bad)
                may_end_by_head = may_end_by_head and bad[1] in KNOWN and fields[-1] == bad
            if chance() < 0.2:
                name, text = choice(BAD_PSEUDO)
                fields = [(name, text) if field[0] == name else field for field in fields]
                may_end_by_head = may_end_by_head and text == "ftp"
        heads = ["trailers", "bad", "again"] if may_end_by_head else []
        ends = "data" if self.is_clean else choice(["data", "data", "data", "never", "reset", *heads])
        yield ("head", fields, not pieces and ends == "data")
        for place, piece in enumerate(pieces):
            yield ("data", piece, place == len(pieces) - 1 and ends == "data")
        if ends == "trailers":
            yield ("head", [("x-trailer", "a")], True)
        elif ends == "bad":
            bad = [("x", "a "), (":path", f"/open/echo/{STRAY}"), ("X-Upper", "a"), ("x", "a\r\nb")]
            yield ("head", [choice(bad)], True)
        elif ends == "again":
            yield ("head", [(n, t.replace(self.path, f"/open/echo/{STRAY}")) for n, t in fields], chance() < 0.5)
        elif ends == "reset":
            yield ("reset", self.random.randrange(14), True)

    def _piece(self):
        """Bytes of a body, most of which look like requests."""
        request = f"GET /open/echo/{STRAY} HTTP/1.1\r\nHost: {self.authority}\r\n\r\n"
        own = f"POST /api/auth/{STRAY} HTTP/1.1\r\nHost: {self.authority}\r\nContent-Length: 2\r\n\r\n{{}}"
        texts = [request, own, "0\r\n\r\n" + request, "\r\n" + own, "5\r\nhello\r\n", "x", "", request * 3]
        text = self.random.choice(texts)
        cut = self.random.randrange(len(text) + 1) if self.random.random() < 0.2 else 0
        return text[cut:].encode()

    def expected(self):
        """What h2 reads: the head, the body, and whether the request is whole; None without a request."""
        server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        encoder, head, body, is_whole = hpack.Encoder(), None, b"", False
        data = PREFACE + SettingsFrame(0).serialize()
        try:
            server.receive_data(data)
            for kind, content, ends in self.steps:
                data = b"".join(frame.serialize() for frame in frames(encoder, 1, kind, content, ends))
                for event in server.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        head = event.headers
                    elif isinstance(event, h2.events.DataReceived):
                        body += event.data
                    elif isinstance(event, h2.events.StreamEnded):
                        is_whole = True
        except (h2.exceptions.H2Error, UnicodeDecodeError):
            pass
        return None if head is None else (head, body, is_whole)


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


class Connection:
    """A client's connection, which sends the steps of its streams in a random order, and notes the answers."""

    def __init__(self, port, number, generator):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        raw = socket.create_connection(("127.0.0.1", port), 10)
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.random = number, generator
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder(max_header_list_size=1 << 20)
        step = generator.choice([2, 2, 4])
        ids = range(1, 1 + step * generator.randrange(2, 60), step)
        self.streams = [Stream(id, f"{number}-{id}", f"localhost:{port}", generator) for id in ids]
        self.has_lethal = generator.random() < 0.1
        self.received, self.block, self.sent, self.is_reset = b"", b"", [], False
        self.statuses, self.bodies, self.over, self.goaway, self.ended = {}, collections.Counter(), {}, None, False

    def run(self):
        settings = self.random.choice([{}, {}, {4: 0}, {4: 100}, {1: 2**32 - 1}, {5: 2**24 - 1}, {3: 5, 1: 0}])
        self.send(PREFACE + SettingsFrame(0, settings=settings).serialize())
        if 4 in settings:
            self.send(SettingsFrame(0, settings={4: 65535}).serialize())
        started, waiting = [], list(self.streams)
        while (waiting or started) and not self.ended:
            # A batch is one TLS record, and mostly one read.
            batch = b""
            for _ in range(self.random.randrange(1, 12)):
                if waiting and (not started or self.random.random() < 0.4):
                    # Streams begin in the order of their numbers.
                    started.append((waiting.pop(0), 0))
                    place = len(started) - 1
                elif started:
                    place = self.random.randrange(len(started))
                else:
                    break
                stream, step = started[place]
                # Often all frames of a stream are in one read.
                for _ in range(self.random.choice([1, 1, 9])):
                    if step == len(stream.steps):
                        break
                    batch += self.step(stream, *stream.steps[step])
                    step += 1
                started[place] = (stream, step)
                if step == len(stream.steps):
                    del started[place]
                if self.random.random() < 0.1:
                    batch += self.noise(stream.number, step == len(stream.steps))
            self.send(batch)
            self.read(0)
        self.finish()

    def step(self, stream, kind, content, ends):
        self.sent.append((stream.number, kind, content, ends))
        split = self.random.random() if self.random.random() < 0.1 else None
        made = frames(self.encoder, stream.number, kind, content, ends, split)
        if kind == "data" and self.random.random() < 0.1:
            made[0].flags.add("PADDED")
            made[0].pad_length = self.random.randrange(200)
        return b"".join(frame.serialize() for frame in made)

    def noise(self, number, is_over):
        choice = self.random.choice
        # DATA of an open stream would be a part of its body.
        over = number if is_over else 0
        if self.has_lethal and self.random.random() < 0.1:
            return choice(
                [
                    WindowUpdateFrame(0, window_increment=2**31 - 1).serialize() * 2,
                    HeadersFrame(number, b"\x82" * 3, flags=["END_HEADERS"]).serialize(),
                    DataFrame(over, b"GET / HTTP/1.1\r\n\r\n").serialize() * 30,
                    DataFrame(number, b"").serialize() * 5,
                    ContinuationFrame(number, b"\x82").serialize(),
                    RstStreamFrame(number + 1000, error_code=8).serialize(),
                    self.random.randbytes(30),
                    SettingsFrame(0, settings={5: 5}).serialize(),
                ]
            )
        unknown = bytes([0, 0, 9, self.random.randrange(20, 256), 0, 0, 0, 0, 1]) + b"GET / HTT"
        return choice(
            [
                WindowUpdateFrame(choice([0, number]), window_increment=choice([1, 5, 1000])).serialize(),
                SettingsFrame(0, settings={choice([1, 5, 6, 99]): choice([16384, 65535])}).serialize(),
                PriorityFrame(number, depends_on=0, stream_weight=1).serialize(),
                PingFrame(0, b"12345678").serialize(),
                unknown,
            ]
        )

    def finish(self):
        """Waits for the answers to the clean streams. Others may be open without an end."""
        wanted = [stream.number for stream in self.streams if stream.is_clean]
        deadline = time.monotonic() + 20
        while not self.ended and any(id not in self.over for id in wanted):
            assert time.monotonic() < deadline, (self.over, wanted)
            self.read(0.5)
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = self.is_reset = True

    def read(self, seconds):
        self.socket.settimeout(seconds or 0.0)
        try:
            data = self.socket.recv(65536)
            self.ended = self.ended or not data
            self.received += data
        except (TimeoutError, ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError:
            self.ended = self.is_reset = True
        self.socket.settimeout(10)
        while len(self.received) >= 9:
            length = int.from_bytes(self.received[:3])
            if len(self.received) < 9 + length:
                break
            kind, flags, id = self.received[3], self.received[4], int.from_bytes(self.received[5:9])
            payload, self.received = self.received[9 : 9 + length], self.received[9 + length :]
            assert length <= 16384, (kind, length)
            self.note(kind, flags, id, payload)

    def note(self, kind, flags, id, payload):
        if kind in (1, 9):
            self.block += payload
            if flags & 4:
                fields, self.block = dict(self.decoder.decode(self.block)), b""
                self.statuses[id] = fields[":status"]
        if kind == 0:
            self.bodies[id] += len(payload)
        if kind in (0, 1) and flags & 1:
            self.over.setdefault(id, "end")
        if kind == 3:
            self.over.setdefault(id, struct.unpack(">I", payload)[0])
        if kind == 4 and not flags & 1:
            self.send(SettingsFrame(0, flags=["ACK"]).serialize())
        if kind == 7:
            self.goaway = struct.unpack(">I", payload[4:8])[0]


@pytest.fixture(scope="module")
def services():
    services = [Service(), Service()]
    yield services
    for service in services:
        service.close()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory, services):
    folder = tmp_path_factory.mktemp("gateway")
    gateway = LocalGateway(folder)
    gateway.access = folder / "access.log"
    cert, key = certificate(folder, "one")
    speak_tls(gateway, cert, key)
    routed(gateway, *[service.port for service in services])
    try:
        yield gateway.start(MOONGATE_ACCESS_LOG=str(gateway.access))
    finally:
        gateway.stop()


def open_connections(gateway):
    return value(metrics(gateway), "moongate_open_connections", protocol="h2")


class Findings:
    """What is wrong, with an example of each kind."""

    def __init__(self):
        self.counts, self.examples = collections.Counter(), {}

    def check(self, is_right, kind, *example):
        if not is_right:
            self.counts[kind] += 1
            self.examples.setdefault(kind, re.sub("y{50,}", "y…", str(example))[:4000])


def test_random_frames(fuzzed, services):
    """Attack: request smuggling by frames that the gateway or a proxy in front reads differently."""
    generator = random.Random(SEED)
    deadline = time.monotonic() + SECONDS
    streams, findings, counts = {}, Findings(), collections.Counter()
    while counts["streams"] < STREAMS and time.monotonic() < deadline:
        connection = Connection(fuzzed.ports[0], counts["connections"], generator)
        connection.run()
        counts["connections"] += 1
        counts["streams"] += len(connection.streams)
        streams.update({stream.name: stream for stream in connection.streams})
        assert fuzzed.server.runs, fuzzed.log[-5000:]
        counts["answered"] += judge_answers(connection, findings)
    wait_for(lambda: open_connections(fuzzed) == 0, "the end of all connections", 20)
    counts.update(judge_requests(streams, services, findings))
    judge_log(streams, fuzzed.access, findings)
    print(f"seed {SEED}:", dict(counts), dict(findings.counts))
    for kind, example in findings.examples.items():
        print(f"{kind}: {example}")
    assert not findings.counts
    assert counts["answered"] > counts["streams"] / 5 and counts["whole"] > counts["streams"] / 5, counts


def judge_answers(connection, findings):
    """Each clean stream is answered. Errors of other streams do not end the connection (RFC 9113 section 5.4)."""
    if connection.ended or connection.goaway:
        # A reset by the system, because of frames that are not read any more, can overtake it.
        findings.check(connection.goaway or connection.is_reset, "closed without GOAWAY", connection.number)
        where = (connection.number, connection.goaway, connection.sent[-12:])
        findings.check(connection.has_lethal, "an error of a stream ends the connection", *where)
    # Their noise may be an error of a clean stream, such as DATA after its end.
    if connection.ended or connection.goaway or connection.has_lethal:
        return 0
    answered = 0
    for stream in connection.streams:
        if stream.is_clean:
            status = connection.statuses.get(stream.number)
            where = (stream.name, stream.steps, status, connection.over.get(stream.number))
            findings.check(status, "no answer", *where)
            if not stream.is_own and stream.way in ("echo", "large"):
                length = 0 if stream.steps[0][1][0][1] == "HEAD" else len(stream.name)
                found = (status, connection.bodies[stream.number])
                findings.check(found == ("200", length), "another answer", *where, found)
                answered += 1
    return answered


def judge_requests(streams, services, findings):
    """Compares what the services have received with what h2 reads of the streams."""
    counts = collections.Counter()
    for service in services:
        findings.check(not service.faults, "bytes that are no request", service.faults)
        findings.check(set(service.asked) <= set(streams), "a request of no stream", set(service.asked) - set(streams))
    for name, stream in streams.items():
        asked = [found for service in services for found in service.asked.get(name, [])]
        if not asked:
            continue
        where = (name, stream.steps, [vars(found) for found in asked])
        # A GET without a body is sent again if a service closes the connection.
        findings.check(len(asked) == 1 or stream.way == "close", "a stream is two requests", *where)
        expected = stream.expected()
        findings.check(expected, "a malformed request is forwarded", *where)
        for found in asked if expected else []:
            counts["whole" if found.is_whole else "part"] += 1
            fault = difference(found, stream, *expected)
            findings.check(not fault, fault, *where)
    return counts


def difference(found, stream, head, body, is_whole):
    """How the request differs from what h2 reads; None if it does not."""
    fields = dict(head)
    sent = {(field.lower(), text.strip(" \t")) for field, text in head}
    crumbs = "; ".join(text for field, text in head if field == "cookie")
    sent |= {("cookie", crumbs), ("host", stream.authority), ("transfer-encoding", "chunked")}
    stray = [field for field in found.fields if field not in sent and not field[0].startswith(OWN_FIELDS)]
    if (found.method, found.target) != (fields[":method"], fields[":path"]):
        return "another method or path"
    if found.has_head and stray:
        return f"other fields: {stray}"
    if not body.startswith(found.body):
        return "another body"
    # What a length declares is whole before the stream ends.
    if found.is_whole and (body != found.body or not is_whole and found.length is None):
        return "a whole request of a part"
    return None


def judge_log(streams, file, findings):
    """The gateway has answered no request that was not sent: each line has the path of a stream, once."""
    lines = wait_for(lambda: file.exists() and file.read_text().splitlines(), "the access log")
    seen = collections.Counter()
    for line in map(json.loads, lines):
        path = line.get("path") or ""
        findings.check(STRAY not in path, "DATA is executed as a request", line)
        if found := re.fullmatch(r"/(?:open/\w+|api/auth)/(\d+-\d+)", path):
            seen[found[1]] += 1
    for name, count in seen.items():
        findings.check(count == 1, "a stream is two requests", name, count)
        findings.check(streams[name].expected(), "a malformed request is answered", streams[name].steps)


def test_a_reset_in_the_same_read_ends_its_stream_only(fuzzed):
    """Attack: the response to a stream that the client has already reset ends all other streams."""
    from wire import H2Client

    client = H2Client(fuzzed.ports[0])
    for number in range(20):
        other = client.ask(client.headers(f"/open/echo/{10**9}-{2 * number}", "POST"), b"1", end=False)
        refused = client.h2.get_next_available_stream_id()
        client.h2.send_headers(refused, client.headers("/nowhere"), end_stream=True)
        client.h2.reset_stream(refused, 8)
        client.flush()
        client.h2.send_data(other, b"2", end_stream=True)
        client.flush()
        assert client.answer(other).status == 200
    client.close()
