/// A Bloom filter of common passwords. It contains all of them, with a false positive rate of one in five million.
enum CommonPasswords {
  /// The number of passwords in the filter.
  static let count = 16_293

  private static let bits = UInt64(1) << 19
  private static let hashes: UInt64 = 22
  static let filter = PackageResources.common_bloom

  /// - Parameter password: in lower case and NFC, with at least 8 characters. Shorter passwords are not in the filter.
  static func contains(_ password: String) -> Bool {
    let first = mixed(password.utf8, seed: 0)
    let second = mixed(password.utf8, seed: 1) | 1
    return (0..<hashes).allSatisfy { index in
      let place = (first &+ index &* second) % bits
      return filter[Int(place >> 3)] & 1 << UInt8(place & 7) != 0
    }
  }

  /// FNV-1a with the finalizer of MurmurHash3, so that every bit of the hash is well mixed.
  private static func mixed(_ text: String.UTF8View, seed: UInt64) -> UInt64 {
    var value = 0xcbf2_9ce4_8422_2325 ^ seed
    for byte in text { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
    value = (value ^ value >> 33) &* 0xff51_afd7_ed55_8ccd
    value = (value ^ value >> 33) &* 0xc4ce_b9fe_1a85_ec53
    return value ^ value >> 33
  }
}
