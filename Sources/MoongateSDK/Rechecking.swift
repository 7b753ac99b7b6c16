/// A provider that can ask its site again about an identity that it has proved, without the user: by a refresh token,
/// or by a search in a directory. Its descriptor sets `rechecks`.
///
/// Operators turn it on by `recheck` in the provider's entry in gateway.lua. The gateway then keeps `Proof.recheck`
/// with the identity, sealed, and asks in the background as long as the account has live sessions: one gateway of the
/// installation at a time for each identity, and a bounded number at once.
public protocol Rechecking: Provider {
  /// Asks the site. What the answer says replaces what is stored about the identity, on every gateway within a second.
  ///
  /// Runs outside of steps, and is cancelled after a minute.
  /// - Parameters:
  ///   - known: the identity, and what the provider needs to ask for it.
  ///   - tools: as for maintenance. Pass new claims to `tools.identity` as in a step: if it denies, the sessions end.
  /// - Throws: if the site does not answer, or its answer is not valid. Sessions go on, and end after `recheck_grace`.
  ///   An account that is gone or disabled is no error: answer `.ended`.
  func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer
}

/// An identity that is rechecked.
public struct RecheckedIdentity: Sendable {
  /// The identity as it is stored.
  public let identity: Identifier
  /// The provider's last `Proof.recheck`, or what it has kept since. A secret.
  public let state: [UInt8]
  private let store: @Sendable (_ state: [UInt8]) async throws -> Void

  /// - Parameter store: replaces the state; by default, discards it.
  public init(
    identity: Identifier, state: [UInt8], storing store: @escaping @Sendable ([UInt8]) async throws -> Void = { _ in }
  ) {
    self.identity = identity
    self.state = state
    self.store = store
  }

  /// Replaces the state at once. Call it as soon as the site has replaced a token: the old one may work no longer, and
  /// what follows may fail.
  /// - Throws: if the state is too long (`Proof.longestRecheck`), the store does not answer, or the identity was
  ///   disconnected or proved again meanwhile.
  public func keep(_ state: [UInt8]) async throws { try await store(state) }

  /// The same with another identity, for a wrapper.
  package func with(identity: Identifier) -> RecheckedIdentity {
    RecheckedIdentity(identity: identity, state: state, storing: store)
  }
}

/// What a site says about an identity.
public enum RecheckAnswer: Sendable, Equatable {
  /// The user can still sign in there. Groups, attributes and display of the identity replace the stored ones. It must
  /// be the same identity: another one is a fault.
  case confirmed(Identifier)
  /// The user is gone or disabled there, or the site no longer lets the gateway ask. The sessions that the identity has
  /// opened end, and its groups and attributes are removed.
  /// - Parameter because: a few words for the operator, such as `invalid_grant`. Never a secret.
  case ended(because: String)
}
