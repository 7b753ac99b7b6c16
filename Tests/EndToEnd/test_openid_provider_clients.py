"""Clients that others have written sign users in at a gateway, in a real browser, and sign out in both directions: from
the app, and by the gateway's notice to it."""

import base64
import html
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace
from urllib.parse import urlencode

import jwt
import pytest
import requests

import screens
from attack import Person
from local_gateway import LocalGateway, free_port, wait_for
from openid_provider import TELEVISION, Browser, RelyingParty, Site, provider
from processes import Program
from screens import Screen
from test_accounts import tool
from test_apps import signs_in

APACHE = "/usr/lib/apache2/modules/mod_auth_openidc.so"
PGADMIN = os.environ.get("MOONGATE_PGADMIN")
SCOPES = 'scopes = { "openid", "profile", "email", "phone", "groups" },'
DISCOVERY = "/.well-known/openid-configuration"


def web_app(name, port, back, out="/", notice=None):
    """The entry of an app at a port of this machine."""
    site = f"http://localhost:{port}"
    notified = f'sign_out_notice = "http://127.0.0.1:{port}{notice}",' if notice else ""
    return f"""name = "{name}", secret = file "secrets/NAME", {SCOPES}
    redirect_uris = {{ "{site}{back}" }}, sign_out_uris = {{ "{site}{out}" }}, {notified}"""


@pytest.fixture(scope="module")
def ports():
    names = ("apache", "flask", "django", "social", "pgadmin", "neighbour", "neighbour_admin", "neighbour_service")
    return {name: free_port() for name in names}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, ports):
    apps = {
        "apache": web_app(
            "Apache", ports["apache"], "/oidc/redirect", "/signed-out", "/oidc/redirect?logout=backchannel"
        ),
        "flask": web_app("Flask", ports["flask"], "/back", "/signed-out", "/notice"),
        "django": web_app("Django", ports["django"], "/oidc/callback/", "/signed-out"),
        "social": web_app("Social", ports["social"], "/complete/oidc/", "/signed-out"),
        "pgadmin": web_app("pgAdmin", ports["pgadmin"], "/oauth2/authorize"),
        "neighbour": web_app(
            "Neighbour", ports["neighbour"], "/auth/callback/upstream", "/auth/login", "/auth/hook/upstream"
        ).replace("127.0.0.1", "localhost"),
        "native": 'name = "Native", public = true, consent = "once", redirect_uris = { "http://127.0.0.1/in" },'
        + SCOPES,
        "television": TELEVISION,
    }
    gateway = provider(tmp_path_factory.mktemp("gateway"), **apps)
    yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = screens.start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def screen(driver, gateway):
    return Screen(driver, gateway).forget()


@pytest.fixture
def person(gateway, number):
    person = Person(gateway, phone=number)
    person.number = number
    assert tool(gateway, "group", "add", "staff", person.id)[0] == 0
    return person


def secret_of(gateway, name):
    return (gateway.config / "secrets" / name).read_text()


def goes(screen, address):
    screen.driver.get(address)
    return screen


def reads_source(screen, text):
    return screen.waits(lambda: text in screen.driver.page_source, text)


def signs_in_by(screen, person, address):
    """Opens a page of an app, and signs in at the gateway."""
    goes(screen, address).at("/auth/login")
    signs_in(screen, person.number)
    screen.waits(lambda: not screen.driver.current_url.startswith(screen.gateway.url + "/"), "the way back")
    return screen


def ends_the_session(screen):
    """Ends the session from another device, which leaves the cookies of the apps in this browser."""
    token = screen.opens("/auth/error?code=not_found").driver.get_cookie("moongate")["value"]
    ended = screen.gateway.api("DELETE", "/session", headers={"Authorization": f"Bearer {token}"})
    assert ended.status_code == 204, ended.text


def serves(app, port):
    """Runs a WSGI application."""
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", port, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    return SimpleNamespace(stop=lambda: (server.shutdown(), server.server_close(), thread.join(10)))


# Apache with mod_auth_openidc.

