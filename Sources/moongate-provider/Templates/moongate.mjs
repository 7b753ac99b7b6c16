// moongate: write a provider for the Moongate gateway as a Node program. One file, Node 18, standard library
// only.
//
// Declare a provider and serve it:
//
//     import { ask, equal, proved, refused, serve } from "./moongate.mjs";
//
//     export const word = serve(import.meta.url, {
//       submitFields: [{ name: "word", kind: "password" }],
//       outcomes: [{ reason: "wrong_word", sentence: "This is not the word." }],
//       words: { title: "Word", instruction: "Say the word.", labels: { word: "Word" } },
//       begin: () => ask([{ name: "word", kind: "password" }]),
//       submit: (step) => (equal(step.fields.word, "pigeon") ? proved() : refused("wrong_word")),
//     });
//
// Its fields: settings, identifier, beginFields, submitFields, outcomes, deliveryReasons, callbackFields,
// facts, hashes, multiFactor, federated, words, presentation, entrance, page, role, recordVersion,
// maintenanceInterval.
// Its functions: configure(values), deliver(message), begin(step), submit(step), hook(webhook),
// upgrade(record, version), maintain(tools, now), recheck({ identity, state, now, tools }).
//
// A provider with `deliver` sends codes that the gateway makes and compares. A provider with `begin` and
// `submit` verifies by itself. Calls run side by side: store short-lived data in `state` and lasting
// data in `record`, never in the provider. `policy.lua`, `flows/*.lua`, `cases.lua` and `words/*.words` beside the
// program belong to the provider. Standard output belongs to the protocol, so `console.log` writes to
// standard error, which the gateway logs.
//
// The protocol and every field: Documentation/plugins/programs.md of Moongate.

import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The maximum length of a message with its line end, in bytes. The gateway ends a program that writes more. */
const LONGEST_LINE = 131_072;

/**
 * Something outside failed, such as your message hub. The user gets 503 and is not charged; the text goes
 * to the operator's log. In `configure` it refuses the configuration, and the text is shown to the operator.
 * Never put a code or a secret into it.
 */
export class Fault extends Error {}

// The answers of a provider.

/** The answer of a provider's function. Create it with ask, redirect, wait, refused, malformed and proved; failed; accepted and rejected. */
export class Answer {
  constructor(result) {
    this.result = result;
  }

  /** The state for the next call, for tests. */
  get state() {
    const { state } = Object.values(this.result)[0];
    return state && JSON.parse(state);
  }
}

/** As the `record` of `proved`: the account's record is removed. */
export const REMOVE = Symbol("remove the record");

/** Content that the page shows beside the fields. */
export const show = {
  text: (text) => ({ kind: "text", text }),
  /** A text that the user copies, such as a key. */
  secret: (text) => ({ kind: "secret", text }),
  /** A text that the page shows as a QR code. */
  qr: (text) => ({ kind: "qr", text }),
  /** Lines that the user keeps, such as recovery codes. */
  list: (items) => ({ kind: "list", items }),
  /** A call of the browser's credential API: `create` or `get`. Ask for one field of kind json beside it. */
  ceremony: (call, options) => ({ kind: "ceremony", call, options: JSON.stringify(options) }),
};

const kept = (state) => (state === undefined ? undefined : JSON.stringify(state));

/**
 * Asks for these fields. `state`, any JSON value, is part of the next call. After a `submit`, an `ask` refunds
 * the attempt, so it must not depend on whether a secret was right.
 */
export const ask = (fields, { state, show } = {}) => new Answer({ ask: { fields, state: kept(state), show } });

/** Sends the user to another site, by https. */
export const redirect = (to, { state } = {}) => new Answer({ redirect: { to, state: kept(state) } });

/** The user decides elsewhere, such as in an app on their phone. The gateway calls `submit` again without fields after 1 to 60 seconds. */
export const wait = (seconds, { state, show } = {}) =>
  new Answer({ wait: { poll: Math.round(seconds * 1000), state: kept(state), show } });

/** Refuses the answer for a declared reason. With `then: ask(…)` the step asks for the fields of that round. */
export const refused = (reason, { then } = {}) => new Answer({ refused: reason, then: then?.result.ask });

/** The input cannot be judged: the user gets 422, and no attempt is counted. `detail` is a sentence for the user. */
export const malformed = (field, detail, reason) => new Answer({ malformed: { field, detail, reason } });

/**
 * The user has proved the claim. Only `submit` may answer it.
 *
 * `record` replaces the account's record, and REMOVE removes it; only one of several flows that were judged by
 * the same record completes. `renewed` is the same secret in a newer form, such as a hash at the current cost;
 * it is dropped if the record has changed meanwhile. Policies read `facts` for the rest of the flow, as
 * `f.providers.NAME.FACT`. `multiFactor`: two factors were proved at once, such as a device and the
 * fingerprint that unlocks it. An identity of `identifiers` may have `attributes` and `groups`: each proof
 * replaces both.
 */
export function proved({
  identifiers, claimed, firstName, lastName, record, renewed, facts, multiFactor, recheck,
} = {}) {
  for (const [name, value] of Object.entries({ record, renewed, recheck })) {
    if (value !== undefined && value !== REMOVE && typeof value !== "string") throw new Fault(`\`${name}\` of proved() must be a text, and is ${typeof value}`);
  }
  const said = { identifiers, claimed, first_name: firstName, last_name: lastName, multi_factor: multiFactor, recheck };
  if (record !== undefined) said.record = record === REMOVE ? {} : { replace: record, once: true };
  else if (renewed !== undefined) said.record = { replace: renewed };
  if (facts) said.facts = Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, String(value)]));
  return new Answer({ proved: said });
}

const rechecked = (kind, said, state) => new Answer(state === undefined ? { [kind]: said } : { [kind]: said, state });

/** Of `recheck`: the same identity, with its groups and attributes of now. `state` replaces the state. */
export const confirmed = (identity, state) => rechecked("confirmed", identity, state);

/** Of `recheck`: the user is gone or disabled, in a few words for the operator. The sessions end. */
export const ended = (because, state) => rechecked("ended", because, state);

/** Of `recheck`: the site did not answer. Sessions go on until `recheck_grace` has passed. Return it with `state` if the site has replaced a token before. */
export const unanswered = (because, state) => rechecked("failed", because, state);

/** Of `deliver`: this identifier cannot be reached, for a declared delivery reason. Throw an error for all other problems. */
export const failed = (reason) => new Answer({ failed: reason });

/** Of `hook`: accepts the request. `text` is the answer to the vendor, such as the challenge of its handshake. */
export const accepted = (text) => new Answer({ accepted: { text } });

/** Of `hook`: rejects the request. `reason` is unauthenticated (401), malformed (400) or too_large (413). */
export const rejected = (reason = "unauthenticated") => new Answer({ refused: reason });

// Help for providers.

/** Compares two texts in constant time. */
export function equal(left, right) {
  const key = randomBytes(32);
  const mac = (text) => createHmac("sha256", key).update(text).digest();
  return timingSafeEqual(mac(left), mac(right));
}

/** Writes lines into the gateway's log. Values are texts, numbers or flags. Never log user input, codes or secrets. */
export const log = Object.fromEntries(
  ["info", "notice", "warning", "error"].map((level) => [
    level,
    (message, values = {}) => {
      if (isServing) write({ method: "log", params: { level, message, values } });
      else console.error(`${level}: ${message}`, values);
    },
  ]),
);

// The services that the gateway grants to a call.

/** The provider's own key-value store: texts that expire and that all gateways share. Use it for nonces, approvals and answers of a vendor. */
class Store {
  constructor(request) {
    this.request = request;
  }

  async get(key) {
    return (await this.request("store.get", { key })).value ?? undefined;
  }

  async set(key, value, seconds) {
    await this.request("store.set", { key, value, expires_in: seconds });
  }

  /** Writes the value if the key has none. Only one of several concurrent calls gets true, so a nonce is new exactly once. */
  async setOnce(key, value, seconds) {
    return (await this.request("store.set", { key, value, expires_in: seconds, once: true })).stored;
  }

  /** Reads and removes the value in one step. Only one of several concurrent calls gets the value. */
  async take(key) {
    return (await this.request("store.take", { key })).value ?? undefined;
  }

  async remove(key) {
    await this.request("store.remove", { key });
  }
}

/** The services that the gateway grants while a call is open. A request that it does not grant throws a Fault. */
class Tools {
  constructor(request) {
    this.request = request;
    this.store = new Store(request);
  }

  /** Hashes a secret by Argon2id, with a salt and the gateway's pepper. In `submit` only; declare `hashes: true`. */
  async hash(secret) {
    return (await this.request("hash", { secret })).hash;
  }

  /**
   * Compares a secret with its hash. Without a hash the gateway does the same work and nothing matches, so that
   * an unknown account takes as long as a known one. @returns `{ isRight, renewed }`: `renewed` is a new hash at
   * the current cost if the old one is outdated.
   */
  async verify(secret, hash) {
    const { match, upgrade } = await this.request("verify", { secret, hash });
    return { isRight: match, renewed: upgrade ?? undefined };
  }
}

/** Tools for tests: a store in memory that never expires, and cheap hashes. `calls` lists the calls that the tools received. */
export function offlineTools() {
  const calls = [];
  const values = new Map();
  const cheap = (secret, salt) => `$${salt}$${createHash("sha256").update(salt + secret).digest("hex")}`;
  const tools = new Tools(async (method, { key, value, once, secret, hash }) => {
    calls.push(method);
    if (method === "hash") return { hash: cheap(secret, randomBytes(16).toString("hex")) };
    if (method === "verify") return { match: hash !== undefined && equal(hash, cheap(secret, hash.split("$")[1])) };
    const said = { value: values.get(key), stored: !once || !values.has(key) };
    if (method === "store.set" && said.stored) values.set(key, value);
    if (method === "store.take" || method === "store.remove") values.delete(key);
    return said;
  });
  return Object.assign(tools, { calls });
}

// The parameters of a provider's functions.

/**
 * One call of `begin` or `submit`. `purpose` is prove, set, change or disable; `fields` has the submitted values;
 * `record` is this provider's record for the account. Tests create their own: `step({ purpose: "set", fields:
 * { word: "pigeon" } })`, with tools that work offline.
 */
export function step({ account, signal = new AbortController().signal, tools = offlineTools(), ...said } = {}) {
  return { purpose: "prove", fields: {}, flow: "", flowPurpose: "sign_in", now: 0, ...said, account, record: account?.record, signal, tools };
}

function stepOf(params, tools, signal) {
  const { flow_purpose: flowPurpose, state, ...rest } = params;
  return step({ ...rest, flowPurpose, state: state ? JSON.parse(state) : undefined, tools, signal });
}

/** A code to deliver. Send `text` to `to.value`; in an SMS, put `domainBoundLine` last. Tests create their own. */
export function message({ signal = new AbortController().signal, tools = offlineTools(), ...said }) {
  return { text: "", code: "", domainBoundLine: "", service: "", now: 0, ...said, signal, tools };
}

/**
 * A request of a vendor's server to /auth/hook/NAME. Verify its signature over `body`, a Buffer, before
 * anything else. Header names are in lower case. Tests create their own.
 */
export function webhook({ tools = offlineTools(), ...said }) {
  return { headers: {}, body: Buffer.alloc(0), remote: "", now: 0, ...said, tools };
}

function webhookOf({ body, body_base64: base64, ...rest }, tools) {
  return webhook({ ...rest, body: body === undefined ? Buffer.from(base64, "base64") : Buffer.from(body), tools });
}

function messageOf(params, tools, signal) {
  const { domain_bound_line: domainBoundLine, ...rest } = params;
  return message({ ...rest, domainBoundLine, tools, signal });
}

// The files beside the program.

/** If gateway.lua calls the provider by another name than policy.lua, the name is replaced in the Lua texts. */
function filesOf(folder, name) {
  const file = join(folder, "policy.lua");
  if (!existsSync(file)) throw new Fault(`${file} is missing: write the provider's default policy there`);
  const policy = readFileSync(file, "utf8");
  const own = /\bpolicy\s*"([a-z0-9_]+)"/.exec(policy)?.[1];
  if (own === undefined) throw new Fault(`${file} has no \`return policy "NAME" { … }\``);
  const renamed = (text) => text.replace(new RegExp(`"${own}(_[a-z0-9_]+)?"`, "g"), (_, rest) => `"${name}${rest ?? ""}"`);
  const named = (ending, folderName) => {
    const inside = join(folder, folderName);
    const names = existsSync(inside) ? readdirSync(inside).filter((one) => one.endsWith(ending)).sort() : [];
    return names.map((one) => [one.slice(0, -ending.length), join(inside, one)]);
  };
  const casesFile = join(folder, "cases.lua");
  return {
    policy: renamed(policy),
    cases: existsSync(casesFile) ? renamed(readFileSync(casesFile, "utf8")) : undefined,
    // Only flows with the provider's name: if the program is in the configuration folder, the operator's flows
    // are beside it.
    flows: Object.fromEntries(
      named(".lua", "flows")
        .filter(([flow]) => `${flow}_`.startsWith(`${own}_`))
        .map(([flow, path]) => [name + flow.slice(own.length), renamed(readFileSync(path, "utf8"))]),
    ),
    translations: Object.fromEntries(named(".words", "words").map(([language, path]) => [language, translations(path)])),
  };
}

/** Reads `English text = translation`, one per line; `#` begins a comment. */
function translations(path) {
  const found = {};
  for (const [index, line] of readFileSync(path, "utf8").split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const at = line.indexOf(" = ");
    if (at < 0 || line.slice(at + 3).trim() === "") throw new Fault(`${path}:${index + 1}: write \`English text = translation\``);
    found[line.slice(0, at).trim()] = line.slice(at + 3).trim();
  }
  return found;
}

/** The declaration that the gateway receives at the start, for the provider's name in gateway.lua. */
function hello(provider, folder, name) {
  if (!provider.deliver === !provider.submit) throw new Fault("define `deliver` to send codes, or `begin` and `submit` to verify: one of the two");
  if (provider.submit && !provider.begin) throw new Fault("define `begin` beside `submit`: it opens the step, mostly by `ask(fields)`");
  if (provider.recordVersion > 1 && !provider.upgrade) {
    throw new Fault("define `upgrade` beside `recordVersion`: it converts the records of older versions");
  }
  if (!provider.maintain !== !provider.maintenanceInterval) {
    throw new Fault("define `maintain` and `maintenanceInterval` together: the interval says how often it is called");
  }
  const { policy, flows, cases, translations } = filesOf(folder, name);
  const { settings, identifier, outcomes, facts, hashes, federated, words } = provider;
  const { presentation, entrance, page, role, multiFactor } = provider;
  return {
    protocol: 1, library: "node", shape: provider.deliver ? "code" : "full", policy, flows, cases, settings, identifier, outcomes, facts, hashes,
    federated, presentation, entrance, page, role, multi_factor: multiFactor,
    words: words && { ...words, translations }, begin: provider.beginFields, submit: provider.submitFields,
    callback: provider.callbackFields,
    delivery_reasons: provider.deliveryReasons, hook: provider.hook && true, record_version: provider.recordVersion,
    maintain: provider.maintenanceInterval, recheck: provider.recheck && true,
  };
}

// The loop.

let isServing = false;
const writeOut = process.stdout.write.bind(process.stdout);

function write(message) {
  const line = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  if (line.length > LONGEST_LINE) {
    if (message.result === undefined) throw new Fault(`the message has ${line.length} bytes; a line may have ${LONGEST_LINE}`);
    write({ id: message.id, error: { code: 1, message: `the answer has ${line.length} bytes; a line may have ${LONGEST_LINE}` } });
    return;
  }
  // Synchronous, since it is a pipe.
  writeOut(line);
}

const stepAnswers = ["ask", "redirect", "wait", "refused", "malformed"];
const answers = {
  begin: stepAnswers, submit: [...stepAnswers, "proved"], deliver: ["failed"], hook: ["accepted", "refused"],
  recheck: ["confirmed", "ended", "failed"],
};
const declarations = { begin: ["refused", "outcomes"], submit: ["refused", "outcomes"], deliver: ["failed", "deliveryReasons"] };

/** Reports mistakes that the gateway would answer with 503, in sentences for the author. */
function checked(answer, method, provider) {
  const kinds = answer instanceof Answer ? Object.keys(answer.result) : [];
  if (method === "begin" && kinds.includes("proved")) throw new Fault("`begin` answered proved(); only `submit` may, because the gateway counts attempts there");
  if (!kinds.some((kind) => answers[method].includes(kind))) {
    throw new Fault(`\`${method}\` returned ${kinds.join(", ") || typeof answer}; return ${answers[method].join(", ")}`);
  }
  const [kind, name] = declarations[method] ?? [];
  const reason = answer.result[kind];
  if (reason !== undefined && !(provider[name] ?? []).some((one) => one.reason === reason)) {
    throw new Fault(`${kind}("${reason}") is not declared; add "${reason}" and its sentence to \`${name}\``);
  }
  return answer.result;
}

/** The text for the operator's log: the error and where it was raised, without user input. */
function reasonOf(error, method, params) {
  if (error instanceof Fault) return error.message;
  const own = basename(fileURLToPath(import.meta.url));
  const frame = (error?.stack ?? "").split("\n").map((line) => /([^/\\() ]+:\d+):\d+\)?$/.exec(line)?.[1]).find((place) => place && !place.startsWith(`${own}:`));
  return `${error?.name ?? "Error"} in ${method}${frame ? ` (${frame})` : ""}: ${redacted(String(error?.message ?? error), params)}`.slice(0, 500);
}

/** Attack: an error quotes invalid input, which may be half of a secret. The gateway redacts whole values; this redacts their words. */
function redacted(text, params) {
  const values = [
    ...Object.values(params.fields ?? {}), params.code, params.state, params.record, params.account?.record,
    ...Object.values(params.settings ?? {}),
  ];
  const pieces = values.filter((value) => typeof value === "string").flatMap((value) => [value, ...value.split(/[^\p{L}\p{N}]+/u)]);
  for (const piece of pieces.filter((piece) => piece.length > 2).sort((left, right) => right.length - left.length)) text = text.replaceAll(piece, "[redacted]");
  return text.split(/\s+/).join(" ");
}

class Loop {
  /** Open calls, by id. */
  open = new Map();

  /** Open requests to the gateway, by id. */
  asked = new Map();
  last = 0;

  constructor(provider, folder) {
    this.provider = provider;
    this.folder = folder;
  }

  run() {
    isServing = true;
    // Output of other code must not be read as a message.
    process.stdout.write = process.stderr.write.bind(process.stderr);
    const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
    lines.on("line", (line) => this.take(JSON.parse(line)));
    lines.on("close", () => process.exit(0));
  }

  /** Sends a request to the gateway. */
  request(call, method, params) {
    const id = `p${++this.last}`;
    return new Promise((resolve, reject) => {
      write({ id, method, params: { call, ...params } });
      this.asked.set(id, { method, resolve, reject });
    });
  }

  hear({ id, result, error }) {
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (error) asked?.reject(new Fault(`\`${asked.method}\`: ${error.message}`));
    else asked?.resolve(result);
  }

  take({ id, method, params = {}, ...answer }) {
    if (method === "shutdown") process.exit(0);
    if (method === "cancel") {
      this.open.get(params.id)?.abort();
      this.open.delete(params.id);
    } else if (method !== undefined && id !== undefined) this.answer(id, method, params);
    else if (typeof id === "string") this.hear({ id, ...answer });
  }

  async answer(id, method, params) {
    const controller = new AbortController();
    this.open.set(id, controller);
    let said;
    try {
      said = { result: await this.call(id, method, params, controller.signal) };
    } catch (error) {
      said = { error: { code: error instanceof UnknownMethod ? -32601 : 1, message: reasonOf(error, method, params) } };
    }
    // A cancelled call is not answered.
    if (this.open.delete(id)) write({ id, ...said });
  }

  async call(id, method, params, signal) {
    const { provider } = this;
    const tools = new Tools((method, params) => this.request(id, method, params));
    if (method === "hello") return hello(provider, this.folder, params.name);
    if (method === "configure") {
      await provider.configure?.(params.settings);
      return {};
    }
    if (method === "deliver" && provider.deliver) {
      const answer = await provider.deliver(messageOf(params, tools, signal));
      return answer === undefined ? {} : checked(answer, method, provider);
    }
    if (["begin", "submit"].includes(method) && provider.submit) {
      return checked(await provider[method](stepOf(params, tools, signal)), method, provider);
    }
    if (method === "hook" && provider.hook) return checked(await provider.hook(webhookOf(params, tools)), method, provider);
    if (method === "upgrade" && provider.upgrade) return { record: await provider.upgrade(params.record, params.version) };
    if (method === "maintain" && provider.maintain) {
      await provider.maintain(tools, params.now);
      return {};
    }
    if (method === "recheck" && provider.recheck) return checked(await provider.recheck({ ...params, tools }), method, provider);
    throw new UnknownMethod(`this provider has no \`${method}\``);
  }
}

class UnknownMethod extends Fault {}

/**
 * Exchanges messages with the gateway if this file is the program that was started. In a test that imports the
 * file, it does nothing. @param url `import.meta.url` of the program.
 * @returns the provider.
 */
export function serve(url, provider) {
  const file = fileURLToPath(url);
  if (process.argv[1] && realpathSync(process.argv[1]) === realpathSync(file)) {
    new Loop(provider, dirname(realpathSync(file))).run();
  }
  return provider;
}
