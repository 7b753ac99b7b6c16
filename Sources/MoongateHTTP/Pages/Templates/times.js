// Times in the user's format. A line may break between the date and the time of day, but not inside them.
const language = document.documentElement.lang;
const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
const parts = [{ dateStyle: "medium" }, { timeStyle: "short" }].map((style) => new Intl.DateTimeFormat(language,
  style));
const whole = (text) => text.replace(/\s/g, "\u00a0");

export default function enhance(element) {
  const time = new Date(element.dateTime);
  if (Number.isNaN(time.getTime())) return;
  element.textContent = parts.map((part) => part.format(time)).reduce((text, part) => text.replace(part, whole(part)),
    format.format(time));
}
