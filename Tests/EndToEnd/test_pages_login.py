"""The sign-in and registration pages, by phone number, email address and Google, and their splash screen."""

import re
import time

import pytest
import requests

from attack import PASSWORD, Person, new_email
from local_gateway import LocalGateway, wait_for
from mockgoogle import Visitor, choose
from screens import LAPTOP, PHONE, Keys, Screen


def button(screen):
    return screen.find("button.main")


def test_page_texts(screen):
    screen.opens("/auth/login").reads(
        "Welcome Back!",
        "Sign in to continue",
        "Mobile Number",
        "+91",
        "Send OTP",
        "OR",
        "Continue with Google",
        "Don't have an account? Create Account",
    )
    screen.hears("Welcome Back. Sign in to continue")
    field = screen.driver.switch_to.active_element
    assert (field.get_attribute("id"), field.get_attribute("type"), field.get_attribute("autocomplete")) == (
        "phone",
        "tel",
        "tel webauthn",
    )
    assert field.accessible_name == "Mobile Number" and field.get_attribute("placeholder") == "99999 99999"
    assert screen.find(".country").accessible_name == "Country code, India +91"
    assert not button(screen).is_enabled()
    assert screen.errors() == []
    order = []
    screen.types("9999999999")
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    for _ in range(5):
        order.append(screen.driver.switch_to.active_element.accessible_name)
        screen.types(Keys.TAB)
    assert order == ["Mobile Number", "Country code, India +91", "Clear", "Send OTP", "Continue with Google"], order


def test_the_number_is_formatted_as_you_type(screen):
    screen.opens("/auth/login").listens()
    field = screen.find("#phone")
    field.send_keys("99999")
    assert not button(screen).is_enabled()
    field.send_keys("99999")
    screen.waits(lambda: field.get_attribute("value") == "99999 99999" and button(screen).is_enabled(), "the spaces")
    screen.hears("Valid phone number")
    assert screen.find(".valid").is_displayed(), "the green check"
    # The caret stays after the typed digit.
    screen.js("arguments[0].setSelectionRange(3, 3)", field)
    field.send_keys(Keys.BACKSPACE)
    screen.waits(lambda: not button(screen).is_enabled(), "a number that is too short")
    assert screen.js("return arguments[0].selectionStart", field) == 2
    screen.find(".clear").click()
    assert field.get_attribute("value") == "" and screen.driver.switch_to.active_element == field


@pytest.mark.timed
def test_input_that_is_not_a_number(screen):
    screen.opens("/auth/login")
    field = screen.find("#phone")
    field.send_keys("99999 9999")
    field.send_keys(Keys.TAB, Keys.TAB, Keys.TAB)
    screen.reads("Please enter a valid 10-digit mobile number")
    assert field.get_attribute("aria-invalid") == "true" and not button(screen).is_enabled()
    field.send_keys("99")
    # Too many digits are reported at once.
    screen.reads("Please enter a valid 10-digit mobile number")
    field.clear()
    field.send_keys("+1 202 555 01")
    field.send_keys(Keys.ENTER)
    screen.reads("This phone number is too short.")
    took = screen.driver.execute_async_script("""
      const done = arguments[0], field = document.querySelector('#phone'), start = performance.now();
      new MutationObserver(() => done(performance.now() - start)).observe(document.querySelector('.valid'), {attributes: true});
      field.value = '+12025550123'; field.dispatchEvent(new Event('input'))""")
    assert took < 100, f"{took} ms"


