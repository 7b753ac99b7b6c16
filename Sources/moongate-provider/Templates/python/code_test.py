"""Tests of new_provider. Those of the provider run offline; the conformance suite needs the `moongate` program (named by MOONGATE, or in PATH)."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from moongate import Fault, Identifier, Message
from new_provider import NewProvider

MOONGATE = os.environ.get("MOONGATE", "moongate")


class Delivery(unittest.TestCase):
    def provider(self, file):
        provider = NewProvider()
        provider.configure({"file": str(file)})
        return provider

    def test_writes_the_message_of_the_policy(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "codes.txt")
            self.provider(file).deliver(Message(to=Identifier("email", "asha@example.com"), text="123456 is your code", code="123456"))
            self.assertEqual(file.read_text(), "asha@example.com 123456 is your code\n")

    def test_a_failure_is_a_fault_without_the_code(self):
        with self.assertRaises(Fault) as fault:
            self.provider("/nowhere/codes.txt").deliver(Message(to=Identifier("email", "asha@example.com"), text="123456 is your code"))
        self.assertNotIn("123456", str(fault.exception))


class Conformance(unittest.TestCase):
    @unittest.skipUnless(shutil.which(MOONGATE), "needs the moongate program: put it into PATH, or name it by MOONGATE")
    def test_holds_the_suite(self):
        told = subprocess.run([MOONGATE, "provider", "test", "./new_provider.py"], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)


if __name__ == "__main__":
    unittest.main()
