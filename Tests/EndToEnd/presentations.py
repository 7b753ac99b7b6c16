"""Provider programs for tests of pages, unknown to Sources/, one or two for each presentation."""

import textwrap

# The frame of a program around the specific functions.
FRAME = '''#!%s
import hashlib, hmac, json, os, sys

%s

for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "shutdown":
        break
    if "id" not in message or "method" not in message:
        continue
    method = {"hello": hello, "configure": lambda params: {}, **globals()}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": method(message["params"])}), flush=True)
'''

# A secret of DIGITS digits, with its flows.
VAULT = '''
POLICY = """return policy "%s" {
  limits = { verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h" } } },
  unknown_account = "conceal",
}"""

def flow(name, purpose):
    return 'return flow "NAME_%s" { purpose = "%s", provider = "NAME", account = "existing", steps = { { "NAME" } } }' % (name, purpose)

RESET = """return flow "NAME_reset" { purpose = "reset", provider = "NAME", account = "existing", steps = { any_of { "email_code", "phone_otp" }, { "NAME" } } }"""

def field(name, required=True):
    return {"name": name, "kind": "digits", "length": DIGITS, "required": required}

def hello(params):
    return {"protocol": 1, "shape": "full", "submit": [field("combination"), field("new_combination", False)],
            "outcomes": [{"reason": "wrong_combination", "sentence": "The vault stays shut."},
                         {"reason": "already_set", "sentence": "There is a combination already.", "counts": False},
                         {"reason": "no_combination", "sentence": "There is no combination.", "counts": False}],
            "presentation": {"kind": "digit_pad", "count": DIGITS, "current": "combination", "new": "new_combination"},
            "role": ["factor"], "flows": {"NAME_" + name: flow(name, name) for name in ("set", "unlock", "change", "disable")}
                     | {"NAME_reset": RESET},
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
    assert set(step["fields"]) == set(asked(step)), "the gateway returns the requested values"
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

# A code that the program delivers by phone or mail. {kind} is the kind of identifier.
COURIER = '''
KIND = "{kind}"
POLICY = """return policy "%s" {{
  code = {{ length = 6, alphabet = "digits", ttl = "10m" }},
  limits = {{
    send = {{ on = "send", per = KIND, max = 40, window = "15m" }},
    verify = {{ on = "verify", per = KIND, max = 5, window = "24h", counts = "failures", lock = {{ "15m", "1h" }} }},
  }},
  message = "{{code}} is your {{service}} verification code",
}}""".replace("KIND", '"' + KIND + '"')

def hello(params):
    return {{"protocol": 1, "shape": "code", "identifier": KIND, "policy": POLICY % params["name"],
            "entrance": {{"kind": "field", "identifier": KIND, "priority": 200}}, "role": ["identifier"],
            "words": {{"title": "Code by " + params["name"], "page": {{"check_" + KIND: "No message yet? Ask the courier."}},
                      "translations": {{"hi": {{"No message yet? Ask the courier.": "अभी तक संदेश नहीं आया? कूरियर से पूछें।"}}}}}}}}

def deliver(params):
    with open("sent-" + KIND + ".txt", "a") as file:
        file.write(json.dumps([params["to"]["value"], params["code"]]) + chr(10))
    return {{}}
'''

# A secret word in a form.
MOTTO = '''
POLICY = """return policy "%s" {
  limits = { verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h" } } },
  unknown_account = "conceal",
}"""
FIELD = {"name": "motto", "kind": "password", "required": True}

def hello(params):
    return {"protocol": 1, "shape": "full", "submit": [FIELD], "presentation": {"kind": "form"}, "role": ["factor"], "policy": POLICY % params["name"],
            "outcomes": [{"reason": "wrong_motto", "sentence": "That is another family's motto."},
                         {"reason": "no_motto", "sentence": "There is no motto.", "counts": False}],
            "flows": {"motto_set": 'return flow "motto_set" { purpose = "set", provider = "motto", account = "existing", steps = { { "motto" } } }'},
            "words": {"title": "Family motto", "instruction": "Say the motto of your family.", "labels": {"motto": "Motto"},
                      "translations": {"hi": {"Family motto": "परिवार का आदर्श वाक्य", "Say the motto of your family.": "अपने परिवार का आदर्श वाक्य लिखें।",
                                              "Motto": "आदर्श वाक्य", "That is another family's motto.": "यह दूसरे परिवार का आदर्श वाक्य है।"}}}}

def kept(text, salt):
    return salt + ":" + hashlib.scrypt(text.encode(), salt=bytes.fromhex(salt), n=1024, r=8, p=1).hex()

def begin(step):
    if step["purpose"] != "set" and not (step.get("account") or {}).get("record"):
        return {"refused": "no_motto"}
    return {"ask": {"fields": [FIELD]}}

def submit(step):
    if step["purpose"] == "set":
        return {"proved": {"record": {"replace": kept(step["fields"]["motto"], os.urandom(16).hex()), "once": True}}}
    record = step["account"]["record"]
    right = hmac.compare_digest(kept(step["fields"]["motto"], record.split(":")[0]), record)
    return {"proved": {}} if right else {"refused": "wrong_motto"}
'''

# Sign-in through another site, which is Orchard below.
ORCHARD = '''
import secrets, urllib.parse