def test_countries(screen):
    screen.opens("/auth/login")
    screen.find("#phone").send_keys("12345")
    screen.find(".country").click()
    screen.waits(lambda: screen.find("[role=option]").text, "the countries")
    options = screen.all("[role=option]")
    assert len(options) > 240 and options[0].text.split() == ["India", "+91"]
    screen.is_sound("countries")
    screen.types("germ")
    assert [option.text.split() for option in screen.all("[role=option]")] == [["Germany", "+49"]]
    screen.types(Keys.ENTER)
    screen.waits(lambda: not screen.all("dialog[open]"), "the list to close")
    assert screen.find(".country").accessible_name == "Country code, Germany +49"
    assert screen.driver.switch_to.active_element.get_attribute("id") == "phone"
    screen.find("#phone").clear()
    screen.find("#phone").send_keys("15123456789")
    screen.waits(lambda: button(screen).is_enabled(), "a German number")
    button(screen).click()
    screen.reads("No account found. Create one?")
    assert screen.find("#phone").get_attribute("value").replace(" ", "").endswith("15123456789")
    screen.find(".country") if not screen.all("dialog[open]") else screen.presses("Cancel", "dialog[open]")
    screen.find(".country").click()
    screen.types("+358" + Keys.ENTER)
    assert "+358" in screen.says(".country")
    screen.find(".country").click()
    screen.types("nowhere").reads("No such country")


@pytest.mark.parametrize("language", ["en", "hi"])
def test_countries_by_common_names(screen, language):
    """By ISO code, by alternative names, and by English names in every language."""
    screen.opens(f"/auth/login?language={language}").find(".country").click()
    screen.waits(lambda: screen.find("[role=option]").text, "the countries")
    search = screen.find("dialog[open] input")
    for typed, region in (
        ("UK", "GB"),
        ("usa", "US"),
        ("gbr", "GB"),
        ("de", "DE"),
        ("Germany", "DE"),
        ("america", "US"),
        ("holland", "NL"),
        ("0044", "GB"),
        *([("जर्मनी", "DE")] if language == "hi" else []),
    ):
        search.clear()
        search.send_keys(typed)
        found = screen.js("return [...document.querySelectorAll('[role=option]')].map(option => option.id.slice(-2))")
        assert region in found and (typed == "0044" or found[0] == region), (typed, found)
    search.clear()
    search.send_keys("gb")
    flag = screen.js("return getComputedStyle(document.querySelector('#country-GB .flag'), '::before').content")
    # The tests' fonts have no flags (test_a_country_has_its_flag_or_its_letters).
    assert flag.strip('"') in ("GB", "\U0001f1ec\U0001f1e7"), flag
    assert screen.says("#country-GB").endswith("+44")
    screen.is_sound("countries").presses("Cancel" if language == "en" else "रद्द करें", "dialog[open]").opens(
        "/auth/login?language=en"
    )


def test_typing_works_if_formatting_fails(screen, number):
    screen.gateway.register(number)
    screen.opens("/auth/login")
    screen.driver.execute_cdp_cmd("Network.enable", {})
    screen.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/phone/format*"]})
    try:
        screen.find("#phone").send_keys(number[3:])
        screen.waits(lambda: button(screen).is_enabled(), "the server to judge")
        button(screen).click()
        screen.at("/auth/verify")
    finally:
        screen.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})


def test_enter_before_the_number_is_judged(screen, number):
    screen.gateway.register(number)
    screen.opens("/auth/login").slow(700)
    try:
        screen.find("#phone").send_keys(number[3:] + Keys.ENTER)
        screen.at("/auth/verify")
    finally:
        screen.slow(0)


def test_button_while_a_code_is_sent(screen, number):
    screen.gateway.register(number)
    screen.opens("/auth/login").listens()
    screen.find("#phone").send_keys(number[3:])
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    screen.js("""window.seen = []; const main = document.querySelector('button.main'); new MutationObserver(() => seen.push([main.textContent,
      !!main.querySelector('.spinner'), document.querySelector('#phone').disabled, document.querySelector('button.site').disabled,
      document.querySelector('[data-other]').inert])).observe(main, {childList: true});
      addEventListener('pagehide', () => sessionStorage.setItem('seen', JSON.stringify(seen)))""")
    button(screen).click()
    screen.at("/auth/verify")
    told = screen.js("return JSON.parse(sessionStorage.getItem('seen'))")
    assert [line[:1] + line[2:] for line in told] == [
        ["Sending…", True, True, True],
        ["Sent ✓", True, True, True],
    ] and told[0][1], told


