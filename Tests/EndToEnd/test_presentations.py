"""The pages of presentations: one suite for all providers that declare them, both the included ones and programs
unknown to Sources/. Here: code boxes and digit pads; test_presentations_steps.py covers the others."""

import dataclasses
import json
import re

import pytest
import screens

from chat_server import ChatServer
from local_gateway import ROOT, LocalGateway, wait_for
from presentations import COURIER, VAULT, add
from screens import Screen, wrong


@dataclasses.dataclass(frozen=True)
class Boxes:
    """A code provider for the tests."""

    name: str
    kind: str
    page: str
    # The page's hint about missing messages, in English and Hindi.
    hint: tuple
    is_program: bool = False
    # Whether the sign-in pages have a field for it. Otherwise it asks for the identifier on its own page.
    has_field: bool = True

    def sent(self, gateway, to):
        """The codes that were sent to the address, oldest first."""
        if self.name == "chat_code":
            return [
                re.match(r"\d+", post["message"]).group()
                for post in gateway.chat.posts
                if post["channel_id"].endswith("-u-" + to)
            ]
        if not self.is_program:
            return [entry["code"] for entry in reversed(gateway.outbox()) if entry["to"] == to and entry["code"]]
        file = gateway.config / f"sent-{self.kind}.txt"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [code for address, code in lines if address == to]

    def asks_code(self, screen, to, flow=None):
        """From the sign-in page to the page with the boxes. Returns the sent code."""
        before = len(self.sent(screen.gateway, to))
        if self.name == "chat_code":
            screen.gateway.chat.has(to)
        screen.opens(f"/auth/login?flow={flow or 'only_' + self.name}").fills(
            self.kind if self.has_field else f'"field.{self.kind}"', to
        )
        screen.waits(lambda: screen.find("button.main").is_enabled(), "an identifier that can be sent")
        screen.find("button.main").click()
        screen.at(self.page)
        return wait_for(lambda: self.sent(screen.gateway, to)[before:], "a code")[-1]


@dataclasses.dataclass(frozen=True)
class Pad:
    """A provider of a digit secret for the tests."""

    name: str
    digits: int
    page: str
    route: str
    # The texts of its page: the heading of the lock, the first step of `set`, and the refusal of a wrong secret.
    lock: str
    create: str
    wrong: str
    # The message on the account page after it was set.
    done: str

    @property
    def secret(self):
        return "48291573"[: self.digits]

    @property
    def other(self):
        return "59302615"[: self.digits]

    def flow(self, purpose, then=""):
        return f"{self.page}?flow={self.name}_{purpose}&return_to={then or '%2Fauth%2Faccount'}"

    def is_set(self, screen):
        screen.opens(self.flow("set")).keys(self.secret).waits(
            lambda: heading(screen).startswith("Confirm"), "the second step"
        )
        screen.keys(self.secret).at("/auth/account")


BOXES = [
    Boxes("phone_otp", "phone", "/auth/verify", ("Check your blocked messages and spam", "")),
    Boxes("email_code", "email", "/auth/email", ("Check your spam folder", "")),
    Boxes("messenger", "phone", "/auth/step/messenger", ("Ask the courier.", "कूरियर से पूछें"), is_program=True),
    Boxes("letter", "email", "/auth/step/letter", ("Ask the courier.", "कूरियर से पूछें"), is_program=True),
    Boxes(
        "chat_code",
        "email",
        "/auth/step/chat_code",
        ("Look for the bot in your chat.", "चैट में बॉट को देखें"),
        is_program=True,
        has_field=False,
    ),
]
PADS = [
    Pad(
        "pin",
        6,
        "/auth/pin",
        "/pin/gold",
        "Enter Passcode",
        "Create a passcode",
        "Incorrect passcode.",
        "Passcode saved.",
    ),
    Pad(
        "vault",
        8,
        "/auth/step/vault",
        "/vault/gold",
        "Open the vault",
        "Choose a combination",
        "The vault stays shut.",
        "Vault is set up.",
    ),
    Pad(
        "locker",
        6,
        "/auth/step/locker",
        "/locker/gold",
        "Open the vault",
        "Choose a combination",
        "The vault stays shut.",
        "Vault is set up.",
    ),
]
every_box = pytest.mark.parametrize("boxes", BOXES, ids=lambda boxes: boxes.name)
every_pad = pytest.mark.parametrize("pad", PADS, ids=lambda pad: pad.name)


