"""`moongate check` and `moongate policy test` with programs: the program's test cases and the declarations of a code
program."""

import json
import subprocess

from local_gateway import BIN, ROOT

RECEIPTS = '''#!/usr/bin/env python3
import moongate
from moongate import Words, accepted, rejected


class Receipts(moongate.Provider):
    identifier = "phone"
    words = Words("Receipts")

    def deliver(self, message):
        pass

    def hook(self, webhook):
        return accepted() if moongate.equal(webhook.headers.get("signature", ""), "right") else rejected()


if __name__ == "__main__":
    moongate.run(Receipts())
'''
POLICY = '''return policy "receipts" {
  code = { length = 6, alphabet = "digits", ttl = "10m" },
  limits = {
    send = { on = "send", per = "phone", max = 4, window = "15m" },
    verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
  },
  message = "{code} is your {service} code",
}
'''


def run(gateway, *words):
    return subprocess.run(
        [BIN / "moongate", *words, "--config", gateway.config], capture_output=True, text=True, timeout=120
    )


def configured(gateway, name, program):
    gateway.edit(
        "gateway.lua",
        lambda text: text.replace("providers = {", f'providers = {{\n    {name} = exec {{ "{program}" }},', 1),
    )


def test_a_code_program_may_take_webhooks(new_gateway):
    folder = new_gateway.config / "receipts"
    folder.mkdir()
    (folder / "receipts.py").write_text(RECEIPTS)
    (folder / "receipts.py").chmod(0o755)
    (folder / "policy.lua").write_text(POLICY)
    (folder / "moongate.py").write_text((ROOT / "Sources" / "moongate-provider" / "Templates" / "moongate.py").read_text())
    configured(new_gateway, "receipts", "./receipts/receipts.py")
    told = run(new_gateway, "check")
    assert told.returncode == 0, told.stdout + told.stderr


def test_a_programs_cases_are_played(new_gateway):
    made = subprocess.run(
        [
            BIN / "moongate",
            "provider",
            "new",
            "pigeon_post",
            "--language",
            "python",
            "--shape",
            "full",
            "--into",
            new_gateway.config,
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stderr
    # Under another name: its texts use that name.
    configured(new_gateway, "raven", "./pigeon_post/pigeon_post.py")
    told = run(new_gateway, "policy", "test", "--json")
    cases = {case["name"]: case for case in json.loads(told.stdout)["cases"]}
    own = [
        "only a signed-in user can choose or remove a phrase",
        "an account without a phrase may choose one",
        "a wrong phrase removes nothing",
    ]
    assert told.returncode == 0 and set(own) <= set(cases), told.stdout + told.stderr
    assert run(new_gateway, "check").returncode == 0
    # A failing test case refuses the configuration, with its place in the program's file.
    file = new_gateway.config / "pigeon_post" / "cases.lua"
    right = file.read_text()
    file.write_text(right.replace('status = "refused"', 'status = "complete"'))
    told = run(new_gateway, "check")
    line = right[: right.index('status = "refused"')].count("\n") + 1
    assert told.returncode == 1 and f"pigeon_post.py cases.lua:{line}: " in told.stdout + told.stderr, (
        told.stdout + told.stderr
    )
    # So does an unreadable one. A file of the operator replaces all of them.
    file.write_text(right.replace("return tests {", "return test {"))
    assert run(new_gateway, "check").returncode == 1
    file.write_text(right.replace('status = "refused"', 'status = "complete"'))
    (new_gateway.config / "tests" / "raven.lua").write_text("return tests {}\n")
    assert run(new_gateway, "check").returncode == 0
