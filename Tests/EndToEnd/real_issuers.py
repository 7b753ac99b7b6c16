"""Issuers of OpenID Connect that others have written: oidc-provider-mock, django-oauth-toolkit and idpyoidc, each a
server on this machine with the same two users, and a browser without a screen for their pages."""

import functools
import html
import json
import re
import threading
from urllib.parse import urljoin

import requests

from processes import free_port

USERS = ("asha", "bina")
PASSWORD = "correct horse battery"


class Issuer:
    """An issuer with some users. `make` returns its WSGI application."""

    # What the entry in gateway.lua needs for it.
    settings = ""
    client_id, secret = "gateway", "s3cret-of-the-gateway"

    def __init__(self, callbacks, folder):
        self.name = type(self).__name__.lower()
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.app = self.make(callbacks, folder)
        self.up()

    def claims(self, user, *groups):
        names = {"given_name": user.capitalize(), "family_name": "Rao", "groups": list(groups)}
        return {"email": f"{user}@{self.name}.example.com", "email_verified": True, **names}

    def up(self):
        from werkzeug.serving import make_server

        self.server = make_server("localhost", self.port, self.app, threaded=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def down(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def visit(self, address, **fields):
        """A new browser opens an address of the issuer and fills in each page. Returns where it is sent."""
        browser = requests.Session()
        answer = browser.get(address, allow_redirects=False, timeout=20)
        for _ in range(9):
            if answer.is_redirect:
                address = urljoin(answer.url, answer.headers["Location"])
                if not address.startswith(self.url):
                    return address
                answer = browser.get(address, allow_redirects=False, timeout=20)
            else:
                assert answer.status_code == 200, answer.text
                hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', answer.text)
                filled = {name: html.unescape(value) for name, value in hidden} | fields
                answer = browser.post(answer.url, data=filled, allow_redirects=False, timeout=20)
        raise AssertionError(answer.text)


class Mock(Issuer):
    """oidc-provider-mock. A refresh brings no ID token, so the claims come from userinfo."""

    settings = ', userinfo = "always"'

    def make(self, callbacks, _):
        from oidc_provider_mock import app

        made = app(require_client_registration=True, require_nonce=True)
        self.api = made.test_client()
        client = self.api.post("/oauth2/clients", json={"redirect_uris": callbacks}).json
        self.client_id, self.secret = client["client_id"], client["client_secret"]
        for user in USERS:
            self.regroup(user, "ops")
        return made

    def consents(self, address, user):
        return self.visit(address, sub=user)

    def cancels(self, address):
        return self.visit(address, action="deny")

    def regroup(self, user, *groups):
        assert self.api.put(f"/users/{user}", json=self.claims(user, *groups)).status_code == 204

    def disable(self, user):
        assert self.api.post(f"/users/{user}/revoke-tokens").status_code == 204


class Django(Issuer):
    """django-oauth-toolkit. Each refresh token works once, and goes on to work for a user who is not active."""

    APPS = ("auth", "contenttypes", "sessions")
    SESSION = ("contrib.sessions.middleware.Session", "contrib.auth.middleware.Authentication")
    MIDDLEWARE = (SESSION[0], "middleware.csrf.CsrfView", SESSION[1])
    LOGIN = '<form method="post">{% csrf_token %}{{ form }}</form>'

    def make(self, callbacks, folder):
        import django
        from cryptography.hazmat.primitives.asymmetric import rsa
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from django.conf import settings

        key = rsa.generate_private_key(65537, 2048)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        own = ("django.template.loaders.locmem.Loader", {"registration/login.html": self.LOGIN})
        loaders = [own, "django.template.loaders.app_directories.Loader"]
        scopes = {scope: scope for scope in ("openid", "profile", "email", "offline_access")}
        # Otherwise a transaction that reads and then writes fails if another one writes meanwhile.
        database = {"NAME": folder / "issuer.db", "OPTIONS": {"transaction_mode": "IMMEDIATE"}}
        settings.configure(
            SECRET_KEY="of this test only",
            ALLOWED_HOSTS=["localhost"],
            LOGGING_CONFIG=None,
            USE_TZ=True,
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", **database}},
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
            INSTALLED_APPS=[*(f"django.contrib.{app}" for app in self.APPS), "oauth2_provider"],
            # Without migrations, the tables exist in a tenth of the time.
            MIGRATION_MODULES=dict.fromkeys([*self.APPS, "oauth2_provider"]),
            MIDDLEWARE=[f"django.{name}Middleware" for name in self.MIDDLEWARE],
            PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
            LOGIN_URL="/login/",
            TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {"loaders": loaders}}],
            OAUTH2_PROVIDER={"OIDC_ENABLED": True, "OIDC_RSA_PRIVATE_KEY": pem, "SCOPES": scopes},
        )
        django.setup()
        self.install(callbacks, settings)
        from django.core.wsgi import get_wsgi_application

        return get_wsgi_application()

    def install(self, callbacks, settings):
        """Imports what needs settings, and creates tables, users and the client."""
        from django.contrib.auth.models import Group, User
        from django.contrib.auth.views import LoginView
        from django.core.management import call_command
        from django.urls import include, path
        from oauth2_provider.models import Application
        from oauth2_provider.oauth2_validators import OAuth2Validator

        class Validator(OAuth2Validator):
            oidc_claim_scope = None
            issuer = self

            def get_additional_claims(self, request):
                return self.issuer.claims(request.user.username, *request.user.groups.values_list("name", flat=True))

        class Addresses:
            urlpatterns = [path("login/", LoginView.as_view()), path("", include("oauth2_provider.urls"))]

        settings.ROOT_URLCONF = Addresses
        settings.OAUTH2_PROVIDER["OAUTH2_VALIDATOR_CLASS"] = Validator
        call_command("migrate", verbosity=0, run_syncdb=True)
        Group.objects.create(name="ops")
        for user in USERS:
            User.objects.create_user(user, password=PASSWORD)
            self.regroup(user, "ops")
        kind = {"client_type": "confidential", "authorization_grant_type": "authorization-code", "algorithm": "RS256"}
        client = {"client_id": self.client_id, "client_secret": self.secret, "redirect_uris": " ".join(callbacks)}
        Application.objects.create(**client, **kind)

    def consents(self, address, user):
        return self.visit(address, username=user, password=PASSWORD, allow="Authorize")

    def cancels(self, address):
        return self.visit(address, username="asha", password=PASSWORD)

    def regroup(self, user, *groups):
        from django.contrib.auth.models import Group, User

        User.objects.get(username=user).groups.set(Group.objects.filter(name__in=groups))

    def disable(self, user):
        from oauth2_provider.models import RefreshToken

        for token in RefreshToken.objects.filter(user__username=user, revoked=None):
            token.revoke()


