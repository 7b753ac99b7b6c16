"""The main story in a real browser: from the demo's URL to a user who signs in, out, and in again."""

import pytest
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import screens
from local_gateway import wait_for


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def browser(request, tmp_path):
    driver = screens.start(tmp_path / "chromium", scripts=request.param, full=True)
    try:
        yield driver
    finally:
        driver.quit()


class Person:
    """A user who reads pages and follows them."""

    def __init__(self, browser, gateway):
        self.browser, self.gateway = browser, gateway

    def waits(self, condition, what):
        # During a navigation, a page has no or stale elements.
        patience = WebDriverWait(self.browser, 20, 0.05, ignored_exceptions=[WebDriverException])
        try:
            return patience.until(lambda _: condition())
        except Exception as error:
            raise AssertionError(f"waited in vain for {what}; at {self.browser.current_url}:\n{self.text}") from error

    @property
    def text(self):
        return self.browser.find_element(By.TAG_NAME, "body").text

    def arrives(self, path):
        pages = (self.gateway.url + path, self.gateway.service + path)
        self.waits(lambda: self.browser.current_url.split("?")[0] in pages, f"the page {path}")

    def reads(self, sentence):
        self.waits(lambda: sentence in self.text, repr(sentence))

    def fills(self, name, value):
        def fill():
            field = self.browser.find_element(By.NAME, name)
            field.clear()
            field.send_keys(value)
            return True

        self.waits(fill, f"the field {name}")

    def presses(self, *labels):
        """Presses the button or link with one of the labels."""

        def press():
            for element in self.browser.find_elements(By.CSS_SELECTOR, "button, a"):
                if element.text.strip() in labels and element.is_displayed() and element.is_enabled():
                    element.click()
                    return True
            return False

        self.waits(press, f"a button {labels}")

    def chooses(self, name):
        """Chooses the account with this name at mock Google."""

        def press():
            for element in self.browser.find_elements(By.CSS_SELECTOR, "button[name=account]"):
                if element.text.startswith(name):
                    element.click()
                    return True
            return False

        self.waits(press, f"the account {name}")

    def is_sent(self, seen):
        """The code that has arrived in the outbox since."""
        entry = wait_for(
            lambda: next((entry for entry in self.gateway.outbox() if entry["id"] not in seen), None), "a code"
        )
        seen.add(entry["id"])
        return entry["code"]

    def enters(self, code):
        page = self.browser.find_element(By.TAG_NAME, "html")
        self.fills("code", code)

        def sent():
            # A page with a script may have submitted it already.
            try:
                page.is_enabled()
            except StaleElementReferenceException:
                return True
            for element in self.browser.find_elements(By.TAG_NAME, "button"):
                if "Verify" in element.text and element.is_enabled():
                    element.click()
                    return True
            return False

        self.waits(sent, "the code to be sent")


def test_from_the_demo_to_home(browser, gateway):
    phone, seen = "+919999999999", set()
    person = Person(browser, gateway)
    browser.get(gateway.url + "/")
    person.arrives("/auth/login")
    person.reads("Welcome Back!")
    person.fills("phone", "99999 99999")
    person.presses("Send OTP")
    person.reads("No account found. Create one?")
    assert gateway.outbox() == []

    person.presses("Create Account")
    person.arrives("/auth/register")
    person.fills("phone", "99999 99999")
    person.presses("Send OTP", "Create Account")
    person.arrives("/auth/verify")
    person.reads("+91 99999 99999")
    person.enters(person.is_sent(seen))
    person.arrives("/profile-setup")
    person.reads("Welcome!")
    person.reads(phone)
    person.presses("Continue")
    person.reads("You are in.")
    person.reads("phone_otp")

    person.presses("Sign out")
    person.arrives("/auth/logout")
    person.presses("Sign out", "Log out", "Logout")
    wait_for(
        lambda: "/auth/login" in browser.current_url or "/auth/logout" not in browser.current_url, "to be signed out"
    )
    browser.get(gateway.url + "/home")
    person.arrives("/auth/login")

    # The timer of the registration's code ended with its success, so another can be requested at once.
    person.fills("phone", "+91 99999-99999")
    person.presses("Send OTP")
    person.arrives("/auth/verify")
    person.enters(person.is_sent(seen))
    person.arrives("/home")
    person.reads("You are in.")
    assert phone in person.text
    cookie = next(cookie for cookie in browser.get_cookies() if cookie["name"] == "moongate")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax" and cookie["path"] == "/"


def test_wrong_code_is_reported_and_counted(browser, gateway):
    phone = "+919999999999"
    gateway.register(phone)
    seen = {entry["id"] for entry in gateway.outbox()}
    person = Person(browser, gateway)
    browser.get(gateway.url + "/auth/login")
    person.fills("phone", "9999999999")
    person.presses("Send OTP")
    person.arrives("/auth/verify")
    code = person.is_sent(seen)
    person.enters("000000" if code != "000000" else "111111")
    person.reads("Invalid code. Please try again.")
    person.enters(code)
    person.arrives("/home")


def test_continue_with_google(browser, gateway):
    person = Person(browser, gateway)
    browser.get(gateway.url + "/home")
    person.arrives("/auth/login")
    person.presses("Continue with Google")
    person.arrives("/mock-google/authorize")
    person.reads("Choose an account")
    person.presses("Cancel")
    person.arrives("/auth/login")
    person.reads("Sign-in cancelled")

    person.presses("Continue with Google")
    person.arrives("/mock-google/authorize")
    person.presses("Fail with an error")
    person.arrives("/auth/login")
    person.reads("Google sign-in failed. Try again.")

    person.presses("Continue with Google")
    person.arrives("/mock-google/authorize")
    person.presses("Rotate the signing keys")
    person.reads("New signing keys")
    person.chooses("Asha Rao")
    person.arrives("/profile-setup")
    person.reads("Welcome!")
    person.presses("Continue")
    person.reads("You are in.")
    person.reads("google_oauth")

    person.presses("Sign out")
    person.arrives("/auth/logout")
    person.presses("Sign out", "Log out", "Logout")
    person.arrives("/auth/login")
    browser.get(gateway.url + "/auth/register")
    person.presses("Continue with Google")
    person.arrives("/mock-google/authorize")
    person.reads("signed in here before")
    person.chooses("Asha Rao")
    person.arrives("/home")
    person.reads("asha@gmail.com")