MODULES = ("mpm_event", "authz_core", "authz_user", "authn_core", "alias", "auth_openidc", "dir")
HTTPD = """
ServerRoot "{folder}"
ServerName localhost
Listen 127.0.0.1:{port}
PidFile "{folder}/httpd.pid"
ErrorLog "{folder}/error.log"
LogLevel warn
{modules}
DocumentRoot "{folder}/www"
<Directory "{folder}/www">
  ForceType text/html
</Directory>
OIDCProviderMetadataURL {issuer}/.well-known/openid-configuration
OIDCClientID apache
OIDCClientSecret {secret}
OIDCRedirectURI http://localhost:{port}/oidc/redirect
OIDCCryptoPassphrase {passphrase}
OIDCScope "openid profile email phone groups"
OIDCPKCEMethod S256
OIDCRemoteUserClaim sub
OIDCSSLValidateServer Off
OIDCCookieSameSite On
OIDCSessionType server-cache
<Location /private/>
  AuthType openid-connect
  Require claim groups:staff
</Location>
<Location /oidc/>
  AuthType openid-connect
  Require valid-user
</Location>
"""


@pytest.fixture
def apache(gateway, ports, tmp_path):
    if not pathlib.Path(APACHE).exists():
        pytest.skip("needs libapache2-mod-auth-openidc")
    for name in ("www/private", "www/oidc"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "www/private/index.html").write_text("<title>Private</title><p>Behind Apache.</p>")
    (tmp_path / "www/signed-out").write_text("<p>Signed out of Apache.</p>")
    modules = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
        for name in MODULES
        if pathlib.Path(f"/usr/lib/apache2/modules/mod_{name}.so").exists()
    )
    configuration = HTTPD.format(
        folder=tmp_path,
        port=ports["apache"],
        modules=modules,
        issuer=gateway.url,
        secret=secret_of(gateway, "apache"),
        passphrase="of-this-test-only",
    )
    (tmp_path / "httpd.conf").write_text(configuration)
    if os.geteuid() == 0:
        # Its workers run as another user.
        (tmp_path / "httpd.conf").write_text(configuration + "\nUser www-data\nGroup www-data\n")
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o055)
        subprocess.run(["chown", "-R", "www-data", tmp_path], check=True, timeout=20)
    program = Program("/usr/sbin/apache2", "-d", tmp_path, "-f", tmp_path / "httpd.conf", "-D", "FOREGROUND")
    url = f"http://localhost:{ports['apache']}"

    def answers():
        assert program.runs, program.output
        try:
            return requests.get(url + "/signed-out", timeout=5)
        except requests.ConnectionError:
            return None

    wait_for(answers, "Apache")
    yield SimpleNamespace(url=url)
    program.end()


def test_apache(screen, person, apache):
    signs_in_by(screen, person, apache.url + "/private/index.html")
    reads_source(screen, "Behind Apache.")
    # From the app: through the gateway, and back.
    out = urlencode({"logout": apache.url + "/signed-out"})
    goes(screen, f"{apache.url}/oidc/redirect?{out}")
    reads_source(screen, "Signed out of Apache.")
    goes(screen, apache.url + "/private/index.html").at("/auth/login")
    # From the gateway: the notice ends the session at Apache.
    signs_in(screen, person.number)
    reads_source(screen, "Behind Apache.")
    ends_the_session(screen)

    def is_gone():
        goes(screen, apache.url + "/private/index.html")
        return screen.driver.current_url.startswith(screen.gateway.url)

    screen.waits(is_gone, "the end of the session at Apache")


def test_apache_asks_for_the_group(screen, gateway, apache, number):
    Person(gateway, phone=number)
    goes(screen, apache.url + "/private/index.html").at("/auth/login")
    signs_in(screen, number)
    screen.waits(lambda: screen.driver.current_url.startswith(apache.url), "the way back")
    screen.waits(lambda: "Behind Apache." not in screen.driver.page_source, "a refusal")


# Authlib with Flask.


