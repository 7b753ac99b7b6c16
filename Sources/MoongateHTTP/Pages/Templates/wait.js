// A step that waits for an approval on another device: the page polls and continues automatically.
import { patch, problem, send } from "./form.js";
import { announce, say } from "./say.js";

/// The longest pause while the gateway is not reachable, in milliseconds.
const longest = 60_000;

export default function enhance(form) {
  let timer;
  let failures = 0;
  const plan = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(poll, Math.max(500, pause));
  };
  async function poll() {
    clearTimeout(timer);
    if (!form.isConnected || form.dataset.busy) return;
    form.dataset.busy = "1";
    const result = await send(form, form.querySelector("button.main"), 15_000);
    delete form.dataset.busy;
    if (result.next) {
      location.assign(result.next);
    } else if (result.failed) {
      failures += 1;
      plan(Math.min(longest, 1_000 * 2 ** failures));
    } else if (patch(result.page)) {
      failures = 0;
      plan(Number(result.page.querySelector("form[data-form=wait]")?.dataset.poll));
    } else {
      const sentence = problem();
      if (sentence) announce(say("error", { sentence }), true);
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    poll();
  });
  // Polls at once when the user returns to this page, for example after an approval in another window.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
  announce(form.querySelector("[role=status]").textContent.trim());
  plan(Number(form.dataset.poll));
}
