/// A token of the admin listener.
package struct AdminToken: Sendable {
  /// What a token lets its holder do.
  package enum Role: String, Sendable, CaseIterable {
    /// Look at what is told by GET, but for messages of the outbox and exports.
    case read
    /// Everything.
    case act
  }

  /// By which the audit trail knows who acted.
  package let name: String
  package let role: Role
  package let secret: SecretText

  /// The name of the token that gateway.lua gives without one.
  package static let unnamed = "admin"

  package init(name: String, role: Role, secret: SecretText) {
    self.name = name
    self.role = role
    self.secret = secret
  }
}

extension GatewaySettings {
  /// All tokens of the admin listener; none: it asks nobody who they are.
  package var allAdminTokens: [AdminToken] {
    (adminToken.map { [AdminToken(name: AdminToken.unnamed, role: .act, secret: $0)] } ?? []) + adminTokens
  }
}
