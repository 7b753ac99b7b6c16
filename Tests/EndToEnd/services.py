"""Services of a test: what stands behind a gateway, or takes what it sends."""

import http.server
import threading


class HTTPService:
    """Serves requests by a handler, on a port of its own, until it is ended."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Says nothing of the requests that it serves."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass
