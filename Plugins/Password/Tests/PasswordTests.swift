import MoongateSDK
import Synchronization
import Testing

@testable import Password

@Suite("The password step") struct PasswordStepTests {
  let password = Password()

  @Test("the identifier is normalized if one is given") func identifier() throws {
    #expect(try password.readIdentifier(.fields(["email": " Ada@Example.COM "]))?.value == "ada@example.com")
    #expect(try password.readIdentifier(.fields(["password": "x"])) == nil)
    #expect(throws: InputProblem.self) { try password.readIdentifier(.fields(["email": "ada"])) }
    #expect(throws: InputProblem.self) {
      try password.readIdentifier(ProviderInput(fields: ["email": .flag(true)], defaultRegion: "IN"))
    }
  }

  @Test("a user name is read in place of an address") func name() throws {
    #expect(try password.readIdentifier(.fields(["name": " Ada.L "])) == Identifier(try #require(UserName("ada.l"))))
    #expect(try password.readIdentifier(.fields(["name": "ada", "email": ""]))?.kind == .name)
    #expect(try password.readIdentifier(.fields(["name": "", "email": "ada@example.com"]))?.kind == .email)
    for fields in [
      ["name": "ada", "email": "ada@example.com"], ["name": "ada@example.com"], ["name": "+919999999999"],
      ["name": "9999999999"], ["name": "аda"], ["name": "", "email": ""],
    ] {
      #expect(throws: InputProblem.self, "\(fields)") { try password.readIdentifier(.fields(fields)) }
    }
  }

  @Test("a correct password is proved, a wrong one is refused") func prove() async throws {
    #expect(try await password.begin(.step(.prove), .fields(["email": "ada@example.com"])).told == "asks password")
    #expect(try await password.submit(.step(.prove), .fields(["password": "correct horse"])).told == "kept")
    #expect(try await password.submit(.step(.prove), .fields(["password": "correct horsf"])).told == "invalid_password")
    #expect(
      try await password.submit(
        .step(.prove, hasher: CountingHasher(isOld: true)), .fields(["password": "correct horse"])
      ).told
        == "new correct horse")
  }

  /// Attack: concurrent resets. The core completes only one flow per record.
  @Test("setting takes effect once", arguments: [true, false]) func once(hasAccount: Bool) async throws {
    let step = StepContext.step(.set, in: .reset, hasAccount: hasAccount)
    guard case .proved(let proof) = try await password.submit(step, .fields(["password": "another horse"])),
      case .replaceOnce = proof.record
    else {
      Issue.record("could overwrite a rival's")
      return
    }
  }

  @Test("an unknown user and a user without a password cost the same work and get the same answer") func unknown()
    async throws
  {
    for step in [(hasAccount: false, stored: nil), (true, nil)] as [(hasAccount: Bool, stored: String?)] {
      let hasher = CountingHasher()
      let context = StepContext.step(.prove, hasAccount: step.hasAccount, stored: step.stored, hasher: hasher)
      #expect(try await password.begin(context, .fields(["email": "ada@example.com"])).told == "asks password")
      #expect(try await password.submit(context, .fields(["password": "correct horse"])).told == "invalid_password")
      #expect(hasher.asked.withLock { $0 } == ["nothing"])
    }
  }

  /// Attack: a password of several spellings costs another number of hashes with an account than without one.
  @Test("every spelling is compared, with and without an account") func spellings() async throws {
    let decomposed = "Ju\u{308}rgen-cafe\u{301}-77"
    for (typed, count) in [
      ("correct horse", 1), (decomposed, 2), ("a\u{A0}b\u{3000}c-9999", 2), ("\u{A0}" + decomposed, 3),
    ] {
      for hasAccount in [true, false] {
        let hasher = CountingHasher()
        let step = StepContext.step(.prove, hasAccount: hasAccount, stored: "of another", hasher: hasher)
        #expect(try await password.submit(step, .fields(["password": typed])).told == "invalid_password")
        #expect(hasher.asked.withLock { $0.count } == count, "\(typed)")
      }
    }
  }

  @Test("a password hashed elsewhere as it was typed is accepted, and kept in the gateway's spelling") func foreign()
    async throws
  {
    let (composed, decomposed) = ("Jürgen-café-77", "Ju\u{308}rgen-cafe\u{301}-77")
    for (stored, isOwn) in [(composed, true), (decomposed, false)] {
      let hasher = CountingHasher(isOld: true)
      let step = StepContext.step(.prove, stored: "of \(stored)", hasher: hasher)
      let told = try await password.submit(step, .fields(["password": decomposed])).told
      #expect(
        told.unicodeScalars.elementsEqual((isOwn ? "new \(composed)" : "of \(composed)").unicodeScalars))
    }
    let spaced = StepContext.step(.prove, stored: "of correct\u{A0}horse", hasher: CountingHasher(isOld: true))
    #expect(try await password.submit(spaced, .fields(["password": "correct\u{A0}horse"])).told == "of correct horse")
  }

  @Test("a current hash of another spelling is replaced if the whole password was judged", arguments: [true, false])
  func otherSpelling(isWhole: Bool) async throws {
    let (composed, decomposed) = ("Jürgen-café-77", "Ju\u{308}rgen-cafe\u{301}-77")
    let form = isWhole ? "$argon2id$" : "$2b$"
    let step = StepContext.step(.prove, stored: form + decomposed, hasher: CountingHasher(form: form))
    let told = try await password.submit(step, .fields(["password": decomposed])).told
    #expect(told.unicodeScalars.elementsEqual((isWhole ? "of \(composed)" : "kept").unicodeScalars))
    let own = StepContext.step(.prove, stored: form + composed, hasher: CountingHasher(form: form))
    #expect(try await password.submit(own, .fields(["password": decomposed])).told == "kept")
  }

  @Test("a new password is stored in the form of RFC 8265") func opaqueString() async throws {
    let step = StepContext.step(.set, in: .reset)
    let told = try await password.submit(step, .fields(["password": "Ju\u{308}rgen\u{3000}\u{A0}café\0"])).told
    #expect(told.unicodeScalars.elementsEqual("of Jürgen  café\0".unicodeScalars))
  }

  @Test("input without an identifier or account is malformed") func missingIdentifierIsMalformed() async throws {
    let step = StepContext.step(.prove, email: nil, hasAccount: false)
    #expect(try await password.begin(step, .fields([:])).told == "invalid_input email")
    #expect(throws: InputProblem(field: "email", reason: .invalidInput, detail: "email is missing.")) {
      try password.check(step, .fields(["password": "correct horse"]))
    }
  }

  @Test("registration asks for names and a password, in one step or in two") func register() async throws {
    let all = ["email": "ada@example.com", "password": "correct horse", "first_name": " Ada ", "last_name": "Lovelace"]
    guard case .proved(let atOnce) = try await password.submit(.step(.set, hasAccount: false), .fields(all)),
      case .ask(_, let state, _) = try await password.begin(
        .step(.set, hasAccount: false), .fields(all.filter { $0.key != "password" })),
      case .proved(let after) = try await password.submit(
        .step(.set, hasAccount: false, state: state), .fields(["password": "correct horse"]))
    else {
      Issue.record("not taken")
      return
    }
    for proof in [atOnce, after] {
      #expect(proof.claimed.map(\.value) == ["ada@example.com"] && proof.proved.isEmpty, "said, and not proved")
      #expect(proof.firstName == "Ada" && proof.lastName == "Lovelace")
      #expect(StepAnswer.proved(proof).told == "of correct horse")
    }
  }

  @Test(
    "invalid names are refused",
    arguments: ["", "   ", "A\nB", "A\0", "\u{202E}evil", "A\u{2028}B", String(repeating: "a", count: 101)])
  func names(name: String) async throws {
    let fields = ["email": "ada@example.com", "password": "correct horse", "first_name": "Ada", "last_name": name]
    #expect(try await password.begin(.step(.set, hasAccount: false), .fields(fields)).told == "invalid_input last_name")
    #expect(
      try await password.submit(.step(.set, hasAccount: false), .fields(fields)).told == "invalid_input last_name")
  }

  @Test("names of all scripts are accepted", arguments: ["Ada", "Zoë", "李", "O'Neil", "आदा", "Nguyễn Thị", "👩‍🚀"])
  func scripts(name: String) throws {
    #expect(try Person.name("first_name", in: .fields(["first_name": name])) == name)
  }

  @Test("a reset does not ask for names") func reset() async throws {
    let step = StepContext.step(.set, in: .reset, email: nil, names: ["Ada", "Lovelace"])
    // Before the code is verified, the step does not reveal whether there is an account.
    let nobody = StepContext.step(.set, in: .reset, email: nil, hasAccount: false)
    try password.check(nobody, .fields(["code": "123456", "password": "another horse"]))
    #expect(try await password.begin(step, .fields([:])).told == "asks password")
    #expect(try await password.submit(step, .fields(["password": "another horse"])).told == "of another horse")
    #expect(try await password.submit(step, .fields(["password": "AdaLovelace1"])).told == "weak_password password")
  }

  @Test("nothing is hashed without the core's hashing threads") func noHasher() async {
    await #expect(throws: PasswordFault.self) {
      try await password.submit(.step(.prove, hasher: nil), .fields(["password": "correct horse"]))
    }
  }
}
