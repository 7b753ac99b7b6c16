"""A chat server for bots: a part of Mattermost's API version 4, with typical failures."""

import http.server
import json
import threading
import time
import urllib.parse


class ChatServer:
    TOKEN = "bot-token-6f1d"

    def __init__(self):
        self.people = {}
        self.posts = []
        self.delay = 0
        self.redirect = None
        self.stolen = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body, headers=()):
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                path = urllib.parse.unquote(self.path)
                time.sleep(outer.delay)
                if path.startswith("/stolen"):
                    outer.stolen.append(self.headers.get("Authorization"))
                    return self.answer(200, {})
                if self.headers.get("Authorization") != f"Bearer {outer.TOKEN}":
                    return self.answer(401, {"message": "no"})
                if outer.redirect:
                    return self.answer(302, {}, [("Location", outer.redirect)])
                if path == "/api/v4/users/me":
                    return self.answer(200, {"id": "bot"})
                if path.startswith("/api/v4/users/email/"):
                    found = outer.people.get(path.removeprefix("/api/v4/users/email/"))
                    return self.answer(200, found) if found else self.answer(404, {"message": "no such user"})
                if path == "/api/v4/channels/direct":
                    return self.answer(201, {"id": "dm-" + "-".join(body)})
                if path == "/api/v4/posts":
                    outer.posts.append(body)
                    return self.answer(201, {"id": "p"})
                return self.answer(404, {"message": "no such call"})

            do_GET = do_POST = handle_any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def has(self, email, verified=True, left=0):
        self.people[email] = {"id": "u-" + email, "email": email, "email_verified": verified, "delete_at": left}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
