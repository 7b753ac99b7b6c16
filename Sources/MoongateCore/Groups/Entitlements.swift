/// The groups and claims of a requester.
///
/// Created for a session by `AccountRules.entitlements(of:by:)`, and for a token by
/// `AccountRules.entitlements(ofGroups:)`. Every use of groups (a route's `require`, `f.session.groups`,
/// `Remote-Groups`, the assertion) reads only this value.
package struct Entitlements: Sendable, Hashable {
  /// Sorted, without duplicates. Only groups that the active accounts.lua defines.
  package let groups: [GroupName]
  /// The claims by name.
  package let claims: [String: ClaimValue]

  /// - Parameter groups: in any order.
  package init(groups: some Sequence<GroupName>, claims: [String: ClaimValue] = [:]) {
    self.groups = Set(groups).sorted()
    self.claims = claims
  }

  /// The entitlements of a requester in no group.
  package static let none = Entitlements(groups: [])
}

/// The value of one claim.
package enum ClaimValue: Sendable, Hashable, Encodable {
  case text(String)
  case integer(Int64)
  /// Finite.
  case number(Double)
  case flag(Bool)

  /// The maximum length of a text, in bytes.
  package static let longestText = 256

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .flag(let flag): try container.encode(flag)
    }
  }
}

/// The groups that a route requires. A requester in any one of them meets the requirement.
package struct GroupRequirement: Sendable, Hashable {
  /// In the order of routes.lua; at least one.
  package let anyOf: [GroupName]

  /// - Parameter anyOf: at least one.
  package init(anyOf: [GroupName]) { self.anyOf = anyOf }

  /// Whether the groups meet the requirement. Used for sessions and tokens alike.
  package func isMet(by entitlements: Entitlements) -> Bool { anyOf.contains { entitlements.groups.contains($0) } }
}
