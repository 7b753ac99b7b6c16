import MoongateCore
import MoongateSDK

/// One setting that two configurations have otherwise, and what that changes.
package struct SettingChange: Sendable, Encodable, Equatable {
  /// A number before and after.
  package struct Numbers: Sendable, Encodable, Equatable {
    /// nil: nothing bounds it.
    package let old: Int?
    package let new: Int?

    enum CodingKeys: String, CodingKey { case old, new }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(old, forKey: .old)
      try container.encode(new, forKey: .new)
    }
  }

  /// Words before and after.
  package struct Words: Sendable, Encodable, Equatable {
    package let old: String
    package let new: String
  }

  /// What this setting alone changes; nil where it changes nothing of the kind.
  package struct Effect: Sendable, Encodable, Equatable {
    /// Guesses that an attacker with means gets in 30 days.
    package var guesses: Numbers?
    /// The chance that one of them is right.
    package var probability: Words?
    /// Messages to one person a day that strangers cause.
    package var messagesToOne: Numbers?
    /// Messages in an hour to everybody together.
    package var messages: Numbers?
    /// Accounts in an hour.
    package var accounts: Numbers?
    /// After what a lock begins, and how long it is.
    package var locks: Words?

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

    /// In words, one for each kind.
    var sentences: [String] {
      func numbers(_ name: String, _ numbers: Numbers?) -> String? {
        numbers.map { "\(name) \($0.old.map(String.init) ?? "no end") → \($0.new.map(String.init) ?? "no end")" }
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

  /// `policies/phone_otp`, `flows/login`, `accounts` or `gateway`.
  package let of: String
  /// `limits.verify.max`.
  package let path: String
  /// As a file writes it; nil: it was not there.
  package let old: String?
  package let new: String?
  /// Where it is said now, or was; nil: it is the default.
  package let file: String?
  package let line: Int?
  package let effect: Effect

  var place: String { file.map { file in line.map { "\(file):\($0)" } ?? file } ?? "\(of) (default)" }
}

extension [SettingChange] {
  /// A table for a person: each setting with its place, old and new, and its effect below it.
  /// - Parameter colour: whether the reader is a terminal that shows it.
  package func text(colour: Bool) -> String? {
    guard !isEmpty else { return nil }
    let paint = TerminalStyle(isOn: colour)
    let place = Swift.max(7, map(\.place.count).max() ?? 0)
    let path = Swift.min(32, map(\.path.count).max() ?? 0)
    var lines = [paint.dim("\(Columns.pad("setting", to: place + 2 + path))  was → is")]
    for change in self {
      let lead = "\(Columns.pad(change.place, to: place))  \(Columns.pad(change.path, to: path))  "
      let values = "\(change.old ?? "nothing") → \(change.new ?? "nothing")"
      if lead.count + values.count <= Columns.width {
        lines.append(lead + values)
      } else {
        lines += [lead.trimmedAtEnd] + Columns.wrapped(values, indent: 4, width: Columns.width)
      }
      for sentence in change.effect.sentences {
        lines += Columns.wrapped(sentence, indent: 4, width: Columns.width).map(paint.yellow)
      }
    }
    return lines.joined(separator: "\n")
  }
}
