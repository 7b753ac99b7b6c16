/// A client's address of 4 or 16 bytes. IPv4-mapped IPv6 addresses are converted to IPv4.
package struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  /// - Returns: nil unless there are 4 or 16 bytes. `::ffff:a.b.c.d` becomes `a.b.c.d`, so that each client has only
  ///   one address.
  package init?(bytes: [UInt8]) {
    switch bytes.count {
    case 4: self.bytes = bytes
    case 16:
      let mapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xff && bytes[11] == 0xff
      self.bytes = mapped ? Array(bytes[12...]) : bytes
    default: return nil
    }
  }

  /// 0.0.0.0, for use without a client, as in a simulation.
  package static let unspecified = ClientAddress(unchecked: [0, 0, 0, 0])

  private init(unchecked bytes: [UInt8]) { self.bytes = bytes }

  /// The first `bits` bits, with the rest set to zero.
  package func masked(to bits: Int) -> [UInt8] {
    bytes.enumerated().map { Self.kept($1, at: $0, of: bits) }
  }

  /// The key of a limit per `ip`: the address; for IPv6 its /64, because one household has that many.
  package var countingKey: [UInt8] { bytes.count == 4 ? bytes : masked(to: 64) }

  /// The key of a limit per `network`: the /24 (IPv4) or /48 (IPv6).
  package var networkKey: [UInt8] { masked(to: bytes.count == 4 ? 24 : 48) }

  /// Whether the address is in the block.
  package func isIn(_ block: AddressBlock) -> Bool {
    guard bytes.count == block.network.count else { return false }
    // Without the array that `masked` makes: each request through a proxy asks this.
    return bytes.indices.allSatisfy { Self.kept(bytes[$0], at: $0, of: block.prefix) == block.network[$0] }
  }

  /// What remains of a byte if only the first `bits` bits of the address are kept.
  static func kept(_ byte: UInt8, at index: Int, of bits: Int) -> UInt8 {
    let kept = min(8, max(0, bits - index * 8))
    return kept == 8 ? byte : byte & ~(0xff >> UInt8(kept))
  }

  /// The text in RFC 5952 form for IPv6, or dotted for IPv4.
  package var description: String { Self.text(bytes) }

  /// The text of 4 or 16 bytes.
  package static func text(_ bytes: [UInt8]) -> String {
    if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
    let groups = stride(from: 0, to: 16, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
    // RFC 5952 section 4.2: the longest run of two or more zero groups is shortened; of equal runs, the first.
    var best = 0..<0
    var start = 0
    while start < 8 {
      guard groups[start] == 0 else { start += 1; continue }
      var end = start
      while end < 8, groups[end] == 0 { end += 1 }
      if end - start > 1, end - start > best.count { best = start..<end }
      start = end
    }
    let hex = { (part: Range<Int>) in groups[part].map { String($0, radix: 16) }.joined(separator: ":") }
    return best.isEmpty ? hex(0..<8) : "\(hex(0..<best.lowerBound))::\(hex(best.upperBound..<8))"
  }
}
