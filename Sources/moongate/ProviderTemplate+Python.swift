import Foundation
import MoongateSDK

// A program in Python that is a provider: nothing but its standard library, about thirty lines, and a test that runs the suite.

extension ProviderTemplate {
  /// - Parameter isPlaced: whether it was said where the folder is to be.
  static func python(_ new: NewProvider, isPlaced: Bool = false) -> ProviderTemplate {
    let place = isPlaced ? "In the configuration's folder, change:" : "Copy this folder into your configuration's folder, and change there:"
    let fill = { (text: String) in
      text.replacing("@NAME@", with: new.name.rawValue).replacing("@TITLE@", with: new.title).replacing("@PLACE@", with: place)
    }
    let isCode = new.shape == .code
    let program = "\(new.name).py"
    var files = [
      program: isCode ? pythonCode : pythonFull, "policy.lua": isCode ? codePolicy : fullPolicy,
      "README.md": isCode ? pythonCodeReadme : pythonFullReadme, "test_\(new.name).py": pythonTest,
      "subject.json": isCode ? pythonCodeSubject : pythonSubject,
    ]
    files = files.mapValues(fill)
    var steps: [(command: String, what: String)] = [
      ("moongate provider test ./\(program) --subject subject.json", "runs the conformance suite against it"),
      ("python3 -m unittest", "does the same, with your own tests beside it"),
    ]
    // Who said where it is to be has it there.
    if !isPlaced { steps.append(("cp -r . …/config/\(new.name)", "into the configuration's folder; README.md says which lines name it there")) }
    return ProviderTemplate(files: files, programs: [program], steps: steps)
  }

  private static let pythonCode = ##"""
    #!/usr/bin/env python3
    """@NAME@: proves an email address by a code. The gateway reads the address, and makes, counts, compares and expires the codes."""
    import json, pathlib, sys

    def hello(params):
        policy = pathlib.Path(__file__).with_name("policy.lua").read_text()
        return {"protocol": 1, "shape": "code", "identifier": "email",
                "settings": [{"name": "file", "kind": "text", "default": "codes.txt", "help": "where codes are written, while you try it out"}],
                "words": {"title": "@TITLE@", "instruction": "We send you a code.", "labels": {"email": "Email address", "code": "Code"}},
                "policy": policy.replace('"@NAME@"', json.dumps(params["name"]))}

    def configure(params):
        global settings
        settings = params["settings"]
        return {}

    def deliver(params):
        # Your own way to the person comes here. Raise where it fails: the operator is told, and the person is not charged.
        with open(settings["file"], "a") as file:
            file.write(f"{params['to']['value']} {params['text']}\n")
        return {}

    METHODS = {"hello": hello, "configure": configure, "deliver": deliver}

    """## + pythonLoop

  private static let pythonFull = ##"""
    #!/usr/bin/env python3
    """@NAME@: proves a phrase that the account has chosen. The gateway counts the tries before it asks, and keeps the record sealed."""
    import hashlib, hmac, json, os, pathlib, sys

    FIELD = {"name": "phrase", "kind": "password"}

    def hello(params):
        policy = pathlib.Path(__file__).with_name("policy.lua").read_text()
        return {"protocol": 1, "shape": "full", "submit": [FIELD],
                "outcomes": [{"reason": "wrong_phrase", "sentence": "This is not your phrase. Try again."},
                             {"reason": "no_phrase", "sentence": "You have not chosen a phrase yet.", "counts": False},
                             {"reason": "already_set", "sentence": "You have chosen a phrase already.", "counts": False}],
                "words": {"title": "@TITLE@", "instruction": "Type the phrase that you have chosen.", "labels": {"phrase": "Phrase"}},
                "policy": policy.replace('"@NAME@"', json.dumps(params["name"]))}

    def record(params):
        return params.get("account", {}).get("record")

    def scrypt(phrase, salt):
        return hashlib.scrypt(phrase.encode(), salt=salt, n=2**14, r=8, p=1).hex()

    def obstacle(params):
        if params["purpose"] != "set":
            return None if record(params) else {"refused": "no_phrase"}
        # A session that was left open must not choose another phrase. Who forgot theirs proves something else first, in the flow @NAME@_reset.
        return {"refused": "already_set"} if record(params) and not params["flow"].endswith("_reset") else None

