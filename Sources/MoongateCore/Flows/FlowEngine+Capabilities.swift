import Foundation
import Logging
import MoongateSDK

// The capabilities that a provider receives for a call, and the sealed data that the core stores for each provider.

/// A step as its provider sees it, with what the core needs beside it.
struct StepCapabilities: Sendable {
  var context: StepContext
  /// The hash of the sealed record in `context.account`; nil if the account has no record.
  let record: TokenHash?
  /// The record in the provider's newest format if the stored one is older. Stored once a step with it has passed.
  var upgraded: [UInt8]?
  /// Removes sensitive values from what the provider logs.
  let redaction: Redaction
}

extension FlowEngine {
  /// Builds the context of a call to a full provider.
  /// - Parameter input: what the client sent in this step.
  func makeCapabilities(
    _ provider: any FullProvider, _ step: StepRecord, _ input: ProviderInput, _ record: FlowRecord, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> StepCapabilities {
    let name = step.provider
    var account: StepAccount?
    var sealed: [UInt8]?
    if let known = try await loadAccount(step.account ?? record.account) {
      sealed = try await asking { () async throws(StoreFault) in try await store.providerRecord(of: known.id, for: name)
      }
      account = StepAccount(
        id: known.id, record: nil, identifiers: known.identifiers.map(\.identifier),
        names: [known.firstName, known.lastName].compactMap(\.self))
    }
    let redaction = redaction(
      of: name, input, ([step.identifier].compactMap(\.self)) + (account?.identifiers ?? []), request)
    var upgraded: [UInt8]?
    if let known = account, let stored = sealed {
      let record = try open(stored, of: name, for: known.id)
      upgraded = try await upgrade(record, by: provider, for: known.id, redaction, request)
      account = StepAccount(
        id: known.id, record: upgraded ?? record.bytes, identifiers: known.identifiers, names: known.names)
    }
    let context = StepContext(
      flow: record.name, flowPurpose: record.purpose.kind, purpose: record.stepPurpose(of: name), account: account,
      identifier: step.identifier,
      state: try unseal(step.state, for: name, id: id), now: request.now.milliseconds,
      callback: try callback(name, id: id, request),
      asked: step.asked(provider.descriptor), tools: tools(for: provider, redaction, request))
    return StepCapabilities(
      context: context, record: sealed.map { TokenHash(of: $0) }, upgraded: upgraded, redaction: redaction)
  }

  /// Builds the tools that every provider receives for a call.
  func tools(for provider: any Provider, _ redaction: Redaction, _ request: RequestContext) -> StepTools {
    let name = provider.descriptor.name
    let settings = request.generation.gateway.providers[name]
    let decision = request.client.decision
    return StepTools(
      randomBytes: { [random] in random.bytes($0) }, settings: settings?.forSteps ?? StepSettings(), web: web,
      messenger: messenger(for: provider, request),
      log: StepLog { [logger] level, sentence, values in
        var metadata: Logger.Metadata = ["decision": "\(decision)"]
        for (key, value) in values.prefix(Self.maxLogged) {
          metadata["\(name).\(redaction(key))"] = "\(redaction(value))"
        }
        logger.log(level: level.ofLogger, "\(name): \(redaction(sentence))", metadata: metadata)
      }, clock: StepClock { [clock] in clock.now().milliseconds },
      store: ProviderKeyValues(of: name, in: store, keys: keys, clock: clock, logger: logger))
  }

  /// The maximum number of named values in a provider's log line.
  private static let maxLogged = 32

  /// Builds the redaction for a step: everything that the client sent, the identifiers, and the provider's secrets.
  func redaction(
    of provider: ProviderName, _ input: ProviderInput?, _ identifiers: [Identifier], code: CodeMessage? = nil,
    _ request: RequestContext
  ) -> Redaction {
    let sent = (input?.fields.values).map(Array.init) ?? []
    let secrets = request.generation.gateway.providers[provider]?.secrets.values.map { $0.reveal() } ?? []
    return Redaction(
      sent.compactMap { if case .text(let text) = $0 { text } else { nil } }
        + identifiers.flatMap { [$0.value, $0.display] } + secrets
        + [code?.code, code?.text].compactMap(\.self))
  }

  // MARK: records

  func open(_ sealed: [UInt8], of provider: ProviderName, for account: String) throws(FlowError) -> ProviderRecord {
    do {
      return try ProviderRecord(opening: sealed, for: ProviderRecord.owner(provider, account), by: keys)
    } catch {
      throw .store(
        StoreFault(
          "the record of \(provider) for \(account) cannot be opened: it was changed, or sealed under another key"))
    }
  }

  /// Converts a record to the provider's newest format.
  /// - Returns: nil if the record has that format already.
  func upgrade(
    _ record: ProviderRecord, by provider: any FullProvider, for account: String, _ redaction: Redaction,
    _ request: RequestContext
  ) async throws(FlowError) -> [UInt8]? {
    let (name, newest) = (provider.descriptor.name, provider.descriptor.recordVersion)
    if record.version == newest { return nil }
    guard record.version < newest else {
      throw .store(
        StoreFault(
          """
          the record of \(name) for \(account) has version \(record.version), and \(name) of this gateway reads versions up to \(newest): update it, or \
          remove the record by `moongate account reset \(account) --provider \(name)`
          """))
    }
    let start = ContinuousClock.now
    do {
      let upgraded = try await provider.upgrade(record.bytes, from: record.version)
      guard upgraded.count <= Self.maxRecordBytes else {
        throw StoreFault("its record is larger than \(Self.maxRecordBytes) bytes")
      }
      providerMetrics.record(.upgrade, of: name, .upgraded, since: start)
      return upgraded
    } catch {
      providerMetrics.record(.upgrade, of: name, .fault, since: start)
      logger.error(
        "a provider could not upgrade a record",
        metadata: [
          "decision": "\(request.client.decision)", "provider": "\(name)", "version": "\(record.version)",
          "fault": "\(redaction("\(error)"))",
        ])
      throw request.refusal(.busy)
    }
  }

  /// Seals a provider's new record for its flow, because the account may not exist yet.
  func seal(record: [UInt8], of provider: ProviderName, id: FlowID, _ request: RequestContext) throws(FlowError)
    -> [UInt8]
  {
    guard record.count <= Self.maxRecordBytes else {
      throw .store(StoreFault("a record of \(provider) is larger than \(Self.maxRecordBytes) bytes"))
    }
    let version = registry(request).descriptor(provider)?.recordVersion ?? 1
    do {
      return try ProviderRecord(bytes: record, version: version).sealed(for: owner(provider, id), by: keys)
    } catch {
      throw .store(StoreFault("a record of \(provider) could not be sealed"))
    }
  }

  /// Opens a record that `seal(record:…)` sealed, perhaps in an older version of the gateway.
  func unseal(record sealed: [UInt8], of provider: ProviderName, id: FlowID) throws(FlowError) -> ProviderRecord {
    // An older gateway stored an empty record unsealed.
    guard !sealed.isEmpty else { return ProviderRecord(bytes: [], version: 1) }
    do {
      return try ProviderRecord(opening: sealed, for: owner(provider, id), by: keys)
    } catch {
      throw .store(StoreFault("the new record of \(provider) cannot be opened"))
    }
  }

  // MARK: what is kept for them

  /// The maximum size of what a provider stores for a step or an account, in bytes. Its rows are read and written
  /// whole.
  static var maxRecordBytes: Int { 65_536 }

  /// Seals the state that a provider stores while its flow waits.
  func seal(_ state: [UInt8], for provider: ProviderName, id: FlowID) throws(FlowError) -> [UInt8] {
    guard !state.isEmpty else { return [] }
    guard state.count <= Self.maxRecordBytes else {
      throw .store(StoreFault("the state of \(provider) is larger than \(Self.maxRecordBytes) bytes"))
    }
    do { return try keys.seal(state, for: owner(provider, id)) } catch {
      throw .store(StoreFault("the state of \(provider) could not be sealed"))
    }
  }

  /// Opens what `seal` sealed.
  func unseal(_ sealed: [UInt8], for provider: ProviderName, id: FlowID) throws(FlowError) -> [UInt8] {
    guard !sealed.isEmpty else { return [] }
    do { return try keys.open(sealed, for: owner(provider, id)) } catch {
      throw .store(StoreFault("the state of \(provider) cannot be opened"))
    }
  }

  /// Seals what a step shows to the user. It can hold the key of an authenticator app, and the flow's row is in the
  /// database.
  func seal(_ shown: [Shown], for provider: ProviderName, id: FlowID) throws(FlowError) -> SealedBytes? {
    guard !shown.isEmpty else { return nil }
    do {
      let bytes = Array(try JSONEncoder().encode(shown))
      guard bytes.count <= Self.maxRecordBytes else {
        throw StoreFault("what \(provider) shows is larger than \(Self.maxRecordBytes) bytes")
      }
      return SealedBytes(try keys.seal(bytes, for: "shown \(owner(provider, id))"))
    } catch {
      throw .store(error as? StoreFault ?? StoreFault("what \(provider) shows could not be sealed"))
    }
  }

  /// What the open step shows. The view goes to the client that drives the flow: the browser that began it, or the
  /// session.
  ///
  /// Attack: the creator of an app's flow sends its link to a victim and then asks what the step shows. What a step
  /// shows is therefore not returned for flows that end in an app.
  func shown(_ step: StepRecord, of record: FlowRecord, id: FlowID) throws(FlowError) -> [Shown] {
    guard let sealed = step.shown, record.app == nil else { return [] }
    do {
      return try JSONDecoder().decode(
        [Shown].self, from: Data(try keys.open(sealed.bytes, for: "shown \(owner(step.provider, id))")))
    } catch {
      throw .store(StoreFault("what \(step.provider) shows cannot be opened"))
    }
  }

  func owner(_ provider: ProviderName, _ id: FlowID) -> String { "flow \(Base64URL.encode(id.hash.bytes)) \(provider)" }
}

extension StepCapabilities {
  /// A copy with a permit to hash.
  func granting(_ hasher: (any SecretHasher)?) -> StepCapabilities {
    var capabilities = self
    capabilities.context.tools.hasher = hasher
    return capabilities
  }

  /// A copy without an account.
  var withoutAccount: StepCapabilities {
    var capabilities = StepCapabilities(context: context, record: nil, upgraded: nil, redaction: redaction)
    capabilities.context.account = nil
    return capabilities
  }

  /// A copy for use before authentication: without the account's names and identifiers.
  var anonymous: StepCapabilities {
    var capabilities = self
    capabilities.context.account = context.account.map { StepAccount(id: $0.id, record: nil) }
    return capabilities
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
