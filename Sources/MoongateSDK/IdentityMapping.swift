/// What the gateway makes of a user of another site, from what the site says.
///
/// The function `identity` of the operator's policy returns it. A provider with its own rules uses the same type.
public struct MappedIdentity: Sendable, Equatable {
  public var email: String?
  /// Whether the site has verified the address. It joins an account only if the site is authoritative for it.
  public var isEmailVerified: Bool
  public var firstName: String?
  public var lastName: String?
  /// See `Identifier.groups`.
  public var groups: [String]
  /// See `Identifier.attributes`: policies read it as `f.account.identities.NAME.data`.
  public var data: [String: String]

  /// More than five parameters: one for each field.
  public init(
    email: String? = nil, isEmailVerified: Bool = false, firstName: String? = nil, lastName: String? = nil,
    groups: [String] = [], data: [String: String] = [:]
  ) {
    self.email = email
    self.isEmailVerified = isEmailVerified
    self.firstName = firstName
    self.lastName = lastName
    self.groups = groups
    self.data = data
  }
}

/// Runs the function `identity` of the operator's policy, for a provider whose descriptor says `mapsClaims`.
public struct IdentityMapper: Sendable {
  private let map: @Sendable (_ claims: [String: JSONClaim]) async throws -> MappedIdentity?

  /// - Parameter map: by default, as if the policy had no such function.
  public init(
    _ map: @escaping @Sendable (_ claims: [String: JSONClaim]) async throws -> MappedIdentity? = { _ in nil }
  ) {
    self.map = map
  }

  /// - Parameter claims: what the site says, verified. The function reads it as `f.claims`.
  /// - Returns: nil if the policy has no such function. The provider then uses its own rules.
  /// - Throws: if the function denies or fails. Do not catch it: the gateway refuses the step in the policy's words.
  public func callAsFunction(_ claims: [String: JSONClaim]) async throws -> MappedIdentity? { try await map(claims) }
}

/// A provider that has rules of its own for what another site says, which apply without the function `identity`.
public protocol ClaimsMapping: Provider {
  /// Must not contact other sites. `moongate policy claims` shows the result.
  /// - Parameters:
  ///   - claims: what the site says.
  ///   - settings: values of the declared types.
  /// - Throws: if the claims are refused.
  func identity(from claims: [String: JSONClaim], settings: StepSettings) throws -> MappedIdentity

  /// The claims as the function `identity` gets them: by default as they are.
  /// - Throws: if the claims are refused before the function is called.
  func readable(_ claims: [String: JSONClaim], settings: StepSettings) throws -> [String: JSONClaim]
}

extension ClaimsMapping {
  public func readable(_ claims: [String: JSONClaim], settings: StepSettings) throws -> [String: JSONClaim] { claims }
}
