/// Compares two secrets in a time that depends only on their lengths, not on where they differ.
///
/// Attack: `==` stops at the first difference, so the time of a refusal tells how much of a guess was right.
/// - Returns: whether both have the same bytes. Different lengths are never equal, and the time reveals that they
///   differ: compare digests if the length is secret.
public func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  return zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
}

/// Compares the UTF-8 bytes of two secret texts in a time that depends only on their lengths.
public func constantTimeEquals(_ left: String, _ right: String) -> Bool {
  constantTimeEquals(Array(left.utf8), Array(right.utf8))
}