def test_google_button(screen):
    screen.opens("/auth/login").presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.presses("Cancel").at("/auth/login").reads("Sign-in cancelled")
    screen.is_sound("cancelled")
    assert screen.find("#phone").is_enabled() and screen.find("button.site").is_enabled()
    screen.presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.presses("Fail with an error").at("/auth/login").reads("Google sign-in failed. Try again.")


def test_no_account(screen, number):
    screen.opens("/auth/login").fills("phone", number[3:])
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    button(screen).click()
    screen.reads("No Account Found", "Would you like to create an account with this number?").is_sound("no account")
    screen.presses("Cancel", "dialog[open]").reads("No account found. Create one?")
    assert "stressed" in screen.find("[data-other]").get_attribute("class")
    assert button(screen).is_enabled()
    screen.is_sound("no account, in line")
    assert screen.gateway.outbox() == [] or all(entry["to"] != number for entry in screen.gateway.outbox())
    screen.presses("Create Account", "[data-slot=other]").at("/auth/register").reads("Create Account", "Login here")
    assert screen.find("#phone").get_attribute("value") == f"{number[3:8]} {number[8:]}", "the number is kept"
    screen.presses("Login here").at("/auth/login")
    assert screen.find("#phone").get_attribute("value") == f"{number[3:8]} {number[8:]}"


def test_too_many_codes_for_a_number(driver, tmp_path, number):
    gateway = LocalGateway(tmp_path)
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: re.sub(r"(send\s+= \{[^}]*max = )4", r"\g<1>1", text).replace('{ "60s", "120s" }', '{ "1s" }'),
    )
    try:
        screen = Screen(driver, gateway.start()).forget()
        gateway.register(number)
        screen.opens("/auth/login").fills("phone", number)
        screen.waits(lambda: button(screen).is_enabled(), "a number")
        button(screen).click()
        screen.reads("Too many attempts. Try again in 15 minutes.")
        screen.matches(r"Try again in (14:5\d|15:00)")
        assert not button(screen).is_enabled() and screen.find("button.site").is_enabled()
        screen.is_sound("too many")
    finally:
        gateway.stop()


def test_no_connection(screen, number):
    screen.gateway.register(number)
    screen.opens("/auth/login").fills("phone", number)
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    screen.offline()
    try:
        button(screen).click()
        screen.reads("Unable to send OTP. Check your connection.")
    finally:
        screen.offline(False)
    assert number.endswith(screen.find("#phone").get_attribute("value").replace(" ", ""))
    assert button(screen).is_enabled()
    button(screen).click()
    screen.at("/auth/verify")


def test_response_that_is_not_a_gateway_page(screen, number):
    screen.opens("/auth/login").fills("phone", number)
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    screen.js(
        "window.fetch = async () => new Response('<p>Blocked</p>', {status: 403, headers: {'Content-Type': 'text/html'}})"
    )
    button(screen).click()
    screen.reads("Unable to send OTP. Check your connection.", "Welcome Back!")
    assert number.endswith(screen.find("#phone").get_attribute("value").replace(" ", ""))


def test_input_is_kept(screen, number):
    screen.opens("/auth/login").fills("phone", number[3:8])
    screen.presses("Create Account").at("/auth/register")
    assert screen.find("#phone").get_attribute("value").replace(" ", "") == number[3:8]


def test_back_to_where_the_person_was(screen, number):
    screen.driver.get(screen.gateway.url + "/reports?x=1")
    screen.at("/auth/login")
    screen.gateway.register(number)
    screen.fills("phone", number)
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    button(screen).click()
    screen.at("/auth/verify")
    code = wait_for(lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen), None), "a code")
    screen.enters(code)
    screen.waits(lambda: screen.driver.current_url == screen.gateway.url + "/reports?x=1", "the page that was asked for")


def test_code_requested_too_soon(screen, number):
    screen.gateway.register(number)
    screen.asks_code(number)
    first = screen.driver.current_url
    screen.find("#leave"), screen.find(".back").click()
    screen.presses("Go Back", "#leave").at("/auth/login")
    screen.waits(lambda: button(screen).is_enabled(), "the number")
    button(screen).click()
    screen.at("/auth/verify")
    assert screen.driver.current_url == first, "the living code page"
    screen.opens("/auth/login").fills("phone", number)
    screen.waits(lambda: button(screen).is_enabled(), "the number")
    button(screen).click()
    screen.waits(lambda: re.search(r"Resend code in 00:[0-5]\d", screen.text), "how long")
    assert "Too many" not in screen.text


