#!/usr/bin/env node
// new_provider: verifies a secret phrase that the account has chosen. The gateway counts the attempts, keeps
// the record sealed, and lends the hashing.
import { REMOVE, ask, malformed, proved, refused, serve, show } from "./moongate.mjs";

const phraseField = { name: "phrase", kind: "password" };

export const provider = serve(import.meta.url, {
  submitFields: [phraseField],
  hashes: true,
  role: ["factor"],
  outcomes: [
    { reason: "wrong_phrase", sentence: "This is not your phrase. Try again." },
    // The others say nothing about a secret, so the attempt is given back.
    { reason: "no_match", sentence: "The two phrases differ. Choose one again.", counts: false },
    { reason: "no_phrase", sentence: "You have not chosen a phrase yet.", counts: false },
    { reason: "already_set", sentence: "You have chosen a phrase already.", counts: false },
  ],
  facts: [{ name: "words", kind: "number", help: "How many words the phrase has." }],
  words: {
    title: "New provider",
    instruction: "Type your secret phrase.",
    labels: { phrase: "Phrase" },
    links: { set: "Choose a secret phrase" },
  },

  begin: (step) => obstacle(step) ?? ask([phraseField]),

  async submit(step) {
    const { phrase } = step.fields;
    if (phrase.length < 12) return malformed("phrase", "A phrase has at least 12 characters.");
    const refusal = obstacle(step);
    if (refusal) return refusal;
    if (step.purpose === "set") return choose(step, phrase);
    // Without an account the same work is done, so that the time does not tell who is registered.
    const { isRight, renewed } = await step.tools.verify(phrase, step.record);
    if (!isRight) return refused("wrong_phrase");
    if (step.purpose === "disable") return proved({ record: REMOVE });
    return proved({ renewed, facts: { words: phrase.trim().split(/\s+/).length } });
  },
});

/** Two rounds: the first keeps a hash of the phrase in the state, which the gateway seals; the second compares with it. */
async function choose(step, phrase) {
  if (step.state === undefined) {
    return ask([phraseField], { state: await step.tools.hash(phrase), show: [show.text("Type the phrase once more.")] });
  }
  const { isRight } = await step.tools.verify(phrase, step.state);
  return isRight ? proved({ record: step.state }) : refused("no_match", { then: ask([phraseField]) });
}

/** Why the step cannot be passed with any input. */
function obstacle(step) {
  const hasPhrase = step.record !== undefined;
  if (step.purpose !== "set") return step.account && !hasPhrase ? refused("no_phrase") : undefined;
  // Attack: a session that was left open chooses another phrase. In a reset something else was proved first.
  return hasPhrase && step.flowPurpose !== "reset" ? refused("already_set") : undefined;
}
