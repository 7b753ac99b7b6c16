"""Pictures of every page and state, light and dark, phone and laptop: `make screenshots`. Look at each before you call it done."""

import contextlib
import pathlib
import shutil
import sys
import tempfile

from house import House
from screens import Screen, many, start, wrong

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".build-e2e/screenshots")
LOOKS = {"phone-light": ((390, 844), False), "phone-dark": ((390, 844), True), "laptop-light": ((1280, 800), False), "small-dark": ((320, 640), True)}


class Album:
    def __init__(self, screen, look):
        self.screen, self.look, self.count = screen, look, 0

    def keep(self, name):
        self.count += 1
        self.screen.js("document.getAnimations().forEach(one => { try { one.finish() } catch {} })")
        self.screen.driver.save_screenshot(str(OUT / f"{self.look}-{self.count:02}-{name}.png"))


def walk(screen, keep, number):
    house = screen.house
    screen.opens("/auth/login")
    keep("login")
    screen.find("#phone").send_keys("12345")
    screen.js("document.activeElement.blur()")
    screen.reads("valid 10-digit")
    keep("login-invalid")
    screen.find(".country").click()
    keep("countries")
    screen.presses("Cancel", "dialog[open]").fills("phone", number)
    screen.waits(lambda: screen.find("button.main").is_enabled(), "a number")
    keep("login-valid")
    screen.find("button.main").click()
    screen.reads("No Account Found")
    keep("no-account")
    screen.presses("Cancel", "dialog[open]")
    keep("no-account-inline")
    screen.opens("/auth/login?with=email")
    keep("login-email")
    screen.opens("/auth/login?with=reset")
    keep("password-forgotten")
    screen.opens("/auth/register?with=email")
    keep("register-email")
    screen.opens("/auth/register?language=hi")
    keep("register-hindi")
    screen.opens("/auth/login?language=en")
    code = screen.asks_code(number, "register")
    keep("code")
    screen.types("53")
    keep("code-typing")
    screen.find("#code").clear()
    screen.find("#code").send_keys(wrong(code))
    screen.reads("Invalid code")
    keep("code-wrong")
    screen.presses("Edit phone number")
    keep("code-edit")
    screen.presses("Cancel", "#edit").find(".back").click()
    keep("code-back")
    screen.presses("Cancel", "#leave")
    screen.offline().find("#code").send_keys(code)
    screen.reads("Check your connection")
    keep("code-no-connection")
    screen.offline(False).slow(1500)
    # Where a success is shown for a moment, the moment stands still.
    screen.js("const real = setTimeout; window.setTimeout = (work, wait, ...more) => wait === 400 ? 0 : real(work, wait, ...more)")
    screen.presses("Retry").waits(lambda: screen.all("button.main .spinner"), "work in progress")
    keep("code-busy")
    screen.reads("Verified")
    keep("code-verified")
    screen.slow(0)
    screen.opens("/auth/account")
    keep("account")
    screen.opens("/auth/login?flow=step_up&return_to=/home").reads("Not allowed")
    keep("refused")
    screen.opens("/auth/pin?flow=pin_set")
    screen.keys("482")
    keep("pin-create")
    screen.keys("915").reads("Confirm passcode").keys("482916").reads("match")
    keep("pin-mismatch")
    screen.waits(lambda: "Create a passcode" in screen.text, "the first step")
    screen.keys("482915").reads("Confirm passcode").keys("482915").at("/home")
    screen.opens("/auth/pin?return_to=/home").keys("111222").reads("Incorrect passcode")
    keep("pin-lock-wrong")
    screen.presses("Forgot Passcode?")
    keep("pin-forgotten")
    screen.presses("Send Reset Code", "dialog[open]").reads("Enter reset code from SMS")
    keep("pin-reset")
    screen.opens("/auth/pin?flow=pin_change")
    keep("pin-change")
    screen.opens("/auth/email?flow=change_email")
    keep("add-email")
    screen.fills("email", f"asha{number[-4:]}@example.org").presses("Send code").waits(lambda: screen.all("#code"), "the code page")
    screen.settles()
    keep("email-code")
    screen.opens("/auth/account?done=pin_set")
    keep("account-unverified")
    screen.opens("/auth/verify?flow=change_phone")
    keep("change-phone")
    screen.opens("/auth/logout")
    keep("logout")
    screen.opens("/auth/error?code=upstream_unavailable")
    keep("error")
    screen.driver.get(house.admin + "/outbox")
    keep("outbox")
    screen.forget()
    code = screen.asks_code(number[:-1] + "9", "register")
    for left in (4, 3, 2, 1):
        screen.find("#code").send_keys(wrong(code))
        screen.reads(f"{left} tr")
    screen.find("#code").send_keys(wrong(code))
    screen.reads("Too many attempts")
    keep("code-locked")
    with_email(screen, keep, f"ravi{number[-4:]}@example.org")
    if screen.size == (390, 844):
        in_hindi(screen, keep, number[:-1] + "8")


def with_email(screen, keep, email):
    screen.forget().opens("/auth/register?with=email")
    for name, text in (("first_name", "Ravi"), ("last_name", "Iyer"), ("email", email), ("password", "password1")):
        screen.fills(name, text)
    screen.find("button.main").click()
    screen.reads("too easy to guess")
    keep("register-email-weak")
    screen.fills("password", "correct horse battery").find("button.main").click()
    screen.at("/auth/email").presses("Skip for now").at("/profile-setup")
    keep("demo-unverified")
    screen.opens("/auth/account")
    keep("account-email")
    screen.opens("/auth/login?flow=step_up&return_to=/home").reads("Confirm")
    keep("confirm-password")
    screen.forget().opens("/auth/login").presses("Continue with Google")
    screen.waits(lambda: screen.path == "/mock-google/authorize", "Google")
    screen.presses("Cancel").at("/auth/login").reads("Sign-in cancelled")
    keep("google-cancelled")


def in_hindi(screen, keep, number):
    screen.forget().opens("/auth/login?language=hi")
    keep("hi-login")
    screen.opens("/auth/login?with=email")
    keep("hi-login-email")
    code = screen.asks_code(number, "register")
    keep("hi-code")
    screen.find("#code").send_keys(wrong(code))
    screen.waits(lambda: screen.all(".problem"), "the refusal")
    keep("hi-code-wrong")
    screen.find(".back").click()
    keep("hi-code-back")
    screen.find("#leave [data-close]").click()
    screen.find("#code").clear()
    screen.find("#code").send_keys(code)
    screen.waits(lambda: screen.path == "/profile-setup", "the end")
    for name, path in (("account", "/auth/account"), ("pin-create", "/auth/pin?flow=pin_set"), ("change-phone", "/auth/verify?flow=change_phone"),
                       ("add-email", "/auth/email?flow=change_email"), ("logout", "/auth/logout"), ("error", "/auth/error?code=too_many_attempts")):
        screen.opens(path)
        keep("hi-" + name)
    screen.opens("/auth/login?language=en")


def expired(screen, keep, number):
    screen.asks_code(number, "register")
    screen.reads("This code has expired")
    keep("code-expired")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        (folder / "one").mkdir()
        (folder / "two").mkdir()
        house, hasty = House(folder / "one"), House(folder / "two")
        for each in (house, hasty):
            each.edit("policies/phone_otp.lua", many)
        hasty.edit("policies/phone_otp.lua", lambda text: text.replace('ttl = "10m"', 'ttl = "1s"'))
        for each in (house, hasty):
            stack.callback(each.stop)
            each.start()
        driver = start(folder / "chromium")
        stack.callback(driver.quit)
        for index, (look, (size, dark)) in enumerate(LOOKS.items()):
            for place, story in ((house, walk), (hasty, expired)):
                screen = Screen(driver, place).forget().looks(size, dark)
                album = Album(screen, look if story is walk else look + "-x")
                story(screen, album.keep, f"+91987600{index}{10 if place is house else 20}1")
    print(f"{len(list(OUT.iterdir()))} pictures in {OUT}")


if __name__ == "__main__":
    main()