def test_sign_in_by_email(screen, number):
    email = f"asha{number[-5:]}@example.org"
    screen.opens("/auth/login").presses("Use email instead").reads(
        "Email", "Password", "Forgot password?", "Email me a code instead"
    )
    screen.is_sound("login by email")
    screen.fills("email", email).fills("password", "not this one").presses("Sign in")
    screen.reads("Incorrect email or password.")
    screen.presses("Create Account").at("/auth/register").reads("First name", "Last name")
    screen.is_sound("register by email")
    screen.fills("first_name", "Asha").fills("last_name", "Rao <b>").fills("email", "nobody").fills(
        "password", "correct horse battery"
    )
    screen.js("document.querySelector('form[data-form]').noValidate = true")
    screen.find("button.main").click()
    screen.reads("Please enter a valid email address.")
    screen.fills("email", email).fills("password", "password1").find("button.main").click()
    screen.reads("too easy to guess")
    screen.fills("password", "correct horse battery").find("button.main").click()
    screen.at("/auth/email").reads("Verify Your Email", email, "Skip for now")
    sent = time.monotonic()
    screen.is_sound("the email's code")
    screen.presses("Skip for now").at("/profile-setup").reads(
        "Your email address is not verified yet.", "Verify Your Email"
    )
    assert screen.find(".banner a").get_attribute("href").endswith("/auth/email?return_to=%2Fhome")
    screen.opens("/home").reads("Your email address is not verified yet.")
    screen.opens("/auth/account").reads(
        "Asha Rao <b>", email, "Not verified", "Your email address is not verified yet."
    )
    screen.is_sound("account, unverified")

    # Forgotten password.
    screen.forget().opens("/auth/login?with=email").presses("Forgot password?").reads(
        "We'll send a code to your email."
    )
    screen.is_sound("forgotten")
    # The module's gateway sends another code after a second.
    wait_for(lambda: time.monotonic() - sent > 1, "the time of another code")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.fills("email", email).find("button.main").click()
    screen.at("/auth/email")
    code = wait_for(
        lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen and e["code"]), None), "a code"
    )
    screen.types(code)
    screen.waits(lambda: "New password" in screen.text, "the new password")
    screen.is_sound("new password")
    screen.fills("password", "12345678").find("button.main").click()
    screen.reads("too easy to guess")
    screen.fills("password", "another horse battery").find("button.main").click()
    screen.at("/home")
    assert "not verified" not in screen.text, "the code has proved the address"

    screen.forget().opens("/auth/login?with=email").fills("email", email).fills(
        "password", "another horse battery"
    ).find("button.main").click()
    screen.at("/home")
    # Lost or missing number: a code to the verified address.
    screen.forget().opens("/auth/login?with=code").is_sound("code by email")
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    screen.fills("email", email).find("button.main").click()
    screen.at("/auth/email")
    screen.types(
        wait_for(
            lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in seen and e["code"]), None),
            "a code",
        )
    ).at("/home")


def test_events(screen, number):
    screen.opens("/auth/login").fills("phone", number)
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    button(screen).click()
    before = len(told(screen, "login_create_account_tapped"))
    screen.reads("No Account Found").presses("Create Account", "dialog[open]").at("/auth/register")
    for name in ("login_phone_started", "login_otp_requested", "login_otp_failed", "screen_view"):
        wait_for(lambda: told(screen, name), name)
    wait_for(lambda: len(told(screen, "login_create_account_tapped")) == before + 1, "the event of the question's link")
    # A stressed link below the form has another target.
    screen.opens("/auth/login").fills("phone", number)
    screen.waits(lambda: button(screen).is_enabled(), "a number")
    button(screen).click()
    screen.presses("Cancel", "dialog[open]").presses("Create Account", "[data-slot=other]").at("/auth/register")
    wait_for(lambda: len(told(screen, "login_create_account_tapped")) == before + 2, "the event of the stressed link")


