import MoongateConformance

// Programs with broken answers, records and declarations.

extension BrokenProgramsTests {
  /// Attack: each of these lets an attacker guess more often, or with less knowledge, than the policy allows.
  static let answers: [Broken] = [
    word("a wrong answer that is not counted", [.counted], declares: "said['outcomes'][0]['counts'] = False"),
    word("the last word of three", [.wholeAnswer], submits: "word = 'a quiet ' + (word.split() or [''])[-1]"),
    word(
      "the first eight characters", [.wholeAnswer],
      submits: "word = 'a quiet pigeon' if word[:8] == 'a quiet ' else word",
      subject: phrase.replacing("a quiet penguin", with: "some loud geese")),
    word("reads what came with begin", [.askedFields], submits: "params['fields']['email']"),
    word(
      "reads a field that it does not ask for", [.askedFields],
      declares: "said['submit'].append({'name': 'master', 'kind': 'text', 'required': False})",
      submits: "if 'master' in params['fields']: return {'proved': {}}"),
    word(
      "proves in begin when all fields come along", [.proof],
      begins: "if 'word' in params['fields']: return {'proved': {}}"),
    word(
      "judges in begin", [.proof],
      begins: "if params['fields'].get('word', 'a quiet pigeon') != 'a quiet pigeon': return {'refused': 'wrong_word'}"),
    word(
      "works longer for who is known", [.timing],
      submits: "if 'account' in params: hashlib.scrypt(word.encode(), salt=b'the same for all', n=2**14, r=8, p=1)"),
    word(
      "asks for a field twice", [.rounds],
      begins: "return {'ask': {'fields': [{'name': 'word', 'kind': 'password'}] * 2}}"),
    word(
      "tells what it does not declare", [.facts],
      proves: "{'identifiers': [{**params['identifier'], 'attributes': {'vip': 'true'}}]}"),
    word(
      "says something else at each start", [.descriptor],
      declares: "said['words'] = {'title': 'Word ' + os.urandom(4).hex()}"),
    word(
      "words in a language that there is not", [.descriptor],
      declares: "said['words'] = {'title': 'Word', 'translations': {'qzx': {'Word': 'Drow'}}}"
    ),
    word(
      "a flow about another's factor", [.descriptor],
      declares:
        "said['flows'] = {'toy_reset': 'return flow \"toy_reset\" { purpose = \"reset\", provider = \"pin\", steps = { { \"toy\" } } }'}"
    ),
  ]

  // MARK: a secret that is set

  static let chosen = #"""
    {"sets_up": true, "right": {"word": "a quiet pigeon"}, "wrong": {"word": "some loud geese"}}
    """#

  /// A program that stores a word.
  static func setting(
    keeps: String = "salt.hex() + ':' + hashlib.scrypt(word.encode(), salt=salt, n=2**10, r=8, p=1).hex()",
    once: String = "True",
    upgrades: String? = nil, sets: String = "pass"
  ) -> String {
    head + """
      def hello(params):
          return {"protocol": 1, "shape": "full", "policy": POLICY.replace("email", "account"), "submit": [{"name": "word", "kind": "password"}],
                  "outcomes": [{"reason": "wrong_word", "sentence": "This is not the word."},
                               {"reason": "already_set", "sentence": "There is one.", "counts": False}]\(upgrades == nil ? "" : ", 'record_version': 2")}

      def begin(params): return {"ask": {"fields": [{"name": "word", "kind": "password"}]}}

      def kept(word, salt, of): return \(keeps)

      def submit(params):
          word, account = params["fields"]["word"], params.get("account") or {}
          record = account.get("record")
          if params["purpose"] == "set":
              if record: return {"refused": "already_set"}
              \(sets)
              return {"proved": {"record": {"replace": kept(word, os.urandom(16), account["id"]), "once": \(once)}}}
          if (record or "").startswith("old:"): return {"proved": {}} if record == "old:" + word else {"refused": "wrong_word"}
          salt = (record or "").split(":")[0]
          salt = bytes.fromhex(salt) if len(salt) == 32 else b""
          if not record or kept(word, salt, account["id"]) != record: return {"refused": "wrong_word"}
          return {"proved": {"record": {}} if params["purpose"] == "disable" else {}}

      METHODS = {"hello": hello, "configure": configure, "begin": begin, "submit": submit}
      METHODS["upgrade"] = lambda params: {"record": \(upgrades ?? "params['record']")}
      FAULT = lambda error: type(error).__name__

      """ + tail
  }

  /// The same with a version 1 record, which is the word itself.
  static let chosenBefore = chosen.replacing(
    "{\"sets_up\"", with: "{\"old_records\": {\"1\": \"a quiet pigeon\"}, \"sets_up\"")

  private static func setting(_ what: String, _ rule: ConformanceRule, keeps: String) -> Broken {
    Broken(what: what, rules: [rule], program: setting(keeps: keeps), subject: chosen)
  }

  static let secrets: [Broken] = [
    Broken(what: "sets its record without once", rules: [.once], program: setting(once: "False"), subject: chosen),
    Broken(
      what: "asks for the word twice and compares nothing", rules: [.rounds],
      program: setting(sets: "if 'state' not in params: return {'ask': {**begin(params)['ask'], 'state': 'again'}}"),
      subject: chosen),
    Broken(
      what: "an upgrade that loses the word", rules: [.upgrade], program: setting(upgrades: "'old:'"),
      subject: chosenBefore),
    setting("the word under SHA-256", .hashing, keeps: "hashlib.sha256(word.encode()).hexdigest()"),
    setting(
      "the word under SHA-1 with the account's id", .hashing,
      keeps: "hashlib.sha1((of + ':' + word).encode()).hexdigest()"),
    setting(
      "the word under a fast hash with a salt", .hashing,
      keeps: "salt.hex() + ':' + hashlib.sha256(salt + word.encode()).hexdigest()"),
    setting(
      "the word under a slow hash with one salt for all", .hashing,
      keeps:
        "json.dumps({'of': of, 'word': hashlib.pbkdf2_hmac('sha256', word.encode(), b'salt and pepper', 10).hex()})"),
  ]
}
