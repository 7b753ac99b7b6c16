#!/usr/bin/env python3
"""new_provider: verifies an email address by a code. The gateway reads the address, and makes, counts, compares and expires the codes."""

import moongate
from moongate import Fault, Setting, Words


class NewProvider(moongate.Provider):
    identifier = "email"
    settings = [Setting("file", default="codes.txt", help="The file that codes are written to while you try it out.")]
    words = Words("New provider", "We send you a code.", {"email": "Email address", "code": "Code"})

    def deliver(self, message):
        """Your own way to the person comes here. If it fails, raise: the operator is told, and the person is not charged."""
        try:
            with open(self.values["file"], "a") as file:
                file.write(f"{message.to.value} {message.text}\n")
        except OSError as error:
            raise Fault(f"the file cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    moongate.run(NewProvider())
