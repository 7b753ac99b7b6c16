import CZlib

/// Files that are sent again and again, packed once (RFC 1952).
///
/// Assets only, never a page: a page shows what its address says beside what only its reader may know, and the length
/// of the two packed together tells an eavesdropper how much of the one is in the other (BREACH).
enum Gzip {
  /// - Returns: nil where it saves less than a tenth, as with pictures.
  static func pack(_ bytes: [UInt8]) -> [UInt8]? {
    let most = czlib_bound(bytes.count)
    let packed = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      count = buffer.baseAddress.map { czlib_gzip(bytes, bytes.count, $0, most) } ?? 0
    }
    return packed.isEmpty || packed.count > bytes.count / 10 * 9 ? nil : packed
  }

  /// Whether who asks takes it (RFC 9110 section 12.5.3).
  /// - Parameter lines: the values of `Accept-Encoding`. Bounded: a header of ten thousand codings is nobody's wish.
  static func isAccepted(_ lines: [String]) -> Bool {
    var byStar = false
    for item in lines.flatMap({ $0.split(separator: ",").prefix(20) }).prefix(20) {
      let parts = item.split(separator: ";", omittingEmptySubsequences: false).map {
        $0.filter { $0 != " " && $0 != "\t" }.lowercased()
      }
      let weight = parts.dropFirst().compactMap { $0.hasPrefix("q=") ? Double($0.dropFirst(2)) : nil }.first ?? 1
      if parts.first == "gzip" { return weight > 0 }
      if parts.first == "*" { byStar = weight > 0 }
    }
    return byStar
  }
}
