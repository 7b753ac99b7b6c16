/// Why a start time is refused.
package enum SinceProblem: Error, Equatable {
  /// The text is neither a duration nor a time in UTC.
  case unreadable
  /// The time is later than now, so nothing can match it.
  case future(now: Timestamp)

  /// The end of a sentence that begins with the name of the parameter or option.
  package var sentence: String {
    switch self {
    case .unreadable: "must be \(Timestamp.sinceForms)."
    case .future(let now): "is in the future. Times are in UTC, and it is \(now.text) now."
    }
  }
}

extension Timestamp {
  /// How far a start time may be ahead, for clocks that differ.
  private static let sinceTolerance: Duration = .seconds(60)

  /// Reads a start time that an operator typed.
  package static func since(_ text: String, before now: Timestamp) throws(SinceProblem) -> Timestamp {
    guard let moment = Timestamp(since: text, before: now) else { throw .unreadable }
    guard moment <= now + sinceTolerance else { throw .future(now: now) }
    return moment
  }

  /// Reads a start time: a duration before now (`90s`, `30m`, `12h`, `7d`), or a time in UTC (RFC 3339 section 5.6:
  /// `2026-11-20T12:15:00Z`). nil if the text is neither.
  init?(since text: String, before now: Timestamp) {
    if let duration = Self.length(text) {
      self = now - duration
    } else if let moment = Self(utc: text) {
      self = moment
    } else {
      return nil
    }
  }

  /// The accepted forms, for messages.
  package static let sinceForms =
    "a length of time such as \"90s\", \"30m\", \"12h\" or \"7d\", or a time in UTC such as \"2026-11-20T12:15:00Z\""

  private static func length(_ text: String) -> Duration? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), (2...9).contains(text.utf8.count) else { return nil }
    let digits = text.dropLast()
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let count = Int64(digits),
      count > 0
    else { return nil }
    return .seconds(count * unit)
  }

  /// Parses whole seconds in UTC. A date that does not exist is rejected by formatting the result again and comparing
  /// the texts.
  private init?(utc text: String) {
    guard text.utf8.count == 20 else { return nil }
    let bytes = Array(text.utf8)
    var numbers: [Int64] = []
    for range in [0..<4, 5..<7, 8..<10, 11..<13, 14..<16, 17..<19] {
      guard let number = Int64(String(decoding: bytes[range], as: UTF8.self)) else { return nil }
      numbers.append(number)
    }
    // Civil date to days (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let (month, day) = (numbers[1], numbers[2])
    let year = month <= 2 ? numbers[0] - 1 : numbers[0]
    let era = year / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    self.init(milliseconds: (days * 86_400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5]) * 1000)
    guard self.text == text else { return nil }
  }
}
