import Foundation
import Logging
import MoongateSDK

// What providers are lent, and what the core keeps for them: sealed, each its own.

/// A step as its provider sees it, and what the core remembers beside it.
struct LentStep: Sendable {
  var context: StepContext
  /// Of the sealed record in `context.account`; nil where there is none.
  let record: TokenHash?
  /// Takes out of the provider's words what must not be in a log.
  let redaction: Redaction
}

extension FlowEngine {
  /// What a full provider is given for a call.
  /// - Parameter input: what the client sent in this step.
  func lend(
    _ provider: any FullProvider, _ step: StepRecord, _ input: ProviderInput, _ record: FlowRecord, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> LentStep {
    let name = step.provider
    var account: StepAccount?
    var kept: TokenHash?
    if let known = try await loadAccount(step.account ?? record.account) {
      let sealed = try await asking { () async throws(StoreFault) in try await store.providerRecord(of: known.id, for: name) }
      kept = sealed.map { TokenHash(of: $0) }
      do {
        account = StepAccount(
          id: known.id, record: try sealed.map { try keys.open($0, for: "\(name) \(known.id)") }, identifiers: known.identifiers.map(\.identifier),
          names: [known.firstName, known.lastName].compactMap(\.self))
      } catch {
        throw .store(StoreFault("the record of \(name) for \(known.id) cannot be opened: it was changed, or sealed under another key"))
      }
    }
    let redaction = redaction(of: name, input, ([step.identifier].compactMap(\.self)) + (account?.identifiers ?? []), visit)
    let context = StepContext(
      flow: record.name, flowPurpose: record.purpose.kind, purpose: record.stepPurpose(of: name), account: account, identifier: step.identifier,
      state: try unseal(step.state, for: name, id: id), now: visit.now.milliseconds, callback: try callback(name, id: id, visit),
      tools: tools(for: provider, redaction, visit))
    return LentStep(context: context, record: kept, redaction: redaction)
  }

  /// What any provider is lent for a call.
  func tools(for provider: any Provider, _ redaction: Redaction, _ visit: Visit) -> StepTools {
    let name = provider.descriptor.name
    let settings = visit.generation.gateway.providers[name]
    let decision = visit.client.decision
    return StepTools(
      randomBytes: { [random] in random.bytes($0) }, settings: settings?.forSteps ?? StepSettings(), web: web,
      messenger: messenger(for: provider, visit),
      log: StepLog { [logger] level, sentence, values in
        var metadata: Logger.Metadata = ["decision": "\(decision)"]
        for (key, value) in values.prefix(Self.mostLogged) { metadata["\(name).\(redaction(key))"] = "\(redaction(value))" }
        logger.log(level: level.ofLogger, "\(name): \(redaction(sentence))", metadata: metadata)
      }, clock: StepClock { [clock] in clock.now().milliseconds })
  }

  /// So many named values a line of a provider may have.
  private static let mostLogged = 32

  /// What must not be seen in a log of this step: all that the client sent, whom it is about, and the provider's secrets.
  func redaction(
    of provider: ProviderName, _ input: ProviderInput?, _ identifiers: [Identifier], code: CodeMessage? = nil, _ visit: Visit
  ) -> Redaction {
    let sent = (input?.fields.values).map(Array.init) ?? []
    let secrets = visit.generation.gateway.providers[provider]?.secrets.values.map { $0.reveal() } ?? []
    return Redaction(
      sent.compactMap { if case .text(let text) = $0 { text } else { nil } } + identifiers.flatMap { [$0.value, $0.display] } + secrets
        + [code?.code, code?.text].compactMap(\.self))
  }

  // MARK: what is kept for them

  /// What a provider may keep, of a step or of an account, in bytes: its rows are read and written whole.
  static var mostKept: Int { 65_536 }

  /// Seals what a provider wants back while its flow waits.
  func seal(_ state: [UInt8], for provider: ProviderName, id: FlowID) throws(Halt) -> [UInt8] {
    guard !state.isEmpty else { return [] }
    guard state.count <= Self.mostKept else { throw .store(StoreFault("\(provider) wants to keep more than \(Self.mostKept) bytes")) }
    do { return try keys.seal(state, for: owner(provider, id)) } catch { throw .store(StoreFault("the state of \(provider) could not be sealed")) }
  }

  /// Opens what `seal` closed.
  func unseal(_ sealed: [UInt8], for provider: ProviderName, id: FlowID) throws(Halt) -> [UInt8] {
    guard !sealed.isEmpty else { return [] }
    do { return try keys.open(sealed, for: owner(provider, id)) } catch { throw .store(StoreFault("the state of \(provider) cannot be opened")) }
  }

  /// Seals what the person is to be shown: the key of an authenticator app is in it, and the flow's row lies in the database.
  func seal(_ shown: [Shown], for provider: ProviderName, id: FlowID) throws(Halt) -> SealedBytes? {
    guard !shown.isEmpty else { return nil }
    do {
      let bytes = Array(try JSONEncoder().encode(shown))
      guard bytes.count <= Self.mostKept else { throw StoreFault("\(provider) wants to show more than \(Self.mostKept) bytes") }
      return SealedBytes(try keys.seal(bytes, for: "shown \(owner(provider, id))"))
    } catch {
      throw .store(error as? StoreFault ?? StoreFault("what \(provider) shows could not be sealed"))
    }
  }

  /// What the open step shows. A view goes to whoever drives the flow: the browser that began it, or the session.
  ///
  /// Attack: who began an app's flow and sent its link to a victim asks for it afterwards. What a step shows is not told of flows that an app
  /// takes over.
  func shown(_ step: StepRecord, of record: FlowRecord, id: FlowID) throws(Halt) -> [Shown] {
    guard let sealed = step.shown, record.app == nil else { return [] }
    do {
      return try JSONDecoder().decode([Shown].self, from: Data(try keys.open(sealed.bytes, for: "shown \(owner(step.provider, id))")))
    } catch {
      throw .store(StoreFault("what \(step.provider) shows cannot be opened"))
    }
  }

  private func owner(_ provider: ProviderName, _ id: FlowID) -> String { "flow \(Base64URL.encode(id.hash.bytes)) \(provider)" }
}

extension LentStep {
  /// The same, with a place to hash in.
  func lending(_ hasher: (any SecretHasher)?) -> LentStep {
    var lent = self
    lent.context.tools.hasher = hasher
    return lent
  }

  /// The same, about nobody.
  var ofNobody: LentStep {
    var lent = LentStep(context: context, record: nil, redaction: redaction)
    lent.context.account = nil
    return lent
  }

  /// The same, as it is before anybody is proved: what the account is called is nobody's to know.
  var anonymous: LentStep {
    var lent = self
    lent.context.account = context.account.map { StepAccount(id: $0.id, record: nil) }
    return lent
  }
}

extension StepLog.Level {
  fileprivate var ofLogger: Logger.Level {
    switch self {
    case .info: .info
    case .notice: .notice
    case .warning: .warning
    case .error: .error
    }
  }
}