def told(screen, name):
    lines = requests.get(f"{screen.gateway.admin}/events?limit=500", timeout=10).json()
    return [line for line in lines if line["kind"] == "client" and line["detail"]["name"] == name]


def test_google_has_signed_in(screen, number):
    before = len(told(screen, "login_google_success"))
    screen.opens("/auth/login").presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.presses("Fail with an error").at("/auth/login")
    screen.presses("Continue with Google").waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.find("form button").click()
    screen.waits(lambda: screen.path.startswith("/auth/") or screen.path in ("/profile-setup", "/home"), "the way back")
    events = wait_for(lambda: told(screen, "login_google_success")[: -before or None], "the event")
    assert len(events) == 1 and events[0]["provider"] == "google_oauth", events


def by_code(screen, number):
    screen.gateway.register(number)
    seen = {entry["id"] for entry in screen.gateway.outbox()}
    yield
    screen.fills("phone", number).waits(lambda: button(screen).is_enabled(), "a number that can be sent")
    button(screen).click()
    screen.at("/auth/verify")
    sent = wait_for(
        lambda: [entry for entry in screen.gateway.outbox() if entry["id"] not in seen and entry["code"]], "a code"
    )
    screen.enters(sent[0]["code"])


def by_password(screen, _):
    person = Person(screen.gateway, email=new_email())
    yield
    # The link to the other form keeps the fragment too.
    screen.presses("Use email instead").waits(lambda: screen.all("input[name=password]"), "the form of the password")
    screen.fills("email", person.email).fills("password", PASSWORD).presses("Sign in")


def by_google(screen, _):
    known = Visitor(screen.gateway)
    known.get(choose(known.continues(), account="100000000000000000001"))
    yield
    screen.presses("Continue with Google").waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.find("form button").click()


@pytest.mark.parametrize("way", [by_code, by_password, by_google])
def test_fragment_survives_the_sign_in(screen, number, way):
    """The server never sees a fragment; the browser keeps it in redirects (RFC 9110, section 10.2.2)."""
    sign_in = way(screen, number)
    next(sign_in)
    # Another query for each test: a browser does not load an address again that differs in its fragment only.
    wanted = f"/?way={way.__name__}#/dashboards/7?from=now-6h&to=a%20b"
    screen.opens(wanted).at("/auth/login")
    next(sign_in, None)
    screen.waits(lambda: screen.driver.current_url == screen.gateway.url + wanted, "the address with its fragment")


def test_long_address_survives_the_sign_in(screen, number):
    sign_in = by_code(screen, number)
    next(sign_in)
    wanted = "/explore?left=" + "a" * 7_900
    screen.opens(wanted).at("/auth/login")
    next(sign_in, None)
    screen.waits(lambda: screen.driver.current_url == screen.gateway.url + wanted, "the long address")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_the_look(screen, size, dark):
    for path in ("/auth/login", "/auth/register", "/auth/logout", "/auth/error?code=too_many_attempts"):
        screen.looks(size, dark).opens(path).is_sound(path)
        assert screen.errors() == []


def test_splash(screen):
    screen.moves().opens("/auth/login")
    assert "Moongate" in screen.find(".splash").get_attribute("textContent")
    moves = screen.js(
        "return document.querySelector('.brand.large .logo').getAnimations().map(animation => animation.animationName)"
    )
    assert moves == ["arrive"] and len(screen.all("main .logo")) == 1, "one logo, which moves to its place"
    screen.waits(
        lambda: screen.js("return getComputedStyle(document.querySelector('.splash')).visibility") == "hidden",
        "its end",
        3,
    )
    # Once: not after a reload, and not with another sign-in method.
    screen.driver.refresh()
    screen.settles()
    assert not screen.find(".splash").is_displayed()
    screen.presses("Use email instead").reads("Password")
    assert not screen.find(".splash").is_displayed()
    screen.forget().looks(calm=True).opens("/auth/login")
    assert not screen.find(".splash").is_displayed(), "no animation with reduced motion"