def flask_app(gateway, url):
    import flask
    from authlib.integrations.flask_client import OAuth

    app = flask.Flask("flask")
    app.secret_key = "of this test only"
    app.config.update(SESSION_COOKIE_NAME="flask")
    oauth = OAuth(app)
    oauth.register(
        "moongate",
        client_id="flask",
        client_secret=secret_of(gateway, "flask"),
        server_metadata_url=gateway.url + DISCOVERY,
        client_kwargs={"scope": "openid profile email phone groups", "code_challenge_method": "S256"},
    )
    ended = set()

    @app.get("/")
    def home():
        user = flask.session.get("user")
        if not user or user["sid"] in ended:
            return oauth.moongate.authorize_redirect(url + "/back")
        return f"Flask knows {user['sub']} of {' '.join(user['groups'])}."

    @app.get("/back")
    def back():
        token = oauth.moongate.authorize_access_token()
        told = oauth.moongate.userinfo(token=token)
        assert told["sub"] == token["userinfo"]["sub"]
        flask.session["user"] = {name: token["userinfo"][name] for name in ("sub", "sid", "groups")}
        flask.session["id_token"] = token["id_token"]
        return flask.redirect("/")

    @app.get("/out")
    def out():
        fields = {"id_token_hint": flask.session.pop("id_token"), "post_logout_redirect_uri": url + "/signed-out"}
        flask.session.clear()
        end = oauth.moongate.load_server_metadata()["end_session_endpoint"]
        return flask.redirect(f"{end}?{urlencode(fields)}")

    @app.get("/signed-out")
    def signed_out():
        return "Signed out of Flask."

    @app.post("/notice")
    def notice():
        token = flask.request.form["logout_token"]
        keys = jwt.PyJWKClient(oauth.moongate.load_server_metadata()["jwks_uri"])
        key = keys.get_signing_key_from_jwt(token).key
        ended.add(jwt.decode(token, key, ["RS256"], audience="flask", issuer=gateway.url)["sid"])
        return ""

    return app


def test_authlib_with_flask(screen, person, gateway, ports):
    url = f"http://localhost:{ports['flask']}"
    server = serves(flask_app(gateway, url), ports["flask"])
    try:
        signs_in_by(screen, person, url)
        reads_source(screen, f"Flask knows {person.id} of staff.")
        goes(screen, url + "/out")
        reads_source(screen, "Signed out of Flask.")
        goes(screen, url).at("/auth/login")
        signs_in(screen, person.number)
        reads_source(screen, "Flask knows")
        ends_the_session(screen)
        screen.waits(lambda: goes(screen, url).driver.current_url.startswith(gateway.url), "the end at Flask")
    finally:
        server.stop()


# mozilla-django-oidc. Django is configured once in a process, so its server is a process of its own.

DJANGO = """
import sys
from wsgiref.simple_server import make_server
import django
from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect
from urllib.parse import urlencode
issuer, port, secret, folder = sys.argv[1:]
url = f"http://localhost:{port}"
APPS = ["auth", "contenttypes", "sessions"]
settings.configure(
    SECRET_KEY="of this test only", ALLOWED_HOSTS=["localhost"], USE_TZ=True, ROOT_URLCONF="site_of_django",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder + "/django.db"}},
    INSTALLED_APPS=[*(f"django.contrib.{app}" for app in APPS), "mozilla_django_oidc"],
    MIGRATION_MODULES=dict.fromkeys(APPS),
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "mozilla_django_oidc.middleware.SessionRefresh"],
    AUTHENTICATION_BACKENDS=["site_of_django.Backend"],
    OIDC_RP_CLIENT_ID="django", OIDC_RP_CLIENT_SECRET=secret, OIDC_RP_SIGN_ALGO="RS256",
    OIDC_RP_SCOPES="openid profile email phone groups", OIDC_USE_PKCE=True, OIDC_STORE_ID_TOKEN=True,
    OIDC_RENEW_ID_TOKEN_EXPIRY_SECONDS=1,
    OIDC_OP_AUTHORIZATION_ENDPOINT=issuer + "/auth/openid/authorize",
    OIDC_OP_TOKEN_ENDPOINT=issuer + "/auth/openid/token", OIDC_OP_USER_ENDPOINT=issuer + "/auth/openid/userinfo",
    OIDC_OP_JWKS_ENDPOINT=issuer + "/auth/openid/keys", OIDC_OP_LOGOUT_URL_METHOD="site_of_django.away",
    LOGIN_REDIRECT_URL="/", LOGOUT_REDIRECT_URL="/signed-out", ALLOW_LOGOUT_GET_METHOD=True,
    SESSION_COOKIE_NAME="django",
)
django.setup()
from django.contrib.auth.models import User
from django.urls import include, path
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

class Backend(OIDCAuthenticationBackend):
    def verify_claims(self, claims):
        return True
    def filter_users_by_claims(self, claims):
        return User.objects.filter(username=claims["sub"])
    def create_user(self, claims):
        return User.objects.create_user(claims["sub"])

def away(request):
    hint = request.session["oidc_id_token"]
    fields = {"id_token_hint": hint, "post_logout_redirect_uri": url + "/signed-out"}
    return issuer + "/auth/openid/logout?" + urlencode(fields)

def home(request):
    if not request.user.is_authenticated:
        return HttpResponseRedirect("/oidc/authenticate/")
    return HttpResponse(f"Django knows {request.user.username}.")

urlpatterns = [path("oidc/", include("mozilla_django_oidc.urls")), path("", home),
               path("signed-out", lambda request: HttpResponse("Signed out of Django."))]
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
call_command("migrate", verbosity=0, run_syncdb=True)
server = make_server("127.0.0.1", int(port), get_wsgi_application())
print("listens", flush=True)
server.serve_forever()
"""


