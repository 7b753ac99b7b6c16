import MoongateSDK
import Synchronization
import Testing

@testable import PIN

@Suite("The PIN step") struct PINStepTests {
  let pin = PIN()

  @Test("asks for the fields of its purpose")
  func fields() async throws {
    for (purpose, stored, names) in [
      (.prove, "of 739154", ["pin"]), (.set, nil, ["new_pin"]), (.change, "of 739154", ["pin", "new_pin"]),
      (.disable, "of 739154", ["pin"]),
    ] as [(StepPurpose, String?, [String])] {
      guard case .ask(let fields, _, _) = try await pin.begin(.step(purpose, stored: stored), .fields([:])) else {
        Issue.record("\(purpose) asks nothing")
        continue
      }
      #expect(fields.map(\.name) == names)
      #expect(fields.allSatisfy { $0.kind == .digits && $0.length == 6 && $0.isRequired })
    }
  }

  @Test("is refused if the account has no PIN", arguments: [StepPurpose.prove, .change, .disable]) func none(
    purpose: StepPurpose
  ) async throws {
    let hasher = CountingHasher()
    guard case .refused(.noPIN) = try await pin.begin(.step(purpose, stored: nil, hasher: hasher), .fields([:])),
      case .refused(.noPIN) = try await pin.submit(
        .step(purpose, stored: nil, hasher: hasher), .fields(["pin": "739154", "new_pin": "739155"]))
    else {
      Issue.record("not refused")
      return
    }
    #expect(hasher.asked.withLock { $0.isEmpty })
  }

  @Test("an existing PIN is set again only in a reset") func alreadySet() async throws {
    guard case .refused(.alreadySet) = try await pin.begin(.step(.set), .fields([:])),
      case .refused(.alreadySet) = try await pin.submit(.step(.set), .fields(["new_pin": "402917"])),
      case .ask = try await pin.begin(.step(.set, in: .reset), .fields([:])),
      case .proved(let proof) = try await pin.submit(.step(.set, in: .reset), .fields(["new_pin": "402917"]))
    else {
      Issue.record("otherwise")
      return
    }
    #expect(proof.replaced == "of 402917")
  }

  @Test("proves, sets, changes and removes") func purposes() async throws {
    #expect(try await record(.prove, ["pin": "739154"]) == "kept")
    #expect(try await record(.set, ["new_pin": "739154"], stored: nil) == "of 739154")
    #expect(try await record(.change, ["pin": "739154", "new_pin": "402917"]) == "of 402917")
    #expect(try await record(.disable, ["pin": "739154"]) == "removed")
  }

  /// Attack: concurrent flows set or change the PIN. The core completes only one flow per record.
  @Test("setting and changing take effect once") func once() async throws {
    for (purpose, stored) in [(.set, nil), (.change, "of 739154")] as [(StepPurpose, String?)] {
      let answer = try await pin.submit(
        .step(purpose, stored: stored), .fields(["pin": "739154", "new_pin": "402917"]))
      guard case .proved(let proof) = answer, case .replaceOnce = proof.record else {
        Issue.record("\(purpose) could overwrite a rival's")
        continue
      }
    }
  }

  @Test("a wrong PIN is refused for every purpose", arguments: [StepPurpose.prove, .change, .disable]) func wrong(
    purpose: StepPurpose
  )
    async throws
  {
    #expect(try await record(purpose, ["pin": "739155", "new_pin": "402917"]) == "invalid_pin")
  }

  @Test("a PIN hashed with another cost is hashed again") func rehash() async throws {
    #expect(try await record(.prove, ["pin": "739154"], hasher: CountingHasher(isOld: true)) == "new 739154")
  }

