// Six boxes for one field: the field receives keys, paste and autofill, and the boxes show its content.
import { announce, hush, say, toast } from "./say.js";
import { look, patch, problem, send } from "./form.js";
import { remaining } from "./clock.js";
import { codeIn, digitsIn, lettersIn } from "./typed.js";
import { record } from "./events.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/// The code of a message for this domain, if the browser provides it (WebOTP).
export async function messageCode() {
  if (!("OTPCredential" in window)) return undefined;
  try {
    return (await navigator.credentials.get({ otp: { transport: ["sms"] } }))?.code;
  } catch {
    return undefined;
  }
}

export default function enhance(form) {
  const input = form.querySelector("input.code");
  const boxes = [...form.querySelectorAll(".box")];
  const length = Number(form.dataset.length);
  const isDigits = form.dataset.digits === "true";
  const button = form.querySelector("button.main");
  const label = button.textContent;
  const started = performance.now();
  let timer, fading, attempts = 0, resends = 0, isWorking = false, shown = "";

  const clean = (text) => (isDigits ? digitsIn(text) : lettersIn(text)).slice(0, length);

  /// Moves the focus to the next possible action: the field, another code, another number, or help.
  function goOn() {
    if (!input.disabled) return input.focus();
    (document.querySelector("[data-slot=instead] :is(button, a)") ??
      document.querySelector("[data-slot=timer] button, [data-slot=more] a, [data-support]"))?.focus();
  }

  function draw(value = input.value) {
    boxes.forEach((box, index) => {
      const character = value[index] ?? "";
      box.classList.toggle("typed", character !== "" && character !== box.textContent);
      box.textContent = character;
      box.classList.toggle("filled", character !== "");
      box.classList.toggle("current", index === Math.min(value.length, length - 1) && !input.disabled);
    });
    shown = value;
    if (!isWorking) button.disabled = input.disabled || input.value.length < length;
  }

  function typed(quick = false) {
    clearTimeout(timer);
    const value = clean(input.value);
    if (value !== input.value) input.value = value;
    input.setSelectionRange(value.length, value.length);
    if (value && form.dataset.state === "wrong") forgive();
    if (value.length > shown.length) {
      record("otp_digit_entered", { digit_position: value.length - 1, total_entered: value.length });
      if (value.length < length &&
        !quick) announce(`${value.at(-1)}. ${say("entered", { count: value.length, length })}`);
    }
    draw(value);
    if (value.length === length) complete(500);
  }

  function complete(after) {
    announce(say("all_entered", { length }));
    timer = setTimeout(() => {
      record("otp_auto_verify_triggered");
      form.requestSubmit(button);
    }, after);
  }

  function forgive() {
    clearTimeout(fading);
    if (form.dataset.state === "wrong") form.dataset.state = "open";
    input.removeAttribute("aria-invalid");
    form.querySelector("[data-slot=problem]").replaceChildren();
  }

  input.addEventListener("input", (event) => typed(event.inputType === "insertFromPaste" ||
    event.inputType === "insertReplacementText"));
  for (const name of ["focus", "click", "select", "keyup"]) {
    input.addEventListener(name, () => {
      if (input.selectionStart !== input.value.length) input.setSelectionRange(input.value.length, input.value.length);
      });
  }
  input.addEventListener("paste", (event) => {
    event.preventDefault();
    if (input.readOnly) return;
    const text = event.clipboardData.getData("text");
    const value = isDigits ? codeIn(text, length) : clean(text);
    // Text without digits leaves the field unchanged.
    if (!value) return;
    clearTimeout(timer);
    forgive();
    input.value = value;
    button.disabled = value.length < length;
    const step = calm.matches ? 0 : 100;
    [...value].forEach((_, index) => setTimeout(() => { if (input.value === value) draw(value.slice(0, index + 1)); },
      step * index));
    if (value.length === length) setTimeout(() => { if (input.value === value) complete(300); }, step * length);
  });

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    if (isWorking || input.disabled || input.value.length < length) return;
    isWorking = true;
    attempts += 1;
    hush();
    forgive();
    const work = send(form, button);
    form.dataset.state = "busy";
    input.readOnly = true;
    button.disabled = true;
    const spinner = document.createElement("span");
    spinner.className = "spinner";
    button.replaceChildren(spinner, say("verifying"));
    button.setAttribute("aria-busy", "true");
    const off = document.querySelectorAll("main a, main form:not([data-form=code]) button");
    for (const link of off) link.inert = true;
    const result = await work;
    if (result.next) {
      for (const box of boxes) box.innerHTML = '<svg viewBox="0 0 24 24" width="24" height="24"><path pathLength="1" d="M5 12.500l5 5 9-10" fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/></svg>';
      form.dataset.state = "done";
      button.removeAttribute("aria-busy");
      button.dataset.done = "1";
      button.replaceChildren(say("verified"));
      announce(say("verified_continuing"));
      record("otp_verification_success", { duration_ms: Math.min(3_600_000, Math.round(performance.now() - started)),
        attempts });
      await new Promise((done) => setTimeout(done, 400));
      document.body.classList.add("leaving");
      location.replace(result.next);
      return;
    }
    isWorking = false;
    input.readOnly = false;
    for (const link of off) link.inert = false;
    button.replaceChildren(label);
    button.removeAttribute("aria-busy");
    form.dataset.state = "open";
    if (result.failed) {
      record("otp_verification_failed", { error: "network_error", attempt_number: attempts });
      draw();
      toast(say("unable_to_verify"), { bad: true, label: say("retry"), action: () => form.requestSubmit(button) });
      return;
    }
    if (!patch(result.page)) return;
    record("otp_verification_failed", { error: form.dataset.code === "code_expired" ? "expired" : form.dataset.code,
      attempt_number: attempts });
    input.value = "";
    draw();
    const sentence = problem(form);
    if (sentence) announce(say("error", { sentence }), true);
    goOn();
    if (form.dataset.state === "wrong") fading = setTimeout(forgive, 3000);
  });

  const resend = document.querySelector("form[data-form=resend]");
  resend?.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (resend.dataset.busy) return;
    resend.dataset.busy = "1";
    const submitter = event.submitter;
    record("otp_resend_requested", { time_remaining: remaining(), resend_count: (resends += 1) });
    const before = input.value;
    const work = send(resend, submitter, 15_000);
    if (submitter) submitter.disabled = true;
    const result = await work;
    const release = () => {
      delete resend.dataset.busy;
      if (submitter) submitter.disabled = false;
    };
    if (result.failed) {
      release();
      submitter?.focus();
      return toast(say("failed_to_send"), { bad: true });
    }
    if (result.next) {
      const next = new URL(result.next, location.href);
      if (next.searchParams.get("id") !== new URL(location.href).searchParams.get("id")) return location.replace(result.next);
      const page = await look(location.href);
      // Not before: until the page has its countdown, the link would ask for a code too early.
      release();
      if (page) patch(page);
      // Input since the submission is the new code: a message can arrive before the answer.
      if (input.value === before) input.value = "";
      draw();
      input.focus();
      toast(say("toast_sent"));
      announce(say("new_code_sent"));
      return;
    }
    release();
    if (!patch(result.page)) return;
    goOn();
    const sentence = problem(form);
    if (sentence) announce(say("error", { sentence }), true);
  });

  // Waits until the code expires, by the server's clock.
  function watch() {
    clearTimeout(watch.timer);
    const left = Number(form.dataset.expires);
    if (left > 0 && left < 86_400_000) {
      watch.timer = setTimeout(async () => {
        const dead = form.dataset.expires;
        const page = isWorking ? null : await look();
        const isHere = document.activeElement === input;
        // Another code may have been sent meanwhile.
        if (!page || form.dataset.expires !== dead || !patch(page)) return;
        input.value = "";
        draw();
        if (isHere) goOn();
        const sentence = problem(form);
        if (sentence) announce(say("error", { sentence }), true);
      }, left + 100);
    }
  }
  let watched;
  document.addEventListener("moongate:changed", () => {
    if (watched !== form.dataset.expires) { watched = form.dataset.expires; watch(); }
    draw();
  });
  watched = form.dataset.expires;
  watch();

  if (isDigits) {
    messageCode().then((code) => {
      if (!code || input.disabled) return;
      input.value = code;
      typed();
    });
  }
  input.value = clean(input.value);
  draw();
  form.dataset.ready = "1";
  announce([document.querySelector("h1").textContent, document.querySelector(".subtitle").innerText.replace(/\s+/g,
    " ")].join(". "));
}
