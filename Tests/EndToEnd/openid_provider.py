"""Apps that sign users in at a gateway by OpenID Connect, with plain HTTP requests, and a user's browser without a
screen."""

import base64
import html
import http.server
import json
import re
import secrets
import threading
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import parse_qs, parse_qsl, quote_plus, urlencode, urljoin, urlsplit

import jwt
import requests

from local_gateway import LocalGateway
from mockgoogle import Visitor, choose, field, pkce
from screens import many

ASHA, RAVI = "100000000000000000001", "100000000000000000002"
"""Users of the mock of Google."""

# Fields of the apps of most tests. The addresses are of this machine, where any port matches.
WEB = """name = "Example Web", secret = file "secrets/NAME",
    redirect_uris = { "http://localhost/NAME/cb" },
    sign_out_uris = { "http://localhost/out" },
    scopes = { "openid", "profile", "email", "phone", "groups", "offline_access" },"""
OTHER = """name = "Other Web", secret = file "secrets/NAME",
    redirect_uris = { "http://localhost/NAME/cb" },"""
DESKTOP = """name = "Example Desktop", public = true, consent = "never",
    redirect_uris = { "http://127.0.0.1/in", "com.example.desktop:/in" },"""
TELEVISION = """name = "Example <b>Television</b>", public = true, grants = { "device_code", "refresh_token" },"""
# The pauses between codes to one number.
RESEND = r"(?<=resend_after = )\{[^}]*\}"
ACCOUNTS = "return accounts { groups = { ops = members(), staff = members() } }\n"


def provider(folder, change_accounts=ACCOUNTS, **apps):
    """A gateway that is not started, with these apps: the fields of each. NAME is the app's; secret files are made."""
    gateway = LocalGateway(folder)
    (gateway.config / "secrets").mkdir(mode=0o700)
    entries = []
    for name, fields in apps.items():
        fields = fields.replace("NAME", name)
        for file in re.findall(r'file "(secrets/[^"]+)"', fields):
            path = gateway.config / file
            path.write_text(secrets.token_urlsafe(32))
            path.chmod(0o600)
        entries.append(f"  {name} = app {{\n    {fields}\n  }},\n")
    (gateway.config / "apps.lua").write_text("return apps {\n" + "".join(entries) + "}\n")
    (gateway.config / "accounts.lua").write_text(change_accounts)
    gateway.edit("policies/phone_otp.lua", lambda text: re.sub(RESEND, '{ "1s" }', many(text)))
    gateway.edit("policies/google_oauth.lua", lambda text: text.replace("max = 60", "max = 1000"))
    return gateway


class Site:
    """The server of an app: records the requests of browsers and of the gateway, and answers 200."""

    def __init__(self):
        received = self.received = []
        self.status = 200

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(handler):
                length = int(handler.headers.get("Content-Length") or 0)
                form = parse_qs(handler.rfile.read(length).decode())
                received.append(
                    SimpleNamespace(
                        method=handler.command,
                        path=handler.path.split("?")[0],
                        query=dict(parse_qsl(urlsplit(handler.path).query)),
                        form={name: values[0] for name, values in form.items()},
                        headers=handler.headers,
                    )
                )
                handler.send_response(self.status if handler.command == "POST" else 200)
                handler.send_header("Content-Type", "text/html")
                handler.end_headers()
                handler.wfile.write(b"<title>The app</title><p>Arrived at the app.</p>")

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://localhost:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def notices(self):
        """The logout tokens that have arrived."""
        return [one.form["logout_token"] for one in list(self.received) if "logout_token" in one.form]


