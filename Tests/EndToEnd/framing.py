"""Ambiguous and malformed requests, and how h11 and llhttp parse them.

Attack (request smuggling): two programs of a chain parse the same bytes as different requests. The gateway may
refuse what they accept, but what it forwards must match their interpretation exactly, and the next request must
start where they say.
"""

import dataclasses
import random
import re

import h11
import httptools

HOST = b"localhost"


@dataclasses.dataclass
class Message:
    """A request as one parser read it."""

    method: bytes
    target: bytes
    fields: list
    body: bytes = b""
    complete: bool = False

    def difference(self, other):
        """How this forwarded request differs from the other parser's reading; None if they agree."""
        if self.method != other.method:
            return f"the method {other.method!r}"
        if path(self.target) != path(other.target):
            return f"the target {other.target!r}"
        if not other.complete:
            return "no end of its body"
        if self.body != other.body:
            return f"the body {other.body!r}"
        known = set(other.fields)
        for field in self.fields:
            if field not in known:
                return f"no field {field!r}"
        return None


def path(target):
    """A target without the scheme and authority of its absolute form."""
    for scheme in (b"http://", b"https://"):
        if target.lower().startswith(scheme):
            rest = target[len(scheme) :]
            end = min((rest.index(mark) for mark in b"/?" if mark in rest), default=len(rest))
            return rest[end:] if rest[end:].startswith(b"/") else b"/" + rest[end:]
    return target


@dataclasses.dataclass
class Reading:
    """The result of a parser for a connection: the requests until it refuses or waits for more bytes."""

    messages: list
    refused: bool


def read_by_h11(data):
    messages = []
    try:
        while data:
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
            # Skip the empty line of RFC 9112 section 2.2, as llhttp does.
            connection.receive_data(data.removeprefix(b"\r\n"))
            data = b""
            while not data:
                event = connection.next_event()
                if isinstance(event, h11.Request):
                    messages.append(
                        Message(
                            event.method,
                            event.target,
                            [(name.lower(), value.strip(b" \t")) for name, value in event.headers],
                        )
                    )
                elif isinstance(event, h11.Data):
                    messages[-1].body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    messages[-1].complete = True
                    # Use a new parser for each request, because h11 does not continue HTTP/1.0 connections.
                    data, _ = connection.trailing_data
                    if not data:
                        return Reading(messages, False)
                else:
                    return Reading(messages, False)
    except h11.ProtocolError:
        return Reading(messages, True)
    return Reading(messages, False)


class _Collector:
    def __init__(self):
        self.messages = []
        self.url = b""

    def on_message_begin(self):
        self.url = b""
        self.messages.append(Message(b"", b"", []))

    def on_url(self, url):
        self.url += url

    def on_header(self, name, value):
        self.messages[-1].fields.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self):
        self.messages[-1].target = self.url
        self.messages[-1].method = self.parser.get_method()

    def on_body(self, body):
        self.messages[-1].body += body

    def on_message_complete(self):
        self.messages[-1].complete = True


def read_by_llhttp(data):
    """Parses with Node.js's parser, which has a fixed list of methods."""
    collector = _Collector()
    collector.parser = httptools.HttpRequestParser(collector)
    refused = False
    try:
        collector.parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        refused = True
    return Reading([message for message in collector.messages if message.method], refused)


READERS = {"h11": read_by_h11, "llhttp": read_by_llhttp}


def violations(data, forwarded):
    """The violations in the requests that the gateway made of the bytes.

    `forwarded` contains, for each response in order, the request that was sent upstream, or None if the gateway
    responded itself."""
    found = _violations(data, forwarded)
    # RFC 9112 section 7.1.1 allows whitespace before a chunk extension; these two parsers refuse it.
    return found and _violations(re.sub(rb"(\r\n[0-9A-Fa-f]+)[ \t]+;", rb"\1;", data), forwarded)


