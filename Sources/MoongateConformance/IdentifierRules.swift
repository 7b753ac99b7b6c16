import MoongateSDK

/// The rules of reading an identifier, for both shapes.
struct IdentifierRules: Sendable {
  let harness: ConformanceHarness
  /// nil where the input names nobody.
  let read: @Sendable (ProviderInput) throws(InputProblem) -> Identifier?

  /// Whom the subject's first spelling names.
  func run() async -> Identifier? {
    await harness.subject.reset()
    let first = judgeSpellings()
    judgeMalformed()
    return first
  }

  private func judgeSpellings() -> Identifier? {
    let subject = harness.subject
    guard let typed = subject.spellings.first else {
      harness.passesOver(.spelling, .facts, because: "it reads no identifier")
      return nil
    }
    guard let first = identifier(typed, .spelling, "one of the subject's spellings") else { return nil }
    harness.judges(.spelling)
    harness.judges(.facts)
    harness.people.add([first.value, first.display])
    for spelling in subject.spellings.dropFirst() {
      guard let same = identifier(spelling, .spelling, "another spelling of one person") else { continue }
      if same != first {
        harness.finds(
          .spelling, "Two spellings of one person are two identifiers.",
          "Give one canonical `value`, whatever was typed: limits count by it, and each spelling is a fresh budget of guesses."
        )
      }
    }
    for other in subject.others {
      guard let another = identifier(other, .spelling, "another person") else { continue }
      if another == first {
        harness.finds(
          .spelling, "Two people are one identifier.",
          "Keep in `value` all that tells people apart: a code for one would be good for the other.")
      }
    }
    // What the core shows and stores is read again now and then.
    if identifier(typed, .spelling, "the same text") != first {
      harness.finds(
        .spelling, "The same text is another identifier at the second reading.",
        "Read without clock, randomness or memory.")
    }
    return first
  }

  private func identifier(_ fields: [String: InputValue], _ rule: ConformanceRule, _ what: String) -> Identifier? {
    judgeAsked(fields)
    do throws(InputProblem) {
      guard let identifier = try read(harness.input(harness.declared(fields))) else {
        harness.finds(
          rule, "No identifier is read of \(what).", "Read the field that names the person in `readIdentifier`.")
        return nil
      }
      judge(identifier)
      return identifier
    } catch {
      harness.finds(
        rule, "It takes \(what) for malformed: \(error.detail)",
        "Take whatever a person would type, or give the suite other spellings.")
      return nil
    }
  }

  /// Fields that the descriptor does not declare change nothing: the core drops them.
  private func judgeAsked(_ fields: [String: InputValue]) {
    let declared = harness.declared(fields)
    guard declared.count < fields.count else { return }
    harness.judges(.askedFields)
    let (all, own) = (try? read(harness.input(fields)), try? read(harness.input(declared)))
    guard all != own, let field = fields.keys.sorted().first(where: { declared[$0] == nil }) else { return }
    harness.finds(
      .askedFields,
      "The field `\(field)` is read, and `beginFields` does not declare it: without it another identifier is read, or none.",
      "Declare it in `beginFields`, or do not read it: the core passes on only what was asked for.", field: field)
  }

  /// Its kind and its attributes.
  private func judge(_ identifier: Identifier) {
    let descriptor = harness.descriptor
    if !descriptor.identifierKinds.contains(identifier.kind) {
      harness.finds(
        .spelling, "It reads an identifier of the kind `\(identifier.kind.rawValue)`, which it does not declare.",
        "Name the kind in `identifierKinds`.")
    }
    if identifier.value.isEmpty || identifier.value.utf8.count > 512
      || identifier.value.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f })
    {
      harness.finds(
        .spelling, "An identifier's value is empty, has control characters, or is over 512 bytes.",
        "Make it a short line: it goes into messages, logs (hashed) and headers.")
    }
    harness.judgeFacts(of: identifier)
  }

  // MARK: malformed

  private func judgeMalformed() {
    let descriptor = harness.descriptor
    harness.judges(.malformed)
    for fields in harness.subject.malformedBegins {
      do throws(InputProblem) {
        if try read(harness.input(fields)) != nil {
          harness.finds(
            .malformed, "It reads an identifier of what nobody can be called.",
            "Throw an InputProblem for what cannot be one: it is answered 422 and not counted.")
        }
      } catch {
        harness.judge(error)
      }
    }
    // Typed throws: nothing but a problem can come out; what is looked for is a crash, and a problem that cannot be
    // told.
    for field in descriptor.beginFields {
      for value in Anomalies.values {
        do throws(InputProblem) { _ = try read(harness.input([field.name: value])) } catch { harness.judge(error) }
      }
    }
    do throws(InputProblem) { _ = try read(harness.input([:])) } catch { harness.judge(error) }
  }
}

