// A passcode: one field at a time, shown as dots, with a PIN pad. The fields belong to the form, so the keyboard works
// too. The code of a reset is shown in boxes and can be pasted.
import { announce, hush, problemLine, say } from "./say.js";
import { patch, problem, send } from "./form.js";
import { codeIn, digitsIn } from "./typed.js";

export default function enhance(form) {
  const stages = [...form.querySelectorAll(".stage")].map((element) => ({
    element, name: element.dataset.stage, input: element.querySelector("input"),
      length: Number(element.querySelector("input").dataset.length ?? 6),
  }));
  const slot = form.querySelector("[data-slot=problem]");
  const button = form.querySelector("button.main");
  let at = 0, isWorking = false;
  form.noValidate = true;
  slot.classList.add("below");

  for (const stage of stages) {
    stage.isCode = stage.input.type === "text";
    // Pasted text may contain spaces; `typed` keeps the digits.
    stage.input.maxLength = 32;
    const row = document.createElement("div");
    row.className = stage.isCode ? "row" : "dots";
    row.setAttribute("aria-hidden", "true");
    stage.marks = Array.from({ length: stage.length }, () => {
      const mark = document.createElement("span");
      mark.className = stage.isCode ? "box" : "dot";
      row.append(mark);
      return mark;
    });
    if (stage.isCode) {
      const boxes = document.createElement("div");
      boxes.className = "boxes";
      stage.input.className = "code";
      boxes.append(row, stage.input);
      stage.element.append(boxes);
      fill(stage);
    } else {
      stage.input.inputMode = "none";
      stage.element.append(row);
    }
    stage.input.addEventListener("input", () => typed(stage));
  }

  /// Enters a code that is pasted, or that the browser reads from a message.
  async function fill(stage) {
    const { messageCode } = await import("./code.js");
    const take = (code) => {
      if (!code || stage.input.disabled) return;
      stage.input.value = code;
      typed(stage);
    };
    stage.input.addEventListener("paste", (event) => {
      event.preventDefault();
      take(codeIn(event.clipboardData.getData("text"), stage.length));
    });
    take(await messageCode());
  }

  const pad = document.createElement("div");
  pad.className = "pad";
  for (const key of ["1", "2", "3", "4", "5", "6", "7", "8", "9", "", "0", "delete"]) {
    if (key === "") { pad.append(document.createElement("span")); continue; }
    const press = document.createElement("button");
    press.type = "button";
    // The field keeps the focus, so that keyboards and screen readers keep their position.
    press.addEventListener("mousedown", (event) => event.preventDefault());
    if (key === "delete") {
      press.className = "plain";
      press.setAttribute("aria-label", form.dataset.delete ?? "Delete");
      press.innerHTML = '<svg viewBox="0 0 28 20" width="28" height="20" aria-hidden="true"><path d="M9 1h16a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H9l-8-9z" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round"/><path d="M13 6.500l7 7m0-7l-7 7" stroke="currentColor" stroke-width="2" stroke-linecap="round"/></svg>';
    } else {
      press.textContent = key;
    }
    press.addEventListener("click", () => {
      const { input, length } = stages[at];
      if (isWorking || input.disabled) return;
      const value = key === "delete" ? input.value.slice(0, -1) : (input.value + key).slice(0, length);
      if (value === input.value) return;
      input.value = value;
      input.dispatchEvent(new Event("input"));
    });
    pad.append(press);
  }
  const spinner = document.createElement("span");
  spinner.className = "spinner";
  spinner.setAttribute("aria-hidden", "true");
  slot.after(pad);

  /// The keys keep their position while the server works.
  function work(isAtWork) {
    isWorking = isAtWork;
    pad.inert = isAtWork;
    if (isAtWork) pad.append(spinner); else spinner.remove();
  }
  function draw(stage) {
    const value = stage.input.value;
    stage.marks.forEach((mark, index) => {
      mark.classList.toggle("filled", index < value.length);
      if (!stage.isCode) return;
      mark.textContent = value[index] ?? "";
      mark.classList.toggle("current", index === Math.min(value.length, stage.length - 1) && !stage.input.disabled);
    });
  }
  function go(index, isFirst = false) {
    at = index;
    stages.forEach((stage, other) => { stage.element.hidden = other !== index; draw(stage); });
    for (const key of pad.querySelectorAll("button")) key.disabled = stages[at].input.disabled;
    if (!stages[at].input.disabled) stages[at].input.focus({ preventScroll: true });
    if (!isFirst) announce(stages[at].element.querySelector("label").textContent);
  }
  const empty = (from) => { for (const stage of stages.slice(from)) stage.input.value = ""; };
  const index = (name) => Math.max(0, stages.findIndex((stage) => stage.name === name));

  function typed(stage) {
    const value = digitsIn(stage.input.value).slice(0, stage.length);
    if (value !== stage.input.value) stage.input.value = value;
    if (value && !slot.querySelector("[data-countdown]")) { form.dataset.state = "open"; slot.replaceChildren(); }
    draw(stage);
    if (value.length < stage.length) { if (value) announce(say("digits_of",
      { count: value.length, length: stage.length })); return; }
    if (!isWorking) setTimeout(() => advance(stage), 120);
  }

  // Above the keys, which a toast would cover.
  function tell(sentence) {
    slot.replaceChildren(problemLine(sentence));
    announce(say("error", { sentence }), true);
  }
  function wrong() {
    form.dataset.state = "open";
    void form.offsetWidth;
    form.dataset.state = "wrong";
  }

  async function advance(stage) {
    if (isWorking || stage !== stages[at] || stage.input.value.length < stage.length) return;
    if (stage.name === form.dataset.current && "checks" in form.dataset) return submit({ check: "1" });
    if (stage.name === "confirm" && stage.input.value !== stages[index(form.dataset.new)].input.value) {
      stage.input.value = "";
      draw(stage);
      wrong();
      tell(say("mismatch"));
      // Resets the state, because the dots of the first step would shake again.
      setTimeout(() => { form.dataset.state = "open"; empty(index(form.dataset.new)); go(index(form.dataset.new)); },
        500);
      return;
    }
    if (at < stages.length - 1) return go(at + 1);
    return submit();
  }

  async function submit(more = {}) {
    hush();
    const answer = send(form, null, 10_000, more);
    work(true);
    announce(say(stages.length > 1 && !more.check ? "saving" : "verifying"));
    const result = await answer;
    if (result.next) { location.replace(result.next); return; }
    work(false);
    if (result.right) return go(at + 1);
    if (result.failed) {
      empty(at);
      go(at);
      tell(result.sentence ?? say("no_connection"));
      return;
    }
    const asks = [...result.page.querySelectorAll(".stage")].map((stage) => stage.dataset.stage).join();
    if (asks !== stages.map((stage) => stage.name).join()) {
      // The code was accepted and the passcode was refused, so the page asks for other input now.
      document.querySelector("main").replaceWith(result.page.querySelector("main"));
      document.dispatchEvent(new Event("moongate:changed"));
      return;
    }
    if (!patch(result.page)) return;
    for (const stage of stages) stage.input.disabled = result.page.querySelector(`#${stage.name}`)?.disabled ?? false;
    const { current, new: chosen, code } = form.dataset;
    const back = { weak_pin: chosen, pin_mismatch: chosen, invalid_code: "code", code_expired: "code",
      invalid_pin: current }[code] ?? stages[0].name;
    empty(index(back));
    go(index(back));
    wrong();
    const sentence = problem(slot);
    if (sentence) announce(say("error", { sentence }), true);
    // Locked: focuses the next possible action.
    if (stages[at].input.disabled) document.querySelector("[data-opens], [data-support]")?.focus();
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); advance(stages[at]); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") ||
      document.activeElement === stages[at].input) return;
    if (/^\d$/.test(event.key) || event.key === "Backspace") stages[at].input.focus();
  });
  form.dataset.ready = "1";
  go(0, true);
  announce(stages[0].element.querySelector("label").textContent);
}
