// Dialogs and sheets, and the confirmation before a user leaves a page with a code.
import { record } from "./events.js";
import { open } from "./say.js";

let isLeaving = false;

export function wire(root = document) {
  for (const button of root.querySelectorAll("dialog [data-close]:not([data-wired])")) {
    button.dataset.wired = "1";
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  for (const link of root.querySelectorAll("[data-opens]:not([data-wired])")) {
    link.dataset.wired = "1";
    link.addEventListener("click", (event) => {
      const dialog = document.getElementById(link.dataset.opens);
      if (!dialog) return;
      event.preventDefault();
      open(dialog);
    });
  }
  for (const link of root.querySelectorAll("[data-edit]:not([data-wired])")) {
    link.dataset.wired = "1";
    const sheet = document.getElementById("edit");
    if (!sheet) continue;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      record("edit_phone_tapped");
      open(sheet);
      const field = sheet.querySelector("input:not([type=hidden])");
      field.focus();
      field.select();
    });
  }
  guard(root);
}

function guard(root) {
  const back = root.querySelector("[data-leave]:not([data-wired])");
  const question = document.getElementById("leave");
  if (!back || !question) return;
  back.dataset.wired = "1";
  const ask = () => { if (!question.open) open(question); };
  back.addEventListener("click", (event) => { event.preventDefault(); ask(); });
  question.addEventListener("close", () => { if (!isLeaving) record("otp_screen_back", { confirmed: false }); });
  question.querySelector("[data-leave-now]").addEventListener("click", () => {
    isLeaving = true;
    record("otp_screen_back", { confirmed: true });
    location.replace(back.href);
  });
  // Intercepts the browser's Back button: adds a history entry, and asks when the user leaves it.
  if (!history.state?.moongate) history.pushState({ moongate: true }, "");
  addEventListener("popstate", () => {
    if (isLeaving) return;
    // Another page has replaced this one, so there is nothing to confirm.
    if (!question.isConnected) {
      isLeaving = true;
      history.back();
      return;
    }
    history.pushState({ moongate: true }, "");
    ask();
  });
}