def test_mozilla_django_oidc(screen, person, gateway, ports, tmp_path):
    (tmp_path / "site_of_django.py").write_text(DJANGO)
    start = "import sys; sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[1:]; import site_of_django"
    program = Program(
        sys.executable, "-c", start, tmp_path, gateway.url, ports["django"],
        secret_of(gateway, "django"), tmp_path,
    )  # fmt: skip
    url = f"http://localhost:{ports['django']}"
    try:
        program.wait_line("listens")
        signs_in_by(screen, person, url)
        reads_source(screen, f"Django knows {person.id}.")
        goes(screen, url + "/oidc/logout/")
        reads_source(screen, "Signed out of Django.")
        goes(screen, url).at("/auth/login")
        signs_in(screen, person.number)
        reads_source(screen, "Django knows")
        # It has no back channel, and asks by prompt=none instead.
        ends_the_session(screen)
        screen.waits(lambda: "Django knows" not in goes(screen, url).driver.page_source, "the end at Django")
    finally:
        program.end()


# social-auth-core, in a small WSGI application.


def social_app(gateway, url):
    import flask
    from social_core.backends.open_id_connect import OpenIdConnectAuth
    from social_core.storage import BaseStorage
    from social_core.strategy import BaseStrategy

    class Associations:
        """The nonces of this process, by themselves."""

        kept = {}

        @classmethod
        def store(cls, _, association):
            nonce, state = association.handle, association.assoc_type
            cls.kept[nonce] = SimpleNamespace(id=nonce, assoc_type=state, is_expired=lambda: False)

        @classmethod
        def get(cls, server_url, handle):
            return [cls.kept[handle]] if handle in cls.kept else []

        @classmethod
        def remove(cls, nonces):
            for nonce in nonces:
                cls.kept.pop(nonce, None)

    class States:
        """Values of `state`, each of which is taken once."""

        kept = set()

        @classmethod
        def use(cls, server_url, timestamp, salt):
            is_new = salt not in cls.kept
            cls.kept.add(salt)
            return is_new

        @classmethod
        def consume(cls, server_url, timestamp, salt):
            is_known = salt in cls.kept
            cls.kept.discard(salt)
            return is_known

    class Storage(BaseStorage):
        association, nonce = Associations, States

    values = {
        "SOCIAL_AUTH_OIDC_KEY": "social",
        "SOCIAL_AUTH_OIDC_SECRET": secret_of(gateway, "social"),
        "SOCIAL_AUTH_OIDC_OIDC_ENDPOINT": gateway.url,
        "SOCIAL_AUTH_OIDC_USE_PKCE": True,
    }

    class Strategy(BaseStrategy):
        def get_setting(self, name):
            return values[name]

        def request_data(self, merge=True):
            return {**flask.request.args, **flask.request.form}

        def request_host(self):
            return flask.request.host

        def build_absolute_uri(self, path=None):
            return url + (path or "")

        def redirect(self, address):
            return flask.redirect(address)

        def html(self, content):
            return content

        def session_get(self, name, default=None):
            return flask.session.get(name, default)

        def session_set(self, name, value):
            flask.session[name] = value

        def session_pop(self, name):
            return flask.session.pop(name, None)

        def authenticate(self, backend, *args, **values):
            """In place of a pipeline that finds a user: the checked answer of the issuer."""
            return values["response"]

    app = flask.Flask("social")
    app.secret_key = "of this test only"
    app.config.update(SESSION_COOKIE_NAME="social")

    def backend():
        return OpenIdConnectAuth(Strategy(Storage()), redirect_uri="/complete/oidc/")

    @app.get("/")
    def home():
        user = flask.session.get("user")
        return f"Social knows {user}." if user else backend().start()

    @app.get("/complete/oidc/")
    def back():
        answer = backend().auth_complete()
        flask.session["user"], flask.session["id_token"] = answer["sub"], answer["id_token"]
        return flask.redirect("/")

    @app.get("/out")
    def out():
        fields = {"id_token_hint": flask.session.pop("id_token"), "post_logout_redirect_uri": url + "/signed-out"}
        flask.session.clear()
        return flask.redirect(f"{gateway.url}/auth/openid/logout?{urlencode(fields)}")

    @app.get("/signed-out")
    def signed_out():
        return "Signed out of Social."

    return app


