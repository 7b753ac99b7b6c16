"""All pages and states that a user can see, each with a name, for pictures (`screenshots.py`) and for general page
checks (`test_pages_looks.py`). A story guides a user through the pages and calls `keep(name)` for each state."""

import contextlib
import re
from urllib.parse import urlencode

import requests

from authenticator import App
from device import Device
from local_gateway import LocalGateway, wait_for
from mockgoogle import pkce
from screens import many, registrations, wrong

PIN, OTHER = "482915", "593026"
CODE = '"field.code"'
# Keeps transient states: the message of a wrong code, toasts and, if requested, the moment of success.
STILL = """const real = window.setTimeout; window.setTimeout = (work, wait, ...more) =>
  [2000, 3000, 6000].includes(wait) || (wait === 400 && window.holds) ? 0 : real(work, wait, ...more)"""


@contextlib.contextmanager
def still(driver):
    driver.execute_cdp_cmd("Page.enable", {})
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": STILL})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


# The gateways of the stories.


def shipped(folder):
    gateway = LocalGateway(folder)
    gateway.edit("policies/phone_otp.lua", many)
    gateway.edit("policies/password.lua", registrations)
    gateway.edit("policies/email_code.lua", lambda text: text.replace('"60s"', '"3s"'))
    return gateway


def strict(folder):
    """Another code can be requested at once, but only one. The page between the gateway and Google stays visible."""
    gateway = LocalGateway(folder)
    gateway.edit(
        "policies/phone_otp.lua",
        lambda text: re.sub(r"(send\s+= \{[^}]*max = )4", r"\g<1>2", many(text)).replace(
            '{ "60s", "120s" }', '{ "1s" }'
        ),
    )
    pages = gateway.config / "pages"
    pages.mkdir()
    (pages / "leave.mustache").write_text(
        "{{<layout}}\n{{$content}}\n<h1>{{heading}}</h1>\n<p class=\"subtitle\" role=\"status\">{{subtitle}}</p>\n"
        "<p><a class=\"button\" rel=\"noreferrer\" href=\"{{address}}\" autofocus>{{w.continue}}</a></p>\n{{/content}}\n{{/layout}}\n"
    )
    return gateway


def fleeting(folder):
    """Codes that expire after a second."""
    gateway = LocalGateway(folder)
    gateway.edit("policies/phone_otp.lua", lambda text: many(text).replace('ttl = "10m"', 'ttl = "1s"'))
    return gateway


def from_right_to_left(folder):
    gateway = shipped(folder)
    gateway.offers("en", "ar")
    return gateway


def for_members(folder):
    """A route for a group, and a route for access tokens of users."""
    gateway = shipped(folder)
    gateway.edit(
        "accounts.lua",
        lambda text: text.replace("return accounts {", "return accounts {\n  groups = { ops = members() },", 1),
    )
    gateway.edit(
        "routes.lua",
        lambda text: text.replace(
            "return routes {",
            f"""return routes {{
  {{ path = "/ops/**", to = "http://127.0.0.1:{gateway.ports[2]}", require = {{ group = "ops" }} }},
  {{ path = "/files/**", to = "http://127.0.0.1:{gateway.ports[2]}", tokens = {{ personal = true }} }},""",
            1,
        ),
    )
    return gateway


def with_apps(folder):
    """An app that asks for everything, and has a name of several words."""
    gateway = shipped(folder)
    (gateway.config / "apps.lua").write_text(
        'return apps {\n  notes = app {\n    name = "Notes of the Example Company", public = true,\n'
        '    redirect_uris = { "https://notes.example.com/in" },\n'
        '    scopes = { "openid", "profile", "email", "phone", "groups", "offline_access", "orders.read" },\n'
        '    grants = { "authorization_code", "refresh_token", "device_code" },\n  },\n}\n'
    )
    return gateway


HOUSES = {
    "shipped": shipped,
    "strict": strict,
    "fleeting": fleeting,
    "from_right_to_left": from_right_to_left,
    "for_members": for_members,
    "with_apps": with_apps,
}


