// Countdowns. The page contains the remaining time, not a time of day, because the user's clock may be wrong.
import { announce, say, spoken } from "./say.js";
import { look, patch } from "./form.js";

const ends = new WeakMap();

const text = (seconds) => {
  const two = (number) => String(number).padStart(2, "0");
  const tail = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return seconds < 3600 ? tail : `${Math.floor(seconds / 3600)}:${tail}`;
};

/// The remaining seconds of the page's countdown; 0 without one.
export function remaining() {
  const element = document.querySelector("[data-countdown]");
  return element && ends.has(element) ? Math.max(0, Math.ceil((ends.get(element) - performance.now()) / 1000)) : 0;
}

function tick() {
  for (const element of document.querySelectorAll("[data-countdown]")) {
    const isNew = !ends.has(element);
    if (isNew) ends.set(element, performance.now() + Number(element.dataset.countdown));
    const seconds = Math.max(0, Math.ceil((ends.get(element) - performance.now()) / 1000));
    if (element.textContent === text(seconds) && seconds > 0) continue;
    element.textContent = text(seconds);
    // Not at once: a screen reader first announces the page.
    if (element.dataset.announce && !isNew && seconds > 0 &&
      seconds % 10 === 0) announce(say(element.dataset.announce, { wait: spoken(seconds) }));
    if (seconds === 0) {
      delete element.dataset.countdown;
      over[element.dataset.then]?.(element);
    }
  }
}

function show(name, element) {
  const template = document.querySelector(`template[data-when="${name}"]`);
  const content = template?.content.cloneNode(true);
  if (content) element.closest("p").replaceWith(content);
}

const over = {
  resend(element) {
    show("resend", element);
    const link = document.querySelector("[data-sync=resend-link]");
    if (link) link.disabled = false;
    announce(say("timer_over"));
  },
  async unlock(element) {
    // Not the text of the new page, which may count down to another code.
    const sentence = document.querySelector("template[data-when=unlock]").content.querySelector("p").firstChild.textContent.trim();
    const page = await look();
    if (page?.querySelector("form[data-form=code]")) patch(page);
    else show("unlock", element);
    announce(sentence);
    (document.querySelector("#code:not(:disabled)") ?? document.querySelector("[data-slot=timer] button"))?.focus();
  },
  enable(element) {
    const slot = element.closest("[data-slot]");
    const form = element.closest("form");
    slot.replaceChildren();
    document.dispatchEvent(new CustomEvent("moongate:refused", { detail: { form } }));
  },
  reload() { location.reload(); },
};

tick();
setInterval(tick, 200);
document.addEventListener("moongate:changed", tick);

// After sleep, the countdown is wrong.
let hiddenAt = 0;
document.addEventListener("visibilitychange", async () => {
  if (document.hidden) hiddenAt = Date.now();
  else if (Date.now() - hiddenAt > 5000 && document.querySelector("form[data-form=code] [data-countdown]")) {
    const page = await look();
    if (page?.querySelector("form[data-form=code]")) patch(page);
  }
});
