#!/usr/bin/env python3
"""Gives every possible answer of a provider, selected by the input. probe.mjs and probe.go are the same program."""

import json
import sys

import moongate
from moongate import (
    REMOVE,
    Choice,
    DeliveryReason,
    Fact,
    Field,
    Identifier,
    Outcome,
    Setting,
    Show,
    Words,
    ask,
    malformed,
    proved,
    redirect,
    refused,
    wait,
)

WHAT = Field("what", "text")


class Probe(moongate.Provider):
    identifier = "email"
    submit_fields = [WHAT]
    settings = [
        Setting("token", "secret", required=True, help="A secret."),
        Setting("count", "number", default=3, minimum=1, maximum=9),
    ]
    outcomes = [Outcome("wrong", "This is wrong."), Outcome("again", "Once more.", counts=False)]
    facts = [Fact("floor", "number", of="email", help="Where they work.")]
    words = Words("Probe", "What to do", {"what": "What"}, links={"set": "Set it"}, name="Probe code")
    role = ["factor"]

    def configure(self, values):
        if values["token"] == "bad":
            raise moongate.Fault("`token` is not one of the hub's")
        super().configure(values)

    record_version = 2

    def upgrade(self, record, version):
        return f"{record} of {version}"

    def begin(self, step):
        return proved() if step.flow == "mistake" else ask(WHAT)

    def submit(self, step):
        what = step.fields["what"]
        if what == "everything":
            return proved(
                Identifier("email", step.identifier.value, attributes={"floor": "3"}),
                claimed=[Identifier("email", "b@example.com")],
                first_name="Asha",
                last_name="Rao",
                record=f"{step.account.record} and {self.values['count']}",
            )
        if what == "rounds":
            if step.state is None:
                return ask(
                    WHAT,
                    state={"round": 1},
                    show=[Show.text("t"), Show.secret("s"), Show.qr("q"), Show.list(["a", "b"])],
                )
            return refused("again", then=ask(WHAT, state={"round": step.state["round"] + 1}))
        if what == "tools":
            store = step.tools.store
            kept = step.tools.hash("a word")
            verdict = step.tools.verify("a word", kept)
            store.set("key", "value", 60)
            heard = [
                kept,
                bool(verdict),
                verdict.renewed,
                store.set_once("key", "other", 1.5),
                store.get("key"),
                store.take("key"),
                store.take("key"),
            ]
            store.remove("key")
            return proved(record=json.dumps(heard))
        if what == "hang":
            step.cancelled.wait()
            moongate.log.warning("given up", call=step.now)
        if what == "print":
            print("not a message")
        if what.startswith("crash"):
            int("ninety-nine quiet pigeons")
        answers = {
            "proved": proved,
            "print": proved,
            "wrong": lambda: refused("wrong"),
            "undeclared": lambda: refused("nobody_knows"),
            "nothing": lambda: None,
            "remove": lambda: proved(record=REMOVE),
            "renew": lambda: proved(renewed="newer"),
            "malformed": lambda: malformed("what", "Say something."),
            "redirect": lambda: redirect("https://example.com/", state=[1]),
            "weak": lambda: malformed("what", "Say more.", reason="weak_pin"),
            "both": lambda: proved(multi_factor=True),
            "choose": lambda: ask(
                Field("which", "choice", choices=[Choice("a", "The first"), Choice("b", "The second")])
            ),
            "ceremony": lambda: ask(Field("answer", "json"), show=[Show.ceremony("get", {"challenge": "AA"})]),
            "wait": lambda: wait(2.5, state={"handle": 1}, show=[Show.text("Look at your phone.")]),
            "long": lambda: ask(WHAT, state="x" * 140_000),
            "equal": lambda: (
                proved() if moongate.equal("é", "é") and not moongate.equal("a", "ab") else refused("wrong")
            ),
        }
        return answers[what.split(",")[0]]()


class Codes(moongate.Provider):
    identifier = "phone"
    delivery_reasons = [DeliveryReason("not_there", "This number is not there.", permanent=True)]
    callback_fields = []
    maintenance_interval = 60
    words = Words("Probe")

    def deliver(self, message):
        if message.to.value == "+919999999990":
            raise moongate.Fault("the hub is down")
        if message.to.value.startswith("+91888"):
            return moongate.failed("not_there" if message.to.value.endswith("8") else "nobody_knows")
        moongate.log.info("sent", length=len(message.text + message.domain_bound_line))

    def hook(self, webhook):
        if webhook.headers.get("signature") != "right":
            return moongate.rejected()
        webhook.tools.store.set("approved", webhook.body.decode("latin-1"), 60)
        return moongate.accepted("thanks")

    def maintain(self, tools, now):
        tools.store.remove(f"old {now}")


def recheck(self, known):
    new = f"new {known.now}"
    if known.state == "gone":
        return moongate.ended("invalid_grant")
    if known.state == "down":
        return moongate.unanswered("no answer", new)
    return moongate.confirmed(Identifier(known.identity.kind, known.identity.value, groups=["ops"]), new)


if __name__ == "__main__":
    if "rechecks" in sys.argv:
        Probe.recheck = recheck
    if "no-upgrade" in sys.argv:
        Probe.upgrade = None
    if "no-interval" in sys.argv:
        Probe.maintain = Codes.maintain
    moongate.run(Codes() if "codes" in sys.argv else Probe())
