import MoongateCore

/// Records actions of operators on the admin listener in the audit trail.
struct OperatorAudit: Sendable {
  let audit: AuditTrail
  let clock: any GatewayClock
  let adminGuard: AdminGuard

  /// Records an action under the name of the token, or, if no token is required, under the name that the call gives.
  ///
  /// Attack: the holder of one token acts under another name. The token's own name is always recorded; the name in the
  /// call is recorded next to it.
  /// - Returns: the recorded name.
  @discardableResult
  func record(_ kind: AuditEvent.Kind, _ query: AdminQuery, _ detail: [String: String], _ exchange: Exchange) -> String?
  {
    let holder = adminGuard.identity(exchange)
    let claimed = query["as"].flatMap {
      $0.isEmpty ? nil : OperatorIdentity(name: $0, tool: holder.tool, address: holder.address)
    }
    var detail = detail.merging((holder.name == nil ? claimed ?? holder : holder).detail) { $1 }
    if holder.name != nil { detail["as"] = claimed?.name }
    audit.record(
      AuditEvent(id: exchange.decision, at: clock.now(), kind: kind, address: holder.address, detail: detail))
    return detail["operator"]
  }
}
