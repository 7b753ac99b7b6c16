"""Shared code of connection tests: an upstream that records all bytes, and an HTTP/2 client that can violate the
protocol."""

import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings


class Upstream:
    """Records all bytes by connection and responds to each complete request."""

    def __init__(self, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"):
        self.answer = answer
        self.received = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.received.append(bytearray())
            threading.Thread(target=self._serve, args=(connection, self.received[-1]), daemon=True).start()

    def _serve(self, connection, kept):
        pending = b""
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                kept += data
                pending += data
                while (length := self._whole(pending)) is not None:
                    pending = pending[length:]
                    answer = self.answer(connection) if callable(self.answer) else self.answer
                    if answer:
                        try:
                            connection.sendall(answer)
                        except OSError:
                            return

    @staticmethod
    def _whole(data):
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = data[:end].lower()
        body = end + 4
        if b"transfer-encoding: chunked" in head:
            last = data.find(b"0\r\n\r\n", body)
            return None if last < 0 else last + 5
        if b"content-length: " in head:
            body += int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        return body if len(data) >= body else None

    @property
    def all(self):
        return b"".join(bytes(kept) for kept in self.received)

    def close(self):
        self.listener.close()


class H2Client:
    """An HTTP/2 connection whose outgoing frames are not validated."""

    def __init__(self, port, settings=None):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 5), server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=True,
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=True,
            )
        )
        if settings:
            self.h2.local_settings = h2.settings.Settings(client=True, initial_values=settings)
        # Heads that are larger than h2's default bound are for a test to judge.
        self.h2.decoder.max_header_list_size = 1 << 20
        self.authority = f"localhost:{port}"
        self.events = []
        self.ended = False
        self.unread, self.goaway_code = b"", None
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.raw(self.h2.data_to_send())

    def raw(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = True

    def headers(self, path, method="GET", extra=(), authority=True):
        head = [(":method", method), (":scheme", "https"), (":path", path)]
        if authority:
            head.insert(2, (":authority", self.authority))
        return head + list(extra)

    def ask(self, headers, body=None, end=True):
        """Opens a stream and returns its id."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, headers, end_stream=end and body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=end)
        self.flush()
        return stream

    def listen(self, until, seconds=10, credit=True):
        """Reads events until the awaited one or the end of the connection."""
        deadline = time.monotonic() + seconds
        while not self.ended:
            for event in self.events:
                if until(event):
                    return event
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                return None
            except OSError:
                data = b""
            if not data:
                self.ended = True
                break
            self.note_goaway(data)
            try:
                received = self.h2.receive_data(data)
            except h2.exceptions.ProtocolError:
                # h2 reads no frames after GOAWAY.
                if self.goaway_code is None:
                    raise
                continue
            for event in received:
                self.events.append(event)
                if credit and isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                    try:
                        self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    except Exception:
                        pass
            self.flush()
        return next((event for event in self.events if until(event)), None)

    def note_goaway(self, data):
        self.unread += data
        while len(self.unread) >= 9 and len(self.unread) >= 9 + (length := int.from_bytes(self.unread[:3], "big")):
            if self.unread[3] == 7:
                self.goaway_code = int.from_bytes(self.unread[13:17], "big")
            self.unread = self.unread[9 + length :]

    def answer(self, stream, seconds=10):
        """The result of a stream: status and body, or the reset code."""
        self.listen(
            lambda event: (
                isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)) and event.stream_id == stream
            ),
            seconds,
        )
        body = b"".join(
            event.data
            for event in self.events
            if isinstance(event, h2.events.DataReceived) and event.stream_id == stream
        )
        for event in self.events:
            if isinstance(event, h2.events.StreamReset) and event.stream_id == stream and int(event.error_code) != 0:
                return Answer(None, body, int(event.error_code), {})
        for event in self.events:
            if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
                fields = dict(event.headers)
                return Answer(int(fields[":status"]), body, None, fields)
        return Answer(None, body, None, {})

    def goaway(self, seconds=10):
        """The error code that ended the connection; None if there was none."""
        event = self.listen(lambda event: isinstance(event, h2.events.ConnectionTerminated), seconds)
        return int(event.error_code) if event else self.goaway_code

    def close(self):
        self.socket.close()


class Answer:
    def __init__(self, status, body, reset, headers):
        self.status, self.body, self.reset, self.headers = status, body, reset, headers

    def __repr__(self):
        return f"status {self.status}, reset {self.reset}, {len(self.body)} bytes {self.body[:200]!r}"
