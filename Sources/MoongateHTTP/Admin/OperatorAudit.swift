import MoongateCore

/// Records actions of operators on the admin listener in the audit trail.
struct OperatorAudit: Sendable {
  let audit: AuditTrail
  let clock: any GatewayClock
  let adminGuard: AdminGuard

  /// Records an action under the operator's name (`AdminGuard.identity`).
  /// - Returns: the recorded name.
  @discardableResult
  func record(_ kind: AuditEvent.Kind, _ query: AdminQuery, _ detail: [String: String], _ exchange: Exchange) -> String?
  {
    let identity = adminGuard.identity(exchange, claiming: query["as"])
    audit.record(
      AuditEvent(
        id: exchange.decision, at: clock.now(), kind: kind, address: identity.address,
        detail: detail.merging(identity.detail) { $1 }))
    return identity.name
  }
}
