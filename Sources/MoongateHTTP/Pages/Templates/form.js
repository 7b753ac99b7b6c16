// Submits a form without leaving the page. The answer is the next address, or the updated page, of which only the
// differences are applied.
import { announce, hush, open, problemLine, say, toast } from "./say.js";
import { record } from "./events.js";

// The abilities of this browser for the gateway. A ceremony is offered only if the browser supports the API.
const abilities = typeof PublicKeyCredential === "function" && navigator.credentials ? "script, ceremony" : "script";
/// Answers are inserted into this page, so they must be in its language, even if another tab has changed the selected
/// language.
const ours = { Accept: "text/html", "Moongate-Language": document.documentElement.lang };

/// Returns { next } or { right } on success, { page, status } with the page of a refusal, or { failed } if the network
/// or the server failed, with the server's message if there is one.
export async function send(form, submitter, timeout = 10_000, more = {}) {
  const body = new URLSearchParams(new FormData(form));
  if (submitter?.name) body.set(submitter.name, submitter.value);
  for (const [name, value] of Object.entries(more)) body.set(name, value);
  try {
    const answer = await fetch(form.getAttribute("action"), {
      method: "POST", body, headers: { ...ours, "Moongate-Page": abilities }, signal: AbortSignal.timeout(timeout),
    });
    const type = answer.headers.get("Content-Type") ?? "";
    if (type.startsWith("application/json")) return await answer.json();
    const page = parse(await answer.text());
    if (answer.status >= 500) return { failed: true, sentence: isOurs(page) ? problem(page) : undefined };
    return isOurs(page) ? { page, status: answer.status } : { failed: true };
  } catch {
    return { failed: true };
  }
}

const parse = (text) => new DOMParser().parseFromString(text, "text/html");

/// Whether a page comes from the gateway. A proxy in between may answer instead.
const isOurs = (page) => page.querySelector("main") !== null && Boolean(page.body.dataset.page);

/// The current page from the server; null if it is not available.
export async function look(address = location.href) {
  try {
    const answer = await fetch(address, { headers: ours, signal: AbortSignal.timeout(10_000) });
    const page = answer.status < 500 ? parse(await answer.text()) : null;
    return page && isOurs(page) ? page : null;
  } catch {
    return null;
  }
}

const synced = ["disabled", "aria-invalid", "data-state", "data-code", "data-expires"];

/// The texts and fields of a provider's step. After a refusal, the page may show another round.
const round = (root) =>
  root.querySelector("#typed[data-way=step]") &&
    [...root.querySelectorAll("main .subtitle, main .secret, main .codes, #typed [name]")].map((part) => part.name ??
      part.textContent.trim()).join("\n");

/// Updates the page. The focused field stays in place, so that the on-screen keyboard stays open. Returns false if
/// another page has replaced this one as a whole. A page without fields always does: the question may be another one.
export function patch(page) {
  if (page.body.dataset.page !== document.body.dataset.page || round(page) !== round(document) ||
    page.querySelector("form[data-whole]")) {
    document.title = page.title;
    document.body.dataset.page = page.body.dataset.page ?? "";
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.dispatchEvent(new Event("moongate:changed"));
    document.querySelector("main [autofocus]")?.focus();
    return false;
  }
  for (const slot of document.querySelectorAll("main [data-slot]")) {
    const fresh = page.querySelector(`main [data-slot="${slot.dataset.slot}"]`);
    if (!fresh || fresh.innerHTML === slot.innerHTML) continue;
    // The scripts announce messages, so live regions must not repeat them.
    for (const loud of fresh.querySelectorAll("[role=alert], [role=status]")) loud.removeAttribute("role");
    slot.replaceChildren(...fresh.childNodes);
  }
  for (const own of document.querySelectorAll("main [data-sync]")) {
    const fresh = page.querySelector(`main [data-sync="${own.dataset.sync}"]`);
    if (!fresh) continue;
    for (const name of synced) {
      if (fresh.hasAttribute(name)) own.setAttribute(name, fresh.getAttribute(name));
      else own.removeAttribute(name);
    }
  }
  const contact = page.querySelector("[data-support]");
  const support = document.querySelector("[data-support]");
  if (contact && support) support.className = contact.className;
  document.dispatchEvent(new Event("moongate:changed"));
  return true;
}

