import MoongateCore
import MoongateSDK

/// Why an attacker went away before the end of a simulation: there was nothing more to be had.
package struct AttackEnd: Sendable, Encodable, Equatable {
  /// Virtual seconds since the attack began.
  package let seconds: Int64
  /// The refusal; nil where the attacker got in to nothing.
  package let code: String?
  /// The limit, or the function, that refused, and where it stands.
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

  /// Without a full stop.
  var sentence: String {
    let by = rule.map { " by \($0)\(location.map { " (\($0))" } ?? "")" } ?? ""
    switch code {
    case RefusalCode.disabled.name?: return "the credential was turned off\(by), until an operator re-enables it"
    case let code?: return "nobody is let in any more, \(code)\(by)"
    case nil: return "there was nothing more to be tried"
    }
  }
}
