/// The name of a provider, as policies, flows and the API spell it: `phone_otp`, `pin`, …
///
/// Lower-case letters, digits and underscores, beginning with a letter, 48 characters at most.
public struct ProviderName: RawRepresentable, Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  public let rawValue: String

  /// - Returns: nil where the text is not of the form above.
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

/// A provider's author writes its name as a literal. It is taken as written; the program's list of providers refuses
/// one that is not of the form above before anything is served.
extension ProviderName: ExpressibleByStringLiteral {
  public init(stringLiteral value: StaticString) { rawValue = "\(value)" }
}
