// Updates the outbox when messages arrive.
import { look, patch } from "./form.js";

export default function enhance() {
  setInterval(async () => {
    if (document.hidden) return;
    const page = await look();
    const fresh = page?.querySelector("[data-live]");
    if (fresh && fresh.querySelectorAll("article").length + fresh.textContent !== enhance.seen) {
      enhance.seen = fresh.querySelectorAll("article").length + fresh.textContent;
      patch(page);
    }
  }, 1000);
}
