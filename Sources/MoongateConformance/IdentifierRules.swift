import MoongateSDK

/// The rules for reading identifiers, for both shapes.
struct IdentifierRules: Sendable {
  let harness: ConformanceHarness
  /// Returns nil if the input contains no identifier.
  let read: @Sendable (ProviderInput) throws(InputProblem) -> Identifier?

  /// Checks the rules and returns the identifier of the subject's first spelling.
  func run() async -> Identifier? {
    await harness.subject.reset()
    let first = checkSpellings()
    checkMalformed()
    return first
  }

  private func checkSpellings() -> Identifier? {
    let subject = harness.subject
    guard let typed = subject.spellings.first else {
      harness.markInapplicable(.spelling, .facts, because: "it reads no identifier")
      return nil
    }
    guard let first = identifier(typed, .spelling, "one of the subject's spellings") else { return nil }
    harness.markChecked(.spelling)
    harness.markChecked(.facts)
    harness.people.add([first.value, first.display])
    for spelling in subject.spellings.dropFirst() {
      guard let same = identifier(spelling, .spelling, "another spelling of one person") else { continue }
      if same != first {
        harness.addFinding(
          .spelling, "Two spellings of one user give two identifiers.",
          "Return one canonical `value` for all spellings: limits count by it, so each spelling would get its own attempts."
        )
      }
    }
    for other in subject.others {
      guard let another = identifier(other, .spelling, "another person") else { continue }
      if another == first {
        harness.addFinding(
          .spelling, "Two users have the same identifier.",
          "Keep everything in `value` that distinguishes users: a code for one would be valid for the other.")
      }
    }
    // The core reads stored text again occasionally.
    if identifier(typed, .spelling, "the same text") != first {
      harness.addFinding(
        .spelling, "The same text gives another identifier when it is read again.",
        "Do not use a clock, randomness or state.")
    }
    return first
  }

  private func identifier(_ fields: [String: InputValue], _ rule: ConformanceRule, _ what: String) -> Identifier? {
    checkAsked(fields)
    do throws(InputProblem) {
      guard let identifier = try read(harness.input(harness.declared(fields))) else {
        harness.addFinding(
          rule, "No identifier is read from \(what).", "Read the field of the identifier in `readIdentifier`.")
        return nil
      }
      check(identifier)
      return identifier
    } catch {
      harness.addFinding(
        rule, "It reports \(what) as malformed: \(error.detail)",
        "Accept everything that a user might type, or give the suite other spellings.")
      return nil
    }
  }

  /// Undeclared fields must not affect the result, because the core drops them.
  private func checkAsked(_ fields: [String: InputValue]) {
    let declared = harness.declared(fields)
    guard declared.count < fields.count else { return }
    harness.markChecked(.askedFields)
    let (all, own) = (try? read(harness.input(fields)), try? read(harness.input(declared)))
    guard all != own, let field = fields.keys.sorted().first(where: { declared[$0] == nil }) else { return }
    harness.addFinding(
      .askedFields,
      "The field `\(field)` is read but not declared in `beginFields`: without it, another identifier is read, or none.",
      "Declare it in `beginFields`, or do not read it: the core passes on only declared fields.", field: field)
  }

  /// Checks the kind and attributes.
  private func check(_ identifier: Identifier) {
    let descriptor = harness.descriptor
    if !descriptor.identifierKinds.contains(identifier.kind) {
      harness.addFinding(
        .spelling, "It reads an identifier of the kind `\(identifier.kind.rawValue)`, which it does not declare.",
        "Name the kind in `identifierKinds`.")
    }
    if identifier.value.isEmpty || identifier.value.utf8.count > 512
      || identifier.value.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f })
    {
      harness.addFinding(
        .spelling, "An identifier's value is empty, has control characters, or is over 512 bytes.",
        "Use a short line: it is used in messages, logs (hashed) and headers.")
    }
    harness.checkFacts(of: identifier)
  }

  // MARK: malformed

  private func checkMalformed() {
    let descriptor = harness.descriptor
    harness.markChecked(.malformed)
    for fields in harness.subject.malformedBegins {
      do throws(InputProblem) {
        if try read(harness.input(fields)) != nil {
          harness.addFinding(
            .malformed, "It reads an identifier from input that cannot be one.",
            "Throw an InputProblem for input that cannot be one: it is answered 422 and not counted.")
        }
      } catch {
        harness.check(error)
      }
    }
    // Typed throws allow only an `InputProblem`. This checks for crashes and for problems that cannot be shown.
    for field in descriptor.beginFields {
      for value in Anomalies.values {
        do throws(InputProblem) { _ = try read(harness.input([field.name: value])) } catch { harness.check(error) }
      }
    }
    do throws(InputProblem) { _ = try read(harness.input([:])) } catch { harness.check(error) }
  }
}

