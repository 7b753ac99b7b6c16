// Formats and checks a phone number while it is typed: its country, its spaces and its validity. libphonenumber at the
// gateway validates it. If the gateway is not reachable, the form is validated when it is submitted.
import { announce, open, problemLine, say } from "./say.js";
import { record } from "./events.js";
import countries, { aliases, flag } from "./countries.js";

const names = new Intl.DisplayNames([document.documentElement.lang, "en"], { type: "region" });
const fewest = 4;
/// The default country of those that share a calling code.
const principal = new Set(["US", "RU", "GB", "AU", "FI", "IT", "NO", "MA", "RE", "GP", "CW", "SH"]);

export default function enhance(field) {
  const input = field.querySelector("input");
  const form = field.closest("form");
  const button = form.querySelector("button.main");
  const slot = form.querySelector("[data-slot=problem], #edit-problem");
  const region = document.createElement("input");
  region.type = "hidden";
  region.name = "region";
  region.value = field.dataset.region;
  field.append(region);
  const picker = field.querySelector(".country");
  const tools = document.createElement("span");
  tools.className = "tools";
  const check = document.createElement("span");
  check.className = "valid";
  check.hidden = true;
  check.innerHTML = '<svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><circle cx="10" cy="10" r="10" fill="currentColor"/><path d="M5.500 10.500l3 3 6-6.500" fill="none" stroke="var(--surface)" stroke-width="2"/></svg>';
  const clear = document.createElement("button");
  clear.type = "button";
  clear.className = "clear";
  clear.hidden = true;
  clear.setAttribute("aria-label", say("clear"));
  clear.innerHTML = '<svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><circle cx="10" cy="10" r="10" fill="currentColor"/><path d="M6.500 6.500l7 7m0-7l-7 7" stroke="var(--surface)" stroke-width="2"/></svg>';
  tools.append(clear, check);
  field.append(tools);

  let isDown = false;
  addEventListener("pointerdown", () => { isDown = true; }, true);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => { isDown = false; }, true);
  let asked = 0, hasStarted = false, verdict = null, judged = "", wasValid = false, waitsToSend = false;

  // A waiting time applies to one number; another number can be used meanwhile. It applies again when the user types
  // the same number.
  let held = null;
  const isHeld = () => Boolean(slot?.querySelector("[data-countdown]"));
  function hold() {
    if (isHeld()) {
      held ??= { told: [...slot.children] };
      held.e164 ??= verdict?.e164;
    } else if (held?.e164 && held.e164 === verdict?.e164 &&
      held.told.some((line) => line.querySelector("[data-countdown]"))) {
      slot.replaceChildren(...held.told);
    }
  }
  function settle() {
    hold();
    clear.hidden = input.value === "";
    check.hidden = !verdict?.valid;
    if (!form.dataset.busy) button.disabled = isHeld() || !(verdict ?
      verdict.e164 : (input.value.match(/\p{Nd}/gu) ?? []).length >= fewest && verdict === undefined);
    // A prefilled number is not announced, because the screen reader first announces the page.
    if (hasStarted && verdict?.valid && !wasValid) announce(say("valid_number"));
    wasValid = verdict?.valid ?? false;
  }
  function complain(sentence) {
    if (!slot || isHeld()) return;
    if (!sentence) return slot.querySelector("[data-typed]")?.remove();
    const line = problemLine(sentence);
    line.dataset.typed = "1";
    slot.replaceChildren(line);
    input.setAttribute("aria-invalid", "true");
    announce(say("error", { sentence }), true);
  }

  async function judge() {
    const number = (asked += 1);
    const typed = input.value;
    if (typed.trim() === "") { verdict = null; settle(); return; }
    try {
      const found = await ask(typed, region.value);
      if (number !== asked || input.value !== typed) return;
      verdict = found;
      if (found.formatted !== typed) space(found.formatted);
      judged = input.value;
      // More digits than any number in this country: no further input can make it valid.
      if (!found.e164 && found.problem && found.formatted.replace(/\D/g, "").length > 10) complain(sentence(found));
    } catch {
      if (number !== asked) return;
      verdict = undefined;
    }
    settle();
    if (waitsToSend) {
      waitsToSend = false;
      if (button.disabled) refuse(); else form.requestSubmit(button);
      return;
    }
    // If the user has already left the field, the error is shown now.
    if (hasStarted && !field.contains(document.activeElement)) invalid();
    if (!hasStarted || document.activeElement !== input) adopt();
  }

  /// Inserts the formatted number and keeps the caret after the same digit.
  function space(text) {
    const before = [...input.value.slice(0, input.selectionStart)].filter((one) => /[\p{Nd}+\uff0b]/u.test(one)).length;
    input.value = text;
    let seen = 0, at = 0;
    while (at < text.length && seen < before) { if (/[\d+]/.test(text[at])) seen += 1; at += 1; }
    if (document.activeElement === input) input.setSelectionRange(at, at);
  }

  const ask = async (value, of) => {
    const query = new URLSearchParams({ region: of, input: value, language: document.documentElement.lang });
    const answer = await fetch(`/api/auth/phone/format?${query}`, { signal: AbortSignal.timeout(3000) });
    if (!answer.ok) throw new Error("no answer");
    return answer.json();
  };

  /// Moves a typed country code into the country field, so that it is not shown twice.
  async function adopt() {
    const whole = verdict?.e164;
    // The input has changed since. The result of the new check is handled here too.
    if (!whole || judged !== input.value || !input.value.startsWith("+") || form.dataset.busy) return;
    const shared = countries.filter((country) => whole.startsWith(`+${country.code}`));
    const country = shared.find((one) => one.region === region.value) ??
      shared.find((one) => principal.has(one.region)) ?? shared[0];
    if (!country) return;
    const typed = input.value;
    try {
      const found = await ask(whole.slice(country.code.length + 1), country.region);
      if (found.e164 !== whole || input.value !== typed || (hasStarted && document.activeElement === input) ||
        form.dataset.busy) return;
      verdict = found;
      choose(country, true);
      input.value = judged = found.formatted;
    } catch { /* It stays as it was typed, which is as good. */ }
  }

  input.addEventListener("input", () => {
    if (!hasStarted) { hasStarted = true; record("login_phone_started"); }
    waitsToSend = false;
    input.removeAttribute("aria-invalid");
    field.classList.remove("wrong");
    slot?.replaceChildren();
    judge();
  });
  const sentence = (found) => (region.value === "IN" && !input.value.startsWith("+") ?
    say("invalid_number") : found.problem ?? say("invalid_number"));
  const invalid = () => { if (input.value.trim() && verdict && !verdict.e164) complain(sentence(verdict)); };
  // Not while a pointer is down: a control that moves would not be clicked.
  field.addEventListener("focusout", (event) => {
    if (field.contains(event.relatedTarget)) return;
    adopt();
    if (isDown) addEventListener("click", () => setTimeout(invalid), { once: true, capture: true });
    else invalid();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !button.disabled) return;
    event.preventDefault();
    // On a slow network, the number is submitted as soon as it is known to be valid.
    if (input.value.trim() && verdict !== undefined && judged !== input.value) waitsToSend = true; else refuse();
  });
  function refuse() {
    invalid();
    field.classList.remove("wrong");
    void field.offsetWidth;
    field.classList.add("wrong");
  }
  clear.addEventListener("click", () => {
    input.value = "";
    input.dispatchEvent(new Event("input"));
    input.focus();
  });
  document.addEventListener("moongate:refused", () => { held = null; settle(); });
  document.addEventListener("moongate:changed", settle);

  function choose(country, isFirst = false) {
    region.value = country.region;
    field.dataset.code = `+${country.code}`;
    picker.querySelector("span").textContent = `+${country.code}`;
    picker.setAttribute("aria-label", say("country", { name: names.of(country.region), code: country.code }));
    input.placeholder = country.region === "IN" ? "99999 99999" : " ";
    if (isFirst) return;
    slot?.replaceChildren();
    input.removeAttribute("aria-invalid");
    judge();
    input.focus();
  }
  picker.disabled = false;
  picker.addEventListener("click", () => openList(field, region.value, choose));
  choose(countries.find((country) => country.region === region.value) ??
    countries.find((country) => country.region === regionOfBrowser()) ?? countries[0], true);
  if (input.value) judge(); else settle();
}