def _violations(data, forwarded):
    found = []
    readings = {name: read(data) for name, read in READERS.items()}
    for place, message in enumerate(forwarded):
        if message is None:
            continue
        witnesses = 0
        for name, reading in readings.items():
            if place >= len(reading.messages):
                if not reading.refused:
                    found.append(f"request {place}: forwarded {message}, where {name} waits for a request")
                continue
            other = reading.messages[place]
            # A parser that refused within the message has no result for it.
            if not other.complete and reading.refused:
                continue
            witnesses += 1
            if difference := message.difference(other):
                found.append(f"request {place}: forwarded {message}, where {name} sees {difference}")
        if not witnesses:
            found.append(f"request {place}: forwarded {message}, which every other reader refuses")
    return found


# Seed requests; {} is the path.
CORPUS = [
    b"GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\nhello world",
    b"POST {} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"PUT {} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4;x=\"y\"\r\nabcd\r\n3\r\nefg\r\n0\r\nTrailer-Field: v\r\n\r\n",
    b"GET http://localhost{} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, X-Hop\r\nX-Hop: a\r\n\r\n",
    b"DELETE {} HTTP/1.1\r\nhost:localhost\r\nContent-Length: 0\r\nCookie: a=b; c=d\r\n\r\n",
    b"POST {} HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
]
BLANKS = [
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\x0b",
    b"\x0c",
    b"\0",
    b"\xa0",
    b"\x85",
    b"\r\n",
    b"\n\n",
    b"\r\n ",
    b"\r\n\t",
    b"",
]
LENGTHS = [
    b"5",
    b"+5",
    b"-5",
    b"05",
    b"5 ",
    b" 5",
    b"5,5",
    b"5, 5",
    b"5;",
    b"0x5",
    b"5\0",
    b"1e1",
    b"",
    b"00000000000000000005",
    b"18446744073709551621",
    b"5.0",
    b"\x0b5",
]
CODINGS = [
    b"chunked",
    b"Chunked",
    b"CHUNKED",
    b" chunked",
    b"chunked ",
    b"\tchunked",
    b"\x0bchunked",
    b"chunked\x0b",
    b"xchunked",
    b"chunked, identity",
    b"identity, chunked",
    b"identity",
    b"gzip, chunked",
    b"chunked, chunked",
    b"\"chunked\"",
    b"chunked;a=b",
    b",chunked",
    b"chunked,",
    b"chun\r\n ked",
    b"chunked\0",
    b"\xc3\xa7hunked",
    b"",
]
FRAMING_NAMES = [
    b"Content-Length",
    b"content-length",
    b"Content_Length",
    b"Content-Length ",
    b" Content-Length",
    b"Content-Length\t",
    b"Content-Length\0",
    b"Content\x00-Length",
    b"\"Content-Length\"",
    b"Transfer-Encoding",
    b"Transfer_Encoding",
    b"Transfer-Encoding ",
    b"Transfer-Encoding\x0b",
    b"X:Transfer-Encoding",
    b"Transfer\r-Encoding",
]
SIZES = [
    b"5",
    b"005",
    b"0x5",
    b"+5",
    b"-5",
    b"5 ",
    b" 5",
    b"5\t",
    b"5;",
    b"5;a",
    b"5;a=b",
    b"5;a=\"b",
    b"5;\n",
    b"5\r",
    b"A",
    b"0",
    b"00",
    b"0;a",
    b"ffffffffffffffff",
    b"10000000000000005",
    b"5\x0b",
    b"",
    b"5 ;a",
    b"5; a=b",
    b"5;a=\"\r\n\"",
]
SMUGGLED = b"GET /open/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def case(generator: random.Random):
    """The bytes of one connection: requests, some of them malformed."""
    data = b"".join(
        generator.choice(CORPUS).replace(b"{}", b"/open/%d" % generator.randrange(1000)) for _ in range(generator.choice([1, 1, 2, 3]))
    )
    for _ in range(generator.choice([0, 1, 1, 1, 2, 3])):
        data = generator.choice(MUTATIONS)(generator, data)
    return data + b"GET /open/last HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _line(generator, data, insert):
    """Inserts a line where a field may be."""
    starts = [at + 2 for at in range(len(data)) if data.startswith(b"\r\n", at)]
    at = generator.choice(starts) if starts else 0
    return data[:at] + insert + data[at:]


