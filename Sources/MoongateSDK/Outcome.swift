/// Why a full provider refused: a code in snake case for the log, policies and clients.
///
/// Write your own reason as a literal, such as `"code_replayed"`. The known reasons keep the status and the texts of
/// the gateway's API. For any other reason the client gets 401 with the outcome's sentence.
public struct RefusalReason: RawRepresentable, Hashable, Sendable, Codable {
  public let rawValue: String

  /// - Returns: nil if the text is not a valid code: lower-case letters, digits and underscores, beginning with a
  ///   letter, at most 48 characters.
  public init?(rawValue: String) {
    guard ProviderName(rawValue: rawValue) != nil else { return nil }
    self.rawValue = rawValue
  }

  public static let invalidCode: Self = "invalid_code"
  public static let invalidPIN: Self = "invalid_pin"
  public static let invalidPassword: Self = "invalid_password"
  public static let oauthFailed: Self = "oauth_failed"
  public static let oauthCancelled: Self = "oauth_cancelled"
  /// A secret should be set, but one exists already.
  public static let alreadySet: Self = "already_set"
  /// A PIN should be proved or changed, but none exists.
  public static let noPIN: Self = "no_pin"

  /// The reasons whose status and texts the gateway defines.
  public static let known: [Self] = [
    .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed, .oauthCancelled, .alreadySet, .noPIN,
  ]
}

/// A literal is taken as written. The program refuses to start if it is not a valid code.
extension RefusalReason: ExpressibleByStringLiteral {
  public init(stringLiteral value: StaticString) { rawValue = "\(value)" }
}

/// A refusal that a provider may answer. It is declared in advance, so that it cannot contain anything about a user's
/// secrets or another account.
public struct Outcome: Hashable, Sendable, Codable {
  public let reason: RefusalReason
  /// One English sentence for the user: what is wrong and what to do. Plain text. For known reasons the gateway's own
  /// sentence is shown, except for `already_set`: only the provider knows what is set.
  public let sentence: String
  /// Whether the attempt counts as a failure. Use false if the refusal reveals nothing about a secret; the attempt is
  /// then refunded.
  public let isFailure: Bool

  public init(_ reason: RefusalReason, _ sentence: String, isFailure: Bool = true) {
    self.reason = reason
    self.sentence = sentence
    self.isFailure = isFailure
  }
}
