// Reads codes as people type and paste them, by the gateway's own rule (TypedCode in MoongateSDK).

/// A decimal digit of any script, or a full-width letter, as ASCII. Other characters stay.
function ascii(character) {
  if (!/[\p{Nd}\uff21-\uff3a\uff41-\uff5a]/u.test(character)) return character;
  const plain = character.normalize("NFKC");
  if (/^[0-9A-Za-z]$/.test(plain)) return plain;
  // The ten digits of a script follow each other.
  const code = character.codePointAt(0);
  let zero = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1)) && code - zero < 9) zero -= 1;
  return String(code - zero);
}

const plain = (text) => [...text].map(ascii).join("");

/// The ASCII digits in a text.
export const digitsIn = (text) => plain(text).replace(/\D/g, "");

/// The ASCII letters and digits in a text, in upper case.
export const lettersIn = (text) => plain(text).toUpperCase().replace(/[^A-Z0-9]/g, "");

/// The code in a text: a whole SMS, "532 917", or the #532917 of a domain-bound line.
export function codeIn(text, length) {
  const visible = plain(text).replace(/\p{Cf}/gu, "");
  const bound = visible.match(new RegExp(`#(\\d{${length}})(?!\\d)`));
  if (bound) return bound[1];
  const digits = digitsIn(visible);
  if (digits.length === length) return digits;
  const spaced = visible.match(new RegExp(`(?<!\\d)\\d(?:[\\p{Zs}\\p{Pd}\\u2212]?\\d){${length - 1}}(?!\\d)`, "u"));
  return spaced ? digitsIn(spaced[0]) : digits.slice(0, length);
}