class Forms(HTMLParser):
    """The forms of a page: address, hidden fields, and buttons as (name, value, label)."""

    def __init__(self, text):
        super().__init__()
        self.forms, self.button = [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self.forms.append(SimpleNamespace(action=given.get("action", ""), fields={}, buttons=[]))
        elif self.forms and tag == "input" and given.get("type") == "hidden":
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif self.forms and tag == "button":
            self.button = [given.get("name"), given.get("value", ""), ""]

    def handle_data(self, data):
        if self.button:
            self.button[2] += data

    def handle_endtag(self, tag):
        if tag == "button" and self.button:
            name, value, label = self.button
            self.forms[-1].buttons.append((name, value, " ".join(label.split())))
            self.button = None


class Browser(Visitor):
    """A user's browser without a screen. It sends forms with its `Origin`."""

    def signs_in(self, phone):
        """Gets a session of a new account by the API."""
        done = self.gateway.register(phone)
        self.account_id = done["account"]["id"]
        return self.has_session(done["session"]["token"])

    def has_session(self, token):
        # With the domain, so that a cookie of an answer replaces it.
        self.session.cookies.set("moongate", token, domain="localhost.local", path="/")
        return self

    @property
    def token(self):
        return self.session.cookies["moongate"]

    def signs_in_at_google(self, account=ASHA, **asked):
        back = self.get(choose(self.continues(**asked), account=account))
        assert back.status_code == 303, back.text
        self.account_id = self.account()["id"]
        return back

    def follows(self, address):
        """The address outside of the gateway where a link leads, or the page at which it stops."""
        return self.stays(self.get(address))

    def stays(self, answer):
        for _ in range(12):
            found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
            target = answer.headers.get("Location") if answer.is_redirect else found and html.unescape(found[1])
            if not target:
                return answer
            target = urljoin(answer.url, target)
            if not target.startswith((self.gateway.url + "/", getattr(self.gateway, "issuer", "-") + "/")):
                return target
            answer = self.get(target)
        raise AssertionError(f"redirected without end: {answer.url}")

    def presses(self, answer, button):
        """Sends the form of the button that has this label or value, and follows."""
        for form in Forms(answer.text).forms:
            for name, value, text in form.buttons:
                if button in (text, value):
                    fields = form.fields | ({name: value} if name else {})
                    target = urljoin(answer.url, form.action or answer.url)
                    return self.stays(self.post(target.removeprefix(self.gateway.url), **fields))
        raise AssertionError(f"no button {button!r}:\n{answer.text}")

    def authenticates(self, answer, account=ASHA):
        """Signs in at the page at which the way to an app has stopped, and follows."""
        assert answer.status_code == 200 and urlsplit(answer.url).path == "/auth/login", answer.url
        asked = dict(parse_qsl(urlsplit(answer.url).query))
        return self.follows(choose(self.continues(**asked), account=account))


class RelyingParty:
    """An app at a gateway. It authenticates with its secret by HTTP Basic, or not at all if it has none."""

    def __init__(self, gateway, client_id="web", redirect=None):
        self.gateway, self.client_id = gateway, client_id
        self.redirect = redirect or f"http://localhost:9/{client_id}/cb"
        # Nodes of a cluster have another address than the issuer.
        self.issuer = getattr(gateway, "issuer", gateway.url)
        file = gateway.config / "secrets" / client_id
        self.secret = file.read_text() if file.exists() else None

    # Addresses.

    @property
    def discovery(self):
        answer = requests.get(self.gateway.url + "/.well-known/openid-configuration", timeout=20)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def endpoint(self, name):
        return f"{self.gateway.url}/auth/openid/{name}"

    def asks(self, **changes):
        """An authorization request; None removes a parameter. Returns address, state, nonce and verifier."""
        verifier, challenge = pkce()
        fields = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "scope": "openid",
            "state": secrets.token_urlsafe(8),
            "nonce": secrets.token_urlsafe(8),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **changes,
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        return SimpleNamespace(
            address=self.endpoint("authorize") + "?" + urlencode(fields),
            fields=fields,
            state=fields.get("state"),
            nonce=fields.get("nonce"),
            verifier=verifier if fields.get("code_challenge") == challenge else None,
        )

    # Calls.

    def basic(self, secret=None):
        # RFC 6749 section 2.3.1: both are form-encoded first.
        pair = f"{quote_plus(self.client_id)}:{quote_plus(secret or self.secret or '')}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}

    def posts(self, name, headers=None, session=None, **fields):
        """POSTs a form to an endpoint with the app's credentials."""
        if headers is None:
            headers = self.basic() if self.secret else {}
            fields |= {} if self.secret else {"client_id": self.client_id}
        fields = {key: value for key, value in fields.items() if value is not None}
        return (session or requests).post(
            self.endpoint(name), data=fields, headers=headers, timeout=20, allow_redirects=False
        )

    def redeems(self, code, verifier, **changes):
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect}
        return self.posts("token", **{**fields, "code_verifier": verifier, **changes})

    def refreshes(self, token, **changes):
        return self.posts("token", grant_type="refresh_token", refresh_token=token, **changes)

    def userinfo(self, access):
        bearer = {"Authorization": f"Bearer {access}"}
        return requests.get(self.endpoint("userinfo"), headers=bearer, timeout=20)

    def introspects(self, token):
        answer = self.posts("introspect", token=token)
        assert answer.status_code == 200, answer.text
        return answer.json()

    # What comes back.

    def keys(self):
        return jwt.PyJWKSet.from_dict(requests.get(self.endpoint("keys"), timeout=20).json())

    def verified(self, token, **more):
        """The claims of a token that this issuer has signed for this app."""
        kid = jwt.get_unverified_header(token)["kid"]
        algorithms = ["RS256", "ES256", "EdDSA"]
        return jwt.decode(token, self.keys()[kid].key, algorithms, audience=self.client_id, issuer=self.issuer, **more)

    def arrived(self, asked, address):
        """The code of an answer to a request, of which state and issuer are checked."""
        assert isinstance(address, str), f"stopped at {address.url}:\n{address.text[:2000]}"
        assert address.startswith(self.redirect + "?"), address
        assert field("error", address) is None, address
        assert field("state", address) == asked.state and field("iss", address) == self.issuer, address
        return field("code", address)

    def signs_in(self, browser, **changes):
        """The whole way for someone who is signed in and agrees. Returns the tokens and the claims of the ID token."""
        asked = self.asks(**changes)
        back = browser.follows(asked.address)
        if not isinstance(back, str) and urlsplit(back.url).path == "/auth/openid/consent":
            back = browser.presses(back, "allow")
        answer = self.redeems(self.arrived(asked, back), asked.verifier)
        assert answer.status_code == 200, answer.text
        tokens = SimpleNamespace(**{"refresh_token": None, "id_token": None, **answer.json()})
        tokens.asked, tokens.answer = asked, answer
        tokens.claims = self.verified(tokens.id_token) if tokens.id_token else None
        assert tokens.claims is None or tokens.claims.get("nonce") == asked.nonce
        return tokens


def error_at_app(party, asked, address):
    """The error that the app gets, of which state and issuer are checked."""
    assert isinstance(address, str), f"stopped at {address.url}:\n{address.text[:2000]}"
    assert address.startswith(party.redirect + "?"), address
    assert field("state", address) == asked.state and field("iss", address) == party.issuer, address
    assert field("code", address) is None, address
    return field("error", address)


def oauth_error(answer, status=400):
    """The error of RFC 6749 section 5.2."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"].startswith("application/json"), answer.headers
    assert "no-store" in answer.headers["Cache-Control"], answer.headers
    return json.loads(answer.content)["error"]


def stays_here(gateway, answer):
    """Checks that a page was shown, and nothing was sent to an app."""
    assert not isinstance(answer, str), f"sent to {answer}"
    assert answer.url.startswith(gateway.url + "/"), answer.url
    return answer