# Shared steps of stories.


def seen(screen):
    return {entry["id"] for entry in screen.gateway.outbox()}


def fresh(screen, before):
    return wait_for(
        lambda: next((e["code"] for e in screen.gateway.outbox() if e["id"] not in before and e["code"]), None), "a code"
    )


def ready(screen):
    screen.waits(lambda: screen.find("main button.main").is_enabled(), "something that can be sent")
    return screen


def sends(screen):
    ready(screen).find("main button.main").click()
    return screen


def until(screen, *sentences):
    """Enters a wrong code, or repeats another action, until the lock."""
    for sentence in sentences:
        yield
        screen.reads(sentence)


# The stories.


def entrance(screen, keep, number):
    screen.opens("/auth/login")
    keep("login")
    screen.find("#phone").send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.reads("valid 10-digit")
    keep("login-invalid")
    screen.find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    keep("countries")
    screen.types("zzz").reads("No such country")
    keep("countries-none")
    screen.presses("Cancel", "dialog[open]").fills("phone", number)
    ready(screen)
    keep("login-valid")
    sends(screen).reads("No Account Found")
    keep("no-account")
    screen.presses("Cancel", "dialog[open]").reads("No account found")
    keep("no-account-inline")
    screen.offline()
    sends(screen).reads("Unable to send OTP")
    keep("login-no-connection")
    screen.offline(False).slow(1200)
    sends(screen).waits(lambda: screen.all("button.main .spinner"), "work in progress")
    keep("login-busy")
    screen.slow(0).reads("No Account Found")
    screen.opens("/auth/register")
    keep("register")
    screen.opens("/auth/login?refused=oauth_cancelled").reads("Sign-in cancelled")
    keep("google-cancelled")
    screen.opens("/auth/login?refused=oauth_failed").reads("Google sign-in failed")
    keep("google-failed")
    for name, path in (
        ("login-email", "/auth/login?with=email"),
        ("login-by-code", "/auth/login?with=code"),
        ("password-forgotten", "/auth/login?with=reset"),
        ("register-email", "/auth/register?with=email"),
        ("signed-out", "/auth/logout"),
        ("error", "/auth/error?code=upstream_unavailable"),
        ("error-denied", "/auth/error?code=denied"),
        ("not-found", "/auth/nothing"),
        ("flow-gone", "/auth/verify?id=fl_x"),
    ):
        screen.opens(path)
        keep(name)
    screen.opens("/auth/login?with=email").fills("email", "asha@example.org").fills("password", "not this one")
    sends(screen).reads("Incorrect email or password")
    keep("login-email-wrong")


def code(screen, keep, number):
    sent = screen.asks_code(number, "register")
    keep("code")
    screen.types("53")
    keep("code-typing")
    screen.find("#code").clear()
    screen.find("#code").send_keys(wrong(sent))
    screen.reads("Invalid code")
    keep("code-wrong")
    screen.presses("Edit phone number").waits(lambda: screen.find("#edit .country").is_enabled(), "the sheet")
    keep("code-edit")
    field = screen.find("#new-contact")
    field.clear()
    field.send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.waits(lambda: "valid 10-digit" in screen.find("#edit").text, "the sentence in the sheet")
    keep("code-edit-invalid")
    screen.presses("Cancel", "#edit").find(".back").click()
    screen.reads("Go back?")
    keep("code-back")
    screen.presses("Cancel", "#leave")
    screen.offline().find("#code").send_keys(sent)
    screen.reads("Check your connection")
    keep("code-no-connection")
    screen.find(".back").click()
    keep("code-back-no-connection")
    screen.presses("Cancel", "#leave")
    screen.js("window.holds = true")
    screen.offline(False).slow(1500)
    screen.presses("Retry").waits(lambda: screen.all("button.main .spinner"), "work in progress")
    keep("code-busy")
    screen.slow(0).reads("Verified")
    keep("code-verified")
    # The page of a success whose response was lost.
    address = screen.driver.current_url
    token = screen.driver.get_cookie("moongate")
    screen.driver.delete_cookie("moongate")
    screen.driver.get(address)
    screen.reads("This sign-in is complete.")
    keep("code-done")
    screen.driver.add_cookie({name: token[name] for name in ("name", "value", "path")})

    screen.forget()
    screen.asks_code(number)
    screen.presses("Edit phone number").waits(lambda: screen.find("#edit .country").is_enabled(), "the sheet")
    field = screen.find("#new-contact")
    field.clear()
    field.send_keys(number[:-1] + str((int(number[-1]) + 7) % 10))
    screen.waits(lambda: screen.find("#edit button.main").is_enabled(), "another number")
    screen.find("#edit button.main").click()
    screen.waits(lambda: "No account found" in screen.find("#edit").text, "the refusal in the sheet")
    keep("code-edit-refused")


