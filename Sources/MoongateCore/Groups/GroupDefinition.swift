import MoongateSDK

/// How accounts.lua defines one group.
package enum GroupDefinition: Sendable, Hashable {
  /// Computed by a function of facts.
  case computed(FunctionName)
  /// A list of members in the store: `members()`.
  case members
}

/// The bounds on groups and claims. They are fixed, so that every requester's entitlements fit into headers that
/// proxies and services accept.
package enum EntitlementBounds {
  /// The maximum number of groups in accounts.lua.
  package static let groups = 256
  /// The maximum size of `Remote-Groups` for a requester who is in every group, in bytes.
  package static let headerBytes = 4096
  /// The maximum number of claims in accounts.lua.
  package static let claims = 16
}
