"""The account page and the pages that lead to it: registration by email address, names, sites, devices."""

import pytest
import requests

from authenticator import App
from local_gateway import LocalGateway, wait_for
from screens import Screen, many, wrong

PASSWORD = "correct horse battery"


@pytest.fixture
def person(screen, number):
    """A signed-in user."""
    return screen.belongs_to(number)


def address(number, name="asha"):
    return f"{name}{number[-5:]}@example.org"


def code_after(gateway, seen):
    return wait_for(
        lambda: next((e["code"] for e in gateway.outbox() if e["id"] not in seen and e["code"]), None), "a code"
    )


def registers(screen, email, path="/auth/register?with=email&return_to=%2Fhome"):
    """Registers with email address and password up to the code page. Returns the code."""
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.opens(path).fills("first_name", "Asha").fills("last_name", "Rao").fills("email", email).fills(
        "password", PASSWORD
    )
    screen.find("button.main").click()
    screen.at("/auth/email").reads("Verify Your Email", email, "Skip for now")
    return code_after(screen.gateway, seen)


def session(screen):
    """The browser's session from the API; None without one."""
    cookies = {cookie["name"]: cookie["value"] for cookie in screen.driver.get_cookies()}
    answer = requests.get(screen.gateway.url + "/api/auth/session", cookies=cookies, timeout=10)
    return answer.json() if answer.status_code == 200 else None


# The account exists before the code.


def test_the_account_is_made_before_the_code(screen, number):
    email = address(number)
    code = registers(screen, email)
    account = session(screen)["account"]
    assert (account["email"], account["is_email_verified"]) == (email, False)
    screen.is_sound("the code of a new account")
    screen.enters(code).at("/profile-setup")
    assert session(screen)["account"] == {
        **account,
        "is_email_verified": True,
        "is_new_user": session(screen)["account"]["is_new_user"],
    }


def test_back_continues_and_keeps_the_input(screen, number):
    email = address(number)
    code = registers(screen, email)
    screen.find(".back").click()
    screen.presses("Go Back", "#leave").at("/profile-setup").reads("Your email address is not verified yet.")
    # The form is no longer available: the user is signed in.
    screen.opens("/auth/register?with=email").at("/home").presses("Verify Your Email").at("/auth/email").reads(
        "needs a verified email address", email
    )
    screen.opens("/auth/account").reads("Asha Rao", email, "Not verified")
    # The password works in any browser.
    screen.forget().opens("/auth/login?with=email").fills("email", email).fills("password", PASSWORD).find(
        "button.main"
    ).click()
    screen.at("/home")
    assert code and session(screen)["account"]["is_email_verified"] is False


def test_a_mistyped_address_is_edited_on_the_spot(screen, number):
    mistyped, email = address(number, "ahsa"), address(number)
    lost = registers(screen, mistyped)
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.presses("Edit email address").waits(lambda: screen.find("#edit").is_displayed(), "the sheet")
    field = screen.find("#new-contact")
    field.clear()
    field.send_keys(email)
    screen.find("#edit button.main").click()
    screen.waits(lambda: email in screen.find(".number").text, "the page of the other address")
    code = code_after(screen.gateway, seen)
    if lost != code:
        screen.settles()
        screen.enters(lost).reads("Invalid code")
    screen.enters(code).at("/profile-setup")
    account = session(screen)["account"]
    assert (account["email"], account["is_email_verified"]) == (email, True)


def test_registration_does_not_verify_an_address(screen, number, shipped):
    """Attack: a verified address is registered again, to find out whether it has an account or to get into it."""
    email = address(number)
    screen.enters(registers(screen, email)).at("/profile-setup")
    owner = session(screen)["account"]
    # The same pages as for an unknown address.
    code = registers(screen.forget(), email)
    assert session(screen)["account"]["id"] != owner["id"] and not session(screen)["account"]["is_email_verified"]
    # The owner of the mailbox may learn about the account, but gets nothing else.
    screen.enters(code).reads("An account with these details already exists.")
    assert not session(screen)["account"]["is_email_verified"]
    found = requests.post(
        f"{shipped.url}/api/auth/login", json={"email": email, "password": PASSWORD}, timeout=10
    ).json()["user"]
    assert (found["id"], found["is_email_verified"]) == (owner["id"], True)


