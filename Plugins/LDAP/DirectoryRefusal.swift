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

  /// The sub-codes of Active Directory's error 49, and whether it answers them to a right password only.
  private static let subcodes: [String: (needsPassword: Bool, text: String)] = [
    "525": (false, "user not found"), "52e": (false, "wrong password"), "530": (true, "not at this time"),
    "531": (true, "not from this computer"), "532": (true, "password expired"), "533": (true, "account disabled"),
    "568": (true, "too many context identifiers"), "701": (true, "account expired"),
    "773": (true, "password must be changed"), "775": (false, "account locked"),
  ]

  /// Judges the answer to a user's bind.
  ///
  /// Attack: a refusal that tells attackers that an account exists, is locked or is disabled. Servers answer some
  /// reasons before they compare the password, so only those that need the right password are told.
  /// - Returns: nil if the password is right and valid.
  /// - Throws: if the answer is none to a password.
  init?(to answer: BindAnswer) throws(DirectoryFault) {
    let said = "result \(answer.code)"
    switch (answer.code, answer.policy) {
    case (0, 0), (49, 0): self.init(reason: Self.expired, text: "\(said): password expired")
    case (0, 2), (49, 2): self.init(reason: Self.expired, text: "\(said): password must be changed")
    case (0, 1): self.init(reason: Self.denied, text: "\(said): account locked")
    case (0, _): return nil
    case (49, 1): self.init(reason: Self.wrong, text: "\(said): account locked")
    case (49, _):
      guard let code = Self.subcode(in: answer.text) else {
        self.init(reason: Self.wrong, text: "\(said): wrong password")
        return
      }
      guard let known = Self.subcodes[code] else {
        self.init(reason: Self.wrong, text: "\(said), data \(code)")
        return
      }
      let told = ["532", "773"].contains(code) ? Self.expired : Self.denied
      self.init(reason: known.needsPassword ? told : Self.wrong, text: "\(said), data \(code): \(known.text)")
    // Locked or inactive accounts of other servers, names without a password, referrals, and names that do not exist.
    case (10, _), (19, _), (32, _), (48, _), (50, _), (53, _):
      self.init(reason: Self.wrong, text: answer.text.isEmpty ? said : "\(said): \(answer.text)")
    default: throw DirectoryFault(answer.code, answer.text, in: "the bind of a user")
    }
  }

  private init(reason: RefusalReason, text: String) {
    self.reason = reason
    self.text = text
  }

  /// No answer to a user's bind.
  ///
  /// Attack: a server answers wrong passwords later than the timeout, so that a fault, which is not counted, means that
  /// a guess was wrong. What was sent counts.
  static func silent(_ fault: DirectoryFault) -> Self { Self(reason: silent, text: "no answer to the bind: \(fault)") }

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
  let isOfServer: Bool

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
