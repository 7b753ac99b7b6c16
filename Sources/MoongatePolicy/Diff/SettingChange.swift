import MoongateCore
import MoongateSDK

/// A setting that differs between two configurations, and its effect.
package struct SettingChange: Sendable, Encodable, Equatable {
  /// A number before and after.
  package struct NumberChange: Sendable, Encodable, Equatable {
    /// Nil: unbounded.
    package let old: Int?
    package let new: Int?

    enum CodingKeys: String, CodingKey { case old, new }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(old, forKey: .old)
      try container.encode(new, forKey: .new)
    }
  }

  /// A text before and after.
  package struct TextChange: Sendable, Encodable, Equatable {
    package let old: String
    package let new: String
  }

  /// The effect of this setting alone; nil fields are not affected.
  package struct Effect: Sendable, Encodable, Equatable {
    /// The guesses in 30 days of an attacker with many addresses and devices.
    package var guesses: NumberChange?
    /// The probability that one of them is right.
    package var probability: TextChange?
    /// Messages to one user per day that attackers cause.
    package var messagesToOne: NumberChange?
    /// Messages per hour to all users together.
    package var messages: NumberChange?
    /// Accounts per hour.
    package var accounts: NumberChange?
    /// When a lock begins, and how long it lasts.
    package var locks: TextChange?

    package init() {}

    var isEmpty: Bool { self == Effect() }

    enum CodingKeys: String, CodingKey {
      case guesses = "guesses_per_30d"
      case probability = "probability_30d"
      case messagesToOne = "messages_to_one_per_day"
      case messages = "messages_per_hour"
      case accounts = "accounts_per_hour"
      case locks
    }

    /// The effects in words.
    var sentences: [String] {
      func numbers(_ name: String, _ numbers: NumberChange?) -> String? {
        numbers.map { "\(name) \($0.old.map(String.init) ?? "unlimited") → \($0.new.map(String.init) ?? "unlimited")" }
      }
      return [
        numbers("guesses in 30 days", guesses).map { $0 + (probability.map { " (\($0.old) → \($0.new))" } ?? "") },
        guesses == nil ? probability.map { "chance in 30 days \($0.old) → \($0.new)" } : nil,
        numbers("messages to one a day", messagesToOne), numbers("messages an hour", messages),
        numbers("accounts an hour", accounts),
        locks.map { "locks \($0.old) → \($0.new)" },
      ].compactMap(\.self)
    }
  }

  /// `policies/phone_otp`, `flows/login`, `accounts`, `apps`, `routes` or `gateway`.
  package let of: String
  /// Such as `limits.verify.max`, or `/wiki/** strip` of a route.
  package let path: String
  /// The values in Lua syntax; nil if the setting did not exist.
  package let old: String?
  package let new: String?
  /// The file that sets the value now, or set it before; nil for a default.
  package let file: String?
  package let line: Int?
  package let effect: Effect

  var place: String { file.map { file in line.map { "\(file):\($0)" } ?? file } ?? "\(of) (default)" }
}

extension [SettingChange] {
  /// A table with each setting, its location, its old and new value, and its effect.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String? {
    guard !isEmpty else { return nil }
    let style = TerminalStyle(isOn: colour)
    let place = Swift.max(7, map(\.place.count).max() ?? 0)
    let path = Swift.min(32, map(\.path.count).max() ?? 0)
    var lines = [style.dim("\(Columns.pad("setting", to: place + 2 + path))  was → is")]
    for change in self {
      let lead = "\(Columns.pad(change.place, to: place))  \(Columns.pad(change.path, to: path))  "
      let values = "\(change.old ?? "nothing") → \(change.new ?? "nothing")"
      if lead.count + values.count <= Columns.width {
        lines.append(lead + values)
      } else {
        lines += [lead.trimmedAtEnd] + Columns.wrapped(values, indent: 4, width: Columns.width)
      }
      for sentence in change.effect.sentences {
        lines += Columns.wrapped(sentence, indent: 4, width: Columns.width).map(style.yellow)
      }
    }
    return lines.joined(separator: "\n")
  }
}
