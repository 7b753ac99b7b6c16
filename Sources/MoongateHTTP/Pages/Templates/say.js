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

export function announce(text, urgent = false) {
  const region = document.getElementById(urgent ? "urgent" : "polite");
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
    line.append(button);
  } else {
    setTimeout(() => line.remove(), bad ? 6000 : 2000);
  }
  document.getElementById("toasts").append(line);
  announce(text, bad);
  last = line;
}

export const hush = () => last?.remove();
