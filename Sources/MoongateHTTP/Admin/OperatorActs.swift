import MoongateCore

/// Records what operators ask for over the admin listener.
struct OperatorActs: Sendable {
  let audit: AuditTrail
  let clock: any GatewayClock
  let entrance: AdminGuard

  /// Records what an operator asks for, by the name of the token, or the one that the call gives where none is asked
  /// for.
  ///
  /// Attack: whoever holds one token acts in the name of another. The token's own name stands; what the call says
  /// besides is kept beside it.
  /// - Returns: the name.
  @discardableResult
  func note(_ kind: AuditEvent.Kind, _ query: AdminQuery, _ detail: [String: String], _ exchange: Exchange) -> String? {
    let holder = entrance.identity(exchange)
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