def test_an_unverified_address_opens_nothing(screen, number, shipped):
    """Attack: an account is registered with the victim's address before the victim does, and waits for the victim's
    code."""
    email = address(number)
    registers(screen, email)
    token = {cookie["name"]: cookie["value"] for cookie in screen.driver.get_cookies()}["moongate"]
    # The timer of the address applies to all recipients.
    screen.waits(lambda: screen.find("[aria-label='Resend code']").is_enabled(), "the end of the timer")
    code = registers(screen.forget(), email)
    screen.enters(code).at("/profile-setup")
    told = requests.get(shipped.url + "/api/auth/session", headers={"Authorization": f"Bearer {token}"}, timeout=10)
    assert told.status_code == 401 or told.json()["account"]["email"] is None, "the address is the victim's alone"


def test_a_code_that_must_be_entered_comes_first(driver, tmp_path, number):
    """If the operator requires verification, there is no account before the code."""
    gateway = LocalGateway(tmp_path)
    gateway.edit("flows/register_email.lua", lambda text: text.replace(", skippable = true", ""))
    gateway.start()
    try:
        screen = Screen(driver, gateway).forget()
        email = address(number)
        screen.opens("/auth/register?with=email").fills("first_name", "Asha").fills("last_name", "Rao").fills(
            "email", email
        ).fills("password", PASSWORD)
        screen.find("button.main").click()
        screen.at("/auth/email").reads("Verify Your Email", email)
        assert session(screen) is None and "Skip for now" not in screen.text
        screen.presses("Edit email address").at("/auth/register")
        assert screen.find("#email").get_attribute("value") == email
    finally:
        gateway.stop()


