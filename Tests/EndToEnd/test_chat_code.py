"""Codes by company chat: a provider program in Python (Plugins/ChatCode)."""

import json
import re
import subprocess
import time

import pytest
from chat_server import ChatServer
from local_gateway import BIN, ROOT, LocalGateway, wait_for, wrong
from screens import Screen

PROGRAM = ROOT / "Plugins" / "ChatCode" / "chat_code.py"


@pytest.fixture
def chat():
    chat = ChatServer()
    chat.has("asha@example.com")
    yield chat
    chat.stop()


class Spoken:
    """The program alone, with the gateway's side played by the test."""

    def __init__(self, chat, **settings):
        self.process = subprocess.Popen([str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.next = 0
        self.introduction = self.call("hello", {"protocols": [1], "name": "work_chat"})["result"]
        self.configured = self.call(
            "configure", {"settings": {"url": chat.url, "token": chat.TOKEN, "patience": 3, **settings}}
        )

    def send(self, method, params):
        self.next += 1
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}) + "\n"
        )
        self.process.stdin.flush()
        return self.next

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def call(self, method, params):
        number = self.send(method, params)
        answer = self.hear()
        assert answer["id"] == number
        return answer

    def deliver(self, email, code="123456"):
        return {
            "code": code,
            "text": f"{code} is your code",
            "domain_bound_line": "",
            "service": "Moongate",
            "now": 0,
            "to": {"kind": "email", "value": email, "display": email},
        }

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


@pytest.fixture
def spoken(chat):
    spoken = Spoken(chat)
    yield spoken
    spoken.close()


def test_introduction(spoken):
    assert spoken.introduction["shape"] == "code" and spoken.introduction["identifier"] == "email"
    assert 'policy "work_chat"' in spoken.introduction["policy"], "gateway.lua may use another name"
    assert spoken.configured["result"] == {}


def test_a_code_goes_to_the_person(spoken, chat):
    assert spoken.call("deliver", spoken.deliver("asha@example.com"))["result"] == {}
    assert chat.posts == [{"channel_id": "dm-bot-u-asha@example.com", "message": "123456 is your code"}]


@pytest.mark.parametrize(
    "email, person",
    [
        ("nobody@example.com", None),
        ("claims@example.com", {"verified": False}),
        ("gone@example.com", {"left": 1}),
        ("a/../../posts?x=1#@example.com", None),
    ],
)
def test_message_reaches_only_the_recipient(spoken, chat, email, person):
    if person:
        chat.has(email, **person)
    told = spoken.call("deliver", spoken.deliver(email))["error"]["message"]
    assert chat.posts == []
    assert email not in told and "123456" not in told


def test_a_redirect_takes_the_token_nowhere(spoken, chat):
    chat.redirect = chat.url + "/stolen"
    assert "302" in spoken.call("deliver", spoken.deliver("asha@example.com"))["error"]["message"]
    assert chat.stolen == []


def test_hanging_chat_times_out_and_delays_no_other_request(chat):
    spoken = Spoken(chat, patience=0.5)
    chat.delay = 30
    begun = time.monotonic()
    numbers = [spoken.send("deliver", spoken.deliver("asha@example.com")) for _ in range(20)]
    answers = [spoken.hear() for _ in numbers]
    assert {answer["id"] for answer in answers} == set(numbers)
    assert all("did not answer" in answer["error"]["message"] for answer in answers)
    assert time.monotonic() - begun < 10
    spoken.close()


def test_codes_do_not_travel_unencrypted(chat):
    spoken = Spoken(chat, url="http://chat.example.com")
    assert "https://" in spoken.configured["error"]["message"]
    spoken.close()


@pytest.fixture
def office(tmp_path, chat):
    """A gateway with sign-in by chat."""
    gateway = LocalGateway(tmp_path)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "providers = {\n",
            f'providers = {{\n    chat_code = exec {{ "{PROGRAM}", url = "{chat.url}", token = env "CHAT_TOKEN", patience = 1 }},\n',
            1,
        ),
    )
    (gateway.config / "policies" / "chat_code.lua").write_text('return policy "chat_code" { code = { length = 8 } }\n')
    gateway.edit(
        "flows/login.lua", lambda text: text.replace('any_of { "phone_otp",', 'any_of { "phone_otp", "chat_code",')
    )
    (gateway.config / "flows" / "office.lua").write_text(
        'return flow "office" { account = "any", steps = { { "chat_code" } } }\n'
    )
    yield gateway.start(CHAT_TOKEN=chat.TOKEN)
    gateway.stop()


def code_of(chat):
    return re.match(r"(\d{8}) is your Moongate code", chat.posts[-1]["message"]).group(1)


def test_a_person_signs_in_by_the_chat(office, chat):
    flow = office.flow("office")
    begun = office.api("POST", f"/flows/{flow}/begin", {"provider": "chat_code", "email": "Asha@Example.com"})
    assert begun.status_code == 200, begun.text
    assert begun.json()["step"]["sent_to"] == "asha@example.com"
    code = wait_for(lambda: chat.posts and code_of(chat), "the message")
    assert office.submit(flow, wrong(code)).status_code == 401
    done = office.submit(flow, code).json()
    assert done["status"] == "complete" and done["account"]["is_email_verified"]
    for secret in (chat.TOKEN, code, "asha@example.com"):
        assert secret not in office.log


def test_in_a_browser(office, chat, driver):
    screen = Screen(driver, office).forget()
    screen.opens("/auth/login").reads("Use Code by chat")
    screen.opens("/auth/login?flow=office").at("/auth/step").reads(
        "Code by chat", "We will send you a code in the company's chat.", "Work email"
    )
    screen.is_sound("the address")
    # In the program's translation, keeping the input.
    screen.fills('"field.email"', "asha@").presses("हिन्दी").reads(
        "चैट से कोड", "हम आपको कंपनी के चैट में एक कोड भेजेंगे।", "कार्यालय का ईमेल"
    )
    assert (
        screen.find('[name="field.email"]').get_attribute("value") == "asha@"
        and "asha" not in screen.driver.current_url
    )
    screen.presses("English").reads("Code by chat")
    screen.fills('"field.email"', "asha@example.com").presses("Continue").reads(
        "We've sent an 8-digit code to", "asha@example.com", "Resend code in"
    )
    code = wait_for(lambda: chat.posts and code_of(chat), "the message")
    # The page of every code provider: boxes, with the program's texts in place of those about mail.
    screen.at("/auth/step/chat_code").reads("Code by chat", "Enter verification code, 8 digits").is_sound("the code")
    # The hint about missing messages is shown after the timer.
    assert "Look for the bot in your chat." in screen.driver.page_source
    screen.presses("हिन्दी").reads("चैट से कोड")
    assert "चैट में बॉट को देखें" in screen.driver.page_source
    screen.presses("English").reads("Code by chat")
    screen.enters(wrong(code)).reads("Invalid code. Please try again. 4 tries left.")
    screen.enters(code).reads("The gateway proved that you are asha@example.com.")


def test_the_conformance_suite(tmp_path):
    """The suite plays the chat server as described in the subject, so that it observes messages and can fail or
    delay them."""
    told = subprocess.run(
        [str(BIN / "moongate"), "provider", "test", str(PROGRAM)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert told.returncode == 0 and "10 held, 0 broken" in told.stdout, told.stdout + told.stderr
    for rule in ("delivery", "begin_twice", "faults", "secrets", "cancellation", "cleanup"):
        assert f"✓ {rule} " in told.stdout, told.stdout
    assert not list(tmp_path.iterdir())
