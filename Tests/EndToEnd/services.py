"""HTTP services for tests: upstreams, and receivers of the gateway's messages."""

import http.server
import threading


class HTTPService:
    """Serves requests with a handler on its own port until it is ended."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass
