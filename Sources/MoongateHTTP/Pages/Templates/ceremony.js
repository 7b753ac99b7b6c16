// Calls the Web Authentication API (Level 3) with the page's options, and puts the answer into the form's hidden field.
import { announce, hush, say } from "./say.js";
import { busy, look, problem, send } from "./form.js";

const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")),
  (letter) => letter.charCodeAt(0));

/// Older browsers have the API without its JSON methods (section 5.1.10).
function parse(call, options) {
  const name = call === "create" ? "parseCreationOptionsFromJSON" : "parseRequestOptionsFromJSON";
  if (PublicKeyCredential[name]) return PublicKeyCredential[name](options);
  const listed = (list) => list?.map((item) => ({ ...item, id: bytes(item.id) }));
  const parsed = { ...options, challenge: bytes(options.challenge) };
  if (options.user) parsed.user = { ...options.user, id: bytes(options.user.id) };
  if (options.excludeCredentials) parsed.excludeCredentials = listed(options.excludeCredentials);
  if (options.allowCredentials) parsed.allowCredentials = listed(options.allowCredentials);
  return parsed;
}

function text(buffer) {
  let letters = "";
  for (const byte of new Uint8Array(buffer)) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function answer(credential) {
  if (credential.toJSON) return credential.toJSON();
  const { response } = credential;
  const told = { clientDataJSON: text(response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature",
    "userHandle"]) if (response[name]) told[name] = text(response[name]);
  if (response.getTransports) told.transports = response.getTransports();
  return {
    id: credential.id, rawId: text(credential.rawId), type: credential.type, response: told,
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
      clientExtensionResults: credential.getClientExtensionResults(),
  };
}

/// Calls the API. `more` contains additional options, such as `mediation`.
export async function ask(call, options, more = {}) {
  const credential = await navigator.credentials[call]({ publicKey: parse(call, options), ...more });
  return JSON.stringify(answer(credential));
}

export const isAvailable = () => typeof PublicKeyCredential === "function" && Boolean(navigator.credentials);

// The pending request for suggestions in the fields of the page. Only one request can be pending at a time.
let waiting = null;

/// How long a request is pending before it gets a new challenge. Challenges are valid for two minutes.
const timeout = 100_000;

/// Offers the browser's credentials in the identifier field (conditional mediation). `take` receives the page of the
/// answer.
async function offer(form, take) {
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
  for (;;) {
    const begun = await send(form);
    const step = begun.next ? (await look(begun.next))?.querySelector("form[data-options]") : null;
    const field = step?.querySelector("[data-answer]");
    if (!field) return;
    const abort = new AbortController();
    waiting = abort;
    const timer = setTimeout(() => abort.abort("late"), timeout);
    try {
      field.value = await ask(step.dataset.call, JSON.parse(step.dataset.options),
        { mediation: "conditional", signal: abort.signal });
    } catch {
      if (abort.signal.aborted && abort.signal.reason === "late") continue;
      return;
    } finally {
      clearTimeout(timer);
    }
    waiting = null;
    // The step's form is not on this page, which has the box.
    const box = document.querySelector("main [data-remember]");
    if (!take(await send(step, null, 15_000, box?.checked ? { remember: box.value } : {}))) return;
  }
}

export default function enhance(form) {
  const slot = form.querySelector("[data-slot]");
  const button = form.querySelector("button.main");
  const field = form.querySelector("[data-answer]");
  const instead = document.querySelector("main [data-instead]");
  let isWorking = false;

  function tell(sentence, isCalm = false) {
    const line = document.createElement("p");
    line.className = isCalm ? "problem calm" : "problem";
    line.textContent = sentence;
    slot.replaceChildren(line);
    announce(isCalm ? sentence : say("error", { sentence }), !isCalm);
  }

  function explain(error, isArrival) {
    if (error.name === "InvalidStateError") return tell(form.dataset.known);
    if (error.name !== "NotAllowedError" && error.name !== "AbortError") return tell(form.dataset.failed);
    // A user who cancels enters the PIN instead.
    if (instead) return void location.replace(instead.href);
    // Some browsers need a click first, for which there is a button.
    if (isArrival && !navigator.userActivation?.hasBeenActive) return;
    tell(form.dataset.cancelled, true);
  }

  async function run(isArrival = false) {
    if (isWorking || button?.disabled) return;
    isWorking = true;
    waiting?.abort("given up");
    hush();
    slot.replaceChildren();
    const release = button ? busy(button, say("verifying")) : () => {};
    try {
      if (field) field.value = await ask(form.dataset.call, JSON.parse(form.dataset.options));
    } catch (error) {
      isWorking = false;
      release();
      button?.focus();
      explain(error, isArrival);
      return;
    }
    const result = await send(form, null, 15_000);
    if (result.next) return void location.replace(result.next);
    isWorking = false;
    release();
    if (result.failed) return tell(say("no_connection"));
    show(result);
  }

  // Each answer belongs to one challenge. The new page has the next one.
  function show(result) {
    if (!field) {
      const sentence = problem(result.page);
      return tell(sentence ?? say("no_connection"));
    }
    document.querySelector("main").replaceWith(result.page.querySelector("main"));
    document.dispatchEvent(new Event("moongate:changed"));
    const sentence = problem();
    if (sentence) announce(say("error", { sentence }), true);
    document.querySelector("main button.main")?.focus();
  }

  form.addEventListener("submit", (event) => {
    if (event.submitter?.closest(".languages")) return;
    event.preventDefault();
    run();
  });
  if (!isAvailable()) {
    // Hidden if another sign-in method is available.
    if (!form.dataset.unavailable) return void (form.hidden = true);
    // An offer that the browser does not support is skipped. The gateway has validated the address.
    const skip = document.querySelector("main [data-skip]");
    if (skip) return void location.replace(skip.href);
    if (button) button.disabled = true;
    return tell(form.dataset.unavailable);
  }
  if ("automatic" in form.dataset) run(true);
  if ("conditional" in form.dataset) {
    offer(form, (result) => {
      if (result.next) location.replace(result.next);
      else tell((result.page && problem(result.page)) ?? say("no_connection"));
      return !result.next;
    });
  }
}
