// A passcode: one field at a time, shown as dots, with a number pad beneath. The fields are the form's own, so the keyboard works too.
import { announce, hush, say } from "./say.js";
import { patch, problem, send } from "./form.js";

export default function enhance(form) {
  const stages = [...form.querySelectorAll(".stage")].map((element) => ({
    element, name: element.dataset.stage, input: element.querySelector("input"), length: Number(element.querySelector("input").dataset.length ?? 6),
  }));
  const slot = form.querySelector("[data-slot=problem]");
  const button = form.querySelector("button.main");
  let at = 0, isWorking = false;
  form.noValidate = true;
  slot.classList.add("below");

  for (const stage of stages) {
    stage.input.inputMode = "none";
    stage.input.maxLength = stage.length;
    const dots = document.createElement("div");
    dots.className = "dots";
    dots.setAttribute("aria-hidden", "true");
    stage.dots = Array.from({ length: stage.length }, () => {
      const dot = document.createElement("span");
      dot.className = "dot";
      dots.append(dot);
      return dot;
    });
    stage.element.append(dots);
    stage.input.addEventListener("input", () => typed(stage));
  }

  const pad = document.createElement("div");
  pad.className = "pad";
  for (const key of ["1", "2", "3", "4", "5", "6", "7", "8", "9", "", "0", "delete"]) {
    if (key === "") { pad.append(document.createElement("span")); continue; }
    const press = document.createElement("button");
    press.type = "button";
    // The field keeps the focus, and a keyboard or a screen reader its place in it.
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
  const working = document.createElement("div");
  working.className = "working";
  working.hidden = true;
  working.innerHTML = '<span class="spinner" aria-hidden="true"></span>';
  slot.after(working, pad);

  function draw(stage) {
    stage.dots.forEach((dot, index) => dot.classList.toggle("filled", index < stage.input.value.length));
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
    const value = stage.input.value.replace(/\D/g, "").slice(0, stage.length);
    if (value !== stage.input.value) stage.input.value = value;
    if (value && !slot.querySelector("[data-countdown]")) { form.dataset.state = "open"; slot.replaceChildren(); }
    draw(stage);
    if (value.length < stage.length) { if (value) announce(say("digits_of", { count: value.length, length: stage.length })); return; }
    if (!isWorking) setTimeout(() => advance(stage), 120);
  }

  // Above the keys: a toast would lie on them.
  function tell(sentence) {
    const line = document.createElement("p");
    line.className = "problem";
    line.textContent = sentence;
    slot.replaceChildren(line);
    announce(sentence, true);
  }
  function wrong(sentence) {
    form.dataset.state = "open";
    void form.offsetWidth;
    form.dataset.state = "wrong";
    if (sentence) tell(sentence);
    const said = problem(slot);
    if (said) announce(say("error", { sentence: said }), true);
  }

  async function advance(stage) {
    if (isWorking || stage !== stages[at] || stage.input.value.length < stage.length) return;
    if (stage.name === form.dataset.current && "checks" in form.dataset) return submit({ check: "1" });
    if (stage.name === "confirm" && stage.input.value !== stages[index(form.dataset.new)].input.value) {
      stage.input.value = "";
      draw(stage);
      wrong(say("mismatch"));
      setTimeout(() => { empty(index(form.dataset.new)); go(index(form.dataset.new)); }, 500);
      return;
    }
    if (at < stages.length - 1) return go(at + 1);
    return submit();
  }

  async function submit(more = {}) {
    isWorking = true;
    hush();
    const work = send(form, null, 10_000, more);
    pad.hidden = true;
    working.hidden = false;
    announce(say(stages.length > 1 && !more.check ? "saving" : "verifying"));
    const result = await work;
    isWorking = false;
    if (result.next) { location.replace(result.next); return; }
    pad.hidden = false;
    working.hidden = true;
    if (result.right) return go(at + 1);
    if (result.failed) {
      empty(at);
      go(at);
      tell(say("no_connection"));
      return;
    }
    const asks = [...result.page.querySelectorAll(".stage")].map((stage) => stage.dataset.stage).join();
    if (asks !== stages.map((stage) => stage.name).join()) {
      // The code was right and the passcode was not: what is asked for is another thing now.
      document.querySelector("main").replaceWith(result.page.querySelector("main"));
      document.dispatchEvent(new Event("moongate:changed"));
      return;
    }
    if (!patch(result.page)) return;
    for (const stage of stages) stage.input.disabled = result.page.querySelector(`#${stage.name}`)?.disabled ?? false;
    const { current, new: chosen, code } = form.dataset;
    const back = { weak_pin: chosen, pin_mismatch: chosen, invalid_code: "code", code_expired: "code", invalid_pin: current }[code] ?? stages[0].name;
    empty(index(back));
    go(index(back));
    wrong();
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); advance(stages[at]); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || document.activeElement === stages[at].input) return;
    if (/^\d$/.test(event.key) || event.key === "Backspace") stages[at].input.focus();
  });
  form.dataset.ready = "1";
  go(0, true);
  announce(stages[0].element.querySelector("label").textContent);
}
