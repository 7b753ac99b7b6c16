import MoongateSDK

/// A full provider that is another program. Whatever it answers is held against what it declared and what it was asked.
struct ExecFullProvider: FullProvider {
  /// Of one field that a client sends, in bytes: what fits into a line beside all else.
  private static let longestField = 4_096
  private static let mostFields = 32

  let descriptor: ProviderDescriptor
  let program: Program
  /// The gateway's own, where the program asks whom a step is for.
  let reader: (any CodeProvider)?

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    guard let reader, reader.descriptor.beginFields.contains(where: { $0.isRequired && input.fields[$0.name] != nil }) else { return nil }
    return try reader.readIdentifier(input)
  }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    try checkSize(input)
    for name in input.fields.keys.sorted() { _ = try input.text(name) }
    // Which fields are there, the core looks after: a later round, or another purpose, may ask for others than the declared ones. Nothing but what `begin`
    // takes is no answer to any of them.
    let answers = Set(input.fields.keys).subtracting(descriptor.beginFields.map(\.name))
    guard answers.isEmpty || step.purpose == .prove && step.state.isEmpty else { return }
    for field in descriptor.submitFields where field.isRequired { _ = try input.text(field.name) }
  }

  private func checkSize(_ input: ProviderInput) throws(InputProblem) {
    for (name, value) in input.fields.sorted(by: { $0.key < $1.key }) {
      if case .text(let text) = value, text.utf8.count > Self.longestField || name.utf8.count > 64 {
        throw InputProblem(field: name, reason: .invalidInput, detail: "\(name.prefix(64)) is too long.")
      }
    }
    if let name = input.fields.keys.sorted().dropFirst(Self.mostFields).first {
      throw InputProblem(field: name, reason: .invalidInput, detail: "There are too many fields.")
    }
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    do throws(InputProblem) { try checkSize(input) } catch { return .malformed(error) }
    return try await ask(.begin, step, input)
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { try await ask(.submit, step, input) }

  private func ask(_ method: Method, _ step: StepContext, _ input: ProviderInput) async throws(ProgramFault) -> StepAnswer {
    let call = try StepCall(step, input, sdk: descriptor.sdk)
    let reply = try await program.call(method, call, secrets: call.secrets, as: StepReply.self)
    do throws(ProgramFault) {
      return try ReplyRules(descriptor: descriptor, read: reader?.descriptor.facts ?? [], step: step, method: method).answer(of: reply)
    } catch {
      program.log.complain("lie", "its answer to `\(method.rawValue)` is not to be believed: \(error)")
      throw error
    }
  }
}

extension StepCall {
  /// - Parameter sdk: the version of the protocol that the program speaks.
  init(_ step: StepContext, _ input: ProviderInput, sdk: Int) throws(ProgramFault) {
    flow = step.flow
    flowPurpose = sdk >= 2 ? step.flowPurpose : nil
    purpose = step.purpose
    identifier = step.identifier.map(WireIdentifier.init)
    callback = step.callback.map { Return(address: $0.address, state: $0.state) }
    now = step.now
    state = step.state.isEmpty ? nil : try Self.text(step.state, "state")
    var account: Account?
    if let known = step.account {
      var record: String?
      if let bytes = known.record { record = try Self.text(bytes, "record") }
      account = Account(id: known.id, record: record, identifiers: known.identifiers.map(WireIdentifier.init), names: known.names)
    }
    self.account = account
    fields = input.fields.compactMapValues { value in
      switch value {
      case .text(let text): .text(text)
      case .flag(let flag): .flag(flag)
      case .other: nil
      }
    }
  }

  private static func text(_ bytes: [UInt8], _ what: String) throws(ProgramFault) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .broken("the \(what) is no text: another provider of this name made it") }
    return text
  }

  /// What of it must not stand in a log.
  var secrets: [String] {
    let typed = fields.values.compactMap { if case .text(let text) = $0 { text } else { nil } }
    let identifiers = [identifier].compactMap(\.self) + (account?.identifiers ?? [])
    return typed + identifiers.flatMap { [$0.value, $0.display].compactMap(\.self) } + (account?.names ?? [])
      + [state, account?.record, callback?.state].compactMap(\.self)
  }
}
