import Foundation

/// Implements `hour(f.now, "Asia/Kolkata")`.
final class TimeZoneHours {
  struct Unknown: Error {
    let sentence: String
  }

  private var zones: [String: TimeZone] = [:]

  /// The hour of the day, 0 to 23.
  func hour(of seconds: Int64, in name: String) -> Result<Int, Unknown> {
    // Time zone rules cover a few thousand years. Beyond that, no hour can be computed.
    guard abs(Double(seconds)) < 2e11 else {
      return .failure(Unknown(sentence: "hour: \(seconds) is not a valid time in Unix seconds"))
    }
    guard let zone = zone(name) else {
      let names = TimeZone.knownTimeZoneIdentifiers
      let meant =
        name.utf8.count < 60 ? Suggestion.nearest(to: name, among: names).map { "; did you mean `\($0)`?" } : nil
      return .failure(
        Unknown(
          sentence:
            "hour: unknown time zone `\(name.prefix(60))`\(meant ?? "; use a name such as `Asia/Kolkata` or `UTC`")"))
    }
    let local = seconds + Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    let ofDay = local % 86_400
    return .success(Int((ofDay < 0 ? ofDay + 86_400 : ofDay) / 3600))
  }

  private func zone(_ name: String) -> TimeZone? {
    if let zone = zones[name] { return zone }
    // Foundation also accepts abbreviations, whose meaning depends on the locale. Only full names mean the same
    // everywhere.
    guard name == "UTC" || name.contains("/"), let zone = TimeZone(identifier: name) else { return nil }
    if zones.count < 64 { zones[name] = zone }
    return zone
  }
}