/// What clients send that no person would.
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

  /// Whether a problem can be told to a person.
  func judge(_ problem: InputProblem) {
    let fields = Set((descriptor.beginFields + descriptor.submitFields).map(\.name))
    if !fields.contains(problem.field) {
      finds(
        .malformed, "An InputProblem names the field `\(problem.field.prefix(60))`, which is none.",
        "Name the field that the client sent: pages put the sentence beside it.")
    }
    if problem.detail.isEmpty || problem.detail.utf8.count > 300 {
      finds(
        .malformed, "An InputProblem of `\(problem.field.prefix(60))` has no sentence, or one of over 300 bytes.",
        "Say what is wrong in one sentence for the person.")
    }
    judgeText(problem.detail, "the sentence of an InputProblem", typed: [])
  }

  /// Whether an identifier carries what is declared.
  func judgeFacts(of identifier: Identifier) {
    judge(
      identifier.attributes, of: "an identifier",
      declared: descriptor.facts.filter { descriptor.of($0) == identifier.kind })
  }

  /// Whether a proof tells what is declared; nothing is judged where it tells nothing.
  func judgeFacts(of proof: Proof) {
    if !proof.facts.isEmpty { judge(proof.facts, of: "a proof", declared: descriptor.facts) }
  }

  private func judge(_ told: [String: String], of what: String, declared: [FactField]) {
    judges(.facts)
    for (name, value) in told.sorted(by: { $0.key < $1.key }) {
      guard let fact = declared.first(where: { $0.name == name }) else {
        finds(
          .facts, "The fact `\(name)` is told of \(what), and is not declared for it.",
          "Declare it in `facts`, or leave it out: no policy can ask for it.")
        continue
      }
      let fits =
        switch fact.kind {
        case .text: true
        case .flag: value == "true" || value == "false"
        case .number: Double(value)?.isFinite ?? false
        }
      if !fits {
        finds(
          .facts, "The fact `\(name)` is no \(fact.kind.rawValue), as it is declared.",
          "Write numbers as 12 or -0.5, flags as true or false.")
      }
    }
  }

  /// Whether a secret is in something that is written or told.
  /// - Parameter typed: what the suite typed as a secret in this step.
  func judgeText(_ text: String, _ what: String, typed: some Sequence<String>) {
    judges(.secrets)
    if SecretSearch(planted.values).isIn(text) {
      finds(.secrets, "A secret setting is in \(what).", "Use it, and put it nowhere.")
    }
    if SecretSearch(typed).isIn(text) {
      finds(
        .secrets, "A secret of the person is in \(what).",
        "Leave what was typed, and codes, out of all that is written or told.")
    }
  }

  /// What a call left with the suite.
  func judge(_ capabilities: RecordedCapabilities, typed: some Sequence<String>) {
    let use = capabilities.use
    for line in use.lines { judgeLine(line, typed: typed) }
    judgeLate(capabilities)
  }

  /// A line for the operator.
  func judgeLine(_ line: String, typed: some Sequence<String>) {
    judgeText(line, "a line of its log", typed: typed)
    if SecretSearch(people.all).isIn(line) {
      finds(
        .secrets, "Whom a step is for is in a line of its log.",
        "Leave addresses and numbers out: the log is read by more people than they know.")
    }
  }

  func judgeLate(_ capabilities: RecordedCapabilities) {
    judges(.cleanup)
    if let tool = capabilities.use.late.first {
      finds(
        .cleanup, "The lent \(tool) was used after the call had ended.",
        "Tools are lent for one call: end what you have begun before you answer, and keep none of them.")
    }
  }
}
