// Secrets to save: a key to copy, codes to copy or to download.
import { announce, say, toast } from "./say.js";

function button(label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "link";
  made.textContent = label;
  made.addEventListener("click", act);
  return made;
}

export default function enhance(holder) {
  const lines = [...holder.querySelectorAll("code")].map((code) => code.textContent.trim());
  const row = document.createElement("p");
  row.className = "keep";
  row.append(button(say("copy"), async () => {
    try {
      // A key is shown in groups of four, but copied as one word.
      await navigator.clipboard.writeText(holder.dataset.keep === "list" ?
        lines.join("\n") : lines[0].replaceAll(" ", ""));
      toast(say("copied"));
    } catch {
      // Without permission to write to the clipboard, the text is selected for the user to copy.
      getSelection().selectAllChildren(holder.querySelector("code").parentElement);
      announce(say("marked"));
    }
  }));
  if (holder.dataset.keep === "list") {
    row.append(button(say("download"), () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/plain" }));
      link.download = "recovery-codes.txt";
      link.click();
      URL.revokeObjectURL(link.href);
    }));
  }
  holder.querySelector(".keep")?.remove();
  holder.append(row);
}