    def begin(params):
        return obstacle(params) or {"ask": {"fields": [FIELD]}}

    def submit(params):
        phrase = params["fields"]["phrase"]
        if len(phrase) < 12:
            return {"malformed": {"field": "phrase", "detail": "A phrase has at least 12 characters."}}
        if obstacle(params):
            return obstacle(params)
        if params["purpose"] == "set":
            salt = os.urandom(16)
            return {"proved": {"record": {"replace": f"{salt.hex()} {scrypt(phrase, salt)}", "once": True}}}
        salt, kept = record(params).split()
        if not hmac.compare_digest(kept, scrypt(phrase, bytes.fromhex(salt))):
            return {"refused": "wrong_phrase"}
        return {"proved": {"record": {}} if params["purpose"] == "disable" else {}}

    METHODS = {"hello": hello, "configure": lambda params: {}, "begin": begin, "submit": submit}

    """## + pythonLoop

  /// Reads calls and answers them.
  private static let pythonLoop = ##"""

    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "shutdown":
            break
        if "id" in message and message.get("method") in METHODS:
            try:
                answer = {"result": METHODS[message["method"]](message["params"])}
            except Exception as error:  # Its kind alone: its text may hold what was typed.
                answer = {"error": {"code": 1, "message": type(error).__name__}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)

    """##

  private static let pythonCodeSubject = """
    {
      "sends_by": { "file": "file" }
    }

    """

  private static let pythonSubject = """
    {
      "sets_up": true,
      "right": { "phrase": "ninety-nine quiet pigeons" },
      "wrong": { "phrase": "ninety-nine quiet penguins" },
      "malformed_submits": [{ "phrase": "short" }]
    }

    """

  private static let pythonTest = #"""
    """The conformance suite; MOONGATE names the program where it is not in PATH."""
    import os, pathlib, subprocess, unittest

    HERE = pathlib.Path(__file__).parent


    class Conformance(unittest.TestCase):
        def test_holds_the_suite(self):
            told = subprocess.run(
                [os.environ.get("MOONGATE", "moongate"), "provider", "test", "./@NAME@.py", "--subject", "subject.json"],
                cwd=HERE, capture_output=True, text=True)
            self.assertEqual(told.returncode, 0, told.stdout + told.stderr)


    if __name__ == "__main__":
        unittest.main()

    """#

  private static let pythonReadmeHead = """
    # @NAME@

    A provider for Moongate that is a program of its own: `@NAME@.py`, with its default policy in `policy.lua` beside it. Every message that it gets
    and writes is described in Moongate's `Plugins/README.md`.

        moongate provider test ./@NAME@.py --subject subject.json     # the conformance suite, rule by rule
        python3 -m unittest                                           # the same, with your own tests

    ## To sign in with it

    @PLACE@


    """

  private static let pythonCodeReadme =
    pythonReadmeHead + """
      - `gateway.lua`: `providers = { …, @NAME@ = exec { "./@NAME@/@NAME@.py" } }`
      - `flows/login.lua`: put `"@NAME@"` into `any_of { … }`
      - `policies/@NAME@.lua`: `return policy "@NAME@" {}` to keep the defaults. Where `moongate check` then says that all ways in together are
        above your `risk_budget`, longer codes: `return policy "@NAME@" { code = { length = 8 } }`

      `moongate check` starts it for its handshake; a running gateway takes it over within two seconds, and again whenever you save it.

      """

  private static let pythonFullReadme =
    pythonReadmeHead + """
      - `gateway.lua`: `providers = { …, @NAME@ = exec { "./@NAME@/@NAME@.py" } }`
      - `flows/@NAME@_set.lua`: `return flow "@NAME@_set" { account = "existing", steps = { { "@NAME@" } } }`, where somebody who is
        signed in chooses a phrase; and `{ "@NAME@" }` as a step of `flows/step_up.lua`, where it is asked for
      - `flows/@NAME@_disable.lua`, written like @NAME@_set: one that is set is not set again, so who wants another turns it off first, by typing it
      - `policies/@NAME@.lua`: `return policy "@NAME@" {}` to keep the defaults, or what you want otherwise

      `moongate check` starts it for its handshake; a running gateway takes it over within two seconds, and again whenever you save it.

      """
}
