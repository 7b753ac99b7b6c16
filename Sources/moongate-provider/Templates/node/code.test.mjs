// Tests of new_provider. Those of the provider run offline; the conformance suite needs the `moongate` program (named by MOONGATE, or in PATH).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Fault, message } from "./moongate.mjs";
import { provider } from "./new_provider.mjs";

const moongate = process.env.MOONGATE ?? "moongate";
const isThere = spawnSync(moongate, ["--version"]).error === undefined;
const code = message({ to: { kind: "email", value: "asha@example.com" }, text: "123456 is your code", code: "123456" });

test("writes the message of the policy", async () => {
  const folder = await mkdtemp(join(tmpdir(), "codes-"));
  provider.configure({ file: join(folder, "codes.txt") });
  await provider.deliver(code);
  assert.equal(await readFile(join(folder, "codes.txt"), "utf8"), "asha@example.com 123456 is your code\n");
  await rm(folder, { recursive: true });
});

test("a failure is a fault without the code", async () => {
  provider.configure({ file: "/nowhere/codes.txt" });
  await assert.rejects(provider.deliver(code), (error) => error instanceof Fault && !error.message.includes("123456"));
});

test("holds the conformance suite", { skip: !isThere && "needs the moongate program: put it into PATH, or name it by MOONGATE" }, () => {
  const told = spawnSync(moongate, ["provider", "test", "./new_provider.mjs"], { cwd: fileURLToPath(new URL(".", import.meta.url)), encoding: "utf8" });
  assert.equal(told.status, 0, told.stdout + told.stderr);
});