/// Unusual inputs of clients.
enum Anomalies {
  static let texts: [String] = [
    "", " ", "\u{0}", "a\r\nX-Admin: 1", "\u{202E}drow", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
    "\u{0661}\u{0662}\u{0663}", "%00%0a",
    "'; DROP TABLE account; --",
    "../../etc/passwd", "{{7*7}}", "<script>alert(1)</script>", "-1", "1e309", "\u{FEFF}0", "null", "e\u{301}",
    "\u{FFFF}",
    String(repeating: "9", count: 70_000), String(repeating: "\u{1F600}", count: 2_000),
  ]
  static let values: [InputValue] = [.flag(true), .flag(false), .other] + texts.map { .text($0) }
}

extension ConformanceHarness {
  func input(_ fields: [String: InputValue]) -> ProviderInput { ProviderInput(fields: fields, defaultRegion: "IN") }

  /// Checks whether a problem can be shown to a user.
  func check(_ problem: InputProblem) {
    let fields = Set((descriptor.beginFields + descriptor.submitFields).map(\.name))
    if !fields.contains(problem.field) {
      addFinding(
        .malformed, "An InputProblem names the field `\(problem.field.prefix(60))`, which does not exist.",
        "Name the field that the client sent: pages show the sentence beside it.")
    }
    if problem.detail.isEmpty || problem.detail.utf8.count > 300 {
      addFinding(
        .malformed, "An InputProblem of `\(problem.field.prefix(60))` has no sentence, or one of over 300 bytes.",
        "Describe the mistake for the user in one sentence.")
    }
    checkText(problem.detail, "the sentence of an InputProblem", typed: [])
  }

  /// Checks that an identifier has only declared facts, and groups and attributes that can be stored.
  func checkFacts(of identifier: Identifier) {
    if let problem = identifier.detailProblem {
      addFinding(
        .facts, "A proof cannot be stored: \(problem).",
        "Name only the groups that policies need: more than can be stored is a fault, and nothing is cut.")
    }
    check(
      identifier.attributes, of: "an identifier",
      declared: descriptor.facts.filter { descriptor.of($0) == identifier.kind })
  }

  /// Checks that a proof has only declared facts.
  func checkFacts(of proof: Proof) {
    if !proof.facts.isEmpty { check(proof.facts, of: "a proof", declared: descriptor.facts) }
  }

  private func check(_ reported: [String: String], of what: String, declared: [FactField]) {
    markChecked(.facts)
    for (name, value) in reported.sorted(by: { $0.key < $1.key }) {
      guard let fact = declared.first(where: { $0.name == name }) else {
        addFinding(
          .facts, "The fact `\(name)` of \(what) is not declared for it.",
          "Declare it in `facts`, or leave it out: no policy can read it.")
        continue
      }
      let fits =
        switch fact.kind {
        case .text: true
        case .flag: value == "true" || value == "false"
        case .number: Double(value)?.isFinite ?? false
        }
      if !fits {
        addFinding(
          .facts, "The fact `\(name)` is not a \(fact.kind.rawValue), as declared.",
          "Write numbers like 12 or -0.5, and flags as true or false.")
      }
    }
  }

  /// Checks that a text contains no secret.
  /// - Parameter typed: the secrets that the suite submitted in this step.
  func checkText(_ text: String, _ what: String, typed: some Sequence<String>) {
    markChecked(.secrets)
    if SecretSearch(planted.values).isIn(text) {
      addFinding(.secrets, "A secret setting is in \(what).", "Do not write it anywhere.")
    }
    if SecretSearch(typed).isIn(text) {
      addFinding(
        .secrets, "A secret of the user is in \(what).",
        "Do not write inputs and codes to logs, records or messages.")
    }
  }

  /// Checks the recorded use of tools in a call.
  func check(_ capabilities: RecordedCapabilities, typed: some Sequence<String>) {
    let use = capabilities.use
    for line in use.lines { checkLine(line, typed: typed) }
    checkLate(capabilities)
  }

  /// Checks a log line.
  func checkLine(_ line: String, typed: some Sequence<String>) {
    checkText(line, "a line of its log", typed: typed)
    if SecretSearch(people.all).isIn(line) {
      addFinding(
        .secrets, "The identifier of a step is in a line of its log.",
        "Do not log addresses and phone numbers.")
    }
  }

  func checkLate(_ capabilities: RecordedCapabilities) {
    markChecked(.cleanup)
    if let tool = capabilities.use.late.first {
      addFinding(
        .cleanup, "The \(tool) was used after the call had ended.",
        "Tools are valid for one call: finish all work before you answer, and do not keep them.")
    }
  }
}
