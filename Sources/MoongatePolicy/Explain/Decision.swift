import MoongateCore
import MoongateSDK

/// A decision from the audit trail, formatted for an operator who investigates it.
package struct Decision: Sendable, Codable {
  package let id: String
  package let at: String
  package let kind: String
  package let code: String?
  package let flow: String?
  package let provider: String?
  package let account: String?
  /// A keyed hash.
  package let identifier: String?
  package let address: String?
  package let detail: [String: String]
  /// The number of refusals that a single event stands for; nil for an ordinary event.
  package let count: Int?

  package init(_ event: AuditEvent) {
    id = event.id.text
    at = event.at.exactText
    kind = event.kind.rawValue
    code = event.code
    flow = event.flow
    provider = event.provider?.rawValue
    account = event.account
    identifier = event.identifier
    address = event.address
    detail = event.detail
    count = event.count
  }

  /// The decision as text for terminals, at most 80 columns wide.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    var lines: [String] = []
    if let code {
      let known = RefusalCode(reserved: code) ?? .policyReason(code)
      lines.append("\(style.red("\(known.status) \(code)"))  \(style.dim(id))")
    } else {
      lines.append("\(style.bold(kind))  \(style.dim(id))")
    }
    let who = [flow.map { "flow \($0)" }, provider, address.map { "from \($0)" }, identifier.map { "of \($0)" }]
      .compactMap(\.self)
    lines.append(([at] + who).joined(separator: ", "))
    if let count {
      lines.append("the first of \(count) such refusals from this address within a minute; all have this id")
    }
    lines.append("")
    func row(_ name: String, _ text: String) {
      lines.append("  " + Columns.pad(name.isEmpty ? "" : name + "  ", to: 11) + text)
    }
    if let rule = detail["rule"] { row("rule", rule + (detail["at"].map { "  \(style.bold($0))" } ?? "")) }
    if let limit { row("", limit) }
    if let verdict = detail["verdict"] { row("verdict", verdict) }
    if let because = detail["because"] { row("because", because) }
    if let fault = detail["fault"] { row("fault", fault) }
    if let providerFault { row("", providerFault) }
    for (index, line) in cause.enumerated() { row(index == 0 ? "because" : "", line) }
    if let until = detail["locked_until"] { row("locked", "until \(until)") }
    if let wait = detail["retry_after"].flatMap(Int64.init) {
      row("told", "to try again after \(Duration.seconds(wait).asWritten)")
    }
    for (index, counter) in sorted("counter.").enumerated() {
      row(index == 0 ? "counters" : "", "\(counter.name)  \(counter.value.replacing("->", with: "→"))")
    }
    // The counters of a route's `rate` are no counters of a policy.
    if let rule = detail["rule"], rule != "rate", detail["app"] == nil, sorted("counter.").isEmpty {
      row("counters", "no counter changed")
    }
    for (index, asked) in sorted("asked.").enumerated() {
      row(index == 0 ? "asked" : "", "\(asked.name)  \(asked.value)")
    }
    let facts = sorted("fact.")
    let width = facts.map(\.name.count).max() ?? 0
    for (index, fact) in facts.enumerated() {
      row(index == 0 ? "facts" : "", "f.\(Columns.pad(fact.name, to: width)) = \(fact.value)")
    }
    if let generation = detail["generation"] { row("generation", String(generation.prefix(8))) }
    let told: Set<String> = [
      "rule", "at", "act", "per", "max", "counts", "window", "used", "verdict", "because", "fault", "locked_until",
      "retry_after",
      "generation",
      "fault_provider",
      "fault_call", "fault_count", "fault_since", "cause", "locked_by", "locked_at", "locked_reason", "locked_event",
    ]
    for (name, value) in detail.sorted(by: { $0.key < $1.key })
    where !told.contains(name) && !["counter.", "asked.", "fact."].contains(where: name.hasPrefix) {
      row(name.replacing("_", with: " "), value)
    }
    return lines.joined(separator: "\n")
  }

  /// The provider that failed, the call, and how often that call has failed.
  private var providerFault: String? {
    guard let provider = detail["fault_provider"], let call = detail["fault_call"] else { return nil }
    let count = detail["fault_count"].flatMap(Int.init) ?? 1
    let often =
      count > 1 ? "\(count) times since \(detail["fault_since"] ?? "then")" : "for the first time within an hour"
    return "of `\(provider)`, in \(call), \(often)"
  }

  /// Why the request was refused, if no rule, verdict or fault says it, line by line.
  private var cause: [String] {
    if let appCause { return [appCause] }
    guard let code else { return [] }
    if let cause = detail["cause"].flatMap(RefusalCause.init) { return [cause.sentence] + lock }
    guard ["rule", "verdict", "fault", "reason", "locked_until"].allSatisfy({ detail[$0] == nil }) else { return [] }
    return [(RefusalCode(reserved: code) ?? .policyReason(code)).meaning]
  }

  /// Why an app refused the user; nil for another event, or if a fault says it.
  private var appCause: String? {
    guard kind == AuditEvent.Kind.appRefused.rawValue, detail["fault"] == nil, let reason = detail["reason"] else {
      return nil
    }
    // A reason of `decide` may have any name, such as `needs_review`.
    if detail["rule"]?.hasSuffix(".decide") ?? false { return "`decide` denied it with this reason" }
    switch reason {
    case "needs_factors": return "the session had passed fewer factors than `require` demands"
    case "not_in_group": return "the account was in none of the groups that `require` names"
    case "email_not_verified": return "the account had no verified email address, which `require` demands"
    case "no_session": return "the user had no session"
    default:
      if let match = reason.wholeMatch(of: /needs_(.+)/) {
        return "the session had not passed `\(match.1)`, or not recently enough"
      }
      return reason.wholeMatch(of: /too_new_(.+)/).map { "what the user passed by `\($0.1)` was too new to count" }
    }
  }

  /// Who locked the account, when and why.
  private var lock: [String] {
    guard let actor = detail["locked_by"] else { return [] }
    let lines = [
      detail["locked_at"].map { "locked \($0) by \(actor)" } ?? "locked by: \(actor)",
      detail["locked_reason"].map { "reason: \($0)" }, detail["locked_event"].map { "event \($0)" },
    ]
    return lines.compactMap(\.self)
  }

  /// The limit in words.
  private var limit: String? {
    guard let max = detail["max"], let per = detail["per"] else { return nil }
    let what = detail["counts"].map { $0 == "all" ? "" : " \($0.replacing("_", with: " "))" } ?? ""
    let window = detail["window"].flatMap(Int64.init).map { " in \(Duration.seconds($0).asWritten)" } ?? ""
    let used = detail["used"].map { ", \($0) used" } ?? ""
    return "at most \(max)\(what) per \(per)\(window)\(used)"
  }

  private func sorted(_ prefix: String) -> [(name: String, value: String)] {
    detail.filter { $0.key.hasPrefix(prefix) }.map { (String($0.key.dropFirst(prefix.count)), $0.value) }.sorted {
      $0.0 < $1.0
    }
  }
}
