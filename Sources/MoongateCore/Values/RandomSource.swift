/// The core's source of randomness. Tests replace it with a seeded one.
package protocol RandomSource: Sendable {
  /// - Parameter count: 0 or more.
  func bytes(_ count: Int) -> [UInt8]
}

extension RandomSource {
  /// A uniformly distributed number in `0..<bound`. Uses rejection sampling to avoid bias.
  package func uniform(below bound: UInt32) -> UInt32 {
    guard bound > 1 else { return 0 }
    let limit = UInt32.max - UInt32.max % bound
    while true {
      let drawn = bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      if drawn < limit { return drawn % bound }
    }
  }
}

/// The operating system's generator.
package struct SystemRandom: RandomSource {
  package init() {}

  package func bytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 7)
    // Draw eight bytes at a time, because each draw is a system call.
    while bytes.count < count { withUnsafeBytes(of: generator.next() as UInt64) { bytes.append(contentsOf: $0) } }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
