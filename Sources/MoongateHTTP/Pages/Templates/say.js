// What scripts say: in the page's language, to eyes by a toast and to ears by the page's two live regions.
const { default: words } = await import(`./words-${document.documentElement.lang}.js`);

export const say = (name, values = {}) => (words[name] ?? name).replace(/\{(\w+)\}/g, (all, key) => values[key] ?? all);

/// 45 seconds, 2 minutes: for ears, where mm:ss is a riddle.
export function spoken(seconds) {
  const count = (number, name) => say(`${name}_${number === 1 ? "one" : "many"}`, { n: number });
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  if (!minutes) return count(rest, "seconds");
  return rest ? `${count(minutes, "minutes")} ${count(rest, "seconds")}` : count(minutes, "minutes");
}

const [polite, urgently, toasts] = ["polite", "urgent", "toasts"].map((id) => document.getElementById(id));

/// Shows a question or a sheet. All that is beside it is inert, for eyes and for ears: what is said meanwhile is said inside it.
export function open(dialog) {
  dialog.append(polite, urgently, toasts);
  dialog.addEventListener("close", () => {
    document.body.append(polite, urgently);
    document.querySelector("footer").append(toasts);
  }, { once: true });
  dialog.showModal();
}

export function announce(text, urgent = false) {
  const region = urgent ? urgently : polite;
  region.textContent = "";
  // A region that is emptied and filled at once says nothing.
  setTimeout(() => { region.textContent = text; }, 50);
}

let last;

/// Shows a line on top of the page. With an action it stays until it is used or closed.
export function toast(text, { bad = false, label, action } = {}) {
  last?.remove();
  const line = document.createElement("div");
  line.className = bad ? "toast bad" : "toast";
  const words = document.createElement("span");
  words.textContent = text;
  line.append(words);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link";
    button.textContent = label;
    button.addEventListener("click", () => { line.remove(); action(); });
    const close = document.createElement("button");
    close.type = "button";
    close.className = "link";
    close.setAttribute("aria-label", say("close"));
    close.textContent = "✕";
    close.addEventListener("click", () => line.remove());
    line.append(button, close);
  } else {
    setTimeout(() => line.remove(), bad ? 6000 : 2000);
  }
  toasts.append(line);
  announce(text, bad);
  last = line;
}

export const hush = () => last?.remove();
