import CZlib

/// Compresses assets once (RFC 1952).
///
/// Only assets are compressed, never pages. A page contains text from its address next to secrets, and their compressed
/// length would reveal similarities between the two (BREACH).
enum Gzip {
  /// - Returns: nil if it saves less than a tenth, as with pictures.
  static func pack(_ bytes: [UInt8]) -> [UInt8]? {
    let most = czlib_bound(bytes.count)
    let packed = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      count = buffer.baseAddress.map { czlib_gzip(bytes, bytes.count, $0, most) } ?? 0
    }
    return packed.isEmpty || packed.count > bytes.count / 10 * 9 ? nil : packed
  }

  /// Whether the client accepts gzip (RFC 9110, section 12.5.3).
  /// - Parameter lines: the values of `Accept-Encoding`.
  static func isAccepted(_ lines: [String]) -> Bool {
    var byStar = false
    for (coding, weight) in WeightedList.read(lines) {
      if coding == "gzip" { return weight > 0 }
      if coding == "*" { byStar = weight > 0 }
    }
    return byStar
  }
}