/// The error message of the page.
export const problem = (root = document) => root.querySelector(".problem, .subtitle[role=alert]")?.textContent.trim();

/// Shows progress in a button and disables everything else. Returns a function that undoes this.
export function busy(button, text, form = button.form) {
  const before = [...button.childNodes];
  const spinner = document.createElement("span");
  spinner.className = "spinner";
  spinner.setAttribute("aria-hidden", "true");
  const label = document.createElement("span");
  label.textContent = text;
  const focused = document.activeElement;
  const off = [...document.querySelectorAll("main button, main input:not([type=hidden])")].filter((control) => !control.disabled);
  const links = [...document.querySelectorAll("main a")];
  button.replaceChildren(spinner, label);
  button.setAttribute("aria-busy", "true");
  for (const control of off) control.disabled = true;
  for (const link of links) link.inert = true;
  return () => {
    button.replaceChildren(...before);
    button.removeAttribute("aria-busy");
    for (const control of off) control.disabled = false;
    for (const link of links) link.inert = false;
    // A disabled control loses the focus, and a screen reader would start at the top again.
    if (document.activeElement === document.body) focused.focus();
  };
}

/// A form with an identifier or a password.
export default function enhance(form) {
  const isPhone = () => form.querySelector("[data-phone]") !== null;
  form.addEventListener("submit", async (event) => {
    // Leads to another page, or to this one in another language, with the input.
    if (event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "1";
    hush();
    const submitter = event.submitter ?? form.querySelector("button.main");
    const work = send(form, submitter, 15_000);
    const release = busy(submitter, say("sending"));
    if (isPhone()) {
      announce(say("sending_code"));
      record("login_otp_requested", { phone_country_code: form.querySelector("[data-phone]").dataset.code });
    }
    const result = await work;
    if (result.next) {
      if (isPhone()) record("login_otp_success");
      if (!["email", "step"].includes(form.dataset.way)) {
        announce(say("code_sent"));
        submitter.replaceChildren(say("sent"));
        submitter.dataset.done = "1";
        await new Promise((done) => setTimeout(done, 200));
      }
      location.assign(result.next);
      return;
    }
    release();
    delete form.dataset.busy;
    if (result.failed) {
      if (isPhone()) record("login_otp_failed", { error: "network_error" });
      toast(isPhone() ? say("unable_to_send") : result.sentence ?? say("no_connection"), { bad: true });
      return;
    }
    const code = result.page.querySelector("[data-form]")?.dataset.code;
    // Read before the page behind the dialog is updated.
    const dialog = form.closest("dialog");
    const told = dialog ? refusal(result.page) : null;
    if (form.dataset.form !== "edit" && !patch(result.page)) return;
    const slot = dialog?.querySelector("[data-slot]");
    slot?.replaceChildren(...told);
    if (isPhone() && code) record("login_otp_failed", { error: code });
    const sentence = slot ? slot.textContent.trim() : problem();
    if (sentence) announce(say("error", { sentence }), true);
    const field = form.querySelector("[data-phone]");
    if (field && code) {
      field.classList.remove("wrong");
      void field.offsetWidth;
      field.classList.add("wrong");
    }
    document.dispatchEvent(new CustomEvent("moongate:refused", { detail: { form, code } }));
    const ask = document.querySelector(`dialog[data-ask-for="${code}"]`);
    // Focuses the field first, because the dialog restores the focus when it closes.
    (form.querySelector("[aria-invalid=true]") ?? form.querySelector("input:not([type=hidden])"))?.focus();
    if (ask) open(ask);
  });
}

/// The message of a page, with its link if there is one, for the dialog that sent the form.
function refusal(page) {
  const told = [...(page.querySelector("main [data-slot=problem]")?.cloneNode(true).children ?? [])];
  if (!told.length) {
    told.push(problemLine(problem(page) ?? say("no_connection")));
  }
  // The scripts announce it.
  for (const loud of told) loud.removeAttribute("role");
  const link = page.querySelector("[data-ask-for] .choices a");
  if (link) {
    link.className = "link";
    told.push(link);
  }
  return told;
}