def locked(screen, keep, number):
    sent = screen.asks_code(number, "register")
    for sentence in ("4 tries", "3 tries", "2 tries", "1 try", "Too many attempts"):
        screen.find("#code").send_keys(wrong(sent))
        screen.reads(sentence)
    keep("code-locked")
    screen.opens("/auth/register").fills("phone", number)
    sends(screen).reads("Too many attempts. Try again in 15 minutes.")
    keep("register-locked")


def passcode(screen, keep, number):
    screen.belongs_to(number).opens("/auth/login?flow=step_up&return_to=/home").reads("Not allowed")
    keep("refused")
    screen.opens("/auth/account")
    keep("account")
    screen.opens("/auth/pin?flow=pin_set")
    screen.keys("482")
    keep("pin-create")
    screen.keys("915").reads("Confirm passcode").keys("482916").reads("match")
    keep("pin-mismatch")
    screen.waits(lambda: "Create a passcode" in screen.text, "the first step")
    screen.keys("111111").reads("Confirm passcode").keys("111111").reads("too easy to guess")
    keep("pin-weak")
    screen.keys(PIN).reads("Confirm passcode").keys(PIN).at("/home")
    screen.opens("/auth/pin?return_to=/home")
    keep("pin-lock")
    screen.keys("111222").reads("Incorrect passcode")
    keep("pin-lock-wrong")
    screen.offline().keys("111222").reads("Check your connection")
    keep("pin-no-connection")
    screen.offline(False).opens("/auth/pin?return_to=/home").presses("Forgot Passcode?")
    keep("pin-forgotten")
    screen.presses("Send Reset Code", "dialog[open]").reads("Enter reset code from SMS")
    keep("pin-reset")
    screen.opens("/auth/pin?return_to=/home").presses("Forgot Passcode?").presses("Send Reset Code", "dialog[open]")
    screen.waits(lambda: "Resend code in" in screen.find("dialog[open]").text, "the refusal in the question")
    keep("pin-forgotten-too-soon")
    for name, path in (
        ("pin-change", "/auth/pin?flow=pin_change"),
        ("pin-turn-off", "/auth/pin?flow=pin_disable"),
        ("pin-forgotten-page", "/auth/pin?flow=pin_reset"),
        ("confirm-choice", "/auth/step?flow=step_up&return_to=/home"),
        ("confirm-by-code", "/auth/verify?flow=step_up"),
        ("change-phone", "/auth/verify?flow=change_phone"),
        ("add-email", "/auth/email?flow=change_email"),
        ("account-with-pin", "/auth/account?done=pin_set"),
        ("logout", "/auth/logout"),
    ):
        screen.opens(path)
        keep(name)
    screen.opens("/auth/pin")
    for sentence in ("3 tries", "2 tries", "1 try", "Too many attempts"):
        screen.keys(OTHER).reads(sentence)
    keep("pin-locked")
    screen.opens("/auth/pin?flow=pin_change").reads("Too many attempts")
    keep("pin-change-locked")


