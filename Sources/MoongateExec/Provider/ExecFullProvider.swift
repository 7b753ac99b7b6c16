import MoongateSDK

/// A full provider that is a program. Its answers are validated against its declarations and the request.
struct ExecFullProvider: FullProvider {
  /// The maximum length of a client field in bytes, so that a call fits into a line.
  private static let longestField = 4_096
  /// The same for a field of kind `json`.
  private static let longestObject = 16_384
  private static let maxFields = 32

  let descriptor: ProviderDescriptor
  let program: Program
  /// The gateway's parser, if the program asks for an identifier.
  let reader: (any CodeProvider)?

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    guard let reader, reader.descriptor.beginFields.contains(where: { $0.isRequired && input.fields[$0.name] != nil })
    else { return nil }
    return try reader.readIdentifier(input)
  }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    try checkSize(input)
    for name in input.fields.keys.sorted() { _ = try input.text(name) }
    for field in step.asked where field.isRequired { _ = try input.text(field.name) }
  }

  private func checkSize(_ input: ProviderInput) throws(InputProblem) {
    for (name, value) in input.fields.sorted(by: { $0.key < $1.key }) {
      let longest =
        descriptor.submitFields.contains { $0.name == name && $0.kind == .json }
        ? Self.longestObject : Self.longestField
      if case .text(let text) = value, text.utf8.count > longest || name.utf8.count > 64 {
        throw InputProblem(field: name, reason: .invalidInput, detail: "\(name.prefix(64)) is too long.")
      }
    }
    if let name = input.fields.keys.sorted().dropFirst(Self.maxFields).first {
      throw InputProblem(field: name, reason: .invalidInput, detail: "There are too many fields.")
    }
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    do throws(InputProblem) { try checkSize(input) } catch { return .malformed(error) }
    return try await ask(.begin, step, input)
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try await ask(.submit, step, input)
  }

  func maintain(with tools: StepTools) async throws { try await program.maintain(with: tools) }

  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] {
    let text = try StepCall.text(record, "record")
    let upgraded = try await program.call(
      .upgrade, Upgrade(record: text, version: version), secrets: [text], granting: nil, as: Upgraded.self)
    let bytes = Array(upgraded.record.utf8)
    guard bytes.count <= ReplyRules.longestKept else {
      throw ProgramFault.broken("the record that it upgraded is longer than \(ReplyRules.longestKept) bytes")
    }
    program.log.secrets.add([upgraded.record], at: .now)
    return bytes
  }

  private func ask(_ method: Method, _ step: StepContext, _ input: ProviderInput) async throws(ProgramFault)
    -> StepAnswer
  {
    let call = try StepCall(step, input)
    let reply = try await program.call(method, call, secrets: call.secrets, granting: step.tools, as: StepReply.self)
    let rules = ReplyRules(descriptor: descriptor, read: reader?.descriptor.facts ?? [], step: step, method: method)
    do throws(ProgramFault) {
      let answer = try rules.answer(of: reply)
      for fact in rules.undeclaredFacts(in: reply) {
        program.log.complain(
          "facts", "sent the undeclared fact `\(fact.name)` of \(fact.of), which is ignored")
      }
      return answer
    } catch {
      program.log.complain("lie", "its answer to `\(method.rawValue)` is not valid: \(error)")
      throw error
    }
  }
}

extension StepCall {
  init(_ step: StepContext, _ input: ProviderInput) throws(ProgramFault) {
    flow = step.flow
    flowPurpose = step.flowPurpose
    purpose = step.purpose
    identifier = step.identifier.map(WireIdentifier.init)
    callback = step.callback.map { Return(address: $0.address, state: $0.state) }
    now = step.now
    state = step.state.isEmpty ? nil : try Self.text(step.state, "state")
    var account: Account?
    if let known = step.account {
      var record: String?
      if let bytes = known.record { record = try Self.text(bytes, "record") }
      account = Account(
        id: known.id, record: record, identifiers: known.identifiers.map(WireIdentifier.init), names: known.names)
    }
    self.account = account
    fields = input.fields.compactMapValues { value in
      switch value {
      case .text(let text): .text(text)
      case .flag(let flag): .flag(flag)
      case .object, .other: nil
      }
    }
  }

  static func text(_ bytes: [UInt8], _ what: String) throws(ProgramFault) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .broken("the \(what) is not a string: another provider of this name created it")
    }
    return text
  }

  /// The strings of the call that must not be logged.
  var secrets: [String] {
    let typed = fields.values.compactMap { if case .text(let text) = $0 { text } else { nil } }
    let identifiers = [identifier].compactMap(\.self) + (account?.identifiers ?? [])
    return typed + identifiers.flatMap { [$0.value, $0.display].compactMap(\.self) } + (account?.names ?? [])
      + [state, account?.record, callback?.state].compactMap(\.self)
  }
}
