#!/usr/bin/env python3
"""new_provider: verifies a secret phrase that the account has chosen. The gateway counts the attempts, keeps the record sealed, and lends the hashing."""

import moongate
from moongate import REMOVE, Fact, Field, Outcome, Show, Words, ask, malformed, proved, refused

PHRASE = Field("phrase", "password")


class NewProvider(moongate.Provider):
    submit_fields = [PHRASE]
    hashes = True
    role = ["factor"]
    outcomes = [
        Outcome("wrong_phrase", "This is not your phrase. Try again."),
        # The others say nothing about a secret, so the attempt is given back.
        Outcome("no_match", "The two phrases differ. Choose one again.", counts=False),
        Outcome("no_phrase", "You have not chosen a phrase yet.", counts=False),
        Outcome("already_set", "You have chosen a phrase already.", counts=False),
    ]
    facts = [Fact("words", "number", help="How many words the phrase has.")]
    words = Words("New provider", "Type your secret phrase.", {"phrase": "Phrase"}, links={"set": "Choose a secret phrase"})

    def begin(self, step):
        return self.obstacle(step) or ask(PHRASE)

    def submit(self, step):
        phrase = step.fields["phrase"]
        if len(phrase) < 12:
            return malformed("phrase", "A phrase has at least 12 characters.")
        if obstacle := self.obstacle(step):
            return obstacle
        if step.purpose == "set":
            return self.choose(step, phrase)
        # Without an account the same work is done, so that the time does not tell who is registered.
        verdict = step.tools.verify(phrase, step.record)
        if not verdict:
            return refused("wrong_phrase")
        if step.purpose == "disable":
            return proved(record=REMOVE)
        return proved(renewed=verdict.renewed, facts={"words": len(phrase.split())})

    def choose(self, step, phrase):
        """Two rounds: the first keeps a hash of the phrase in the state, which the gateway seals; the second compares with it."""
        if step.state is None:
            return ask(PHRASE, state=step.tools.hash(phrase), show=[Show.text("Type the phrase once more.")])
        if not step.tools.verify(phrase, step.state):
            return refused("no_match", then=ask(PHRASE))
        return proved(record=step.state)

    def obstacle(self, step):
        """Why the step cannot be passed with any input."""
        if step.purpose != "set":
            return refused("no_phrase") if step.account and step.record is None else None
        # Attack: a session that was left open chooses another phrase. In a reset something else was proved first.
        return refused("already_set") if step.record and step.flow_purpose != "reset" else None


if __name__ == "__main__":
    moongate.run(NewProvider())
