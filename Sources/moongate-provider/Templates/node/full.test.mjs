// Tests of new_provider. Those of the provider run offline; the conformance suite needs the `moongate` program (named by MOONGATE, or in PATH).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { offlineTools, step } from "./moongate.mjs";
import { provider } from "./new_provider.mjs";

const moongate = process.env.MOONGATE ?? "moongate";
const isThere = spawnSync(moongate, ["--version"]).error === undefined;
const right = "ninety-nine quiet pigeons";
const wrong = "ninety-nine quiet penguins";

/** The answer to a user who types a phrase. */
const submit = (phrase, said = {}) => provider.submit(step({ fields: { phrase }, account: { id: "a1" }, ...said }));

/** The record of an account that has chosen the phrase. */
async function chosen() {
  const { state } = await submit(right, { purpose: "set" });
  return (await submit(right, { purpose: "set", state })).result.proved.record.replace;
}

const withPhrase = async () => ({ account: { id: "a1", record: await chosen() } });

test("the right phrase is proved", async () => {
  assert.deepEqual((await submit(right, await withPhrase())).result.proved.facts, { words: "3" });
});

test("a wrong phrase is refused", async () => {
  assert.equal((await submit(wrong, await withPhrase())).result.refused, "wrong_phrase");
});

test("two accounts with one phrase have two records", async () => {
  assert.notEqual(await chosen(), await chosen());
  assert.ok(!(await chosen()).includes("pigeons"));
});

test("a phrase is chosen by typing it twice", async () => {
  const { result, state } = await submit(right, { purpose: "set" });
  assert.equal(result.ask.fields[0].name, "phrase");
  const second = (await submit(wrong, { purpose: "set", state })).result;
  assert.deepEqual([second.refused, second.then.fields[0].name], ["no_match", "phrase"]);
});

test("what is set is not set again", async () => {
  // Attack: a session that was left open chooses another phrase.
  assert.equal((await submit(right, { purpose: "set", ...(await withPhrase()) })).result.refused, "already_set");
  assert.ok((await submit(right, { purpose: "set", flowPurpose: "reset", ...(await withPhrase()) })).result.ask);
});

test("an unknown account takes the same work", async () => {
  // Attack: the time of the answer tells who is registered.
  const [known, unknown] = [offlineTools(), offlineTools()];
  const answers = [
    await submit(wrong, { ...(await withPhrase()), tools: known }),
    await submit(wrong, { account: undefined, tools: unknown }),
  ];
  assert.deepEqual(answers[0].result, answers[1].result);
  assert.deepEqual(known.calls, unknown.calls);
});

test("disabling removes the record", async () => {
  assert.deepEqual((await submit(right, { purpose: "disable", ...(await withPhrase()) })).result.proved.record, {});
});

test("a short phrase is malformed", async () => {
  assert.equal((await submit("short")).result.malformed.field, "phrase");
});

test("holds the conformance suite", { skip: !isThere && "needs the moongate program: put it into PATH, or name it by MOONGATE" }, () => {
  const told = spawnSync(moongate, ["provider", "test", "./new_provider.mjs"], { cwd: fileURLToPath(new URL(".", import.meta.url)), encoding: "utf8" });
  assert.equal(told.status, 0, told.stdout + told.stderr);
});