def policy(gateway, boxes):
    """The same limits for every provider: a resend after two seconds, a lock of four seconds after three wrong
    codes."""
    (gateway.config / "policies" / f"{boxes.name}.lua").write_text(f'''return policy "{boxes.name}" {{
      timers = {{ resend_after = {{ "2s", "120s" }} }},
      limits = {{
        send = {{ on = "send", per = "{boxes.kind}", max = 40, window = "15m" }},
        verify = {{ on = "verify", per = "{boxes.kind}", max = 3, window = "24h", counts = "failures", lock = {{ "4s", "2h" }} }},
      }},
      unknown_account = "reveal",
    }}''')
    (gateway.config / "flows" / f"only_{boxes.name}.lua").write_text(
        f'return flow "only_{boxes.name}" {{ account = "any", steps = {{ {{ "{boxes.name}" }} }}, next = {{ new = "/home", returning = "/home" }} }}'
    )


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    gateway = LocalGateway(tmp_path_factory.mktemp("gateway"))
    gateway.edit("gateway.lua", lambda text: re.sub(r"risk_budget.*\n", "\n", text))
    gateway.chat = ChatServer()
    for pad in PADS[1:]:
        add(gateway, pad.name, VAULT.replace("NAME", pad.name).replace("DIGITS", str(pad.digits)))
    for name, body in {"messenger": COURIER.format(kind="phone"), "letter": COURIER.format(kind="email")}.items():
        add(gateway, name, body)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "  providers = {\n",
            '  providers = {\n    chat_code = exec { "%s", url = "%s", token = env "CHAT_TOKEN" },\n'
            % (ROOT / "Plugins/ChatCode/chat_code.py", gateway.chat.url),
            1,
        ),
    )
    for boxes in BOXES:
        policy(gateway, boxes)
    for pad in PADS:
        (gateway.config / "policies" / f"{pad.name}.lua").write_text(f'''return policy "{pad.name}" {{
          limits = {{ verify = {{ on = "verify", per = "account", max = 3, window = "24h", counts = "failures", lock = {{ "4s", "2h" }} }} }},
        }}''')
    routes = "".join(
        '  { path = "/%s/**", to = "http://127.0.0.1:%s", flow = "%s_unlock", require = { passed = "%s" } },\n'
        % (pad.name, gateway.ports[2], pad.name, pad.name)
        for pad in PADS
    )
    gateway.edit("routes.lua", lambda text: text.replace("  -- Everything else", routes + "  -- Everything else"))
    # The programs have the highest priority, so the shared sign-in page shows their fields.
    for flow in ("login", "enter"):
        gateway.edit(
            f"flows/{flow}.lua", lambda text: text.replace('any_of { "phone_otp"', 'any_of { "messenger", "phone_otp"')
        )
    yield gateway.start(CHAT_TOKEN=ChatServer.TOKEN)
    gateway.stop()
    gateway.chat.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A browser without scripts."""
    driver = screens.start(tmp_path_factory.mktemp("chromium"), scripts=False)
    yield driver
    driver.quit()


def heading(screen):
    return screen.js(
        "return [...document.querySelectorAll('.stage')].find(stage => !stage.hidden).querySelector('label').textContent"
    )


def dots(screen, which=""):
    return len(screen.all(f".stage:not([hidden]) .dot{which}"))


def typed(screen):
    return screen.js("return [...document.querySelectorAll('.box')].map(box => box.textContent).join('')")


def address(boxes, number):
    return number if boxes.kind == "phone" else f"asha{number[-5:]}.{boxes.name}@example.org".replace("_", "")


def passed(screen):
    answer = screen.gateway.api(
        "GET", "/session", cookies={"moongate": screen.driver.get_cookie("moongate")["value"]}
    ).json()
    return [step["provider"] for step in answer["session"]["passed"]]


# Codes.


@every_box
def test_texts_of_a_code_page(screen, number, boxes):
    to = address(boxes, number)
    boxes.asks_code(screen, to)
    shown = f"+91 {to[3:8]} {to[8:]}" if boxes.kind == "phone" else to
    screen.reads(
        "We've sent a 6-digit code to",
        shown,
        "Edit",
        "Resend",
        "Verify & Continue",
        "Didn't receive code?",
        boxes.hint[0],
    )
    field = screen.driver.switch_to.active_element
    assert field.get_attribute("id") == "code", "focused on arrival"
    assert (field.get_attribute("autocomplete"), field.get_attribute("inputmode")) == ("one-time-code", "numeric")
    assert field.accessible_name == "Enter verification code, 6 digits" and len(screen.all(".box")) == 6
    screen.is_sound("the boxes")
    screen.presses("हिन्दी").reads("सत्यापित करें और आगे बढ़ें").is_sound("the boxes in Hindi")
    if boxes.is_program:
        screen.reads(boxes.hint[1])


@every_box
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_look_of_the_boxes(screen, number, boxes, dark):
    screen.looks(dark=dark)
    boxes.asks_code(screen, address(boxes, number))
    look = screen.js("""const box = document.querySelectorAll('.box')[3], style = getComputedStyle(box), button = document.querySelector('button.main');
      return [box.offsetHeight, style.borderRadius, style.borderWidth, button.offsetHeight, getComputedStyle(document.body).backgroundColor]""")
    assert look == [56, "12px", "2px", 52, "rgb(30, 30, 30)" if dark else "rgb(255, 255, 255)"], look
    screen.is_sound("the boxes")


@every_box
def test_a_wrong_code_then_a_pasted_one(screen, number, boxes):
    code = boxes.asks_code(screen, address(boxes, number))
    screen.types("a" + wrong(code)[0] + "-")
    assert typed(screen) == wrong(code)[0], "digits only"
    screen.types(wrong(code)[1:]).reads("Invalid code. Please try again. 2 tries left.")
    screen.waits(
        lambda: typed(screen) == "" and screen.driver.switch_to.active_element.get_attribute("id") == "code",
        "empty boxes and the focus",
    )
    # It is submitted automatically.
    screen.pastes("#code", f"Your code is {code[:3]} {code[3:]}.").at("/home")
    assert passed(screen) == [boxes.name]


@every_box
def test_another_code_after_the_countdown(screen, number, boxes):
    to = address(boxes, number)
    first = boxes.asks_code(screen, to)
    screen.listens()
    screen.matches(r"Resend code in 00:0[12]").reads("Didn't receive code?")
    screen.presses("Resend now").reads("Code sent!").hears("New code sent.").matches(r"Resend code in (02:00|01:5\d)")
    second = wait_for(lambda: boxes.sent(screen.gateway, to)[1:], "another code")[0]
    if first != second:
        screen.enters(first).reads("Invalid code. Please try again.")
        screen.waits(lambda: not screen.all(".problem"), "the sentence to go", 5)
    screen.enters(second).at("/home")


@every_box
def test_a_code_that_arrives_before_the_answer_stays_in_the_boxes(screen, number, boxes):
    to = address(boxes, number)
    boxes.asks_code(screen, to)
    screen.matches(r"Resend code in 00:0[12]").reads("Didn't receive code?")
    screen.slow(700).presses("Resend now")
    second = wait_for(lambda: boxes.sent(screen.gateway, to)[1:], "another code")[0]
    screen.enters(second[:-1]).reads("Code sent!").slow(0)
    screen.types(second[-1]).at("/home")


@every_box
def test_a_lock_of_codes_counts_down_and_ends(screen, number, boxes):
    to = address(boxes, number)
    code = boxes.asks_code(screen, to)
    screen.types(wrong(code)).reads("2 tries left.").types(wrong(code)).reads("1 try left.").types(wrong(code))
    screen.reads("Too many attempts.").matches(r"Try again in 00:0[1-4]")
    assert not screen.find("#code").is_enabled() and not screen.find("button.main").is_enabled()
    screen.is_sound("locked")
    screen.waits(lambda: screen.all("[data-slot=timer] button"), "the end of the lock")
    screen.presses("Resend now")
    fresh = wait_for(lambda: boxes.sent(screen.gateway, to)[1:], "another code")[0]
    screen.waits(lambda: screen.find("#code").is_enabled(), "the boxes")
    screen.enters(fresh).at("/home")


@every_box
def test_a_code_without_scripts(plain, shipped, number, boxes):
    screen = Screen(plain, shipped).forget()
    code = boxes.asks_code(screen, address(boxes, number))
    screen.enters(wrong(code)).reads("Invalid code. Please try again. 2 tries left.").is_sound("wrong, without scripts")
    screen.enters(code).at("/home")


def test_the_field_belongs_to_the_provider_of_the_highest_priority(screen, number):
    screen.opens("/auth/login?flow=enter").reads("Mobile Number", "Use Code by SMS")
    BOXES[2].asks_code(screen, number, flow="enter")


# Digit secrets.


@every_pad
def test_a_secret_is_chosen_twice(screen, number, pad):
    screen.belongs_to(number).opens(pad.flow("set")).waits(lambda: heading(screen) == pad.create, "the first step")
    assert len(screen.all(".pad button")) == 11 and dots(screen) == pad.digits
    screen.is_sound("the pad")
    screen.keys(pad.secret[:2]).waits(lambda: dots(screen, ".filled") == 2, "two dots")
    screen.all(".pad > *")[11].click()
    screen.types(pad.secret[1:]).waits(lambda: heading(screen) == "Confirm passcode", "the second step")
    assert pad.secret not in screen.text
    screen.keys(pad.other).reads("Passcodes don't match. Try again.").waits(
        lambda: heading(screen) == pad.create, "the first step"
    )
    screen.keys(pad.secret).waits(lambda: heading(screen) == "Confirm passcode", "the second step")
    screen.keys(pad.secret).at("/auth/account").opens(f"/auth/account?done={pad.name}_set").reads(pad.done)


@every_pad
def test_a_route_asks_for_the_secret(screen, number, pad):
    pad.is_set(screen.belongs_to(number))
    screen.opens(pad.route).at(pad.page).reads(pad.lock).is_sound("the lock")
    screen.presses("हिन्दी").waits(lambda: pad.lock not in screen.text, "Hindi")
    screen.presses("English").reads(pad.lock)
    screen.keys(pad.other).reads(f"{pad.wrong} 2 tries left.")
    screen.keys(pad.secret).waits(lambda: screen.path == pad.route, "the route behind it")


@every_pad
def test_a_lock_of_the_pad_counts_down_and_ends(screen, number, pad):
    pad.is_set(screen.belongs_to(number))
    screen.opens(pad.route).at(pad.page)
    screen.keys(pad.other).reads("2 tries left.").keys(pad.other).reads("1 try left.").keys(pad.other).matches(
        r"Try again in 00:0[1-4]"
    )
    assert not screen.find(".pad button").is_enabled()
    screen.is_sound("locked")
    screen.waits(lambda: screen.find(".pad button").is_enabled(), "the end of the lock")
    screen.keys(pad.secret).waits(lambda: screen.path == pad.route, "the route behind it")


@every_pad
def test_a_secret_is_changed_and_turned_off(screen, number, pad):
    pad.is_set(screen.belongs_to(number))
    screen.opens(pad.flow("change")).keys(pad.secret).waits(
        lambda: dots(screen, ".filled") == 0 and "new" in heading(screen).lower(), "the new one"
    )
    screen.keys(pad.other).waits(lambda: heading(screen).startswith("Confirm"), "its repetition")
    screen.keys(pad.other).at("/auth/account")
    screen.opens(pad.flow("disable")).keys(pad.secret).reads(f"{pad.wrong} 2 tries left.").keys(pad.other).at(
        "/auth/account"
    )
    # There is none any more, so it can be set again.
    screen.opens(pad.flow("set")).waits(lambda: heading(screen) == pad.create, "the first step")


@every_pad
def test_a_forgotten_secret_is_replaced(screen, number, pad):
    pad.is_set(screen.belongs_to(number))
    screen.opens(f"{pad.page}?flow={pad.name}_unlock&return_to=%2Fhome").presses("Forgot Passcode?").reads(
        "Send Reset Code"
    ).is_sound("forgotten")
    before = len(BOXES[0].sent(screen.gateway, number))
    screen.presses("Send Reset Code", "dialog[open]").waits(
        lambda: "Enter reset code from SMS" in screen.text, "the code step"
    )
    screen.settles()
    code = wait_for(lambda: BOXES[0].sent(screen.gateway, number)[before:], "a code")[-1]
    screen.keys(code).waits(lambda: heading(screen) == "Enter new passcode", "the new one")
    screen.keys(pad.other).waits(lambda: heading(screen).startswith("Confirm"), "its repetition")
    screen.keys(pad.other).at("/home").opens(pad.route).keys(pad.other).waits(
        lambda: screen.path == pad.route, "the route behind it"
    )


@every_pad
def test_the_pad_without_scripts(plain, shipped, number, pad):
    screen = Screen(plain, shipped).forget().belongs_to(number)
    screen.opens(pad.flow("set"))
    for field in screen.all("main input[type=password]"):
        field.send_keys(pad.secret)
    screen.find("main form button.main, main form button[type=submit]").click()
    screen.at("/auth/account").is_sound("the account, without scripts")