  @Test(
    "a value other than six digits is malformed and not compared",
    arguments: [
      "", "1", "73915", "7391544", "73915a", "-39154", "7391.4",
      "739154\0", "12e456", "🔒🔒🔒🔒🔒🔒",
    ])
  func malformed(typed: String) async throws {
    let hasher = CountingHasher()
    for purpose in [StepPurpose.prove, .disable] {
      let problem = InputProblem(field: "pin", reason: .invalidInput, detail: "A passcode is six digits.")
      #expect(throws: problem) { try pin.check(.step(purpose, hasher: hasher), .fields(["pin": typed])) }
      #expect(try await record(purpose, ["pin": typed], hasher: hasher) == "malformed pin")
    }
    #expect(try await record(.set, ["new_pin": typed], stored: nil, hasher: hasher) == "malformed new_pin")
    #expect(try await record(.change, ["pin": "739154", "new_pin": typed], hasher: hasher) == "malformed new_pin")
    #expect(hasher.asked.withLock { $0.isEmpty })
  }

  /// A keyboard for Japanese or Arabic has other digits, and a passcode that is set with them is typed with others.
  @Test(
    "all spellings of a PIN are one",
    arguments: ["739 154", " 739154\n", "739\u{2013}154", "٧٣٩١٥٤", "７３９１５４", "\u{200B}739154"])
  func spellings(typed: String) async throws {
    #expect(try await record(.prove, ["pin": typed]) == "kept")
    #expect(try await record(.set, ["new_pin": typed], stored: nil) == "of 739154")
  }

  @Test("missing fields and fields of another type are named") func missing() {
    #expect(throws: InputProblem(field: "new_pin", reason: .invalidInput, detail: "new_pin is missing.")) {
      try pin.check(.step(.change), .fields(["pin": "739154"]))
    }
    #expect(throws: InputProblem(field: "pin", reason: .invalidInput, detail: "pin must be a string.")) {
      try pin.check(.step(.prove), ProviderInput(fields: ["pin": .other], defaultRegion: "IN"))
    }
  }

  @Test(
    "a weak new PIN is refused before the current one is checked, without naming the rule",
    arguments: ["123456", "112233", "010190", "432109"])
  func weak(typed: String) async throws {
    let hasher = CountingHasher()
    let problem = InputProblem(
      field: "new_pin", reason: .weakPIN, detail: "This passcode is too easy to guess. Choose another.")
    #expect(throws: problem) {
      try pin.check(.step(.change, phone: "+44432109", hasher: hasher), .fields(["pin": "000000", "new_pin": typed]))
    }
    #expect(
      try await record(.change, ["pin": "739154", "new_pin": typed], phone: "+44432109", hasher: hasher)
        == "malformed new_pin")
    #expect(hasher.asked.withLock { $0.isEmpty })
  }

  @Test("an existing weak PIN is still accepted") func weakOld() async throws {
    #expect(try await record(.prove, ["pin": "123456"], stored: "of 123456") == "kept")
  }

  @Test("nothing is hashed without the core's hashing threads") func noHasher() async throws {
    await #expect(throws: PINFault.self) {
      try await pin.submit(.step(.prove, hasher: nil), .fields(["pin": "739154"]))
    }
    await #expect(throws: PINFault.self) {
      try await pin.submit(.step(.set, stored: nil, hasAccount: false), .fields(["new_pin": "739154"]))
    }
  }

  /// The result in a few words.
  private func record(
    _ purpose: StepPurpose, _ fields: [String: String], stored: String? = "of 739154", phone: String = "+919876543210",
    hasher: CountingHasher = CountingHasher()
  ) async throws -> String {
    switch try await pin.submit(.step(purpose, stored: stored, phone: phone, hasher: hasher), .fields(fields)) {
    case .proved(let proof): proof.replaced
    case .refused(let reason), .refusedAndAsked(let reason, _): reason.rawValue
    case .malformed(let problem): "malformed \(problem.field)"
    case .ask, .redirect, .wait: "asks"
    }
  }
}

extension Proof {
  fileprivate var replaced: String {
    switch record {
    case .keep: "kept"
    case .remove: "removed"
    case .replace(let bytes), .replaceOnce(let bytes): String(decoding: bytes, as: UTF8.self)
    }
  }
}
