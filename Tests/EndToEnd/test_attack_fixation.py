"""Attack: flow fixation. An attacker starts a flow and sends its link to the victim, who enters the genuine code on
the genuine page; the attacker completes the flow. Tests of pages use two separate browser profiles."""

import http.server
import threading

import pytest
import requests

import screens
from attack import PASSWORD, Person, arrived, bearer, log_in_by_password, new_email, relaxed, send
from local_gateway import problem
from mockgoogle import pkce
from screens import Screen

CHOSEN = "the attacker's own choice"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    with Listener() as app:
        gateway.app = app
        gateway.registers_app("http://localhost/in")
        yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """Two separate browsers."""
    drivers = [screens.start(tmp_path_factory.mktemp(name)) for name in ("attacker", "victim")]
    yield drivers
    for driver in drivers:
        driver.quit()


@pytest.fixture
def attacker(profiles, gateway):
    return Screen(profiles[0], gateway).forget()


@pytest.fixture
def victim(profiles, gateway):
    return Screen(profiles[1], gateway).forget()


class Listener:
    """The app's own redirect URI: records the requests of browsers."""

    def __enter__(self):
        requested = self.requested = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requested.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def types_code_if_asked(screen, address, code):
    """The victim follows the link and does what the page asks."""
    screen.opens(address)
    asked = bool(screen.all("#code"))
    if asked:
        before = screen.driver.current_url
        screen.enters(code)
        screen.waits(lambda: screen.driver.current_url != before, "what follows the code")
    return asked


def page_status(gateway, address):
    """The status of the link in a new browser."""
    return requests.get(
        gateway.url + address, headers={"Accept": "text/html"}, allow_redirects=False, timeout=20
    ).status_code


def test_password_reset_that_an_attacker_began(gateway, victim):
    person = Person(gateway, email=new_email())
    flow = gateway.flow("password_reset")
    code = send(gateway, flow, "email_code", person.email)
    link = f"/auth/email?id={flow}"
    asked = types_code_if_asked(victim, link, code)
    # The attacker continues where the victim stopped.
    answers = [
        gateway.api("POST", f"/flows/{flow}/submit", {"password": CHOSEN}),
        gateway.api("POST", f"/flows/{flow}/begin", {"provider": "password", "password": CHOSEN}),
    ]
    assert not any((answer.json().get("session") or {}).get("token") for answer in answers), (
        "the attacker has a session of the victim's account"
    )
    assert log_in_by_password(gateway, person.email, CHOSEN).status_code == 401
    assert log_in_by_password(gateway, person.email, PASSWORD).status_code == 200
    assert not asked and page_status(gateway, link) == 404


def test_registration_that_an_attacker_began(gateway, victim):
    email = new_email()
    flow = gateway.flow("register_email")
    fields = {"provider": "password", "email": email, "password": CHOSEN, "first_name": "Mallory", "last_name": "M"}
    assert gateway.api("POST", f"/flows/{flow}/begin", fields).status_code == 200
    seen = {entry["id"] for entry in gateway.outbox()}
    begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "email_code"})
    assert begun.status_code == 200, begun.text
    link = f"/auth/email?id={flow}"
    asked = types_code_if_asked(victim, link, arrived(gateway, email, seen))
    # The account with the victim's verified address would have a password that the attacker knows.
    opened = log_in_by_password(gateway, email, CHOSEN)
    assert opened.status_code == 401 or not opened.json()["account"]["is_email_verified"], (
        "the attacker's password opens the victim's address"
    )
    assert not asked and page_status(gateway, link) == 404


def test_sign_in_started_by_an_attacker_names_the_account(gateway, victim, number):
    person = Person(gateway, phone=number, email=new_email())
    flow = gateway.flow("login")
    code = send(gateway, flow, "phone_otp", number)
    link = f"/auth/verify?id={flow}"
    asked = types_code_if_asked(victim, link, code)
    told = gateway.api("GET", f"/flows/{flow}").text
    assert person.id not in told and person.email not in told
    assert not asked and page_status(gateway, link) == 404


def test_attackers_own_browser_cannot_adopt_the_flow_either(gateway, attacker, number):
    """A flow that was created without `Origin` belongs to the API client that created it; pages show it to no
    browser."""
    Person(gateway, phone=number)
    flow = gateway.flow("login")
    code = send(gateway, flow, "phone_otp", number)
    assert not types_code_if_asked(attacker, f"/auth/verify?id={flow}", code)
    # The client that created the flow can continue it.
    assert gateway.submit(flow, code).json()["session"]["token"]


def test_flow_of_one_browser_does_not_exist_in_another(gateway, attacker, victim, number):
    Person(gateway, phone=number)
    attacker.asks_code(number)
    link = attacker.driver.current_url.removeprefix(gateway.url)
    victim.opens(link)
    assert not victim.all("#code") and page_status(gateway, link) == 404
    attacker.enters(gateway.code(number)).at("/home")


