/// Compares two secrets in a time that depends on their lengths alone, not on where they differ.
///
/// Attack: `==` stops at the first difference, so the time of a refusal tells how much of a guess was right.
/// - Returns: whether both have the same bytes. Two lengths that differ are never equal, and that they differ can be
///   seen from the time: compare digests where a length is secret.
public func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  return zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
}

/// Compares two secret texts, byte by byte of their UTF-8, in a time that depends on their lengths alone.
public func constantTimeEquals(_ left: String, _ right: String) -> Bool {
  constantTimeEquals(Array(left.utf8), Array(right.utf8))
}
