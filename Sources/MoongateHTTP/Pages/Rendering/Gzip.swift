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
  /// - Parameter lines: the values of `Accept-Encoding`. Only the first 20 codings are read.
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
