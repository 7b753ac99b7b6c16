// Messages of scripts in the page's language, shown as toasts and announced by the page's two live regions.
const { default: words } = await import(`./words-${document.documentElement.lang}.js`);

/// In right-to-left text, isolates a value that is not a single word or number.
const isolated = (value) => document.dir === "rtl" && /[^\p{L}\p{N}\p{M}]/u.test(value) ?
  `\u2068${value}\u2069` : value;

export const say = (name, values = {}) => (words[name] ?? name).replace(/\{(\w+)\}/g,
  (all, key) => (key in values ? isolated(String(values[key])) : all));

/// A duration in words, such as 45 seconds or 2 minutes, because mm:ss is not clear when read aloud.
export function spoken(seconds) {
  const plural = new Intl.PluralRules(document.documentElement.lang);
  const count = (number, name) => {
    const form = `${name}_${plural.select(number)}`;
    return say(form in words ? form : `${name}_other`, { n: number });
  };
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  if (!minutes) return count(rest, "seconds");
  return rest ? `${count(minutes, "minutes")} ${count(rest, "seconds")}` : count(minutes, "minutes");
}

const [polite, urgently, toasts] = ["polite", "urgent", "toasts"].map((id) => document.getElementById(id));

/// A disc with a sign, whose path is given.
const sign = (path) => `<svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true" focusable="false"><circle cx="8" cy="8" r="8" fill="currentColor"/><path d="${path}" fill="none" stroke="var(--sign, var(--background))" stroke-width="1.600" stroke-linecap="round" stroke-linejoin="round"/></svg>`;
const alarm = "M8 4v5M8 11.700v.010";

/// An error message in the format of the pages.
export function problemLine(text) {
  const line = document.createElement("p");
  line.className = "problem below";
  line.innerHTML = sign(alarm);
  const words = document.createElement("span");
  words.textContent = text;
  line.append(words);
  return line;
}

/// Shows a dialog or sheet. Everything outside is inert, so toasts and live regions move into it.
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
  // A live region that is cleared and filled at the same time announces nothing.
  setTimeout(() => { region.textContent = text; }, 50);
}

let last;

/// Shows a toast at the top of the page. With an action, it stays until it is used or closed.
export function toast(text, { bad = false, label, action } = {}) {
  last?.remove();
  const line = document.createElement("div");
  line.className = bad ? "toast bad" : "toast";
  line.innerHTML = sign(bad ? alarm : "M4.500 8.300l2.500 2.500 4.500-5");
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
