import MoongateCore
import MoongateSDK

// `invited()` in a case does the same as `moongate invite create`; the next flow begins with that invitation.

extension CaseReader {
  /// Reads `invited()` or `invited { to = "asha@example.com", groups = { "ops" } }`.
  func invitation(_ node: LuaNode?) -> PolicyCase.InvitationSetup? {
    guard let node else { return PolicyCase.InvitationSetup() }
    guard let reader = TableReader(node, .caseInvitation, path: "invited", problems: problems) else { return nil }
    let listed = reader.take("groups").flatMap { Field.texts($0, "invited.groups", problems) } ?? []
    let groups = listed.compactMap { text, item in stored(text, at: item.location, "invited.groups") }
    return PolicyCase.InvitationSetup(to: reader.text("to"), groups: groups)
  }
}

extension CaseRun {
  /// - Returns: the outcome in words.
  mutating func invite(_ setup: PolicyCase.InvitationSetup, _ act: PolicyCase.Act) async throws -> String {
    var named: Identifier?
    if let to = setup.to {
      named = identifier(to.contains("@") ? .email : .phone, to)
      guard named != nil else { throw fail(act, "\(to) is not an email address or a phone number") }
    }
    let (now, code) = (gateway.clock.now(), gateway.invitationCode())
    let invitation = Invitation(
      id: "in_\(gateway.clock.now().milliseconds)_\(invitations)", code: code.hash, identifier: named,
      groups: setup.groups, createdAt: now, expiresAt: now + InvitationLifetime.standard)
    _ = try await gateway.store.apply([.putInvitation(invitation)], at: now)
    (self.invitation, invitations) = (code.secret, invitations + 1)
    return ""
  }
}

extension PolicyCase.InvitationSetup {
  /// The act in Lua syntax.
  var asWritten: String {
    let fields =
      (to.map { ["to = \"\($0)\""] } ?? [])
      + (groups.isEmpty ? [] : ["groups = { \(groups.map { "\"\($0)\"" }.joined(separator: ", ")) }"])
    return fields.isEmpty ? "invited()" : "invited { \(fields.joined(separator: ", ")) }"
  }
}
