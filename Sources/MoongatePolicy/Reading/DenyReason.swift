import MoongateCore

/// The reason of `deny "reason"` and of the field `reasons` of a policy, such as `country_not_served`.
enum DenyReason {
  /// Checks a reason against `^[a-z][a-z0-9_]{0,47}$` and the reserved error codes. A policy must not imitate errors of
  /// the gateway.
  /// - Returns: nil if the reason is valid.
  static func problem(of reason: String) -> String? {
    if let first = reason.utf8.first, (97...122).contains(first), reason.utf8.count <= 48,
      reason.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 95 }),
      !RefusalCode.reserved.contains(reason)
    {
      return nil
    }
    return
      "`\(reason)` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes"
  }

  /// The maximum number of sentences in one file.
  static let most = 100

  /// Reads `reasons`: the sentences that users see for `deny "reason"`.
  static func read(_ node: LuaNode, _ problems: Problems) -> [String: String] {
    guard let table = TableReader(node, nil, path: "reasons", problems: problems) else { return [:] }
    var reasons: [String: String] = [:]
    for reason in table.names {
      guard let node = table.take(reason), let text = Field.text(node, table.path(reason), problems) else { continue }
      if let wrong = problem(of: reason) { problems.add(node.location, table.path(reason), wrong) }
      let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
      if !isPlain || text.allSatisfy(\.isWhitespace) || text.utf8.count > 300 {
        problems.add(node.location, table.path(reason), "must be a sentence of at most 300 bytes, without line breaks")
      }
      reasons[reason] = text
    }
    if reasons.count > most {
      problems.add(node.location, "reasons", "has \(reasons.count) sentences; at most \(most) are possible")
    }
    return reasons
  }
}
