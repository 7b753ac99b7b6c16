"""Provider programs for tests."""

import pathlib
import signal

from local_gateway import wait_for

FLOW = """return flow "hub" {
  account = "any",
  steps = { { "sms_hub" } },
  lifetime = "15m",
  session = { lifetime = "12h", idle = "1h" },
  next = { new = "/profile-setup", returning = "/home" },
}
"""

# The common part of all programs; `body` can redefine its functions.
FRAME = '''#!/usr/bin/env python3
import json, os, signal, sys, time

POLICY = """return policy "%s" {
  code = { length = 6, alphabet = "digits", ttl = "10m" },
  timers = { resend_after = { "1s" } },
  limits = {
    send = { on = "send", per = "phone", max = 40, window = "15m" },
    verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
  },
  unknown_account = "reveal",
  message = "{code} is your {service} verification code",
}"""

def introduce(params):
    return {"protocol": 1, "shape": "code", "identifier": "phone", "policy": POLICY % params["name"],
            "settings": [{"name": "sender", "kind": "text", "required": True, "help": "who SMS are from"},
                         {"name": "token", "kind": "secret", "help": "what the hub knows us by"}]}

def configure(params):
    global settings
    settings = params["settings"]
    return {}

def deliver(params):
    with open("sent.txt", "a") as file:
        file.write(" ".join([VERSION, settings["sender"], params["to"]["value"], params["code"]]) + "\\n")
    return {}

VERSION = "one"

def answer(message):
    method = {"hello": introduce, "configure": configure, "deliver": deliver}[message["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": method(message["params"])}), flush=True)

def run():
    with open("pid.txt", "w") as file:
        file.write(str(os.getpid()))
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "shutdown":
            break
        if "id" in message and "method" in message:
            answer(message)

'''


def write(gateway, body="", name="sms_hub.py"):
    """Writes the program atomically, like an editor."""
    file = gateway.config / name
    draft = file.with_name(f".{file.name}")
    draft.write_text(FRAME + body + "\nrun()\n")
    draft.chmod(0o755)
    draft.rename(file)
    return file


def add(gateway, body="", entry='exec { "./sms_hub.py", timeout = "2s", sender = "Ours", token = env "HUB_TOKEN" }'):
    """Adds the provider, and a flow that uses only it, to a gateway that has not started."""
    write(gateway, body)
    (gateway.config / "flows" / "hub.lua").write_text(FLOW)
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace("providers = {", f"providers = {{ sms_hub = {entry},", 1).replace(
            '"0.1% per 30d"', '"1% per 30d"'
        ),
    )


def begin(gateway, flow, phone):
    return gateway.api("POST", f"/flows/{flow}/begin", {"provider": "sms_hub", "phone": phone})


def sent(gateway, phone):
    """The parts of the last line that the program wrote for the number."""
    lines = [line.split() for line in (gateway.config / "sent.txt").read_text().splitlines()]
    return next(line for line in reversed(lines) if line[2] == phone)


def pid(gateway):
    # A restarting program has created the file but may not have written it yet.
    return int(wait_for(lambda: (gateway.config / "pid.txt").read_text(), "its number"))


def lives(number):
    try:
        return ") Z " not in pathlib.Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False


def wait_gone(number, seconds=20):
    wait_for(lambda: not lives(number), f"the end of process {number}", seconds)


KILL = signal.SIGKILL
