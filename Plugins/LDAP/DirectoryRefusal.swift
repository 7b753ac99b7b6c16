import MoongateSDK

/// Why a directory does not sign a user in. The reason is for the user, the text for the operator's log and decision.
struct DirectoryRefusal: Error, Equatable, Sendable {
  let reason: RefusalReason
  let text: String

  static let outcomes = [
    Outcome(wrong, "Incorrect user name or password."),
    Outcome(expired, "Your password has expired. Change it in your organization's directory, then sign in."),
    Outcome(denied, "Your organization's directory does not let you sign in. Ask its administrator."),
    Outcome(silent, "The directory did not answer. Try again later."),
  ]

  static let wrong: RefusalReason = "invalid_credentials"
  /// Only answered to those who know the password.
  static let expired: RefusalReason = "password_expired"
  /// Only answered to those who know the password.
  static let denied: RefusalReason = "directory_denied"
  static let silent: RefusalReason = "directory_silent"

  static let unknown = Self(reason: wrong, text: "no entry")
  static let several = Self(reason: wrong, text: "several entries")
  static let otherName = Self(
    reason: wrong, text: "the entry has another name: no attribute that `user` compares has exactly this one")
  static let noIdentity = Self(reason: denied, text: "the entry has neither entryUUID nor objectGUID")

  /// Whether the password was compared with that of an entry.
  var isOfEntry: Bool { ![.unknown, .several, .otherName].contains(self) }

  /// The sub-codes of Active Directory's error 49. It answers some of them to a right password only.
  private static let subcodes: [String: (reason: RefusalReason, text: String)] = [
    "525": (wrong, "user not found"), "52e": (wrong, "wrong password"), "775": (wrong, "account locked"),
    "530": (denied, "not at this time"), "531": (denied, "not from this computer"),
    "533": (denied, "account disabled"), "568": (denied, "too many context identifiers"),
    "701": (denied, "account expired"), "532": (expired, "password expired"),
    "773": (expired, "password must be changed"),
  ]

  /// Judges the answer to a user's bind.
  ///
  /// Attack: a refusal that tells attackers that an account exists, is locked or is disabled. Servers answer some
  /// reasons before they compare the password, so only those that need the right password are told.
  ///
  /// Attack: a server that answers guesses with an error of its own, such as busy. A fault would not be counted, and
  /// the next server would be asked with the same guess. Whatever is answered counts.
  /// - Returns: nil if the password is right and valid.
  init?(to answer: BindAnswer) {
    let said = "result \(answer.code)"
    switch (answer.code, answer.policy) {
    case (0, 0), (49, 0): self.init(reason: Self.expired, text: "\(said): password expired")
    case (0, 2), (49, 2): self.init(reason: Self.expired, text: "\(said): password must be changed")
    case (0, 1): self.init(reason: Self.denied, text: "\(said): account locked")
    case (0, _): return nil
    case (49, 1): self.init(reason: Self.wrong, text: "\(said): account locked")
    case (49, _):
      let code = Self.subcode(in: answer.text)
      let known = code.flatMap { Self.subcodes[$0] } ?? (Self.wrong, code == nil ? "wrong password" : "unknown")
      self.init(reason: known.reason, text: "\(said)\(code.map { ", data \($0)" } ?? ""): \(known.text)")
    // Locked or inactive accounts of other servers, names without a password, referrals, and names that do not exist.
    case (10, _), (19, _), (32, _), (48, _), (50, _), (53, _):
      self.init(reason: Self.wrong, text: answer.text.isEmpty ? said : "\(said): \(answer.text)")
    default: self = .silent(DirectoryFault(answer.code, answer.text, in: "the bind of a user"))
    }
  }

  private init(reason: RefusalReason, text: String) {
    self.reason = reason
    self.text = text
  }

  /// No answer to a user's bind, or none about the password.
  ///
  /// Attack: a server answers wrong passwords later than the timeout, so that a fault, which is not counted, means that
  /// a guess was wrong. What was sent counts.
  static func silent(_ fault: DirectoryFault) -> Self { Self(reason: silent, text: "no answer to the bind: \(fault)") }

  /// The entry was disabled or has expired. Only answered to those who know the password.
  static func ended(_ text: String) -> Self { Self(reason: denied, text: text) }

  /// `52e` of `80090308: LdapErr: DSID-0C09044E, comment: AcceptSecurityContext error, data 52e, v2580`.
  private static func subcode(in text: String) -> String? {
    guard text.contains("AcceptSecurityContext"), let found = text.firstMatch(of: /data ([0-9a-fA-F]{1,8})\b/) else {
      return nil
    }
    return found.1.lowercased()
  }
}

/// A problem for the operator, never a mistake of the user. Contains no names of entries and no passwords.
struct DirectoryFault: Error, Sendable, CustomStringConvertible {
  let description: String
  /// Whether another server may answer.
  var isOfServer: Bool

  init(_ description: String, isOfServer: Bool = false) {
    self.description = "ldap: \(description)"
    self.isOfServer = isOfServer
  }

  /// - Parameters:
  ///   - code: a result code of the server, or a negative one of the client.
  ///   - text: what the server says about it.
  init(_ code: Int, _ text: String, in what: String) {
    // Busy, unavailable, and other internal failures (RFC 4511 section 4.1.9).
    let isOfServer = code < 0 || [51, 52, 80].contains(code)
    self.init("\(what) failed with result \(code)\(text.isEmpty ? "" : ": \(text)")", isOfServer: isOfServer)
  }
}
