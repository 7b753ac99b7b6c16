/// Why a full provider refused: a code in snake case, which the log, policies' authors and clients see.
///
/// A provider's author writes its own as a literal, `"code_replayed"`. Some are known to the gateway and keep the
/// status and the words of its API; of any other the client gets 401 with the outcome's sentence.
public struct RefusalReason: RawRepresentable, Hashable, Sendable, Codable {
  public let rawValue: String

  /// - Returns: nil where the text is no code: lower-case letters, digits and underscores, a letter first, 48
  ///   characters at most.
  public init?(rawValue: String) {
    guard ProviderName(rawValue: rawValue) != nil else { return nil }
    self.rawValue = rawValue
  }

  public static let invalidCode: Self = "invalid_code"
  public static let invalidPIN: Self = "invalid_pin"
  public static let invalidPassword: Self = "invalid_password"
  public static let oauthFailed: Self = "oauth_failed"
  public static let oauthCancelled: Self = "oauth_cancelled"
  /// A secret is to be made where there is one.
  public static let alreadySet: Self = "already_set"
  /// A PIN is to be proved or changed where there is none.
  public static let noPIN: Self = "no_pin"

  /// Those whose status and words are the gateway's.
  public static let known: [Self] = [
    .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed, .oauthCancelled, .alreadySet, .noPIN,
  ]
}

/// A literal is taken as written; the program refuses to start with one that is no code.
extension RefusalReason: ExpressibleByStringLiteral {
  public init(stringLiteral value: StaticString) { rawValue = "\(value)" }
}

/// A refusal that a provider may answer. Declared beforehand, so that nothing of a person's secrets or of somebody
/// else's account can be in it.
public struct Outcome: Hashable, Sendable, Codable {
  public let reason: RefusalReason
  /// One English sentence for the person: what is the matter and what to do. Plain text. Of a known reason the
  /// gateway's own is shown, but for `already_set`: what it is that is set, only the provider knows.
  public let sentence: String
  /// Whether the try counts as a failure. Not, where the refusal says nothing about a secret: the try is then given
  /// back.
  public let isFailure: Bool

  public init(_ reason: RefusalReason, _ sentence: String, isFailure: Bool = true) {
    self.reason = reason
    self.sentence = sentence
    self.isFailure = isFailure
  }
}
