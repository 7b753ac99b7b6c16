"""A user and an app at mock Google, with plain HTTP requests."""

import base64
import hashlib
import html
import pathlib
import re
import secrets
import tempfile
from urllib.parse import parse_qs, urljoin, urlsplit

import requests

from local_gateway import BIN, Program


class MockGoogle:
    """The mock of a demo service of its own, with one client."""

    def __init__(self, *redirects):
        self.client_id, self.client_secret = "moongate", secrets.token_urlsafe(32)
        self.folder = tempfile.TemporaryDirectory()
        file = pathlib.Path(self.folder.name) / "secret"
        file.write_text(self.client_secret)
        flags = [part for redirect in redirects for part in ("--google-redirect", redirect)]
        self.program = Program(
            BIN / "demo-service", "--port", "0", "--google-secret", file, "--google-client", self.client_id, *flags
        )
        self.program.wait_line("listens on")
        self.issuer = re.search(r"listens on (\S+)", self.program.output)[1] + "/mock-google"

    def stop(self):
        self.program.end()
        self.folder.cleanup()


def field(name, address):
    return parse_qs(urlsplit(address).query).get(name, [None])[0]


def choose(address, browser=None, **fields):
    """Opens the account selection page and submits a choice. Returns the redirect URL."""
    browser = browser or requests.Session()
    page = browser.get(address, timeout=20)
    assert page.status_code == 200, page.text
    form = re.search(
        r'<form method="post" action="([^"]+)">\s*<input type="hidden" name="request" value="([^"]+)"', page.text
    )
    answer = browser.post(
        urljoin(address, html.unescape(form[1])), data={"request": form[2], **fields}, allow_redirects=False, timeout=20
    )
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def pkce():
    """A PKCE verifier and its S256 challenge."""
    verifier = secrets.token_urlsafe(32)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class Visitor:
    """A browser without a screen: it stores cookies and follows redirects when told to."""

    def __init__(self, gateway):
        self.gateway, self.session = gateway, requests.Session()

    def post(self, path, **fields):
        return self.session.post(
            self.gateway.url + path, data=fields, headers={"Origin": self.gateway.url}, allow_redirects=False, timeout=20
        )

    def get(self, address):
        return self.session.get(
            urljoin(self.gateway.url, address), headers={"Accept": "text/html"}, allow_redirects=False, timeout=20
        )

    def continues(self, page="/auth/login", **fields):
        """Presses "Continue with Google" and returns Google's URL."""
        answer = self.post(page, provider="google_oauth", **fields)
        assert answer.status_code == 200, answer.text
        return html.unescape(re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)[1])

    def account(self):
        answer = self.session.get(self.gateway.url + "/api/auth/session", timeout=20)
        return answer.json()["account"] if answer.status_code == 200 else None
