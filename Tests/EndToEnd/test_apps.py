"""Apps that receive the results of sign-ins on the gateway's pages: by the API, and in a browser of the victim with and
without scripts (docs: Documentation/integrations/native-apps.md)."""

import pytest
import requests

import screens
from attack import Person, arrived, bearer, relaxed
from local_gateway import problem
from mockgoogle import Visitor, choose, field, pkce
from screens import Screen
from test_attack_fixation import Listener

SCHEME = "com.example.app:/in"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    gateway = relaxed(tmp_path_factory.mktemp("gateway"))
    with Listener() as app:
        gateway.app = app
        # Names the app's host: it receives no codes because of that.
        gateway.edit(
            "gateway.lua",
            lambda text: text.replace(
                "  service =", f'  redirect_hosts = {{ "localhost:{app.port}" }},\n  service =', 1
            ),
        )
        gateway.registers_app("http://localhost/in", "https://app.example.com/in", SCHEME, consent="once")
        yield gateway.start()
    gateway.stop()


@pytest.fixture(scope="module", params=[True, False], ids=["scripts", "no scripts"])
def browser(request, tmp_path_factory):
    driver = screens.start(tmp_path_factory.mktemp("chromium"), scripts=request.param)
    yield driver
    driver.quit()


@pytest.fixture
def victim(browser, gateway):
    return Screen(browser, gateway).forget()


def created(gateway, redirect):
    """A flow for the app. Returns its answer and the verifier."""
    verifier, challenge = pkce()
    body = {"flow": "login", "code_challenge": challenge, "redirect_to": redirect}
    return gateway.api("POST", "/flows", body), verifier


def began(gateway, redirect):
    answer, verifier = created(gateway, redirect)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], verifier


def redeems(gateway, flow, code, verifier):
    return gateway.api("POST", f"/flows/{flow}/submit", {"code": code, "code_verifier": verifier})


def signs_in(screen, number):
    """Signs in on the page of the flow."""
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.fills("phone", number).waits(lambda: screen.find("button.main").is_enabled(), "a number that can be sent")
    screen.find("button.main").click()
    screen.at("/auth/verify")
    screen.enters(arrived(screen.gateway, number, seen))


@pytest.mark.parametrize(
    "address",
    [
        "http://app:PORT/user/x/pixel.gif",
        "http://localhost:PORT/user/x/pixel.gif",
        "http://localhost:PORT/go?to=http://evil.example/",
        "https://localhost:PORT/in",
        "http://localhost:PORT/in?x=1",
        "http://localhost:PORT/in/",
        "http://localhost:PORT/in#x",
        "http://localhost:PORT/x/../in",
        "http://localhost:PORT/%69n",
        "http://LOCALHOST:PORT/in",
        "http://localhost.:PORT/in",
        "http://evil@localhost:PORT/in",
        "http://localhost:PORT@evil.example/in",
        "https://app.example.com:8443/in",
        "https://app.example.com/in\r\nSet-Cookie: moongate=x",
        "com.example.app:/in?x=1",
        "COM.example.app:/in",
        "com.example.app2:/in",
        "OWN/in",
        "/in",
    ],
)
def test_code_goes_to_no_other_address(gateway, address):
    """Attack: the creator of a flow chooses an address where they can read request lines."""
    answer, _ = created(gateway, address.replace("PORT", str(gateway.app.port)).replace("OWN", gateway.url))
    assert problem(answer, 422, "invalid_input")["field"] == "redirect_to"


def test_link_of_another_site_is_not_given_out(gateway):
    """Attack: the attacker begins the step at Google by the API, and sends Google's link. The victim sees no page of
    the gateway, and the attacker redeems the code."""
    flow, _ = began(gateway, f"http://localhost:{gateway.app.port}/in")
    for _ in range(2):
        begun = gateway.api("POST", f"/flows/{flow}/begin", {"provider": "google_oauth"})
        assert "/auth/login?id=" in problem(begun, 409, "step_not_open")["detail"]
        # The same after a browser has opened the page.
        Visitor(gateway).get(f"/auth/login?id={flow}")


