import Synchronization

/// Produces the same bytes for the same seed, so that tests and simulations can be repeated. Must not be used to serve
/// clients.
package final class SeededRandom: RandomSource {
  private let state: Mutex<UInt64>

  package init(seed: UInt64 = 1) { state = Mutex(seed) }

  /// SplitMix64 (Steele, Lea and Flood 2014), little-endian.
  package func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    state.withLock { state in
      while bytes.count < count {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        for shift in stride(from: UInt64(0), to: 64, by: 8) where bytes.count < count {
          bytes.append(UInt8(mixed >> shift & 0xff))
        }
      }
    }
    return bytes
  }

  /// A random element; nil if none exist.
  package func pick<Element>(_ elements: [Element]) -> Element? {
    elements.isEmpty ? nil : elements[Int(uniform(below: UInt32(elements.count)))]
  }
}
