// A code field with known length on a provider's step page. The boxes show the content of the field, and a complete
// code is submitted automatically.
import { announce, say } from "./say.js";
import { codeIn, digitsIn } from "./typed.js";

export default function enhance(holder) {
  const input = holder.querySelector("input");
  const form = input.form;
  const boxes = [...holder.querySelectorAll(".box")];
  const length = boxes.length;
  let timer, shown = "";

  function draw() {
    boxes.forEach((box, index) => {
      box.textContent = input.value[index] ?? "";
      box.classList.toggle("filled", index < input.value.length);
      box.classList.toggle("current", index === Math.min(input.value.length, length - 1) && !input.disabled);
    });
    shown = input.value;
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    const value = digitsIn(input.value).slice(0, length);
    if (value !== input.value) input.value = value;
    if (value && form.dataset.state === "wrong") {
      form.dataset.state = "open";
      input.removeAttribute("aria-invalid");
    }
    const isLonger = value.length > shown.length;
    draw();
    if (value.length < length) {
      if (isLonger) announce(say("entered", { count: value.length, length }));
      return;
    }
    announce(say("all_entered", { length }));
    timer = setTimeout(() => { if (input.value === value &&
      !input.disabled) form.requestSubmit(form.querySelector("button.main")); }, 300);
  });
  // The field takes few characters, and pasted text may have many beside the code.
  input.addEventListener("paste", (event) => {
    event.preventDefault();
    const code = codeIn(event.clipboardData.getData("text"), length);
    if (!code || input.readOnly) return;
    input.value = code;
    input.dispatchEvent(new Event("input"));
  });
  for (const name of ["focus", "click", "keyup"]) {
    input.addEventListener(name, () => {
      if (input.selectionStart !== input.value.length) input.setSelectionRange(input.value.length, input.value.length);
      });
  }
  // The form submits another field, such as a recovery code.
  form.addEventListener("submit", () => clearTimeout(timer));
  document.addEventListener("moongate:refused", (event) => {
    if (event.detail.form !== form) return;
    input.value = "";
    draw();
  });
  input.value = digitsIn(input.value).slice(0, length);
  draw();
  form.dataset.ready = "1";
}