def test_social_auth_core(screen, person, gateway, ports):
    """The library has no sign-out of its own. The app signs out at the gateway, which knows no session afterwards."""
    url = f"http://localhost:{ports['social']}"
    server = serves(social_app(gateway, url), ports["social"])
    try:
        signs_in_by(screen, person, url)
        reads_source(screen, f"Social knows {person.id}.")
        goes(screen, url + "/out")
        reads_source(screen, "Signed out of Social.")
        goes(screen, url).at("/auth/login")
    finally:
        server.stop()


# pgAdmin 4 has dozens of pinned packages, so it is installed in an environment of its own.

PGADMIN_SETTINGS = """
import os
SERVER_MODE = True
DATA_DIR = os.path.dirname(os.path.abspath(__file__)) + "/data"
DEFAULT_SERVER, DEFAULT_SERVER_PORT = "127.0.0.1", {port}
MASTER_PASSWORD_REQUIRED = False
UPGRADE_CHECK_ENABLED = False
AUTHENTICATION_SOURCES = ["oauth2"]
OAUTH2_AUTO_CREATE_USER = True
OAUTH2_CONFIG = [{{
    "OAUTH2_NAME": "moongate",
    "OAUTH2_DISPLAY_NAME": "Moongate",
    "OAUTH2_CLIENT_ID": "pgadmin",
    "OAUTH2_CLIENT_SECRET": "{secret}",
    "OAUTH2_SERVER_METADATA_URL": "{issuer}/.well-known/openid-configuration",
    "OAUTH2_AUTHORIZATION_URL": "{issuer}/auth/openid/authorize",
    "OAUTH2_TOKEN_URL": "{issuer}/auth/openid/token",
    "OAUTH2_API_BASE_URL": "{issuer}/auth/openid/",
    "OAUTH2_USERINFO_ENDPOINT": "userinfo",
    "OAUTH2_LOGOUT_URL": "{issuer}/auth/openid/logout?id_token_hint={{id_token}}&post_logout_redirect_uri={{redirect_uri}}",
    "OAUTH2_SCOPE": "openid profile email",
    "OAUTH2_USERNAME_CLAIM": "sub",
    "OAUTH2_CHALLENGE_METHOD": "S256",
    "OAUTH2_RESPONSE_TYPE": "code",
}}]
"""


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def chooses_moongate(screen):
    screen.waits(lambda: [one for one in screen.all("button") if "Moongate" in one.text], "the button", 60)[0].click()
    return screen