def authenticator(screen, keep, number):
    screen.belongs_to(number).opens("/auth/account").presses("Set up: Authenticator app").at("/auth/step")
    keep("app")
    screen.presses("Set up").reads("Scan this with your authenticator app")
    keep("app-qr")
    secret = screen.says(".secret code").replace(" ", "")
    app = App(f"otpauth://totp/x?secret={secret}&issuer=Moongate&algorithm=SHA1&digits=6&period=30")
    screen.fills(CODE, "000000" if app.code() != "000000" else "000001").reads("Invalid code")
    keep("app-qr-wrong")
    screen.fills(CODE, app.code(-1)).reads("Keep these recovery codes")
    keep("app-recovery-codes")
    screen.find(".check input").click()
    screen.presses("Continue").at("/auth/account").reads("Authenticator app is set up.")
    keep("app-set-up")
    screen.opens("/auth/step?flow=step_up&with=totp&return_to=/home").reads("Enter the six digits")
    keep("app-asks")
    screen.find("summary").click()
    keep("app-asks-recovery-code")
    screen.opens("/auth/step?flow=totp_disable").presses("Turn off").reads("After that, no code is asked for")
    keep("app-turn-off")
    screen.opens("/auth/step?flow=step_up&with=totp&return_to=/home")
    for sentence in ("4 tries", "3 tries", "2 tries", "1 try", "Too many attempts"):
        screen.fills(CODE, "000000" if app.code() != "000000" else "000001").reads(sentence)
    keep("app-locked")


def by_email(screen, keep, number):
    email = f"ravi{number[-5:]}@example.org"
    screen.forget().opens("/auth/register?with=email")
    for name, text in (
        ("first_name", "Ravi"),
        ("last_name", "Iyer-Venkataraghavan Subramaniam"),
        ("email", email),
        ("password", "password1"),
    ):
        screen.fills(name, text)
    screen.find("button.main").click()
    screen.reads("too easy to guess")
    keep("register-email-weak")
    screen.fills("password", "correct horse battery").find("button.main").click()
    screen.at("/auth/email")
    keep("email-code")
    screen.presses("Edit email address").waits(lambda: screen.all("dialog[open]"), "the sheet")
    keep("register-email-edit")
    screen.presses("Cancel", "#edit").presses("Skip for now").at("/profile-setup")
    keep("demo-unverified")
    screen.opens("/auth/account")
    keep("account-email")
    screen.find("summary").click()
    keep("account-name")
    screen.opens("/auth/account/sign-out")
    keep("account-sign-out")
    screen.opens("/auth/email?flow=verify_email")
    keep("verify-email")
    screen.opens("/auth/email?flow=change_email").fills("email", "nobody")
    screen.js("document.querySelector('form[data-form]').noValidate = true")
    sends(screen).reads("valid email address")
    keep("change-email-invalid")
    screen.opens("/auth/login?flow=step_up&return_to=/home").reads("Confirm")
    keep("confirm-password")
    screen.fills("password", "wrong horse").find("button.main").click()
    screen.reads("Incorrect")
    keep("confirm-password-wrong")
    before = seen(screen)
    screen.forget().opens("/auth/login?with=reset").fills("email", email)
    sends(screen).at("/auth/email").presses("Edit email address").waits(lambda: screen.all("dialog[open]"), "the sheet")
    keep("email-edit")
    screen.presses("Cancel", "#edit").find("#code").send_keys(fresh(screen, before))
    screen.waits(lambda: "Save password" in screen.text, "the new password")
    keep("new-password")
    screen.driver.get(screen.gateway.admin + "/outbox")
    screen.waits(lambda: screen.all("article"), "messages")
    keep("outbox")


def another_code(screen, keep, number):
    """Another code can be requested once. Uses the strict gateway."""
    screen.asks_code(number, "register")
    screen.reads("Didn't receive code?")
    keep("code-resend-open")
    screen.presses("Resend now").reads("Code sent!")
    keep("code-sent-again")
    screen.waits(
        lambda: "Resend now" in screen.text or re.search(r"Resend code in 1[45]:", screen.text), "what comes next"
    )
    if "Resend now" in screen.text:
        screen.presses("Resend now")
        screen.reads("Too many attempts")
    keep("code-no-more")
    screen.opens("/auth/register").fills("phone", number)
    sends(screen).reads("Too many attempts. Try again in 15 minutes.")
    keep("login-too-many")
    screen.opens("/auth/login").presses("Continue with Google").reads("You are on your way to Google.")
    keep("leave")
    screen.gateway.register(other := number[:-1] + str((int(number[-1]) + 1) % 10))
    screen.forget().asks_code(other)
    keep("code-returning")


