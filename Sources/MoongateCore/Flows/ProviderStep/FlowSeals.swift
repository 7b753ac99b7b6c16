import Foundation
import MoongateSDK

/// Seals what the core stores for providers, each value for its flow, provider and purpose, and opens it again.
struct FlowSeals: FlowPart {
  let services: FlowServices

  /// Seals a provider's new record for its flow, because the account may not exist yet.
  func seal(record: [UInt8], of provider: ProviderName, _ flow: FlowTransaction) throws(FlowError)
    -> [UInt8]
  {
    guard record.count <= Self.maxRecordBytes else {
      throw .store(StoreFault("a record of \(provider) is larger than \(Self.maxRecordBytes) bytes"))
    }
    let version = registry(flow.request).descriptor(provider)?.recordVersion ?? 1
    do {
      return try ProviderRecord(bytes: record, version: version).sealed(for: owner(provider, flow.id), by: keys)
    } catch {
      throw .store(StoreFault("a record of \(provider) could not be sealed"))
    }
  }

  /// Opens a record that `seal(record:…)` sealed.
  func unseal(record sealed: [UInt8], of provider: ProviderName, id: FlowID) throws(FlowError) -> ProviderRecord {
    do {
      return try ProviderRecord(opening: sealed, for: owner(provider, id), by: keys)
    } catch {
      throw .store(StoreFault("the new record of \(provider) cannot be opened"))
    }
  }

  /// The maximum size of what a provider stores for a step or an account, in bytes. Its rows are read and written
  /// whole.
  static var maxRecordBytes: Int { AccountAdministration.maxRecordBytes }

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
  /// session. `FlowViews` hides the step from the creator of a flow with a grant.
  func shown(_ step: StepRecord, of flow: FlowTransaction) throws(FlowError) -> [Shown] {
    guard let sealed = step.shown else { return [] }
    do {
      return try JSONDecoder().decode(
        [Shown].self, from: Data(try keys.open(sealed.bytes, for: "shown \(owner(step.provider, flow.id))")))
    } catch {
      throw .store(StoreFault("what \(step.provider) shows cannot be opened"))
    }
  }

  func owner(_ provider: ProviderName, _ id: FlowID) -> String { "flow \(Base64URL.encode(id.hash.bytes)) \(provider)" }

  /// Opens the record that an account has of a provider.
  func open(_ sealed: [UInt8], of provider: ProviderName, for account: String) throws(FlowError) -> ProviderRecord {
    do {
      return try ProviderRecord(opening: sealed, for: ProviderRecord.owner(provider, account), by: keys)
    } catch {
      throw .store(
        StoreFault(
          "the record of \(provider) for \(account) cannot be opened: it was changed, or sealed under another key"))
    }
  }
}

// MARK: - Redirects to other sites

extension FlowSeals {
  private static let callbackOwner = "callback"

  /// The callback address and state that the other site receives.
  func callback(_ provider: ProviderName, id: FlowID, _ request: RequestContext) throws(FlowError) -> Callback {
    do {
      let sealed = try keys.seal(Array(id.secret.reveal().utf8), for: "\(Self.callbackOwner) \(provider)")
      return Callback(
        address: "\(request.generation.gateway.publicURL)/auth/callback/\(provider)", state: Base64URL.encode(sealed))
    } catch {
      throw .store(StoreFault("the state of a redirect could not be sealed"))
    }
  }

  /// The flow that a callback's state names.
  /// - Throws: 404 if we did not seal the state.
  func flowID(ofCallback state: String, _ provider: ProviderName, _ request: RequestContext) throws(FlowError)
    -> FlowID
  {
    guard state.utf8.count <= 1024, let sealed = Base64URL.decode(state),
      let text = try? keys.open(sealed, for: "\(Self.callbackOwner) \(provider)")
    else { throw request.refusal(.flowNotFound, because: .unknownFlow) }
    return FlowID(text: String(decoding: text, as: UTF8.self))
  }

  /// Seals the fields that another site posted.
  func seal(_ input: ProviderInput, for provider: ProviderName, id: FlowID) throws(FlowError) -> SealedBytes {
    let texts = input.fields.compactMapValues { if case .text(let text) = $0 { text } else { nil } }
    do {
      return SealedBytes(try keys.seal(Array(try JSONEncoder().encode(texts)), for: "returned \(owner(provider, id))"))
    } catch {
      throw .store(StoreFault("the fields returned by a site could not be sealed"))
    }
  }

  /// Opens what another site posted.
  func open(_ held: PostedCallback, for provider: ProviderName, id: FlowID) throws(FlowError) -> [String:
    InputValue]
  {
    do {
      let bytes = try keys.open(held.fields.bytes, for: "returned \(owner(provider, id))")
      return try JSONDecoder().decode([String: String].self, from: Data(bytes)).mapValues { .text($0) }
    } catch {
      throw .store(StoreFault("the fields returned by a site cannot be opened"))
    }
  }
}
