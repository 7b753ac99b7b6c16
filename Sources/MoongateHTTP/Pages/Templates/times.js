// Times as the reader writes them.
const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });

export default function enhance(element) {
  const time = new Date(element.dateTime);
  if (!Number.isNaN(time.getTime())) element.textContent = format.format(time);
}