def expired(screen, keep, number):
    """Uses the gateway with short-lived codes."""
    screen.asks_code(number, "register")
    screen.reads("This code has expired")
    keep("code-expired")


def hindi(screen, keep, number):
    screen.forget().opens("/auth/login?language=hi")
    keep("hi-login")
    screen.find("#phone").send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.waits(lambda: screen.all(".problem"), "the sentence")
    keep("hi-login-invalid")
    screen.find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    keep("hi-countries")
    for name, path in (
        ("login-email", "/auth/login?with=email"),
        ("register-email", "/auth/register?with=email"),
        ("password-forgotten", "/auth/login?with=reset"),
        ("error", "/auth/error?code=too_many_attempts"),
    ):
        screen.opens(path)
        keep("hi-" + name)
    sent = screen.asks_code(number, "register")
    keep("hi-code")
    screen.find("#code").send_keys(wrong(sent))
    screen.waits(lambda: screen.all(".problem"), "the refusal")
    keep("hi-code-wrong")
    screen.find(".back").click()
    keep("hi-code-back")
    screen.find("#leave [data-close]").click()
    screen.find("[data-edit]").click()
    screen.waits(lambda: screen.find("#edit .country").is_enabled(), "the sheet")
    keep("hi-code-edit")
    screen.find("#edit [data-close]").click()
    screen.find("#code").clear()
    screen.find("#code").send_keys(sent)
    screen.waits(lambda: screen.path == "/profile-setup", "the end")
    for name, path in (
        ("account", "/auth/account"),
        ("pin-create", "/auth/pin?flow=pin_set"),
        ("change-phone", "/auth/verify?flow=change_phone"),
        ("add-email", "/auth/email?flow=change_email"),
        ("confirm-by-code", "/auth/verify?flow=step_up"),
        ("logout", "/auth/logout"),
    ):
        screen.opens(path)
        keep("hi-" + name)
    screen.opens("/auth/step?flow=totp_set").find("button.main").click()
    screen.waits(lambda: screen.all(".qr"), "the QR code")
    keep("hi-app-qr")
    secret = screen.says(".secret code").replace(" ", "")
    app = App(f"otpauth://totp/x?secret={secret}&issuer=Moongate&algorithm=SHA1&digits=6&period=30")
    screen.fills(CODE, app.code(-1))
    screen.waits(lambda: screen.all(".codes"), "the recovery codes")
    keep("hi-app-recovery-codes")
    screen.find(".check input").click()
    screen.find("button.main").click()
    screen.at("/home").opens("/auth/step?flow=step_up&with=totp&return_to=/home")
    keep("hi-app-asks")
    screen.fills(CODE, app.code())
    screen.at("/home")
    screen.opens("/auth/pin?flow=pin_set").keys(PIN)
    screen.waits(
        lambda: screen.js("return [...document.querySelectorAll('.stage')].findIndex(stage => !stage.hidden)") == 1,
        "the second step",
    )
    screen.keys(PIN).at("/home").opens("/auth/pin?return_to=/home")
    keep("hi-pin-lock")
    screen.find("[data-opens=forgot]").click()
    keep("hi-pin-forgotten")
    screen.opens("/auth/login?language=en")