def _length(generator, data):
    return _line(
        generator,
        data,
        generator.choice(FRAMING_NAMES[:9]) + generator.choice([b": ", b":", b":\t", b" : "]) + generator.choice(LENGTHS) + b"\r\n",
    )


def _coding(generator, data):
    return _line(
        generator,
        data,
        generator.choice(FRAMING_NAMES[9:]) + generator.choice([b": ", b":", b":\t", b" : "]) + generator.choice(CODINGS) + b"\r\n",
    )


def _value(generator, data):
    return data.replace(
        *generator.choice(
            [
                (b"Content-Length: 11", b"Content-Length: " + generator.choice(LENGTHS)),
                (b": chunked", b": " + generator.choice(CODINGS)),
            ]
        )
    )


def _size(generator, data):
    return data.replace(
        generator.choice([b"\r\n5\r\n", b"\r\n0\r\n", b"\r\n3\r\n"]),
        b"\r\n" + generator.choice(SIZES) + generator.choice([b"\r\n", b"\n", b"\r", b"\r\n\r\n"]),
        1,
    )


def _ending(generator, data):
    ends = [at for at in range(len(data)) if data.startswith(b"\r\n", at)]
    if not ends:
        return data
    at = generator.choice(ends)
    return (
        data[:at]
        + generator.choice([b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r", b" \r\n", b"\r\n ", b"\0\r\n", b"\x0b\r\n"])
        + data[at + 2 :]
    )


def _blank(generator, data):
    places = [at for at in range(len(data)) if data[at] in b" \t:"]
    if not places:
        return data
    at = generator.choice(places)
    return data[:at] + generator.choice(BLANKS) + data[at + generator.randrange(2) :]


def _version(generator, data):
    return data.replace(
        b"HTTP/1.1",
        generator.choice(
            [
                b"HTTP/1.0",
                b"HTTP/1.2",
                b"HTTP/2.0",
                b"HTTP/0.9",
                b"HTTP/01.1",
                b"http/1.1",
                b"HTTP/1.1 ",
                b"HTTP/1.10",
                b"",
                b"HTTP/11",
            ]
        ),
        1,
    )


def _target(generator, data):
    return data.replace(
        b"/open/",
        generator.choice(
            [
                b"/open/ ",
                b"/open/\t",
                b"http://other/open/",
                b"/open/\x80",
                b"/open/#",
                b"open/",
                b"*",
                b"/open/\0",
                b"//open/",
                b"/open/%0d%0a",
            ]
        ),
        1,
    )


def _prefix(generator, data):
    return generator.choice([b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\0", b"\xef\xbb\xbf"]) + data


def _tail(generator, data):
    return data + generator.choice([b"\r\n", b"\n", b"\r", b"\r\n\r\n", SMUGGLED, b"0\r\n\r\n" + SMUGGLED, b"x"])


def _host(generator, data):
    return _line(
        generator,
        data,
        generator.choice(
            [
                b"Host: other\r\n",
                b"host: localhost\r\n",
                b"Host : localhost\r\n",
                b"Host\r\n",
                b": x\r\n",
                b"X: y\r\n z\r\n",
                b"Connection: close\r\n",
                b"Connection: content-length\r\n",
                b"Connection: transfer-encoding\r\n",
                b"X-A: \x01\r\n",
                b"Expect: \r\n",
            ]
        ),
    )


def _byte(generator, data):
    at = generator.randrange(len(data))
    return (
        data[:at]
        + generator.choice([bytes([generator.randrange(256)]), b"", bytes([data[at] ^ 1 << generator.randrange(8)])])
        + data[at + 1 :]
    )


def _repeat(generator, data):
    start, end = sorted(generator.randrange(len(data)) for _ in range(2))
    at = generator.randrange(len(data))
    return data[:at] + data[start:end][:200] + data[at:]


MUTATIONS = [
    _length,
    _length,
    _coding,
    _coding,
    _value,
    _size,
    _size,
    _ending,
    _ending,
    _blank,
    _version,
    _target,
    _prefix,
    _tail,
    _host,
    _byte,
    _repeat,
]