class Idpyoidc(Issuer):
    """idpyoidc, with two keys. It issues refresh tokens only after consent, and has the profile at userinfo only."""

    settings = ', prompt = "consent", userinfo = "always"'
    SCOPES = {
        "openid": ["sub"],
        "profile": ["given_name", "family_name", "groups"],
        "email": ["email", "email_verified"],
        "offline_access": [],
    }

    def make(self, callbacks, folder):
        import flask
        from idpyoidc.server import Server
        from idpyoidc.server.configure import OP_DEFAULT_CONFIG, OPConfiguration

        self.op = Server(OPConfiguration(self.configuration(OP_DEFAULT_CONFIG, folder)))
        scopes = {"response_types_supported": ["code"], "allowed_scopes": list(self.SCOPES)}
        client = {"client_id": self.client_id, "client_secret": self.secret}
        self.op.context.cdb[self.client_id] = {**client, **scopes, "redirect_uris": [(uri, "") for uri in callbacks]}
        self.op.keyjar.add_symmetric(self.client_id, self.secret)
        for user in USERS:
            self.regroup(user, "ops")
        app = flask.Flask("idpyoidc")
        app.add_url_rule("/jwks", "jwks", lambda: json.loads(self.op.keyjar.export_jwks_as_json()))
        for endpoint in self.op.endpoint.values():
            answer = functools.partial(self.answer, endpoint, flask)
            app.add_url_rule(f"/{endpoint.endpoint_path}", endpoint.name, answer, methods=["GET", "POST"])
        return app

    def configuration(self, standard, folder):
        def keys(*kids):
            return {"key_defs": [{"type": "OCT", "use": ["enc"], "kid": kid} for kid in kids]}

        def part(name, **settings):
            return {"class": f"idpyoidc.server.{name}", "kwargs": settings}

        tokens = {"jwks_def": keys("code"), "jwks_file": str(folder / "tokens.json")}
        signing = [{"type": "RSA", "use": ["sig"]}, {"type": "EC", "crv": "P-256", "use": ["sig"]}]
        return {
            "issuer": self.url,
            "key_conf": {"key_defs": signing, "uri_path": "jwks"},
            "authentication": {"user": {"acr": "password", **part("user_authn.user.NoAuthn", user="asha")}},
            "userinfo": part("user_info.UserInfo"),
            "cookie_handler": part("cookie_handler.CookieHandler", keys=keys("enc", "sig")),
            "session_params": {"encrypter": {"kwargs": {"keys": keys("password", "salt")}}},
            "token_handler_args": {**standard["token_handler_args"], **tokens},
            "scopes_to_claims": self.SCOPES,
            "add_on": {"pkce": {"function": "idpyoidc.server.oauth2.add_on.pkce.add_support", "kwargs": {}}},
        }

    def answer(self, endpoint, flask):
        """What the library leaves to its web framework."""
        from idpyoidc.message.oauth2 import ResponseMessage
        from idpyoidc.server.exception import ClientAuthenticationError

        request = flask.request
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = {"http_info": {"headers": headers, "url": request.url, "method": request.method}}
        try:
            told = asked = endpoint.parse_request(request.values.to_dict(), **seen)
        except ClientAuthenticationError:
            return {"error": "invalid_client"}, 401
        if not (isinstance(asked, ResponseMessage) and "error" in asked):
            told = endpoint.process_request(asked, **seen)
        if "error" in told:
            return told.to_dict(), 400
        done = endpoint.do_response(request=asked, **told)
        if endpoint.response_placement == "url":
            return flask.redirect(done["response"])
        return flask.Response(done["response"], 200, done["http_headers"])

    def consents(self, address, user):
        self.op.context.authn_broker.db["user"]["method"].user = user
        return self.visit(address)

    def logout_tokens(self, user):
        """A token for each session of the user, which names the session only."""
        from idpyoidc.server.oidc.session import Session

        session = Session(self.op.endpoint["token"].upstream_get)
        client = {"client_id": self.client_id, "backchannel_logout_uri": "unused"}
        grants = self.op.context.session_manager.grants(path=[user, self.client_id])
        issued = [grant.last_issued_token_of_type("id_token") for grant in grants]
        return [session.do_back_channel_logout(client, token.session_id)[1] for token in issued if token]

    def regroup(self, user, *groups):
        self.op.context.userinfo.db[user] = self.claims(user, *groups)


KINDS = {kind.__name__.lower(): kind for kind in (Mock, Django, Idpyoidc)}