SITE = ""
POLICY = """return policy "%s" { limits = { verify = { on = "verify", per = "flow", max = 5, window = "15m", counts = "failures" } } }"""

def hello(params):
    return {"protocol": 1, "shape": "full", "federated": True, "policy": POLICY % params["name"], "role": ["identifier"],
            "settings": [{"name": "site", "kind": "text", "required": True}],
            "submit": [{"name": name, "kind": "text", "required": False} for name in ("code", "state", "error")],
            "outcomes": [{"reason": "oauth_failed", "sentence": "The orchard does not know you."},
                         {"reason": "oauth_cancelled", "sentence": "You came back from the orchard.", "counts": False}],
            "presentation": {"kind": "external_site", "button": "Continue with Orchard"},
            "entrance": {"kind": "button", "label": "Continue with Orchard", "priority": 50},
            "words": {"title": "Orchard", "name": "Orchard",
                      "translations": {"hi": {"Continue with Orchard": "बाग़ से आगे बढ़ें"}}}}

def configure(params):
    global SITE
    SITE = params["settings"]["site"]
    return {}

def begin(step):
    asked = urllib.parse.urlencode({"address": step["callback"]["address"], "state": step["callback"]["state"]})
    return {"redirect": {"to": SITE + "/orchard?" + asked, "state": step["callback"]["state"]}}

def submit(step):
    fields = step["fields"]
    if not hmac.compare_digest(fields.get("state", ""), step["state"]):
        return {"refused": "oauth_failed"}
    if fields.get("error") == "access_denied":
        return {"refused": "oauth_cancelled"}
    if not fields.get("code", "").startswith("apple-"):
        return {"refused": "oauth_failed"}
    return {"proved": {"identifiers": [{"kind": "federated", "value": "orchard " + fields["code"][6:]}]}}
'''

# A passkey by the browser's credential API. Needs the package `cryptography`.
KEYRING = '''
import base64
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_public_key

POLICY = """return policy "%s" {
  limits = { verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h" } } },
}"""
FIELD = {"name": "answer", "kind": "json", "required": True}

def hello(params):
    return {"protocol": 1, "shape": "full", "submit": [FIELD], "presentation": {"kind": "ceremony", "button": "Turn the key"}, "role": ["factor"],
            "policy": POLICY % params["name"],
            "outcomes": [{"reason": "wrong_key", "sentence": "This key does not turn."}, {"reason": "no_key", "sentence": "There is no key.", "counts": False}],
            "flows": {"keyring_set": 'return flow "keyring_set" { purpose = "set", provider = "keyring", account = "existing", steps = { { "keyring" } } }'},
            "words": {"title": "Key ring", "instruction": "Hold your key against the lock.", "links": {"set": "Add a key"},
                      "translations": {"hi": {"Key ring": "चाबी का छल्ला", "Hold your key against the lock.": "अपनी चाबी ताले से लगाएँ।",
                                              "Turn the key": "चाबी घुमाएँ", "This key does not turn.": "यह चाबी नहीं घूमती।"}}}}

def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

def data(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

def begin(step):
    challenge, account = text(os.urandom(32)), step.get("account") or {}
    if step["purpose"] == "set":
        options = {"challenge": challenge, "rp": {"id": "localhost", "name": "Keys"}, "pubKeyCredParams": [{"type": "public-key", "alg": -7}],
                   "user": {"id": text(account["id"].encode()), "name": "key", "displayName": "key"}}
        call = "create"
    elif account.get("record"):
        call, options = "get", {"challenge": challenge, "rpId": "localhost", "allowCredentials": [
            {"type": "public-key", "id": json.loads(account["record"])["id"]}]}
    else:
        return {"refused": "no_key"}
    return {"ask": {"fields": [FIELD], "state": challenge, "show": [{"kind": "ceremony", "call": call, "options": json.dumps(options)}]}}

def submit(step):
    answer = json.loads(step["fields"]["answer"])
    response = answer["response"]
    said = json.loads(data(response["clientDataJSON"]))
    wanted = "webauthn.create" if step["purpose"] == "set" else "webauthn.get"
    if (said["type"], said["challenge"]) != (wanted, step["state"]):
        return {"refused": "wrong_key"}
    if step["purpose"] == "set":
        return {"proved": {"record": {"replace": json.dumps({"id": answer["id"], "key": response["publicKey"]}), "once": True}}}
    record = json.loads(step["account"]["record"])
    try:
        load_der_public_key(data(record["key"])).verify(
            data(response["signature"]), data(response["authenticatorData"]) + hashlib.sha256(data(response["clientDataJSON"])).digest(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return {"refused": "wrong_key", "then": begin(step)["ask"]}
    return {"proved": {}}
'''


def add(gateway, name, body, python="/usr/bin/env python3"):
    """Writes the program into the configuration folder and adds it to gateway.lua. `python` is its interpreter."""
    folder = gateway.config / name
    folder.mkdir(parents=True)
    program = folder / f"{name}.py"
    program.write_text(FRAME % (python, textwrap.dedent(body)))
    program.chmod(0o755)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace(
            "  providers = {\n", '  providers = {\n    %s = exec { "./%s/%s.py" },\n' % (name, name, name), 1
        ),
    )
