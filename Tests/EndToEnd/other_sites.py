"""A site on this machine that speaks OpenID Connect and OAuth, and answers as a test says."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey


class OtherSite:
    """`claims` are those of the next ID token; `answers` are JSON values by path, and `pages` HTML.

    A refresh token works once (`reused` has those that came again). `fails` is the status and error of every refresh.
    """

    def __init__(self, host="127.0.0.1"):
        self.key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"}, private=True)
        self.claims, self.answers, self.pages, self.posted, self.bearers = {}, {}, {}, [], []
        self.issued, self.used, self.reused, self.fails = 0, set(), [], None
        self.lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, value, status=200):
                self.send(json.dumps(value).encode(), "application/json", status)

            def send(self, body, kind, status=200):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                path = urlsplit(self.path).path
                site.bearers.append(self.headers.get("Authorization"))
                if path == "/.well-known/openid-configuration":
                    return self.answer(site.discovery)
                if path == "/jwks":
                    return self.answer({"keys": [site.key.as_dict(private=False)]})
                if path in site.pages:
                    return self.send(site.pages[path].encode(), "text/html; charset=utf-8")
                return self.answer(*([site.answers[path]] if path in site.answers else [{}, 404]))

            def do_POST(self):
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                site.posted.append({name: values[0] for name, values in form.items()})
                if form["grant_type"] == ["refresh_token"]:
                    with site.lock:
                        token = form["refresh_token"][0]
                        if site.fails:
                            return self.answer({"error": site.fails[1]}, site.fails[0])
                        if token in site.used:
                            site.reused.append(token)
                            return self.answer({"error": "invalid_grant"}, 400)
                        site.used.add(token)
                with site.lock:
                    site.issued += 1
                    refresh = f"r3fresh-{site.issued}"
                answer = {"access_token": "t0ken", "token_type": "Bearer", "refresh_token": refresh}
                if site.claims:
                    answer["id_token"] = site.id_token()
                self.answer(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.url = f"http://{host}:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def discovery(self):
        return {
            "issuer": self.url,
            "authorization_endpoint": self.url + "/authorize",
            "token_endpoint": self.url + "/token",
            "jwks_uri": self.url + "/jwks",
            "end_session_endpoint": self.url + "/end",
        }

    def logout_token(self, **claims):
        now = int(time.time())
        event = {"http://schemas.openid.net/event/backchannel-logout": {}}
        usual = {"iss": self.url, "aud": "gateway", "iat": now, "exp": now + 120, "events": event}
        return jwt.encode({"alg": "RS256", "kid": "k1", "typ": "logout+jwt"}, usual | claims, self.key)

    def id_token(self):
        now = int(time.time())
        usual = {"iss": self.url, "aud": "gateway", "iat": now, "exp": now + 300}
        return jwt.encode({"alg": "RS256", "kid": "k1"}, usual | self.claims, self.key)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
