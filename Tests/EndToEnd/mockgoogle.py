"""A user and an app at mock Google, with plain HTTP requests."""

import base64
import hashlib
import html
import re
import secrets
from urllib.parse import parse_qs, urljoin, urlsplit

import requests

from local_gateway import BIN, Program


class MockGoogle:
    """`moongate mock-google` alone on a free port."""

    def __init__(self, *redirects, options=()):
        flags = [part for redirect in redirects for part in ("--redirect", redirect)]
        self.program = Program(BIN / "moongate", "mock-google", "--port", "0", *flags, *options)
        self.program.wait_line("client_secret")
        told = dict(re.findall(r"^  (\w+) +(\S+)$", self.program.output, re.M))
        self.issuer, self.client_id, self.client_secret = told["issuer"], told["client_id"], told["client_secret"]

    def stop(self):
        self.program.end()


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
