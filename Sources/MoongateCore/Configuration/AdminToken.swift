/// A token for the admin listener.
package struct AdminToken: Sendable {
  /// What the holder of a token may do.
  package enum Role: String, Sendable, CaseIterable {
    /// GET requests, except for the outbox's messages and exports.
    case read
    /// All requests.
    case act
  }

  /// The name in the audit trail.
  package let name: String
  package let role: Role
  package let secret: SecretText

  /// The name of the token that gateway.lua sets without a name.
  package static let unnamed = "admin"

  package init(name: String, role: Role, secret: SecretText) {
    self.name = name
    self.role = role
    self.secret = secret
  }

  /// All tokens of a listener.
  /// - Parameter unnamed: the token that gateway.lua sets without a name, if any.
  package static func all(unnamed: SecretText?, named: [AdminToken]) -> [AdminToken] {
    (unnamed.map { [AdminToken(name: Self.unnamed, role: .act, secret: $0)] } ?? []) + named
  }
}

extension GatewaySettings {
  /// All tokens of the admin listener. If empty, it requires no authentication.
  package var allAdminTokens: [AdminToken] { AdminToken.all(unnamed: adminToken, named: adminTokens) }
}
