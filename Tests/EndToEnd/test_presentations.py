"""Providers that the gateway's sources have never heard of, each a program in Python: what they declare gives them the pages of the shipped ones, with
nothing changed in Sources/."""

import textwrap

import pytest

from house import House, wait_for
from screens import many

# A program of version 2 of the protocol, around the functions that differ.
FRAME = '''#!/usr/bin/env python3
import hashlib, hmac, json, os, sys

%s

for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "shutdown":
        break
    if "id" not in message or "method" not in message:
        continue
    method = {"hello": hello, "configure": lambda params: {}, "deliver": globals().get("deliver"), "begin": globals().get("begin"),
              "submit": globals().get("submit")}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": method(message["params"])}), flush=True)
'''

# A secret of eight digits, with its flows.
VAULT = '''
POLICY = """return policy "%s" {
  limits = { verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h" } } },
  unknown_account = "conceal",
}"""

def flow(name, purpose):
    return 'return flow "vault_%s" { purpose = "%s", provider = "vault", account = "existing", steps = { { "vault" } } }' % (name, purpose)

def field(name, required=True):
    return {"name": name, "kind": "digits", "length": 8, "required": required}

def hello(params):
    return {"protocol": 2, "shape": "full", "submit": [field("combination"), field("new_combination", False)],
            "outcomes": [{"reason": "wrong_combination", "sentence": "The vault stays shut."},
                         {"reason": "already_set", "sentence": "There is a combination already.", "counts": False},
                         {"reason": "no_combination", "sentence": "There is no combination.", "counts": False}],
            "presentation": {"kind": "digit_pad", "count": 8, "current": "combination", "new": "new_combination"},
            "role": ["factor"], "flows": {"vault_" + name: flow(name, name) for name in ("set", "unlock", "change", "disable")},
            "words": {"title": "Vault", "name": "Vault code", "links": {"set": "Choose a combination"},
                      "page": {"enter_passcode": "Open the vault", "create_a_passcode": "Choose a combination"},
                      "translations": {"hi": {"Open the vault": "तिजोरी खोलें", "Vault code": "तिजोरी कोड"}},
                      "notices": {"set": {"subject": "Vault set", "event": "A vault code was set for your account"}}},
            "policy": POLICY % params["name"]}

def kept(text, salt):
    return salt + ":" + hashlib.scrypt(text.encode(), salt=bytes.fromhex(salt), n=1024, r=8, p=1).hex()

def asked(step):
    return {"prove": ["combination"], "disable": ["combination"], "set": ["new_combination"], "change": ["combination", "new_combination"]}[step["purpose"]]

def obstacle(step):
    record = (step.get("account") or {}).get("record")
    if step["purpose"] == "set":
        return {"refused": "already_set"} if record and step["flow_purpose"] != "reset" else None
    return None if record else {"refused": "no_combination"}

def begin(step):
    return obstacle(step) or {"ask": {"fields": [field(name) for name in asked(step)]}}

def submit(step):
    if obstacle(step):
        return obstacle(step)
    assert set(step["fields"]) == set(asked(step)), "the gateway hands over what was asked for"
    if step["purpose"] != "set":
        record = step["account"]["record"]
        if not hmac.compare_digest(kept(step["fields"]["combination"], record.split(":")[0]), record):
            return {"refused": "wrong_combination"}
    if step["purpose"] == "prove":
        return {"proved": {}}
    if step["purpose"] == "disable":
        return {"proved": {"record": {}}}
    return {"proved": {"record": {"replace": kept(step["fields"]["new_combination"], os.urandom(16).hex()), "once": True}}}
'''

# A code by a messenger, in the place of the field for numbers.
MESSENGER = '''
POLICY = """return policy "%s" {
  code = { length = 6, alphabet = "digits", ttl = "10m" },
  timers = { resend_after = { "60s" } },
  limits = {
    send = { on = "send", per = "phone", max = 40, window = "15m" },
    verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h" } },
  },
  unknown_account = "reveal",
  message = "{code} is your {service} verification code",
}"""

def hello(params):
    return {"protocol": 2, "shape": "code", "identifier": "phone", "policy": POLICY % params["name"],
            "entrance": {"kind": "field", "identifier": "phone", "priority": 200}, "role": ["identifier"],
            "words": {"title": "Code by messenger", "page": {"check_phone": "No message yet? Look into the messenger."},
                      "translations": {"hi": {"No message yet? Look into the messenger.": "अभी तक संदेश नहीं आया? मैसेंजर देखें।"}}}}

def deliver(params):
    with open("sent.txt", "a") as file:
        file.write(params["to"]["value"] + " " + params["code"] + "\\\\n")
    return {}
'''


