import MoongateCore

/// Reads `body_rate` of a route, or of `limits` in gateway.lua: `"1KiB/10s"`, or `false`.
struct BodyRateReader {
  /// With longer windows, the idle timeout of a minute takes effect first.
  private static let windows: ClosedRange<Duration> = .seconds(1)...(.seconds(60))

  let problems: Problems

  /// - Parameter standard: the rate if the table does not set one.
  /// - Returns: nil for no limit, and for an invalid value, which is reported.
  func read(_ reader: TableReader, standard: BodyRate?) -> BodyRate? {
    guard let node = reader.explicitValue("body_rate") else { return standard }
    let path = reader.path("body_rate")
    switch node.value {
    case .flag(false): return nil
    case .text(let text):
      if let rate = Self.parse(text) { return rate }
      problems.add(
        node.location, path,
        "\"\(text)\" is not a rate; write \"1KiB/10s\": at least 1B in each window of \"1s\" to \"60s\", or false for no limit"
      )
    default:
      problems.add(node.location, path, "must be a rate, such as \"1KiB/10s\", or false, not \(node.value.described)")
    }
    return nil
  }

  private static func parse(_ text: String) -> BodyRate? {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let bytes = ByteSize.parse(parts[0]), bytes > 0, let window = Field.duration(parts[1]),
      windows.contains(window)
    else { return nil }
    return BodyRate(bytes: bytes, window: window)
  }
}

/// A number of bytes as files write it, such as `64KiB`.
enum ByteSize {
  /// - Returns: nil if the text is not a size.
  static func parse(_ text: String) -> Int? {
    let units = ["B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30]
    guard let match = text.wholeMatch(of: /([0-9]{1,9})(B|KiB|MiB|GiB)/), let count = Int(match.1),
      let unit = units[String(match.2)]
    else {
      return nil
    }
    return count * unit
  }
}
