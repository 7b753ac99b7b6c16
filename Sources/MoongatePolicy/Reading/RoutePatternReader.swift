import Foundation
import MoongateCore
import MoongateSDK

/// Reads `host` and `path`, by which a route or a guarantee matches requests.
struct RoutePatternReader {
  let problems: Problems

  /// Reads an exact host name.
  func readHost(_ reader: TableReader) -> String? {
    guard let node = reader.take("host"), let text = Field.text(node, reader.path("host"), problems) else {
      return nil
    }
    guard let host = HostName(text), host.port == nil, host.name == text else {
      let meant = HostName(text).map { "; did you mean `\($0.name)`?" } ?? ", such as \"wallet.example.com\""
      problems.add(
        node.location, reader.path("host"),
        "\"\(text)\" is not a host name in lower case, without port and trailing dot\(meant)")
      return nil
    }
    return text
  }

  /// Reads a path pattern.
  func readPattern(_ node: LuaNode, _ path: String) -> PathPattern? {
    guard let text = Field.text(node, path, problems) else { return nil }
    func refuse(_ why: String) -> PathPattern? {
      problems.add(node.location, path, "\"\(text)\" \(why)")
      return nil
    }
    guard text.hasPrefix("/") else { return refuse("must begin with /") }
    guard !text.contains("?"), !text.contains("#"), !text.contains(";"), !text.contains("\n") else {
      return refuse("must not contain ?, #, ; or a line break: patterns match only the path")
    }
    // Requests are decoded once before they are matched.
    if text.lowercased().contains(/%(2f|5c)/) {
      return refuse(
        "can match no path: patterns match decoded paths; write * for such a name, and pass it on by encoded = { \"slash\" }"
      )
    }
    if let decoded = text.removingPercentEncoding, decoded != text {
      return refuse("can match no path: patterns match decoded paths; write \"\(decoded)\"")
    }
    guard !text.contains("\\") else { return refuse("can match no path: requests with a backslash are refused") }
    let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var segments: [PathPattern.Segment] = []
    for (index, part) in parts.enumerated() {
      if part == "**" {
        segments.append(.anySegments)
      } else if part.contains("**") {
        return refuse("has ** within a segment; ** stands alone between slashes")
      } else if part == "." || part == ".." || (part.isEmpty && index < parts.count - 1) {
        return refuse("can match no path: requests with `//`, `.` or `..` are refused before routing")
      } else {
        segments.append(.glob(Array(part.utf8)))
      }
    }
    return PathPattern(text: text, segments: segments)
  }
}
