import MoongateCore
import MoongateSDK

/// Why an attacker gave up before the end of a simulation.
package struct AttackEnd: Sendable, Encodable, Equatable {
  /// Virtual seconds since the attack began.
  package let seconds: Int64
  /// The error code of the refusal; nil if no step could be started.
  package let code: String?
  /// The limit or function that refused, with its location below.
  package let rule: String?
  package let location: String?

  enum CodingKeys: String, CodingKey { case seconds, code, rule, location }

  init(after time: Duration, code: RefusalCode?, limit: String?, rule: String?, at location: String?) {
    seconds = time.components.seconds
    self.code = code?.name
    self.rule = limit.map { "limits.\($0)" } ?? rule
    self.location = location
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(code, forKey: .code)
    try container.encode(rule, forKey: .rule)
    try container.encode(location, forKey: .location)
  }

  /// A sentence without a full stop.
  var sentence: String {
    let by = rule.map { " by \($0)\(location.map { " (\($0))" } ?? "")" } ?? ""
    switch code {
    case RefusalCode.disabled.name?: return "the credential was disabled\(by) until an operator re-enables it"
    case let code?: return "all further attempts are refused, \(code)\(by)"
    case nil: return "the attacker had no further attempts"
    }
  }
}
