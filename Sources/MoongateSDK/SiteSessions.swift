/// Ends sessions for another site, which says that a user has signed out there or must not be signed in any more.
///
/// Available in webhooks and in maintenance. In steps it throws, because a step that refuses must have no side effects.
public struct SiteSessions: Sendable {
  private let finish: @Sendable (_ identity: Identifier?, _ siteSession: String?) async throws -> Int

  /// - Parameter finish: ends the sessions and returns how many; by default throws. Without an identity, it gets a
  ///   session at the site.
  public init(
    _ finish: @escaping @Sendable (_ identity: Identifier?, _ siteSession: String?) async throws -> Int = { _, _ in
      throw SiteSessionsUnavailable()
    }
  ) {
    self.finish = finish
  }

  /// Ends the live sessions, on every gateway, in which this provider has proved the identity.
  /// - Parameters:
  ///   - identity: as the provider proves it.
  ///   - siteSession: only those with this `Proof.siteSession`, or with none; nil: all of them. Those with this one
  ///     that belong to another account by now end too.
  /// - Returns: how many have ended.
  /// - Throws: if the store does not answer, or the identity belongs to another provider.
  @discardableResult public func end(of identity: Identifier, siteSession: String? = nil) async throws -> Int {
    try await finish(identity, siteSession)
  }

  /// Ends the live sessions, on every gateway, that this provider has proved with this `Proof.siteSession`, for a site
  /// that does not say whose it is. Sign-ins that it has proved, and that are not complete, must begin again.
  /// - Returns: how many have ended.
  /// - Throws: if the store does not answer.
  @discardableResult public func end(siteSession: String) async throws -> Int { try await finish(nil, siteSession) }

  /// The same for a wrapper that changes identities.
  package func mapping(_ change: @escaping @Sendable (Identifier) -> Identifier) -> SiteSessions {
    SiteSessions { [finish] identity, siteSession in try await finish(identity.map(change), siteSession) }
  }
}

/// Sessions cannot be ended in this call.
public struct SiteSessionsUnavailable: Error, Sendable, CustomStringConvertible {
  public init() {}

  public var description: String { "sessions can be ended in webhooks and in maintenance only" }
}