def arabic(screen, keep, number):
    """Right-to-left layout, with its own gateway."""
    screen.forget().opens("/auth/login?language=ar")
    keep("ar-login")
    screen.find("#phone").send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.waits(lambda: screen.all(".problem"), "the sentence")
    keep("ar-login-invalid")
    screen.find(".country").click()
    screen.waits(lambda: screen.all("[role=option]"), "the countries")
    keep("ar-countries")
    screen.opens("/auth/register?with=email")
    keep("ar-register-email")
    sent = screen.asks_code(number, "register")
    keep("ar-code")
    screen.find("#code").send_keys(wrong(sent))
    screen.waits(lambda: screen.all(".problem"), "the refusal")
    keep("ar-code-wrong")
    screen.find("[data-edit]").click()
    screen.waits(lambda: screen.find("#edit .country").is_enabled(), "the sheet")
    keep("ar-code-edit")
    screen.find("#edit [data-close]").click()
    screen.find("#code").clear()
    screen.find("#code").send_keys(sent)
    screen.waits(lambda: screen.path == "/profile-setup", "the end")
    for name, path in (
        ("account", "/auth/account"),
        ("pin-create", "/auth/pin?flow=pin_set"),
        ("error", "/auth/error?code=denied"),
    ):
        screen.opens(path)
        keep("ar-" + name)
    screen.opens("/auth/step?flow=totp_set").find("button.main").click()
    screen.waits(lambda: screen.all(".qr"), "the QR code")
    keep("ar-app-qr")
    screen.opens("/auth/login?language=en")


def passkeys(screen, keep, number):
    screen.driver.execute_cdp_cmd("WebAuthn.enable", {})
    try:
        key = Device(screen.driver)
        screen.belongs_to(number).opens("/auth/step?flow=passkey_set&offer=1&return_to=/home").reads("Skip for now")
        keep("passkey-offer")
        screen.opens("/auth/account").presses("Add a passkey: Passkey").at("/auth/step")
        keep("passkey-add")
        key.knows_its_owner(False)
        screen.presses("Add a passkey").reads("This was cancelled or took too long.")
        keep("passkey-add-cancelled")
        key.knows_its_owner(True)
        screen.presses("Add a passkey").reads("Your passkey is ready.")
        keep("passkey-name")
        screen.fills('"field.name"', "My phone").presses("Continue").at("/auth/account").reads("Passkey added.")
        keep("passkey-account")
        key.knows_its_owner(False)
        screen.presses("Remove: My phone").at("/auth/step")
        keep("passkey-remove")
        screen.presses("Remove a passkey").reads("This was cancelled or took too long.")
        keep("passkey-remove-cancelled")
        screen.presses("I no longer have it").presses("Send code").waits(lambda: screen.all("#code"), "the boxes")
        screen.enters(screen.gateway.code(number)).reads("Choose the passkey to remove.")
        keep("passkey-lost")
        screen.forget().opens("/auth/login?with=passkey")
        keep("passkey-login")
    finally:
        screen.driver.execute_cdp_cmd("WebAuthn.disable", {})


def access(screen, keep, number):
    """A user without groups, who creates tokens."""
    for language in ("en", "hi"):
        # Before the page of a service, no language was chosen, so the browser's preference applies.
        screen.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {"Accept-Language": language}})
        screen.belongs_to(number).opens(f"/auth/account?language={language}").opens("/ops/board?a=1").waits(
            lambda: screen.all("a.button"), "ways on"
        )
        keep(f"{language}-forbidden")
        if language == "en":
            screen.find("a[href*='/auth/logout']").click()
            screen.at("/auth/logout")
            keep("someone-else")
        screen.opens("/auth/account/tokens").fills("name", "x" * 60).find("main form button.main").click()
        screen.waits(lambda: screen.all(".secret"), "the token")
        if language == "en":
            keep("token-secret")
        screen.opens("/auth/account/tokens").fills("name", "x" * 60).find("main form button.main").click()
        screen.waits(lambda: screen.all(".problem"), "the refusal")
        keep(f"{language}-token-taken")
        screen.opens("/auth/account").find("#tokens-group")
        keep(f"{language}-tokens")
        screen.find("button[name=token]").click()
        screen.waits(lambda: not screen.all("button[name=token]"), "the token's end")
    screen.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {}})
    screen.opens("/auth/login?language=en")