def test_a_newer_session_enters_the_code_that_was_resent(shipped, number):
    """Resent without a token, and entered after a new sign-in. Another account's session gets nothing from it."""
    email = address(number, "app")

    def call(name, body, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return requests.post(f"{shipped.url}/api/auth/{name}", json=body, headers=headers, timeout=10)

    person = {"email": email, "password": PASSWORD, "first_name": "Asha", "last_name": "Rao"}
    first = call("register", person).json()["token"]
    wait_for(lambda: any(e["to"] == email and e["code"] for e in shipped.outbox()), "the first code")
    seen = {entry["id"] for entry in shipped.outbox()}
    newer = call("login", {"email": email, "password": PASSWORD}).json()["token"]

    def resent():
        assert call("resend-verification", {"email": email}).status_code == 200
        return next(
            (e["code"] for e in shipped.outbox() if e["id"] not in seen and e["code"] and e["to"] == email), None
        )

    code = wait_for(resent, "the code that was sent again")
    # Attack: the attacker's own session with the code from another user's mail.
    stranger = call("register", {**person, "email": address(number, "mal")}).json()["token"]
    assert call("verify-email", {"code": code}, stranger).status_code in (401, 404)
    done = call("verify-email", {"code": code}, newer)
    assert done.status_code == 200, done.text
    assert done.json()["user"]["is_email_verified"] is True
    assert (
        requests.get(
            shipped.url + "/api/auth/session", headers={"Authorization": f"Bearer {first}"}, timeout=10
        ).status_code
        == 200
    )


# The account page.


def test_the_groups(person):
    person.opens("/auth/account").reads("Sign-in", "Security", "Devices", "Your data", "This device")
    groups = person.js(
        "return [...document.querySelectorAll('section')].map(part => document.getElementById(part.getAttribute('aria-labelledby')).textContent)"
    )
    assert groups == ["Sign-in", "Security", "Devices", "Trusted devices", "Your data"], groups
    assert person.all("main button")[-1].text == "Sign out", "the last thing, and a quiet one"
    person.is_sound("the account").presses("Back to Moongate").at("/home").presses("Your account").at("/auth/account")


def test_the_name_is_edited_in_place(person):
    person.opens("/auth/account").find("summary").click()
    person.fills("first_name", " Asha ").fills("last_name", "Rao").presses("Save name").at("/auth/account").reads(
        "Name changed.", "Asha Rao"
    )
    assert session(person)["account"]["first_name"] == "Asha"
    lines = requests.get(f"{person.gateway.admin}/events?limit=1000", timeout=10).json()
    told = [
        line
        for line in lines
        if line["kind"] == "account_renamed" and line.get("account") == session(person)["account"]["id"]
    ]
    assert len(told) == 1 and "Asha" not in str(told), told
    person.is_sound("a name")
    # The right-to-left override changes the surrounding text.
    person.find("summary").click()
    person.js("document.getElementById('last_name').value = '\\u202eRao'")
    person.presses("Save name").reads("Please enter your last name.")
    assert (
        person.find("#last_name").get_attribute("aria-invalid") == "true"
        and session(person)["account"]["last_name"] == "Rao"
    )
    person.fills("last_name", "").presses("Save name").reads("Name changed.")
    assert session(person)["account"]["last_name"] is None


def test_a_name_is_text_and_has_an_end(person):
    """Bad input: markup, 300 characters, a name in another script."""
    person.opens("/auth/account")
    for name in ('<img src=x onerror="document.title=1">', "عائشة"):
        person.find("summary").click()
        person.fills("first_name", name).presses("Save name").reads("Name changed.", name)
        person.is_sound(name)
    person.find("summary").click()
    person.js(
        "const field = document.getElementById('first_name'); field.maxLength = 1000; field.value = 'x'.repeat(300)"
    )
    person.presses("Save name").reads("Please enter your first name.")
    assert person.errors() == []


def test_another_site_cannot_rename_a_user(shipped, number):
    token = shipped.register(number)["session"]["token"]
    for action in ("rename", "disconnect"):
        answer = requests.post(
            shipped.url + "/auth/account",
            data={"action": action, "first_name": "Mallory", "provider": "google_oauth"},
            cookies={"moongate": token},
            timeout=10,
            headers={"Accept": "text/html", "Origin": "https://evil.example"},
            allow_redirects=False,
        )
        assert answer.status_code == 403
    told = requests.get(
        shipped.url + "/api/auth/session", headers={"Authorization": f"Bearer {token}"}, timeout=10
    ).json()
    assert told["account"]["first_name"] is None


def test_the_password_is_changed_from_the_account(screen, number):
    email = address(number)
    screen.enters(registers(screen, email)).at("/profile-setup").opens("/auth/account").reads("Password", "On")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.presses("Change: Password").at("/auth/login").reads("Reset your password")
    assert screen.find("#email").get_attribute("value") == email, "the account's own address"
    screen.is_sound("a password chosen anew").find("button.main").click()
    screen.at("/auth/email").reads("Reset your password").enters(code_after(screen.gateway, seen)).reads("New password")
    screen.fills("password", "another horse battery").find("button.main").click()
    screen.at("/auth/account").reads("Password changed.")
    screen.forget().opens("/auth/login?with=email").fills("email", email).fills(
        "password", "another horse battery"
    ).find("button.main").click()
    screen.at("/home")


@pytest.fixture
def visitor(driver, tmp_path):
    """A user from the other site, with a separate gateway."""
    gateway = LocalGateway(tmp_path)
    gateway.edit("policies/phone_otp.lua", many)
    gateway.start()
    screen = Screen(driver, gateway).forget()
    screen.opens("/auth/login").presses("Continue with Google").waits(
        lambda: screen.path == "/mock-google/authorize", "Google"
    )
    screen.find("form button").click()
    screen.waits(lambda: session(screen) is not None, "the way back")
    yield screen
    gateway.stop()


def test_a_site_is_disconnected(visitor):
    held = session(visitor)["account"]
    assert held["is_email_verified"], "a code to the address also signs in"
    before = visitor.driver.get_cookie("moongate")["value"]
    visitor.opens("/auth/account").reads("Connected").is_sound("a site").presses("Disconnect: Google").at(
        "/auth/account"
    ).reads("Disconnected.", "Not connected")
    wait_for(
        lambda: any('"Google" was disconnected from your account' in entry["text"] for entry in visitor.gateway.outbox()),
        "the notice",
    )
    # Attack: a copy of the token is still used on routes that require the site.
    assert (
        requests.get(
            visitor.gateway.url + "/api/auth/session", headers={"Authorization": f"Bearer {before}"}, timeout=10
        ).status_code
        == 401
    )
    assert session(visitor)["session"]["passed"] == [], "the site no longer counts as a passed factor"
    assert not [button for button in visitor.all("main button") if button.text == "Disconnect"]
    lines = requests.get(f"{visitor.gateway.admin}/events?limit=200", timeout=10).json()
    assert [line["provider"] for line in lines if line["kind"] == "identifier_removed"] == ["google_oauth"]


@pytest.fixture
def owner(driver, tmp_path, number):
    """A user signed in by phone number, with a separate gateway."""
    gateway = LocalGateway(tmp_path)
    gateway.edit("policies/phone_otp.lua", many)
    gateway.start()
    yield Screen(driver, gateway).forget().belongs_to(number)
    gateway.stop()


def to_google(screen, label):
    screen.presses(label).waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.find("form button").click()
    screen.waits(lambda: screen.path != "/mock-google/authorize", "the way back")
    return screen


def test_a_site_is_connected_signs_in_and_is_disconnected(owner):
    held = session(owner)["account"]
    owner.opens("/auth/account").reads("Not connected").is_sound("a site that is not connected")
    to_google(owner, "Connect: Google").at("/auth/account").reads(
        "Google is connected. You can sign in with it from now on.", "Connected"
    )
    owner.is_sound("a site that is connected")
    assert session(owner)["account"] == held, "neither the address nor the name is included"
    # The owner is notified.
    wait_for(
        lambda: any('"Google" was connected to your account' in entry["text"] for entry in owner.gateway.outbox()),
        "the notice",
    )
    lines = requests.get(f"{owner.gateway.admin}/events?limit=200", timeout=10).json()
    assert [
        line["provider"]
        for line in lines
        if line["kind"] == "identifier_added" and line["detail"]["identifier_kind"] == "federated"
    ] == ["google_oauth"]
    to_google(owner.forget().opens("/auth/login"), "Continue with Google").at("/home")
    assert session(owner)["account"]["id"] == held["id"]
    # A site that was just connected can sign in but does not authorize changes yet.
    owner.opens("/auth/account").presses("Disconnect: Google").at("/auth/verify").reads("Confirm it's you")
    owner.forget().belongs_to(owner.number).opens("/auth/account").presses("Disconnect: Google").reads(
        "Disconnected.", "Not connected"
    )


def test_a_site_of_another_account_is_not_connected(owner, other_number):
    """Attack: an identity is moved from its account to the thief's."""
    to_google(owner.forget().opens("/auth/login"), "Continue with Google").at("/profile-setup")
    victim = session(owner)["account"]["id"]
    owner.forget().belongs_to(other_number()).opens("/auth/account")
    to_google(owner, "Connect: Google").at("/auth/account").reads(
        "This Google account already belongs to another account here. Nothing was changed.", "Not connected"
    )
    owner.is_sound("a site that is taken")
    to_google(owner.forget().opens("/auth/login"), "Continue with Google").at("/home")
    assert session(owner)["account"]["id"] == victim


def test_connecting_needs_a_recent_proof(owner):
    """Attack: someone uses an open session to add another sign-in method."""
    gateway = owner.gateway
    active = gateway.policy()["active"]
    gateway.edit("accounts.lua", lambda text: text.replace('change_within = "10m"', 'change_within = "1s"'))
    gateway.wait_generation(active)
    owner.waits(
        lambda: owner.opens("/auth/account").presses("Connect: Google").path == "/auth/verify",
        "the proof that is asked for",
    )
    assert "flow=step_up" in owner.driver.current_url


def test_the_only_way_in_stays(visitor):
    """Removing the last sign-in method, by an attack or by mistake."""
    gateway = visitor.gateway
    active = gateway.policy()["active"]
    gateway.edit(
        "flows/login.lua",
        lambda text: text.replace(
            'any_of { "phone_otp", "email_code", "google_oauth"', 'any_of { "phone_otp", "google_oauth"'
        ),
    )
    gateway.wait_generation(active)
    visitor.opens("/auth/account").reads("Connected")
    assert not [button for button in visitor.all("main button") if button.text == "Disconnect"]
    cookies = {cookie["name"]: cookie["value"] for cookie in visitor.driver.get_cookies()}
    answer = requests.post(
        gateway.url + "/auth/account",
        data={"action": "disconnect", "provider": "google_oauth"},
        cookies=cookies,
        timeout=10,
        headers={"Accept": "text/html", "Origin": gateway.url},
        allow_redirects=False,
    )
    assert answer.status_code == 403 and "the only way to sign in" in answer.text
    visitor.opens("/auth/account").reads("Connected")


def test_signing_out_everywhere_is_asked_for_once_more(person, shipped):
    other = person.token
    person.opens("/auth/account").presses("Sign out everywhere").at("/auth/account/sign-out").reads(
        "Sign out everywhere?", "including this one"
    ).is_sound("asked")
    person.presses("Cancel").at("/auth/account").presses("Sign out everywhere").at("/auth/account/sign-out").presses(
        "Sign out everywhere"
    ).at("/auth/login")
    assert (
        requests.get(
            shipped.url + "/api/auth/session", headers={"Authorization": f"Bearer {other}"}, timeout=10
        ).status_code
        == 401
    )


# Usability details.


def test_a_password_can_be_seen(screen):
    screen.opens("/auth/login?with=email").fills("password", PASSWORD)
    screen.waits(lambda: screen.all("button.eye"), "the eye")
    screen.presses("Show password")
    assert (
        screen.find("#password").get_attribute("type") == "text"
        and screen.find(".eye").get_attribute("aria-pressed") == "true"
    )
    screen.hears("Your password is shown.").is_sound("a password that is shown").presses("Show password")
    assert screen.find("#password").get_attribute("type") == "password"


def test_the_address_goes_along_to_the_forgotten_password(screen, number):
    """The address is sent in a form body, so that no history, proxy or log contains it."""
    email = address(number)
    for link, title in (("Forgot password?", "Forgot password?"), ("Email me a code instead", "Sign in by email")):
        screen.opens("/auth/login?with=email&return_to=%2Fhome").fills("email", email).fills(
            "password", PASSWORD
        ).presses(link)
        screen.waits(lambda: not screen.all("#password") and screen.all("#email"), "the other form")
        assert screen.find("#email").get_attribute("value") == email and "asha" not in screen.driver.current_url
        assert (
            screen.driver.title.startswith(title)
            and screen.find("input[name=return_to]").get_attribute("value") == "/home"
        )
    # Enter in the address field signs in and does not trigger the reset.
    screen.opens("/auth/login?with=email").fills("password", "not this one").fills("email", email + "\n").reads(
        "Incorrect email or password."
    )


def test_blocked_cookies_are_reported_before_a_code_is_sent(screen, number, shipped):
    shipped.register(number)
    sent = len(shipped.outbox())
    screen.opens("/auth/login").fills("phone", number).waits(
        lambda: screen.find("button.main").is_enabled(), "the number"
    )
    screen.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    screen.find("button.main").click()
    screen.reads("Your browser blocks cookies for this site.")
    assert len(shipped.outbox()) == sent
    screen.is_sound("no cookies")
    # The refusal has set the cookie, so the second attempt continues if cookies are enabled.
    screen.waits(lambda: screen.find("button.main").is_enabled(), "another try")
    screen.find("button.main").click()
    screen.at("/auth/verify")


def test_terms_and_privacy(driver, tmp_path):
    gateway = LocalGateway(tmp_path)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            'support = "mailto:help@example.com"',
            'support = "mailto:help@example.com", terms = "https://example.com/terms", privacy = "https://example.com/privacy"',
        ),
    )
    gateway.start()
    try:
        screen = Screen(driver, gateway).forget().opens("/auth/login").reads("Terms", "Privacy")
        assert [link.get_attribute("href") for link in screen.all(".legal a")] == [
            "https://example.com/terms",
            "https://example.com/privacy",
        ]
        screen.is_sound("with terms")
    finally:
        gateway.stop()


