/// The kind of an identifier.
public enum IdentifierKind: String, Sendable, Codable, CaseIterable {
  case phone
  case email
  /// An issuer and a subject of OpenID Connect.
  case federated
  /// A name that the user has chosen (``UserName``).
  case name

  /// Whether its owner can prove that it is theirs. A name is only claimed: no message reaches it and no site vouches
  /// for it, so it authorises no reset and counts for no proof.
  public var canBeVerified: Bool { self != .name }

  /// Whether only one account can have it although nobody has verified it.
  public var isExclusive: Bool { self == .name }

  /// The channel by which it receives messages; nil if it receives none.
  public var channel: MessageChannel? {
    switch self {
    case .phone: .sms
    case .email: .mail
    case .federated, .name: nil
    }
  }
}

/// Something that identifies a user, in canonical form.
///
/// Two spellings of the same number or address must have equal `value`s. Limits count by `value`, so a second spelling
/// would be a fresh budget of guesses (`+91 99999-99999` and `099999 99999` are one number).
public struct Identifier: Hashable, Sendable, Codable {
  public let kind: IdentifierKind
  /// Canonical: E.164 for a phone number, lower case for an email address, `issuer subject` for a federated identity,
  /// the form of ``UserName`` for a name.
  public let value: String
  /// For display: `+91 99999 99999`.
  public let display: String
  /// The attributes that policies can read. For a phone number: `country` (ISO 3166-1 alpha-2) and `type` (mobile,
  /// fixed, voip or unknown); for an email address: `domain`.
  public let attributes: [String: String]
  /// The groups of a federated identity at its site, which policies read as `f.account.identities.NAME.groups`. At most
  /// `maxGroups` names of 1 to `longestGroup` bytes without control characters; together with the attributes at most
  /// `maxDetailBytes`. A proof that exceeds this is a fault.
  public let groups: [String]

  /// The maximum number of groups.
  public static let maxGroups = 500
  /// The maximum length of a group's name, in bytes.
  public static let longestGroup = 256
  /// The maximum length of all groups and attributes together, in bytes.
  public static let maxDetailBytes = 65_536

  public init(
    kind: IdentifierKind, value: String, display: String, attributes: [String: String] = [:], groups: [String] = []
  ) {
    self.kind = kind
    self.value = value
    self.display = display
    self.attributes = attributes
    self.groups = groups
  }

  /// Why the groups and attributes cannot be stored; nil if they can. Contains none of them.
  public var detailProblem: String? {
    guard kind == .federated || groups.isEmpty else { return "only a federated identity has groups" }
    guard groups.count <= Self.maxGroups else { return "an identity has more than \(Self.maxGroups) groups" }
    let isName = { (name: String) in
      (1...Self.longestGroup).contains(name.utf8.count)
        && name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
    guard groups.allSatisfy(isName) else {
      return
        "the name of an identity's group is empty, longer than \(Self.longestGroup) bytes, or has control characters"
    }
    let bytes =
      groups.reduce(0) { $0 + $1.utf8.count } + attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    return bytes <= Self.maxDetailBytes
      ? nil : "the groups and attributes of an identity are longer than \(Self.maxDetailBytes) bytes"
  }

  /// The same identifier with another value.
  package func with(value: String) -> Identifier {
    Identifier(kind: kind, value: value, display: display, attributes: attributes, groups: groups)
  }

  /// Whether the display, the attributes and the groups are the same too, which `==` does not compare.
  package func hasSameDetails(as other: Identifier) -> Bool {
    display == other.display && attributes == other.attributes && groups == other.groups
  }

  /// Compares kind and value. Display, attributes and groups do not count.
  public static func == (left: Self, right: Self) -> Bool { left.kind == right.kind && left.value == right.value }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(value)
  }
}

/// The state of an identifier while it is being typed.
public struct IdentifierDraft: Sendable, Equatable {
  /// The typed text in the spacing of its region.
  public let formatted: String
  /// The canonical form, once it is complete.
  public let canonical: String?
  /// Whether it looks like a number in use. Only used for a check mark, never to refuse input, because number ranges
  /// change.
  public let isValid: Bool

  public init(formatted: String, canonical: String?, isValid: Bool) {
    self.formatted = formatted
    self.canonical = canonical
    self.isValid = isValid
  }
}

/// A provider that can format an identifier while it is typed.
public protocol IdentifierFormatting: Sendable {
  /// The kind of identifier that it formats.
  var identifierKind: IdentifierKind { get }
  /// Whether the provider supports the region.
  /// - Parameter region: untrusted text that a client sent.
  func knows(region: String) -> Bool
  /// The calling code of the region, such as `+91`; nil if it has none or the provider does not know it.
  func callingCode(region: String) -> String?
  /// Formats a partial input. Never fails, so that typing is never interrupted.
  /// - Parameter region: ISO 3166-1 alpha-2, for numbers typed without `+`.
  func draft(_ typed: String, region: String) -> IdentifierDraft
}

extension IdentifierFormatting {
  public func callingCode(region: String) -> String? { nil }
}