def apps(screen, keep, number):
    """Apps that ask for consent, and devices."""
    url = screen.gateway.url
    scopes = "openid profile email phone groups offline_access orders.read"
    begun = "/auth/openid/authorize?" + urlencode(
        {
            "response_type": "code",
            "client_id": "notes",
            "redirect_uri": "https://notes.example.com/in",
            "scope": scopes,
            "code_challenge": pkce()[1],
            "code_challenge_method": "S256",
        }
    )
    screen.forget().opens(begun).at("/auth/login")
    keep("app-login")
    screen.belongs_to(number).opens(begun).at("/auth/openid/consent")
    keep("app-consent")
    screen.opens(begun + "&ui_locales=hi").at("/auth/openid/consent")
    keep("hi-app-consent")
    codes = requests.post(f"{url}/auth/openid/device", data={"client_id": "notes", "scope": scopes}, timeout=20).json()
    screen.opens("/auth/device?language=en")
    keep("device")
    screen.fills("user_code", "BBBB-BBBB").presses("Continue").reads("This code is wrong")
    keep("device-wrong")
    screen.fills("user_code", codes["user_code"]).presses("Continue").reads("Compare this")
    keep("device-question")
    screen.presses("Allow").reads("You can continue")
    keep("device-connected")
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    fields = {"grant_type": grant, "device_code": codes["device_code"], "client_id": "notes"}
    requests.post(f"{url}/auth/openid/token", data=fields, timeout=20)
    screen.opens("/auth/account").find("#apps-group")
    keep("account-apps")
    screen.presses("Disconnect: Notes of the Example Company").at("/auth/account/apps")
    keep("app-disconnect")


def plain(screen, keep, number):
    """Without scripts."""
    for name, path in (
        ("login", "/auth/login"),
        ("register-email", "/auth/register?with=email"),
        ("login-email", "/auth/login?with=email"),
        ("password-forgotten", "/auth/login?with=reset"),
    ):
        screen.opens(path)
        keep("plain-" + name)
    screen.opens("/auth/login").fills("phone", number).presses("Send OTP").reads("No account found")
    keep("plain-no-account")
    sent = screen.asks_code(number, "register")
    screen.reads("Check your blocked messages and spam")
    keep("plain-code")
    screen.enters(wrong(sent)).reads("Invalid code")
    keep("plain-code-wrong")
    screen.enters(sent).at("/profile-setup")
    for name, path in (
        ("account", "/auth/account"),
        ("pin-create", "/auth/pin?flow=pin_set"),
        ("change-phone", "/auth/verify?flow=change_phone"),
        ("add-email", "/auth/email?flow=change_email"),
        ("logout", "/auth/logout"),
    ):
        screen.opens(path)
        keep("plain-" + name)
    screen.opens("/auth/step?flow=totp_set").presses("Set up").reads("Scan this")
    keep("plain-app-qr")
    screen.fills(CODE, "12").presses("Continue").reads("six digits")
    keep("plain-app-malformed")
    screen.opens("/auth/pin?flow=pin_set").fills("new_pin", PIN).fills("confirm", PIN).presses("Save passcode").at(
        "/home"
    )
    screen.opens("/auth/pin?flow=pin_change")
    keep("plain-pin-change")
    screen.opens("/auth/pin?return_to=/home")
    keep("plain-pin-lock")
    for sentence in ("4 tries", "3 tries", "2 tries", "1 try", "Too many attempts"):
        screen.fills("pin", OTHER).presses("Unlock").reads(sentence)
    assert "Reload" in screen.text
    keep("plain-pin-locked")
    screen.presses("Forgot Passcode?")
    keep("plain-pin-forgotten")


# The stories by gateway.
STORIES = [
    (entrance, "shipped"),
    (code, "shipped"),
    (locked, "shipped"),
    (passcode, "shipped"),
    (authenticator, "shipped"),
    (by_email, "shipped"),
    (another_code, "strict"),
    (expired, "fleeting"),
    (hindi, "shipped"),
    (arabic, "from_right_to_left"),
    (passkeys, "shipped"),
    (access, "for_members"),
    (apps, "with_apps"),
]