def add(house, name, body):
    folder = house.config / name
    folder.mkdir(parents=True)
    program = folder / f"{name}.py"
    program.write_text(FRAME % textwrap.dedent(body).replace("\\\\n", "\\n"))
    program.chmod(0o755)
    house.edit("gateway.lua", lambda text: text.replace("  providers = {\n", '  providers = {\n    %s = exec { "./%s/%s.py" },\n' % (name, name, name), 1))
    (house.config / "policies" / f"{name}.lua").write_text('return policy "%s" {}\n' % name)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("house"))
    house.edit("gateway.lua", lambda text: text.replace('"0.1% per 30d"', '"1% per 30d"'))
    house.edit("policies/phone_otp.lua", many)
    add(house, "vault", VAULT)
    add(house, "messenger", MESSENGER)
    house.edit("flows/login.lua", lambda text: text.replace('any_of { "phone_otp"', 'any_of { "messenger", "phone_otp"'))
    house.edit("flows/enter.lua", lambda text: text.replace('any_of { "phone_otp"', 'any_of { "messenger", "phone_otp"'))
    house.edit("routes.lua", lambda text: text.replace(
        "  -- Everything else", '  { path = "/vault/**", to = "http://127.0.0.1:%s", flow = "vault_unlock", require = { passed = "vault" } },\n  -- Everything else' % house.ports[2]))
    yield house.start()
    house.stop()


def sent(house, phone):
    file = house.config / "sent.txt"
    return wait_for(lambda: file.exists() and next((line.split()[1] for line in reversed(file.read_text().splitlines()) if line.startswith(phone)), None), "a code")


def heading(screen):
    return screen.js("return [...document.querySelectorAll('.stage')].find(stage => !stage.hidden).querySelector('label').textContent")


def test_a_strangers_secret_of_digits_gets_the_pad(screen, number):
    screen.belongs_to(number)
    # The account page offers it in its own words, like a passcode.
    screen.opens("/auth/account").reads("Vault code", "Choose a combination").presses("Choose a combination").at("/auth/step/vault")
    assert len(screen.all(".pad button")) == 11 and len(screen.all(".stage:not([hidden]) .dot")) == 8
    screen.is_sound("the pad")
    screen.keys("48291573").reads("Confirm passcode")
    screen.keys("59302615").reads("Passcodes don't match. Try again.")
    screen.waits(lambda: heading(screen) == "Choose a combination", "the first step")
    screen.keys("48291573").reads("Confirm passcode").keys("48291573").at("/auth/account").reads("Passcode saved.")
    # A route that asks for it leads to its pad, and back.
    screen.opens("/vault/gold").at("/auth/step/vault").reads("Open the vault").presses("हिन्दी").reads("तिजोरी खोलें").presses("English").reads("Open the vault")
    screen.keys("11111111").reads("The vault stays shut. 4 tries left.")
    screen.keys("48291573").waits(lambda: screen.path == "/vault/gold", "the route behind it")
    # Turning it off takes it once more.
    screen.opens("/auth/account").reads("Vault code")
    screen.opens("/auth/step/vault?flow=vault_disable&return_to=%2Fauth%2Faccount%3Fdone%3Dvault_disable").keys("48291573").at("/auth/account").reads("Passcode turned off.")


def test_a_strangers_code_takes_the_field_and_the_boxes(screen, number):
    # It has the field by its priority; the shipped one is a link.
    screen.opens("/auth/login?flow=enter").reads("Mobile Number", "Use Code by SMS").fills("phone", number).presses("Send OTP").at("/auth/step/messenger")
    screen.reads("Verify Phone Number", "We've sent a 6-digit code to", "Look into the messenger.", "Resend code in").is_sound("the boxes")
    screen.presses("हिन्दी").reads("मैसेंजर देखें").presses("English")
    code = sent(screen.house, number)
    screen.enters("000000" if code != "000000" else "111111").reads("4 tries left.")
    screen.enters(code).waits(lambda: not screen.path.startswith("/auth/"), "the end")
    session = screen.house.api("GET", "/session", cookies={"moongate": screen.driver.get_cookie("moongate")["value"]}).json()
    assert session["account"]["phone"] == number and [step["provider"] for step in session["session"]["passed"]] == ["messenger"]
