"""A service of HTTP/2 by PyPI h2, in cleartext or by TLS, which can break the protocol."""

import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings


class Stream:
    """A request as the service has received it, and its answer."""

    def __init__(self, connection, number, fields):
        self.connection, self.number, self.fields = connection, number, fields
        self.body, self.trailers, self.is_whole, self.reset = b"", None, False, None
        # What waits for the windows of the gateway, and the trailers after it.
        self.pending, self.end = b"", None

    def __getitem__(self, name):
        return dict(self.fields).get(name)

    @property
    def path(self):
        return self[":path"]

    def head(self, status=200, fields=(), ends=False):
        self.connection.h2.send_headers(self.number, [(":status", str(status)), *fields], end_stream=ends)

    def send(self, data, ends=False, trailers=None):
        """Sends bytes of the body, as far as the windows allow, and the rest later."""
        self.pending += data
        if ends or trailers:
            self.end = trailers or True
        self.connection.pump(self)

    def answer(self, status=200, fields=(), body=b"", trailers=None):
        if self[":method"] == "HEAD":
            return self.head(status, [*fields, ("content-length", str(len(body)))], ends=True)
        self.head(status, fields)
        self.send(body, ends=True, trailers=trailers)

    def raw(self, data):
        """Sends bytes that h2 knows nothing of, after all that it has to send."""
        self.connection.socket.sendall(self.connection.h2.data_to_send() + data)


class Connection(threading.Thread):
    def __init__(self, service, sock):
        super().__init__(daemon=True)
        self.service, self.socket = service, sock
        self.streams = {}
        # Whether the service reads and answers no more, without closing the connection.
        self.is_frozen = False
        self.lock = threading.RLock()
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=False,
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=service.settings)

    def run(self):
        with self.socket:
            try:
                with self.lock:
                    self.h2.initiate_connection()
                    self.flush()
                while not self.is_frozen:
                    data = self.socket.recv(65536)
                    if not data:
                        return
                    with self.lock:
                        if self.is_frozen:
                            break
                        for event in self.h2.receive_data(data):
                            self.handle(event)
                        self.flush()
                time.sleep(600)
            except (OSError, ssl.SSLError):
                pass
            except h2.exceptions.ProtocolError as fault:
                # After GOAWAY, h2 reads nothing more.
                if not self.service.is_closing:
                    self.service.faults.append(repr(fault))

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            stream = Stream(self, event.stream_id, event.headers)
            self.streams[event.stream_id] = stream
            self.service.streams.append(stream)
            self.service.began(stream)
            return
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if self.service.reads:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.service.received(stream)
        elif isinstance(event, h2.events.TrailersReceived):
            stream.trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            stream.is_whole = True
            self.service.ended(stream)
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = int(event.error_code)
        elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            for other in list(self.streams.values()):
                self.pump(other)

    def pump(self, stream):
        if stream.reset is not None:
            return
        while stream.pending:
            room = min(self.h2.local_flow_control_window(stream.number), self.h2.max_outbound_frame_size)
            if room <= 0:
                return
            part, stream.pending = stream.pending[:room], stream.pending[room:]
            ends = stream.end is True and not stream.pending
            self.h2.send_data(stream.number, part, end_stream=ends)
            self.service.sent += len(part)
            if ends:
                stream.end = None
        if isinstance(stream.end, list):
            self.h2.send_headers(stream.number, stream.end, end_stream=True)
            stream.end = None
        elif stream.end:
            self.h2.send_data(stream.number, b"", end_stream=True)
            stream.end = None

    def flush(self):
        if data := self.h2.data_to_send():
            self.socket.sendall(data)


class HTTP2Service:
    """Answers whole requests by the function `answer`, which gets the stream."""

    def __init__(self, answer=None, cert=None, alpn=("h2",), settings=None, reads=True):
        self.answer = answer or (lambda stream: stream.answer(body=b"hello"))
        self.settings, self.reads = settings or {}, reads
        self.connections, self.streams, self.faults, self.sent = [], [], [], 0
        self.is_closing = False
        self.tls = None
        if cert:
            self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.tls.load_cert_chain(*cert)
            self.tls.set_alpn_protocols(list(alpn))
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.tls:
                    sock = self.tls.wrap_socket(sock, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            connection = Connection(self, sock)
            self.connections.append(connection)
            connection.start()

    def began(self, stream):
        """A head has arrived."""

    def received(self, stream):
        """Bytes of a body have arrived."""

    def ended(self, stream):
        self.answer(stream)

    def asked(self, path):
        """The streams of requests for the path."""
        return [stream for stream in self.streams if stream.path == path]

    def close(self):
        self.is_closing = True
        self.listener.close()
        for connection in self.connections:
            try:
                connection.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
