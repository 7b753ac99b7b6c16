#!/usr/bin/env node
// new_provider: verifies an email address by a code. The gateway reads the address, and makes, counts,
// compares and expires the codes.
import { appendFile } from "node:fs/promises";
import { Fault, serve } from "./moongate.mjs";

let file;

export const provider = serve(import.meta.url, {
  identifier: "email",
  settings: [{ name: "file", kind: "text", default: "codes.txt", help: "The file that codes are written to while you try it out." }],
  words: { title: "New provider", instruction: "We send you a code.", labels: { email: "Email address", code: "Code" } },

  configure(values) {
    file = values.file;
  },

  /** Your own way to the person comes here. If it fails, throw: the operator is told, and the person is not charged. */
  async deliver(message) {
    try {
      await appendFile(file, `${message.to.value} ${message.text}\n`);
    } catch (error) {
      throw new Fault(`the file cannot be written: ${error.code}`);
    }
  },
});