def test_an_app_is_set_up_in_three_steps(person):
    person.opens("/auth/account").presses("Set up: Authenticator app").at("/auth/step").presses("Set up")
    person.waits(lambda: person.all(".qr"), "the picture")
    person.reads("Add the key to your authenticator app", "Enter the code that the app shows").is_sound("the key")
    assert [number.text for number in person.all(".stage-number")] == ["1", "2"] and len(person.all(".boxes .box")) == 6
    link = person.find(".on-phone a")
    assert link.get_attribute("href").startswith("otpauth://totp/") and not link.is_displayed(), "for phones"
    key = person.says(".secret code").replace(" ", "")
    person.driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    person.presses("Copy").reads("Copied")
    app = App(link.get_attribute("href"))
    code = app.code()
    # A complete code is submitted automatically; a wrong one clears the boxes.
    field = person.find(".boxes input")
    field.send_keys(wrong(code))
    person.reads("Invalid code").waits(lambda: person.find(".boxes input").get_attribute("value") == "", "empty boxes")
    person.find(".boxes input").send_keys(code)
    person.reads("Keep your recovery codes").is_sound("the codes")
    assert [number.text for number in person.all(".stage-number")] == ["3"] and key
    assert {button.text for button in person.all(".keep button")} == {"Copy", "Download"}
    # The page continues after the user confirms that the codes are stored.
    person.presses("Continue")
    assert person.path == "/auth/step" and person.js("return !document.querySelector('.check input').validity.valid")
    person.find(".check input").click()
    person.presses("Continue").at("/auth/account").reads("Authenticator app is set up.")
