import Foundation
import MoongateCore
import MoongateSDK

/// A lock in a line, as operators read it:
/// `phone +91 98765 43210 · account ac_… · phone_otp/verify · until 12:40 (in 11 min) · …`.
struct LockText {
  let named: NamedLock
  let now: Timestamp
  /// The time zone of printed times.
  var zone = TimeZone.current

  var line: String {
    let lock = named.lock
    var parts: [String] = []
    if let identifier = named.identifier { parts.append("\(identifier.kind.rawValue) \(identifier.display)") }
    if let account = named.account { parts.append("account \(account)") }
    if parts.isEmpty { parts.append(named.sources.first.map { "address \($0.address)" } ?? "unknown") }
    parts.append("\(lock.provider)/\(lock.limit)")
    parts.append(
      lock.until.map { "until \(clockTime($0)) (in \(Self.span($0 - now)))" } ?? "until an operator lifts it")
    if let location = named.location { parts.append("by \(location)") }
    if let source = named.sources.first {
      let all = named.failures == FailedAttempt.most ? "the last \(named.failures)" : "\(named.failures)"
      parts.append("\(source.count) of \(all) failures from \(source.address)")
    }
    parts.append("lock \(lock.id)")
    return parts.joined(separator: " · ")
  }

  /// `12:40`, with the date if it is another day.
  private func clockTime(_ moment: Timestamp) -> String {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = zone
    let date = { (moment: Timestamp) in Date(timeIntervalSince1970: Double(moment.milliseconds) / 1000) }
    format.dateFormat = "yyyy-MM-dd"
    let isToday = format.string(from: date(now)) == format.string(from: date(moment))
    format.dateFormat = isToday ? "HH:mm" : "yyyy-MM-dd HH:mm"
    return format.string(from: date(moment))
  }

  /// `11 min`, rounded up.
  static func span(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    if seconds < 60 { return "\(seconds) s" }
    let minutes = (seconds + 59) / 60
    if minutes < 120 { return "\(minutes) min" }
    let hours = (minutes + 59) / 60
    return hours < 48 ? "\(hours) h" : "\((hours + 23) / 24) days"
  }
}