def test_account_is_shown_only_for_a_complete_flow_or_its_own_session(gateway, number):
    """Attack: someone who knows a flow id reads the account of an identifier before everything is proved."""
    person = Person(gateway, phone=number, email=new_email()).signs_in()
    flow = gateway.flow("password_reset")
    code = send(gateway, flow, "email_code", person.email)
    passed = gateway.submit(flow, code)
    assert passed.json()["status"] == "pending" and passed.json()["account"] is None, passed.text
    assert gateway.api("GET", f"/flows/{flow}").json()["account"] is None
    own = person.begins("step_up")
    told = gateway.api("GET", f"/flows/{own}", **person.own).json()["account"]
    assert told is None or told["id"] == person.id


def app_flow(gateway):
    """A native app starts a sign-in for a browser. Returns the flow and the verifier."""
    verifier, challenge = pkce()
    created = gateway.api(
        "POST",
        "/flows",
        {"flow": "login", "code_challenge": challenge, "redirect_to": f"http://localhost:{gateway.app.port}/in"},
    )
    assert created.status_code == 201, created.text
    return created.json()["id"], verifier


def test_flow_of_an_app_belongs_to_its_first_browser_and_reveals_nothing(gateway, victim, attacker, number):
    person = Person(gateway, phone=number, email=new_email())
    flow, verifier = app_flow(gateway)
    told = []

    def creator_asks():
        told.append(gateway.api("GET", f"/flows/{flow}").text)

    creator_asks()
    victim.opens(f"/auth/login?id={flow}")
    seen = {entry["id"] for entry in gateway.outbox()}
    victim.fills("phone", number).waits(lambda: victim.find("button.main").is_enabled(), "a number that can be sent")
    victim.find("button.main").click()
    victim.at("/auth/verify")
    link = victim.driver.current_url.removeprefix(gateway.url)
    assert f"id={flow}" in link, "the page continues the app's flow"
    creator_asks()
    # Another browser is too late.
    attacker.opens(link)
    adopted = bool(attacker.all("#code"))
    before = len(gateway.app.requested)
    victim.enters(arrived(gateway, number, seen))
    victim.waits(lambda: len(gateway.app.requested) > before, "the way back to the app")
    creator_asks()
    redirected = gateway.app.requested[before]
    assert redirected.startswith("/in?code="), redirected
    code = redirected.removeprefix("/in?code=")
    # During the sign-in, the creator learns neither the user nor the code that redeems the result.
    for text in told:
        for secret in (number, number[-10:], f"{number[3:8]} {number[8:]}", person.id, person.email, code):
            assert secret not in text, f"{secret} in {text}"
    assert not adopted, "a second browser shows the flow"
    problem(gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": "a" * 43}), 401, "invalid_code")
    done = gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": verifier})
    assert done.status_code == 200 and done.json()["account"]["id"] == person.id, done.text
    assert gateway.api("GET", "/session", **bearer(done.json()["session"]["token"])).status_code == 200


def test_app_cannot_finish_a_flow_of_a_browser(gateway, victim, number):
    """Attack: the attacker is the app, knows the verifier, and continues the flow by API with the code that the
    victim entered."""
    Person(gateway, phone=number)
    flow, verifier = app_flow(gateway)
    victim.opens(f"/auth/login?id={flow}").fills("phone", number)
    victim.waits(lambda: victim.find("button.main").is_enabled(), "a number that can be sent")
    seen = {entry["id"] for entry in gateway.outbox()}
    victim.find("button.main").click()
    victim.at("/auth/verify")
    code = arrived(gateway, number, seen)
    for fields in ({"code": code}, {"code": code, "code_verifier": verifier}):
        answer = gateway.api("POST", f"/flows/{flow}/submit", fields)
        assert answer.status_code >= 400 and "token" not in answer.text, answer.text


def test_app_flow_with_the_attackers_password_has_no_page(gateway, victim):
    """Attack: the attacker is the app. They register the victim's address with their own password by the API and send
    the link. The victim would enter the genuine code on the genuine page, which would verify the address with the
    attacker's password."""
    email = new_email()
    _, challenge = pkce()
    flow = gateway.api(
        "POST",
        "/flows",
        {"flow": "register_email", "code_challenge": challenge, "redirect_to": f"http://localhost:{gateway.app.port}/in"},
    )
    id = flow.json()["id"]
    begun = gateway.api(
        "POST",
        f"/flows/{id}/begin",
        {"provider": "password", "email": email, "password": CHOSEN, "first_name": "A", "last_name": "B"},
    )
    problem(begun, 409, "step_not_open")
    coded = gateway.api("POST", f"/flows/{id}/begin", {"provider": "email_code", "email": email})
    problem(coded, 409, "step_not_open")
    before = len(gateway.app.requested)
    assert not types_code_if_asked(victim, f"/auth/email?id={id}", "123456"), "the page asks for the code"
    assert len(gateway.app.requested) == before, "the victim's browser was sent to the app"
    assert log_in_by_password(gateway, email, CHOSEN).status_code != 200