/// The country of the browser's language; undefined for a language that is not well formed.
function regionOfBrowser() {
  try {
    return new Intl.Locale(navigator.language).maximize().region;
  } catch {
    return undefined;
  }
}

/// A searchable list of all countries with their names in the user's language, the gateway's country first.
function openList(field, current, choose) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet list";
  dialog.setAttribute("aria-label", say("choose_country"));
  const title = document.createElement("h2");
  title.textContent = say("choose_country");
  const search = document.createElement("input");
  search.type = "search";
  search.setAttribute("role", "combobox");
  search.setAttribute("aria-expanded", "true");
  search.setAttribute("aria-controls", "countries");
  search.setAttribute("aria-autocomplete", "list");
  search.setAttribute("aria-label", say("search"));
  search.placeholder = say("search");
  search.autocomplete = "off";
  const list = document.createElement("ul");
  list.className = "countries";
  list.id = "countries";
  list.tabIndex = -1;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", say("choose_country"));
  const none = document.createElement("p");
  none.className = "none";
  none.textContent = say("no_country");
  none.hidden = true;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "calm";
  close.textContent = say("cancel");
  dialog.append(title, search, list, none, close);

  const collator = new Intl.Collator(document.documentElement.lang);
  const own = field.dataset.region;
  const all = countries.map((country) => ({ ...country, name: names.of(country.region) }))
    .sort((one, two) => (two.region === own) - (one.region === own) || collator.compare(one.name, two.name));
  // Removes Latin accents only: other scripts spell with combining marks.
  const plain = (text) => text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  const english = new Intl.DisplayNames("en", { type: "region" });
  for (const country of all) country.names = [country.name, english.of(country.region),
    ...(aliases[country.region] ?? [])].map(plain);
  let options = [], at = -1;

  function mark(index) {
    options[at]?.setAttribute("aria-selected", "false");
    at = index;
    const option = options[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) search.setAttribute("aria-activedescendant", option.id);
    else search.removeAttribute("aria-activedescendant");
  }
  function fill() {
    const wanted = plain(search.value.trim());
    const digits = wanted.replace(/^(\+|00)/, "");
    const isExact = (country) => country.codes.includes(wanted) || country.names.includes(wanted);
    const found = all.filter((country) => isExact(country) || country.names.some((name) => name.includes(wanted)) ||
      country.code.startsWith(digits))
      .sort((one, two) => wanted && isExact(two) - isExact(one));
    options = found.map((country) => {
      const option = document.createElement("li");
      option.id = `country-${country.region}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      const sign = document.createElement("span");
      const { text, name: kind } = flag(country.region);
      sign.className = kind;
      sign.setAttribute("aria-hidden", "true");
      sign.dataset.flag = text;
      const name = document.createElement("span");
      name.className = "name";
      name.textContent = country.name;
      const code = document.createElement("span");
      code.className = "code";
      code.textContent = `+${country.code}`;
      option.append(sign, name, code);
      option.addEventListener("click", () => { dialog.close(); choose(country); });
      option.country = country;
      return option;
    });
    list.replaceChildren(...options);
    list.hidden = !options.length;
    none.hidden = options.length > 0;
    at = -1;
    mark(Math.max(0, wanted ? 0 : found.findIndex((country) => country.region === current)));
  }
  search.addEventListener("input", fill);
  search.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) {
      event.preventDefault();
      mark(Math.min(options.length - 1, Math.max(0, at + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      options[at]?.click();
    }
  });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  open(dialog);
  fill();
  search.focus();
}