def test_app_signs_in_with_google(gateway):
    """The whole way of an https app, with its question."""
    flow, verifier = began(gateway, "https://app.example.com/in")
    browser = Visitor(gateway)
    assert browser.get(f"/auth/login?id={flow}").headers["Location"] == f"/auth/app?id={flow}"
    asked = browser.get(f"/auth/app?id={flow}")
    assert "Continue to Example Wallet?" in asked.text and "https://app.example.com" in asked.text
    # Until the answer, no form begins a step.
    assert browser.post("/auth/step", id=flow, **{"with": "google_oauth"}).status_code == 409
    agreed = browser.post(f"/auth/app?id={flow}", action="allow")
    assert agreed.status_code == 303 and agreed.headers["Location"] == f"/auth/login?id={flow}", agreed.headers
    back_at = choose(browser.continues(id=flow), account="100000000000000000001")
    assert Visitor(gateway).get(back_at).status_code == 404, "the answer works in another browser"
    back = browser.get(back_at)
    assert back.headers["Location"].startswith("https://app.example.com/in?code="), back.headers
    assert browser.account() is None and "moongate-device" in browser.session.cookies
    done = redeems(gateway, flow, field("code", back.headers["Location"]), verifier)
    assert done.status_code == 200 and "device_token" not in done.json(), done.text
    assert gateway.api("GET", "/session", **bearer(done.json()["session"]["token"])).status_code == 200
    # The browser is asked once.
    again, _ = began(gateway, "https://app.example.com/in")
    assert "Example Wallet" in browser.get(f"/auth/login?id={again}").text


def test_victim_reads_which_app_gets_the_sign_in(gateway, victim, number):
    """Attack: the attacker creates a flow and sends its link. The victim learns which app gets the session, and without
    an answer no code leaves."""
    Person(gateway, phone=number)
    flow, verifier = began(gateway, f"http://localhost:{gateway.app.port}/in")
    before = len(gateway.app.requested)
    victim.opens(f"/auth/login?id={flow}").at("/auth/app").reads(
        "Continue to Example Wallet?", "only if you have just opened Example Wallet yourself", "http://localhost"
    )
    # The link to a later page of the flow does not lead past the question.
    for page in ("/auth/verify", "/auth/step", "/auth/login"):
        victim.opens(f"{page}?id={flow}").at("/auth/app")
    assert len(gateway.app.requested) == before
    victim.presses("Cancel").waits(lambda: len(gateway.app.requested) > before, "the refusal at the app")
    assert gateway.app.requested[before] == "/in?error=access_denied"
    assert gateway.api("GET", f"/flows/{flow}").status_code == 404
    problem(redeems(gateway, flow, "x" * 43, verifier), 404, "flow_not_found")


def test_forms_without_scripts_lead_back_to_the_app(gateway, victim, number):
    """A loopback app: its address has any port. `form-action` lets the way back through, also without scripts."""
    person = Person(gateway, phone=number)
    flow, verifier = began(gateway, f"http://localhost:{gateway.app.port}/in")
    before = len(gateway.app.requested)
    victim.opens(f"/auth/login?id={flow}").at("/auth/app").presses("Continue").at("/auth/login")
    victim.reads("To continue to Example Wallet")
    signs_in(victim, number)
    victim.waits(lambda: len(gateway.app.requested) > before, "the way back to the app")
    assert gateway.app.requested[before].startswith("/in?code="), gateway.app.requested
    done = redeems(gateway, flow, gateway.app.requested[before].removeprefix("/in?code="), verifier)
    assert done.status_code == 200 and done.json()["account"]["id"] == person.id, done.text


def test_private_scheme_is_not_blocked(gateway, victim, number):
    """A native app with a private scheme: the page lets the browser go there. No app is installed here, so it stays."""
    Person(gateway, phone=number)
    flow, _ = began(gateway, SCHEME)
    victim.opens(f"/auth/login?id={flow}").at("/auth/app").reads("com.example.app:")
    victim.presses("Continue").at("/auth/login")
    victim.driver.get_log("browser")
    signs_in(victim, number)
    victim.waits(lambda: gateway.api("GET", f"/flows/{flow}").json()["status"] == "complete", "the end of the flow")
    told = [line["message"] for line in victim.driver.get_log("browser")]
    assert not [line for line in told if "form-action" in line or "Content Security Policy" in line], told


def test_apps_change_without_a_restart(gateway):
    """An app that is removed from apps.lua receives nothing from then on."""
    flow, _ = began(gateway, SCHEME)
    browser = Visitor(gateway)
    browser.get(f"/auth/app?id={flow}")
    file = gateway.config / "apps.lua"
    before = file.read_text()
    try:
        gateway.edit("apps.lua", lambda text: text.replace(f', "{SCHEME}"', ""))
        assert requests.post(f"{gateway.admin}/policy/reload", timeout=30).status_code == 200
        assert created(gateway, SCHEME)[0].status_code == 422
        assert browser.post(f"/auth/app?id={flow}", action="allow").headers["Location"] == f"/auth/login?id={flow}"
        assert "com.example.app" not in browser.get(f"/auth/login?id={flow}").text
    finally:
        file.write_text(before)
        requests.post(f"{gateway.admin}/policy/reload", timeout=30)
