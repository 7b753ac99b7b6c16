import MoongateConformance

// Two programs with computed answers: recovery codes that they show, and codes of an app. Each exists as a correct
// version and with single parts broken.

extension BrokenProgramsTests {
  static let ofRecovery = #"""
    { "sets_up": true, "one_time": true, "right": { "code": { "from_shown": "list.0" } }, "wrong": { "code": "aaaa-bbbb-cccc" } }
    """#

  /// Recovery codes, each valid once.
  static func recovery(
    keeps: String = "hmac.new(salt, code.replace('-', '').encode(), 'sha256').hexdigest()",
    left: String = "[one for one in kept['codes'] if one != typed]",
    once: String = "True", counts: String = "True", reads: String = "params['fields'].get('code', '').lower()"
  ) -> String {
    head + """
      import hmac, secrets
      CODE = {"name": "code", "kind": "text"}

      def hello(params):
          # The list is shown in a round without a field, so the declared one is not required.
          return {"protocol": 1, "shape": "full", "policy": POLICY.replace("email", "account"), "submit": [{**CODE, "required": False}],
                  "outcomes": [{"reason": "wrong_code", "sentence": "This is none of your codes.", "counts": \(counts)},
                               {"reason": "already_set", "sentence": "You have codes.", "counts": False}], "role": ["factor"]}

      def digest(code, salt): return \(keeps)

      def begin(params):
          account = params.get("account") or {}
          if params["purpose"] != "set": return {"ask": {"fields": [CODE]}}
          if account.get("record"): return {"refused": "already_set"}
          codes = ["-".join(secrets.token_hex(2) for _ in range(3)) for _ in range(8)]
          salt = os.urandom(16)
          kept = {"salt": salt.hex(), "codes": [digest(code, salt) for code in codes]}
          return {"ask": {"fields": [], "state": json.dumps(kept), "show": [{"kind": "text", "text": "Keep these codes."}, {"kind": "list", "items": codes}]}}

      def submit(params):
          record = (params.get("account") or {}).get("record")
          if params["purpose"] == "set":
              if record: return {"refused": "already_set"}
              return {"proved": {"record": {"replace": params["state"], "once": \(once)}}}
          kept = json.loads(record or '{"salt": "", "codes": []}')
          typed = digest(\(reads), bytes.fromhex(kept["salt"]))
          if not any([hmac.compare_digest(one.encode(), typed.encode()) for one in kept["codes"]]): return {"refused": "wrong_code"}
          if params["purpose"] == "disable": return {"proved": {"record": {}}}
          return {"proved": {"record": {"replace": json.dumps({**kept, "codes": \(left)}), "once": True}}}

      METHODS = {"hello": hello, "configure": configure, "begin": begin, "submit": submit}
      FAULT = lambda error: type(error).__name__

      """ + tail
  }

  static let ofAuthenticator = #"""
    {
      "sets_up": true, "one_time": true, "lifetime": "60s",
      "right": { "code": { "totp_of": "key" } },
      "wrong": { "code": { "totp_of": "key", "offset": -120 } }
    }
    """#

  /// An authenticator app (RFC 6238).
  static func authenticator(
    window: String = "(0, -1)", fresh: String = "step > last", once: String = "True", digits: String = "code"
  ) -> String {
    head + """
      import base64, hmac, struct
      CODE = {"name": "code", "kind": "digits", "length": 6}

      def hello(params):
          return {"protocol": 1, "shape": "full", "policy": POLICY.replace("email", "account"), "submit": [CODE],
                  "outcomes": [{"reason": "invalid_code", "sentence": "This code is not right."},
                               {"reason": "already_set", "sentence": "There is an app.", "counts": False}], "role": ["factor"]}

      def made(key, step):
          digest = hmac.new(base64.b32decode(key), struct.pack(">q", step), "sha1").digest()
          start = digest[-1] & 15
          return "%06d" % ((struct.unpack(">I", digest[start:start + 4])[0] & 0x7fffffff) % 1000000)

      def begin(params):
          if params["purpose"] != "set": return {"ask": {"fields": [CODE]}}
          if (params.get("account") or {}).get("record"): return {"refused": "already_set"}
          key = base64.b32encode(os.urandom(20)).decode()
          return {"ask": {"fields": [CODE], "state": key, "show": [{"kind": "secret", "text": key}, {"kind": "qr", "text": "otpauth://totp/Toy?secret=" + key}]}}

      def submit(params):
          record, isSet, typed = (params.get("account") or {}).get("record"), params["purpose"] == "set", params["fields"]["code"]
          if isSet and record: return {"refused": "already_set"}
          if not isSet and not record: return {"refused": "invalid_code"}
          key, last = (params["state"], -1) if isSet else (record.split()[0], int(record.split()[1]))
          for drift in \(window):
              step = params["now"] // 30000 + drift
              code, typed = made(key, step), typed.replace(" ", "").replace("-", "")
              if hmac.compare_digest(\(digits).encode(), \(digits.replacing("code", with: "typed")).encode()) and \(fresh):
                  if params["purpose"] == "disable": return {"proved": {"record": {}}}
                  return {"proved": {"record": {"replace": key + " " + str(step), "once": \(once)}}}
          return {"refused": "invalid_code"}

      METHODS = {"hello": hello, "configure": configure, "begin": begin, "submit": submit}
      FAULT = lambda error: type(error).__name__

      """ + tail
  }

  private static func recovery(_ what: String, _ rules: Set<ConformanceRule>, _ program: String) -> Broken {
    Broken(what: "recovery codes, \(what)", rules: rules, program: program, subject: ofRecovery)
  }

  private static func authenticator(_ what: String, _ rules: Set<ConformanceRule>, _ program: String) -> Broken {
    Broken(what: "an authenticator app, \(what)", rules: rules, program: program, subject: ofAuthenticator)
  }

  static let examples: [Broken] = [
    recovery("kept as they are", [.secrets], recovery(keeps: "code")),
    recovery("under a hash without a salt", [.hashing], recovery(keeps: "hashlib.sha256(code.encode()).hexdigest()")),
    // Attack: an observed code is used again.
    recovery("that are never spent", [.concurrency], recovery(left: "kept['codes']")),
    recovery("made without once", [.once], recovery(once: "False")),
    recovery("whose wrong ones are not counted", [.counted], recovery(counts: "False")),
    recovery(
      "of which two parts are compared", [.wholeAnswer],
      recovery(keeps: "hmac.new(salt, code[:9].encode(), 'sha256').hexdigest()")),
    authenticator("whose codes live for minutes", [.expiry], authenticator(window: "(0, -1, -2, -3)")),
    authenticator("whose codes are good twice", [.concurrency], authenticator(fresh: "True")),
    authenticator("without once", [.concurrency, .once], authenticator(once: "False")),
    authenticator("of which four digits are compared", [.wholeAnswer], authenticator(digits: "code[:4]")),
  ]
}
