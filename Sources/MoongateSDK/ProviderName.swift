/// The name of a provider in policies, flows and the API: `phone_otp`, `pin`, …
///
/// Lower-case letters, digits and underscores, beginning with a letter, at most 48 characters.
public struct ProviderName: RawRepresentable, Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  public let rawValue: String

  /// - Returns: nil if the text is not of this form.
  public init?(rawValue: String) {
    let bytes = rawValue.utf8
    guard let first = bytes.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first), bytes.count <= 48,
      bytes.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 95 })
    else { return nil }
    self.rawValue = rawValue
  }

  public var description: String { rawValue }

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Write a provider's name as a literal. It is taken as written; if it is not of the required form, the program refuses
/// to start.
extension ProviderName: ExpressibleByStringLiteral {
  public init(stringLiteral value: StaticString) { rawValue = "\(value)" }
}
