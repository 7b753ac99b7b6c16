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
}
