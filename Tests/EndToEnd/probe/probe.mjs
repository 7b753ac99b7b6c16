#!/usr/bin/env node
// Answers every way that a provider can, by what it is sent. The same program stands in probe.py and probe.go.
import {
  Fault, REMOVE, accepted, ask, confirmed, ended, equal, failed, log, malformed, proved, redirect, refused, rejected,
  serve, show, unanswered, wait,
} from "./moongate.mjs";

const what = { name: "what", kind: "text" };
let values;

const probe = {
  identifier: "email",
  submitFields: [what],
  settings: [
    { name: "token", kind: "secret", required: true, help: "A secret." },
    { name: "count", kind: "number", default: 3, minimum: 1, maximum: 9 },
  ],
  outcomes: [
    { reason: "wrong", sentence: "This is wrong." },
    { reason: "again", sentence: "Once more.", counts: false },
  ],
  facts: [{ name: "floor", kind: "number", of: "email", help: "Where they work." }],
  words: { title: "Probe", instruction: "What to do", labels: { what: "What" }, links: { set: "Set it" }, name: "Probe code" },
  role: ["factor"],

  configure(said) {
    if (said.token === "bad") throw new Fault("`token` is not one of the hub's");
    values = said;
  },

  recordVersion: 2,
  upgrade: (record, version) => `${record} of ${version}`,

  begin: (step) => (step.flow === "mistake" ? proved() : ask([what])),

  async submit(step) {
    switch (step.fields.what.split(",")[0]) {
      case "everything":
        return proved({
          identifiers: [{ kind: "email", value: step.identifier.value, attributes: { floor: "3" } }],
          claimed: [{ kind: "email", value: "b@example.com" }],
          firstName: "Asha",
          lastName: "Rao",
          record: `${step.account.record} and ${values.count}`,
        });
      case "rounds":
        if (step.state === undefined) return ask([what], { state: { round: 1 }, show: [show.text("t"), show.secret("s"), show.qr("q"), show.list(["a", "b"])] });
        return refused("again", { then: ask([what], { state: { round: step.state.round + 1 } }) });
      case "tools": {
        const { hash, store } = { hash: await step.tools.hash("a word"), store: step.tools.store };
        const { isRight, renewed } = await step.tools.verify("a word", hash);
        await store.set("key", "value", 60);
        const heard = [hash, isRight, renewed, await store.setOnce("key", "other", 1.5), await store.get("key"), await store.take("key"), await store.take("key")];
        await store.remove("key");
        return proved({ record: JSON.stringify(heard) });
      }
      case "hang":
        await new Promise((done) => step.signal.addEventListener("abort", done));
        log.warning("given up", { call: step.now });
        return proved();
      case "print":
        console.log("not a message");
        process.stdout.write("not a message\n");
        return proved();
      case "crash":
        throw new TypeError("cannot use ninety-nine quiet pigeons");
      case "proved":
        return proved();
      case "wrong":
        return refused("wrong");
      case "undeclared":
        return refused("nobody_knows");
      case "remove":
        return proved({ record: REMOVE });
      case "renew":
        return proved({ renewed: "newer" });
      case "malformed":
        return malformed("what", "Say something.");
      case "redirect":
        return redirect("https://example.com/", { state: [1] });
      case "weak":
        return malformed("what", "Say more.", "weak_pin");
      case "both":
        return proved({ multiFactor: true });
      case "choose":
        return ask([{ name: "which", kind: "choice", choices: [{ value: "a", label: "The first" }, { value: "b", label: "The second" }] }]);
      case "ceremony":
        return ask([{ name: "answer", kind: "json" }], { show: [show.ceremony("get", { challenge: "AA" })] });
      case "wait":
        return wait(2.5, { state: { handle: 1 }, show: [show.text("Look at your phone.")] });
      case "long":
        return ask([what], { state: "x".repeat(140_000) });
      case "equal":
        return equal("é", "é") && !equal("a", "ab") ? proved() : refused("wrong");
    }
  },
};

const codes = {
  identifier: "phone",
  deliveryReasons: [{ reason: "not_there", sentence: "This number is not there.", permanent: true }],
  callbackFields: [],
  maintenanceInterval: 60,
  words: { title: "Probe" },
  async deliver(message) {
    if (message.to.value === "+919999999990") throw new Fault("the hub is down");
    if (message.to.value.startsWith("+91888")) return failed(message.to.value.endsWith("8") ? "not_there" : "nobody_knows");
    log.info("sent", { length: message.text.length + message.domainBoundLine.length });
  },
  async hook(webhook) {
    if (webhook.headers.signature !== "right") return rejected();
    await webhook.tools.store.set("approved", webhook.body.toString("latin1"), 60);
    return accepted("thanks");
  },
  maintain: (tools, now) => tools.store.remove(`old ${now}`),
};

function recheck({ identity, state, now }) {
  if (state === "gone") return ended("invalid_grant");
  if (state === "down") return unanswered("no answer", `new ${now}`);
  return confirmed({ kind: identity.kind, value: identity.value, groups: ["ops"] }, `new ${now}`);
}

if (process.argv.includes("rechecks")) probe.recheck = recheck;
if (process.argv.includes("no-upgrade")) probe.upgrade = undefined;
if (process.argv.includes("no-interval")) probe.maintain = codes.maintain;
serve(import.meta.url, process.argv.includes("codes") ? codes : probe);
