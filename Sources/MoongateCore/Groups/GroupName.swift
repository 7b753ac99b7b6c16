/// The name of a group of accounts, as accounts.lua defines it.
///
/// Only printable ASCII, so that equal names are equal bytes in Lua, SQL, headers and JSON, and a name has only one
/// spelling.
package struct GroupName: Sendable, Hashable, Comparable, Codable, RawRepresentable, CustomStringConvertible {
  package let rawValue: String

  /// The maximum length of a name, in bytes.
  package static let longest = 64

  /// - Returns: nil unless the text has 1 to 64 printable ASCII characters and neither begins nor ends with a space.
  package init?(rawValue: String) {
    let bytes = rawValue.utf8
    guard (1...Self.longest).contains(bytes.count), bytes.allSatisfy({ (0x20...0x7e).contains($0) }),
      bytes.first != 0x20, bytes.last != 0x20
    else { return nil }
    self.rawValue = rawValue
  }

  package var description: String { rawValue }

  /// The rule for names, for error messages.
  package static let rule = "a group's name has 1 to \(longest) printable ASCII characters and no space at its ends"

  package static func < (left: Self, right: Self) -> Bool {
    left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
  }
}

extension Sequence<GroupName> {
  /// The value of `Remote-Groups`: the names in order, separated by commas. Within a name, `,` is encoded as `%2C` and
  /// `%` as `%25`.
  package var headerValue: String {
    map { $0.rawValue.replacing("%", with: "%25").replacing(",", with: "%2C") }.joined(separator: ",")
  }
}
