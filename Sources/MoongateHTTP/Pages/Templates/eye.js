// Lets the user show and hide the content of a password field.
import { announce, say } from "./say.js";

const open = "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12z";
const picture = (isShown) => `<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" focusable="false"><g fill="none" stroke="currentColor" stroke-width="1.700" stroke-linecap="round" stroke-linejoin="round"><path d="${open}"/><circle cx="12" cy="12" r="3"/>${isShown ? '<path d="M4 20L20 4"/>' : ""}</g></svg>`;

export default function enhance(holder) {
  const field = holder.querySelector("input");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "eye";
  const draw = () => {
    const isShown = field.type === "text";
    button.innerHTML = picture(isShown);
    button.setAttribute("aria-label", say("show_password"));
    button.setAttribute("aria-pressed", String(isShown));
  };
  button.addEventListener("click", () => {
    field.type = field.type === "password" ? "text" : "password";
    draw();
    announce(say(field.type === "text" ? "password_shown" : "password_hidden"));
  });
  // Submits it as a password field again, so that browsers offer to save it and the next page does not show it.
  field.form?.addEventListener("submit", () => {
    if (field.type === "password") return;
    field.type = "password";
    draw();
  }, true);
  draw();
  holder.append(button);
}
