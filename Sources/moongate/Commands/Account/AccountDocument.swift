import MoongateCore
import MoongateSDK

/// An account in the JSON output of `moongate account`.
struct AccountDocument: Encodable {
  struct Name: Encodable {
    let kind: String
    let value: String
    let verifiedAt: String?

    enum CodingKeys: String, CodingKey {
      case kind, value
      case verifiedAt = "verified_at"
    }

    /// Whether other accounts can claim it too.
    var isClaimed: Bool { verifiedAt == nil && kind != IdentifierKind.name.rawValue }
  }

  let id: String
  let firstName: String?
  let lastName: String?
  let createdAt: String
  let lastSeenAt: String
  let locked: Bool
  let identifiers: [Name]
  let credentials: [String]
  /// The secrets that it must replace at its next sign-in, each with the reason. Not in the JSON output.
  let changes: [String]
  /// The groups that an operator added the account to.
  let groups: [String]

  enum CodingKeys: String, CodingKey {
    case id, locked, identifiers, credentials, groups
    case firstName = "first_name"
    case lastName = "last_name"
    case createdAt = "created_at"
    case lastSeenAt = "last_seen_at"
  }

  init(_ account: Account) {
    id = account.id
    firstName = account.firstName
    lastName = account.lastName
    createdAt = account.createdAt.text
    lastSeenAt = account.lastSeenAt.text
    locked = account.isLocked
    identifiers = account.identifiers.map {
      Name(kind: $0.identifier.kind.rawValue, value: $0.identifier.value, verifiedAt: $0.verifiedAt?.text)
    }
    credentials = account.credentials.sorted().map(\.rawValue)
    changes = account.dueChanges.sorted { $0.key < $1.key }.map { "\($0.key) (\($0.value.rawValue))" }
    groups = account.groups.sorted().map(\.rawValue)
  }

  /// The account as one line of a list.
  var line: String {
    let names = identifiers.map { $0.value + ($0.isClaimed ? " (claimed)" : "") }.joined(separator: ", ")
    return "\(id)  \(names)\(locked ? "  LOCKED" : "")"
  }

  /// The account as text over several lines.
  var text: String {
    let name = [firstName, lastName].compactMap(\.self).joined(separator: " ")
    var lines = ["\(id)\(locked ? "  LOCKED" : "")"]
    if !name.isEmpty { lines.append("  name       \(name)") }
    for identifier in identifiers {
      let word = identifier.kind == IdentifierKind.name.rawValue ? "user name" : identifier.kind
      let kind = word + String(repeating: " ", count: max(0, 10 - word.count))
      let state = identifier.isClaimed ? "  claimed" : identifier.verifiedAt.map { "  verified \($0)" } ?? ""
      lines.append("  \(kind) \(identifier.value)\(state)")
    }
    lines.append("  has        \(credentials.isEmpty ? "no PIN or password" : credentials.joined(separator: ", "))")
    if !changes.isEmpty { lines.append("  replaces   \(changes.joined(separator: ", ")) at the next sign-in") }
    if !groups.isEmpty { lines.append("  groups     \(groups.joined(separator: ", "))") }
    lines.append("  created    \(createdAt)")
    lines.append("  last seen  \(lastSeenAt)")
    return lines.joined(separator: "\n")
  }
}

/// The text output of `moongate account show`.
struct OverviewText {
  let overview: AccountOverview
  let now: Timestamp

  var text: String {
    var lines = [AccountDocument(overview.account).text]
    if let lock = overview.operatorLock {
      let reason = lock.detail["reason"].map { ": \($0)" } ?? ""
      lines += section("locked", ["\(lock.at.text) by \(lock.actor)\(reason)  \(lock.id.text)"])
    }
    lines += section("locks", overview.locks.map { LockText(named: $0, now: now).line })
    lines += section(
      "factors",
      overview.factors.map { "\($0.provider)  since \($0.addedAt.text)  changed \($0.changedAt.text)" })
    lines += section(
      "sessions",
      overview.sessions.map {
        "\($0.userAgent ?? "unknown")  since \($0.createdAt.text)\($0.address.from)  last seen \($0.lastSeenAt.text)\($0.lastAddress.from)"
      })
    lines += section("devices", overview.devices.map { DeviceLine($0).text })
    lines += section(
      "tokens",
      overview.tokens.map { token in
        let use =
          token.lastUsedAt.map { "last used \($0.text)\(token.lastUsedFrom.map { " from \($0)" } ?? "")" }
          ?? "never used"
        return "\(token.name)  \(token.expiresAt.map { "until \($0.text)" } ?? "does not expire")  \(use)"
      })
    lines += section(
      "sign-ins",
      overview.signIns.map { event in
        ([event.at.text]
          + [event.flow.map { "by \($0)" }, event.address.map { "from \($0)" }, event.id.text].compactMap(\.self))
          .joined(
            separator: "  ")
      })
    return lines.joined(separator: "\n")
  }

  private func section(_ title: String, _ lines: [String]) -> [String] {
    lines.enumerated().map { index, line in
      let head = index == 0 ? title : ""
      return "  \(head)\(String(repeating: " ", count: max(0, 11 - head.count)))\(line)"
    }
  }
}

/// A trusted device in the JSON output of `moongate account devices`.
struct DeviceLine: Encodable {
  let id: String
  let createdAt: String
  let lastSeenAt: String
  let userAgent: String?

  enum CodingKeys: String, CodingKey {
    case id
    case createdAt = "created_at"
    case lastSeenAt = "last_seen_at"
    case userAgent = "user_agent"
  }

  init(_ device: TrustedDevice) {
    id = device.id
    createdAt = device.createdAt.text
    lastSeenAt = device.lastSeenAt.text
    userAgent = device.userAgent
  }

  var text: String { "\(id)  since \(createdAt)  last seen \(lastSeenAt)\(userAgent.map { "  \($0)" } ?? "")" }
}

/// A session in the JSON output of `moongate account sessions`.
struct SessionLine: Encodable {
  let id: String
  let createdAt: String
  let lastSeenAt: String
  let expiresAt: String
  let passed: [String]
  let userAgent: String?
  /// The client address from which the session began.
  let address: String?
  /// The client address of the last use.
  let lastAddress: String?

  enum CodingKeys: String, CodingKey {
    case id, passed, address
    case lastAddress = "last_address"
    case createdAt = "created_at"
    case lastSeenAt = "last_seen_at"
    case expiresAt = "expires_at"
    case userAgent = "user_agent"
  }

  init(_ session: Session) {
    id = session.id
    createdAt = session.createdAt.text
    lastSeenAt = session.lastSeenAt.text
    expiresAt = session.deadline.text
    passed = session.counted.map(\.provider.rawValue)
    userAgent = session.userAgent
    address = session.address
    lastAddress = session.lastAddress
  }

  var text: String {
    "\(id)  since \(createdAt)\(address.from)  last seen \(lastSeenAt)\(lastAddress.from)  until \(expiresAt)  by \(passed.joined(separator: ", "))\(userAgent.map { "  \($0)" } ?? "")"
  }
}

extension String? {
  /// The address after a time in a line, such as " from 192.0.2.1"; empty if it is not known.
  fileprivate var from: String { map { " from \($0)" } ?? "" }
}
