/// What kind of thing names a person.
public enum IdentifierKind: String, Sendable, Codable, CaseIterable {
  case phone
  case email
  /// An issuer and a subject of OpenID Connect.
  case federated
}

/// Something that names one person, in its one canonical spelling.
///
/// Two spellings of the same number or address must give equal `value`s: limits are counted by it, so a second spelling
/// would be a fresh budget of guesses (`+91 99999-99999` and `099999 99999` are one number).
public struct Identifier: Hashable, Sendable, Codable {
  public let kind: IdentifierKind
  /// Canonical: E.164 for a phone, lower case for an email address, `issuer subject` for a federated identity.
  public let value: String
  /// For a person to read: `+91 99999 99999`.
  public let display: String
  /// What policies may ask about it. For a phone: `country` (ISO 3166-1 alpha-2) and `type` (mobile, fixed, voip or
  /// unknown); for an email address: `domain`.
  public let attributes: [String: String]

  public init(kind: IdentifierKind, value: String, display: String, attributes: [String: String] = [:]) {
    self.kind = kind
    self.value = value
    self.display = display
    self.attributes = attributes
  }

  /// The same person's name, whatever it was typed as: display and attributes do not count.
  public static func == (left: Self, right: Self) -> Bool { left.kind == right.kind && left.value == right.value }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(value)
  }
}

/// What can be said of a number that is still being typed.
public struct IdentifierDraft: Sendable, Equatable {
  /// What was typed, spaced as the region writes it.
  public let formatted: String
  /// The canonical spelling, once there is one.
  public let canonical: String?
  /// Whether it looks like one that is in use. It colours a check mark and refuses nothing: number ranges age.
  public let isValid: Bool

  public init(formatted: String, canonical: String?, isValid: Bool) {
    self.formatted = formatted
    self.canonical = canonical
    self.isValid = isValid
  }
}

/// A provider that can help while an identifier is typed.
public protocol IdentifierFormatting: Sendable {
  /// The kind of identifier that it formats.
  var identifierKind: IdentifierKind { get }
  /// Whether the code names a region whose numbers it can read.
  /// - Parameter region: what a client sent; any text.
  func knows(region: String) -> Bool
  /// The code by which the region is called, such as `+91`; nil where it has none, or the provider does not know.
  func callingCode(region: String) -> String?
  /// Formats what was typed so far; never fails, since typing must go on whatever happens.
  /// - Parameter region: ISO 3166-1 alpha-2, for numbers typed without `+`.
  func draft(_ typed: String, region: String) -> IdentifierDraft
}

extension IdentifierFormatting {
  public func callingCode(region: String) -> String? { nil }
}
