"""Tests of new_provider. Those of the provider run offline; the conformance suite needs the `moongate` program (named by MOONGATE, or in PATH)."""

import os
import pathlib
import shutil
import subprocess
import unittest

from moongate import Account, OfflineTools, Step
from new_provider import NewProvider

MOONGATE = os.environ.get("MOONGATE", "moongate")
PHRASE = "ninety-nine quiet pigeons"


def submit(phrase, purpose="prove", record=None, has_account=True, **more):
    """The answer to a user who types a phrase."""
    account = Account("a1", record) if has_account else None
    return NewProvider().submit(Step(purpose=purpose, fields={"phrase": phrase}, account=account, **more)).result


def chosen():
    """The record of an account that has chosen the phrase."""
    first = NewProvider().submit(Step(purpose="set", fields={"phrase": PHRASE}, account=Account("a1")))
    return submit(PHRASE, "set", state=first.state)["proved"]["record"]["replace"]


class Phrase(unittest.TestCase):
    def test_the_right_phrase_is_proved(self):
        self.assertEqual(submit(PHRASE, record=chosen()), {"proved": {"facts": {"words": "3"}}})

    def test_a_wrong_phrase_is_refused(self):
        self.assertEqual(submit("ninety-nine quiet penguins", record=chosen()), {"refused": "wrong_phrase"})

    def test_two_accounts_with_one_phrase_have_two_records(self):
        self.assertNotEqual(chosen(), chosen())
        self.assertNotIn("pigeons", chosen())

    def test_a_phrase_is_chosen_by_typing_it_twice(self):
        answer = NewProvider().submit(Step(purpose="set", fields={"phrase": PHRASE}, account=Account("a1")))
        self.assertEqual(answer.result["ask"]["fields"][0]["name"], "phrase")
        second = submit("ninety-nine quiet penguins", "set", state=answer.state)
        self.assertEqual((second["refused"], second["then"]["fields"][0]["name"]), ("no_match", "phrase"))

    def test_what_is_set_is_not_set_again(self):
        """Attack: a session that was left open chooses another phrase."""
        self.assertEqual(submit(PHRASE, "set", record=chosen()), {"refused": "already_set"})
        self.assertIn("ask", submit(PHRASE, "set", record=chosen(), flow_purpose="reset"))

    def test_nobody_takes_the_same_work(self):
        """Attack: the time of the answer tells who is registered."""
        known, unknown = OfflineTools(), OfflineTools()
        self.assertEqual(submit("a phrase of nobody", record=chosen(), tools=known), submit("a phrase of nobody", has_account=False, tools=unknown))
        self.assertEqual(known.calls, unknown.calls)

    def test_disabling_removes_the_record(self):
        self.assertEqual(submit(PHRASE, "disable", record=chosen()), {"proved": {"record": {}}})

    def test_a_short_phrase_is_malformed(self):
        self.assertEqual(submit("short")["malformed"]["field"], "phrase")


class Conformance(unittest.TestCase):
    @unittest.skipUnless(shutil.which(MOONGATE), "needs the moongate program: put it into PATH, or name it by MOONGATE")
    def test_holds_the_suite(self):
        told = subprocess.run([MOONGATE, "provider", "test", "./new_provider.py"], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)


if __name__ == "__main__":
    unittest.main()