@pytest.mark.alone
@pytest.mark.skipif(not PGADMIN, reason="needs MOONGATE_PGADMIN, the Python of an environment with pgadmin4")
def test_pgadmin(screen, person, gateway, ports, tmp_path):
    text = PGADMIN_SETTINGS.format(port=ports["pgadmin"], secret=secret_of(gateway, "pgadmin"), issuer=gateway.url)
    (tmp_path / "config_local.py").write_text(text)
    find = "import importlib.util as u; print(u.find_spec('pgadmin4').submodule_search_locations[0])"
    folder = subprocess.run(
        [PGADMIN, "-c", find], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()
    env = {
        "PYTHONPATH": str(tmp_path),
        "PGADMIN_SETUP_EMAIL": "a@example.com",
        "PGADMIN_SETUP_PASSWORD": "of this test",
    }
    program = Program(PGADMIN, folder + "/pgAdmin4.py", env=env, cwd=tmp_path)
    url = f"http://localhost:{ports['pgadmin']}"
    try:
        program.wait_line("Starting pgAdmin", 180)
        wait_for(lambda: listens(ports["pgadmin"]), "pgAdmin", 120)
        chooses_moongate(goes(screen, url + "/login")).at("/auth/login")
        signs_in(screen, person.number)
        screen.waits(lambda: person.id in screen.text, "the user's name in pgAdmin", 60)
        goes(screen, url + "/logout")
        screen.waits(lambda: screen.driver.current_url.startswith(url + "/login"), "the sign-out", 30)
        chooses_moongate(screen).at("/auth/login")
    finally:
        program.end()


# oauthlib: a device without a browser.


def test_oauthlib_device(screen, person, gateway, monkeypatch):
    from oauthlib.oauth2 import DeviceClient

    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    client = DeviceClient("television")
    uri = client.prepare_request_uri(gateway.url + "/auth/openid/device", scope=["openid", "profile"])
    address, _, form = uri.partition("?")
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    begun = requests.post(address, data=form, headers=kind, timeout=20)
    assert begun.status_code == 200, begun.text
    told = begun.json()

    def polls():
        form = client.prepare_request_body(device_code=told["device_code"], include_client_id=True)
        return requests.post(gateway.url + "/auth/openid/token", data=form, headers=kind, timeout=20)

    assert polls().json()["error"] == "authorization_pending"
    goes(screen, told["verification_uri"]).at("/auth/login")
    signs_in(screen, person.number)
    screen.at("/auth/device").fills("user_code", told["user_code"].lower())
    screen.presses("Continue").reads("Example <b>Television</b>", "127.0.0.1")
    screen.presses("Allow").reads("Connected")
    answer = wait_for(lambda: (found := polls()).status_code == 200 and found, "tokens for the device", 30)
    parsed = client.parse_request_body_response(answer.text, scope=["openid", "profile"])
    assert parsed["access_token"]
    bearer = {"Authorization": f"Bearer {parsed['access_token']}"}
    told = requests.get(gateway.url + "/auth/openid/userinfo", headers=bearer, timeout=20)
    assert told.json()["sub"] == person.id, told.text
    # The end of the session is the end of the device's tokens.
    ends_the_session(screen)
    gone = lambda: requests.get(gateway.url + "/auth/openid/userinfo", headers=bearer, timeout=20).status_code == 401
    wait_for(gone, "the end of the device's token", 2)


# requests-oauthlib: a native app that listens on a loopback port.


def test_requests_oauthlib_native_app(screen, person, gateway, monkeypatch):
    from oauthlib.common import generate_token
    from requests_oauthlib import OAuth2Session

    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("OAUTHLIB_RELAX_TOKEN_SCOPE", "1")
    listener = Site()
    try:
        native = OAuth2Session(
            "native", redirect_uri=f"http://127.0.0.1:{listener.port}/in", scope=["openid", "profile"], pkce="S256"
        )
        address, state = native.authorization_url(gateway.url + "/auth/openid/authorize", nonce=generate_token())
        goes(screen, address).at("/auth/login").reads("Native")
        signs_in(screen, person.number)
        screen.at("/auth/openid/consent").presses("Allow")
        arrived = screen.waits(
            lambda: next((one for one in listener.received if one.path == "/in"), None), "the way back to the app"
        )
        assert arrived.query["state"] == state and arrived.query["iss"] == gateway.url
        token = native.fetch_token(
            gateway.url + "/auth/openid/token", code=arrived.query["code"], include_client_id=True
        )
        assert native.get(gateway.url + "/auth/openid/userinfo").json()["sub"] == person.id
        renewed = native.refresh_token(gateway.url + "/auth/openid/token", client_id="native")
        assert renewed["refresh_token"] != token["refresh_token"]
        # From the app: it revokes its tokens.
        revoked = {"token": renewed["refresh_token"], "client_id": "native"}
        assert requests.post(gateway.url + "/auth/openid/revoke", data=revoked, timeout=20).status_code == 200
        assert native.get(gateway.url + "/auth/openid/userinfo").status_code == 401
        # From the gateway: the account page lists the app.
        screen.opens("/auth/account").reads("Connected apps", "Native")
    finally:
        listener.stop()


# A second gateway, which signs in here by `openid`.


@pytest.fixture(scope="module")
def neighbour(gateway, ports, tmp_path_factory):
    from test_other_sites import configure

    neighbour = LocalGateway(tmp_path_factory.mktemp("neighbour"))
    shipped, wanted = neighbour.ports, [ports[name] for name in ("neighbour", "neighbour_admin", "neighbour_service")]
    for name in ("gateway.lua", "routes.lua"):
        for old, new in zip(shipped, wanted):
            neighbour.edit(name, lambda text, old=old, new=new: text.replace(f":{old}", f":{new}"))
    neighbour.ports = wanted
    neighbour.url, neighbour.admin = f"http://localhost:{wanted[0]}", f"http://127.0.0.1:{wanted[1]}"
    neighbour.service = f"http://127.0.0.1:{wanted[2]}"
    neighbour.google = neighbour.service + "/mock-google"
    entry = (
        f'upstream = openid {{ issuer = "{gateway.url}", client_id = "neighbour", client_secret = env "UPSTREAM", '
        'label = "The other gateway", sign_out = "there" }'
    )
    configure(neighbour, entry, upstream='return policy "upstream" {}\n')
    yield neighbour.start(UPSTREAM=secret_of(gateway, "neighbour"))
    neighbour.stop()


def refreshed(answer):
    """Where a page leads by itself."""
    return html.unescape(re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)[1])


