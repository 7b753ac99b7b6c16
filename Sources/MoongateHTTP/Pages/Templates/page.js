// Wires a page. Each behaviour is a module, which is loaded only if its element is present.
import { announce, problemLine, say } from "./say.js";
import { wire } from "./dialog.js";
import { record } from "./events.js";
import "./clock.js";

const behaviours = {
  "form[data-form=entrance], form[data-form=edit]": () => import("./form.js"),
  "form[data-form=code]": () => import("./code.js"),
  "form[data-form=pad]": () => import("./pad.js"),
  "form[data-form=wait]": () => import("./wait.js"),
  "form[data-form=ceremony]": () => import("./ceremony.js"),
  "[data-phone]": () => import("./phone.js"),
  "[data-live]": () => import("./outbox.js"),
  "time[datetime]": () => import("./times.js"),
  "[data-eye]": () => import("./eye.js"),
  "[data-keep]": () => import("./keep.js"),
  "[data-boxes]": () => import("./boxes.js"),
};

// The server never sees the fragment of the address that the user asked for. The browser keeps it in the redirect to
// this page (RFC 9110 section 10.2.2), and the way back gets it here. Links to other pages of the sign-in pass it on.
const fragment = location.hash.replaceAll("\\", "%5C");
const longestWay = 16_384;
function keepFragment() {
  const way = new URLSearchParams(location.search).get("return_to");
  if (fragment.length < 2 || way === null || way.includes("#")) return;
  for (const field of document.querySelectorAll("input[name=return_to]")) {
    if (!field.value.includes("#") && field.value.length + fragment.length <= longestWay) field.value += fragment;
  }
  for (const link of document.querySelectorAll("a[href*=\"return_to=\"]")) {
    if (link.origin === location.origin && !link.hash) link.hash = fragment;
  }
}

function enhance() {
  wire();
  keepFragment();
  for (const [selector, load] of Object.entries(behaviours)) {
    for (const element of document.querySelectorAll(selector)) {
      if (element.dataset.enhanced) continue;
      element.dataset.enhanced = "1";
      load().then((module) => module.default(element));
    }
  }
}
enhance();
document.addEventListener("moongate:changed", enhance);

// A sign-in with another site: the button shows progress while the page unloads.
for (const form of document.querySelectorAll("form[data-site]")) {
  form.addEventListener("submit", () => {
    record(`login_${form.elements.provider.value.split("_")[0]}_started`);
    const spinner = document.createElement("span");
    spinner.className = "spinner";
    const icon = form.querySelector("button svg");
    if (icon) icon.replaceWith(spinner);
    else form.querySelector("button").prepend(spinner);
    setTimeout(() => {
      for (const control of document.querySelectorAll("main button, main input:not([type=hidden])")) control.disabled = true; });
  });
}
// "Keep me signed in" is in one form and counts for every way to sign in on the page. Forms that wait disable it.
document.addEventListener("formdata", (event) => {
  const box = document.querySelector("main [data-remember]");
  const form = event.target;
  if (box?.checked && (box.form === form || form.matches("[data-site], [data-conditional]"))) {
    event.formData.set("remember", box.value);
  }
});
// In browsers that do not resize the page for the on-screen keyboard, sheets stay above the keyboard, and toasts stay
// in the visible part.
const view = window.visualViewport;
function fit() {
  const isZoomed = view.scale > 1;
  document.documentElement.style.setProperty("--keyboard",
    `${isZoomed ? 0 : Math.max(0, Math.round(innerHeight - view.height - view.offsetTop))}px`);
  document.documentElement.style.setProperty("--above", `${isZoomed ? 0 : Math.round(view.offsetTop)}px`);
}
if (view) for (const name of ["resize", "scroll"]) view.addEventListener(name, fit);

// A page from the back/forward cache is in its old state: its controls are disabled and its times are wrong.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Ignores a second click while the first one is processed.
for (const form of document.querySelectorAll("form:not([data-form], [data-site])")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
}
// The answer to an app.
document.querySelector("form[data-posts]")?.requestSubmit();
for (const form of document.querySelectorAll("form[data-signs-out]")) form.addEventListener("submit",
  () => { try { sessionStorage.clear(); localStorage.clear(); } catch {} });

const kind = document.body.dataset.page;
const screens = { login: "login", register: "register", verify: "otp_verification", email: "email", pin: "pin",
  account: "account" };
if (screens[kind]) record("screen_view", { screen_name: screens[kind] });
// Carries the input over to the other page.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-other]");
  const form = document.querySelector("main form[data-form=entrance]");
  if (!link || !form) return;
  const address = new URL(link.href);
  for (const name of ["phone", "region"]) {
    const value = form.elements[name]?.value.trim();
    if (value) address.searchParams.set(name, value);
  }
  link.href = address;
}, true);
// Switches to another method with the typed address, in a form's body and never in a URL.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-carries]");
  const form = document.getElementById("typed");
  if (!link || link.inert || !form?.elements.email?.value.trim() || event.ctrlKey || event.metaKey ||
    event.shiftKey) return;
  event.preventDefault();
  const button = document.createElement("button");
  button.hidden = true;
  button.formNoValidate = true;
  button.setAttribute("formaction", link.getAttribute("href"));
  // A password must not be carried over.
  if (form.elements.password) form.elements.password.value = "";
  form.append(button);
  form.requestSubmit(button);
  button.remove();
});
// Includes links that scripts insert: in the dialog for an unknown number, and the highlighted link below the form.
document.addEventListener("click", (event) => {
  if (document.body.dataset.page === "login" &&
    event.target.closest?.("[data-other], [data-event=login_create_account_tapped]")) record("login_create_account_tapped");
});

// Without cookies, no code is sent, because the user could not enter it. In a frame, browsers say so although they keep
// the partitioned cookie.
if (window === window.top && (kind === "login" || kind === "register")) {
  const slot = document.querySelector("main [data-slot=problem]");
  if (!navigator.cookieEnabled && slot && !slot.childElementCount) slot.append(problemLine(say("cookies_needed")));
}

const said = document.querySelector("main .problem")?.textContent.trim();
const isEntrance = kind === "login" || kind === "register";
// Live regions announce only changes, so messages of the initial page are announced here.
if (said) {
  announce(said, true);
} else if (isEntrance) {
  announce([...document.querySelectorAll("h1, .subtitle")].map((part) => part.textContent.replace(/[!?.]$/,
    "").trim()).join(". "));
}
