extension Timestamp {
  /// The time in UTC and whole seconds, rounded down: `2026-11-20T12:15:00Z` (RFC 3339 section 5.6).
  package var text: String { "\(civil)Z" }

  /// The time with milliseconds, for records whose order matters: `2026-11-20T12:15:00.250Z`.
  package var exactText: String {
    let rest = String(milliseconds - seconds * 1000)
    return "\(civil).\(String(repeating: "0", count: 3 - rest.count))\(rest)Z"
  }

  private var civil: String {
    let seconds = seconds
    let day = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
    let time = seconds - day * 86_400
    // Days to a civil date, for any year (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let two = { (number: Int64) in number < 10 ? "0\(number)" : "\(number)" }
    let yearText = String(repeating: "0", count: max(0, 4 - String(year).count)) + String(year)
    let date = "\(yearText)-\(two(month))-\(two(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1))"
    return "\(date)T\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60))"
  }
}