def test_two_gateways(gateway, neighbour):
    """Without a screen, because browsers do not tell cookies of two ports of one host name apart."""
    upstream, downstream = Browser(gateway), Browser(neighbour)
    upstream.signs_in_at_google()

    def signs_in_downstream():
        away = refreshed(downstream.post("/auth/login", provider="upstream"))
        assert away.startswith(gateway.url + "/auth/openid/authorize?"), away
        back = upstream.follows(away)
        assert isinstance(back, str) and back.startswith(neighbour.url + "/auth/callback/upstream?"), back
        assert downstream.get(back).status_code == 303
        return downstream.account()

    first = signs_in_downstream()
    assert first["email"] == upstream.account()["email"]
    # From the upstream: its notice ends the session downstream.
    own = {"Authorization": f"Bearer {upstream.token}"}
    assert gateway.api("DELETE", "/session", headers=own).status_code == 204
    wait_for(lambda: downstream.account() is None, "the end of the session downstream", 15)
    # From downstream: the browser is sent to the upstream, which ends the session there.
    upstream.signs_in_at_google()
    assert signs_in_downstream()["id"] == first["id"]
    away = refreshed(downstream.post("/auth/logout", return_to="/"))
    assert away.startswith(gateway.url + "/auth/openid/logout?"), away
    page = upstream.follows(away)
    if not isinstance(page, str):
        page = upstream.presses(page, "Sign out")
    assert page == neighbour.url + "/auth/login" and upstream.account() is None, page


def test_kubectl_accepts_the_id_token(gateway, person):
    """What an API server of Kubernetes needs by `--oidc-issuer-url`: discovery, keys, `aud`, `exp` and `groups`."""
    browser = Browser(gateway).has_session(person.signs_in().token)
    app = RelyingParty(gateway, "native", "http://127.0.0.1:8000/in")
    tokens = app.signs_in(browser, scope="openid groups")
    head = json.loads(base64.urlsafe_b64decode(tokens.id_token.split(".")[0] + "=="))
    assert head["alg"] == "RS256" and tokens.claims["groups"] == ["staff"], tokens.claims
    assert app.discovery["issuer"] == gateway.url
