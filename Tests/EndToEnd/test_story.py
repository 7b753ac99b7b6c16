"""The main job in a real browser: from the demo's address to a person who is signed in, and out, and in again."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from house import wait_for

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def browser(request, tmp_path):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en", f"--user-data-dir={tmp_path}/chromium"]:
        options.add_argument(argument)
    if not request.param:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(30)
    driver.scripted = request.param
    try:
        yield driver
    finally:
        driver.quit()


class Person:
    """Someone who looks at pages and does what they say."""

    def __init__(self, browser, house):
        self.browser, self.house = browser, house

    def arrives(self, path):
        WebDriverWait(self.browser, 20).until(
            lambda browser: browser.current_url.split("?")[0] == self.house.url + path,
            f"to arrive at {path}, is at {self.browser.current_url}:\n{self.text}")

    @property
    def text(self):
        return self.browser.find_element(By.TAG_NAME, "body").text

    def reads(self, sentence):
        WebDriverWait(self.browser, 20).until(lambda _: sentence in self.text, f"{sentence!r} in:\n{self.text}")

    def fills(self, name, value):
        field = WebDriverWait(self.browser, 20).until(lambda browser: browser.find_element(By.NAME, name))
        field.clear()
        field.send_keys(value)

    def presses(self, *labels):
        """The button or link with one of the labels."""

        def found(browser):
            for element in browser.find_elements(By.CSS_SELECTOR, "button, a, input[type=submit]"):
                label = (element.text or element.get_attribute("value") or "").strip()
                if label in labels and element.is_displayed() and element.is_enabled():
                    return element
            return None

        WebDriverWait(self.browser, 20).until(found, f"a button {labels} on:\n{self.text}").click()

    def enters_code(self, phone, seen):
        """Reads the newest code in the outbox and types it."""
        code = wait_for(lambda: next((e["code"] for e in self.house.outbox() if e["to"] == phone and e["id"] not in seen), None), "a code")
        seen.update(entry["id"] for entry in self.house.outbox())
        self.fills("code", code)
        # A page with a script may send it by itself.
        buttons = self.browser.find_elements(By.XPATH, "//button[contains(., 'Verify')]")
        if buttons and not self.browser.scripted:
            buttons[0].click()
        elif buttons:
            try:
                buttons[0].click()
            except Exception:  # It has gone on already.
                pass


def test_from_the_demo_to_home(browser, house):
    phone, seen = "+919999999999", set()
    person = Person(browser, house)
    browser.get(house.url + "/")
    person.arrives("/auth/login")
    person.reads("Welcome Back!")
    person.fills("phone", "99999 99999")
    person.presses("Send OTP")
    person.reads("No account found. Create one?")
    assert house.outbox() == []

    person.presses("Create Account")
    person.arrives("/auth/register")
    person.fills("phone", "99999 99999")
    person.presses("Send OTP", "Create Account")
    person.arrives("/auth/verify")
    person.reads("+91 99999 99999")
    person.enters_code(phone, seen)
    person.arrives("/profile-setup")
    person.reads("Welcome!")
    person.reads(phone)
    person.presses("Continue")
    person.reads("You are in.")
    person.reads("phone_otp")

    person.presses("Sign out")
    person.arrives("/auth/logout")
    person.presses("Sign out", "Log out", "Logout")
    wait_for(lambda: "/auth/login" in browser.current_url or "/auth/logout" not in browser.current_url, "to be signed out")
    browser.get(house.url + "/home")
    person.arrives("/auth/login")

    # The timer of the registration's code ended with its success: another may be asked for at once.
    person.fills("phone", "+91 99999-99999")
    person.presses("Send OTP")
    person.arrives("/auth/verify")
    person.enters_code(phone, seen)
    person.arrives("/home")
    person.reads("You are in.")
    assert phone in person.text
    cookie = next(cookie for cookie in browser.get_cookies() if cookie["name"] == "moongate")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax" and cookie["path"] == "/"


def test_a_wrong_code_is_said_and_counted(browser, house):
    phone = "+919999999999"
    house.register(phone)
    seen = {entry["id"] for entry in house.outbox()}
    person = Person(browser, house)
    browser.get(house.url + "/auth/login")
    person.fills("phone", "9999999999")
    person.presses("Send OTP")
    person.arrives("/auth/verify")
    code = wait_for(lambda: next((e["code"] for e in house.outbox() if e["id"] not in seen), None), "a code")
    person.fills("code", "000000" if code != "000000" else "111111")
    if not browser.scripted:
        person.presses("Verify & Continue")
    else:
        for button in browser.find_elements(By.XPATH, "//button[contains(., 'Verify')]"):
            button.click()
    person.reads("Invalid code. Please try again.")
    person.enters_code(phone, seen)
    person.arrives("/home")
