extension Timestamp {
  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// The time in UTC and whole seconds, rounded down: `2026-11-20T12:15:00Z` (RFC 3339 section 5.6).
  package var text: String { "\(civil)Z" }

  /// The time with milliseconds, for records whose order matters: `2026-11-20T12:15:00.250Z`.
  package var exactText: String {
    let rest = String(milliseconds - seconds * 1000)
    return "\(civil).\(String(repeating: "0", count: 3 - rest.count))\(rest)Z"
  }

  /// The time in whole seconds, rounded down, as HTTP writes it: `Fri, 20 Nov 2026 12:15:00 GMT` (`IMF-fixdate`, RFC
  /// 9110 section 5.6.7).
  package var fixdate: String {
    let (year, month, dayOfMonth) = date
    // The epoch was a Thursday.
    let weekday = Self.weekdays[Int((day % 7 + 7) % 7)]
    return "\(weekday), \(Self.two(dayOfMonth)) \(Self.months[Int(month) - 1]) \(year) \(timeOfDay) GMT"
  }

  private var civil: String {
    let (year, month, dayOfMonth) = date
    return "\(year)-\(Self.two(month))-\(Self.two(dayOfMonth))T\(timeOfDay)"
  }

  /// Whole days since the epoch, rounded down.
  private var day: Int64 { (seconds >= 0 ? seconds : seconds - 86_399) / 86_400 }

  private var timeOfDay: String {
    let time = seconds - day * 86_400
    return "\(Self.two(time / 3600)):\(Self.two(time / 60 % 60)):\(Self.two(time % 60))"
  }

  /// The date in UTC. The year has at least four digits; months and days begin with 1.
  private var date: (year: String, month: Int64, dayOfMonth: Int64) {
    // Days to a civil date, for any year (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = String(yearOfEra + era * 400 + (month <= 2 ? 1 : 0))
    return (
      String(repeating: "0", count: max(0, 4 - year.count)) + year, month,
      dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    )
  }

  private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
