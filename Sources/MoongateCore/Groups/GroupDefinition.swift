import MoongateSDK

/// How accounts.lua defines one group.
package enum GroupDefinition: Sendable, Hashable {
  /// By a function of facts.
  case computed(FunctionName)
  /// By a list of members in the store: `members()`.
  case members
}

/// Group and claim bounds. Fixed, so that the entitlements of every requester fit into headers that proxies and
/// services accept.
package enum EntitlementBounds {
  /// The most groups that accounts.lua defines.
  package static let groups = 256
  /// The most bytes of `Remote-Groups` for a requester who is in every group.
  package static let headerBytes = 4096
  /// The most claims that accounts.lua defines.
  package static let claims = 16
}
