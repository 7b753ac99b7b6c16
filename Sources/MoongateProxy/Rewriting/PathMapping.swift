import MoongateCore

/// How the paths of a service correspond to those of its clients: `strip`, and the path in `to`.
///
/// With `strip = "/wiki"` and `to = "http://…/base"`, `/wiki` is `/base` and `/wiki/x` is `/base/x`. Whole segments
/// correspond, and all bytes after them stay as they are.
struct PathMapping: Sendable {
  /// What becomes of a path in a response.
  enum Outward: Equatable {
    /// It stays as it is.
    case same
    /// `prefix` replaces its first bytes.
    case moved(dropping: Int)
    /// It stays as it is, although no path of the route corresponds to it.
    case outside
  }

  /// `strip` as clients send it, percent-encoded where this is necessary; empty for none.
  let prefix: [UInt8]
  /// The path in `to`; empty for none.
  let base: [UInt8]
  /// `strip`, decoded.
  private let strip: [UInt8]

  init(_ rewrite: PathRewrite) {
    strip = Array(rewrite.strip.utf8)
    base = Array(rewrite.base.utf8)
    prefix = Array(Self.encoded(rewrite.strip).utf8)
  }

  var isIdentity: Bool { strip.isEmpty && base.isEmpty }

  /// The number of bytes at the beginning of a request's path that the service does not receive.
  /// - Parameter path: as received, accepted by `RequestPath`.
  /// - Returns: nil if the path does not begin with `strip`, or if the rest begins with `//`. Attack:
  ///   `/wiki//evil.example/` would reach the service as `//evil.example/`, which many programs read as the address of
  ///   another host, for example in a redirect that adds a slash. Services that decode the path first read
  ///   `/%2Fevil.example/` and `/%5Cevil.example/` so too.
  func cut(_ path: Span<UInt8>) -> Int? {
    guard !prefix.isEmpty else { return 0 }
    guard let end = Self.isBelow(prefix, path, 0..<path.count) ? prefix.count : decodedEnd(path) else { return nil }
    if base.isEmpty, let next = Self.decoded(path, at: end + 1)?.byte, EncodedPathBytes.isSeparator(next) { return nil }
    return end
  }

  /// What a path in a response becomes for clients.
  ///
  /// A path that begins with `strip` already is one of clients: the service knows the prefix, from `X-Forwarded-Prefix`
  /// or its own settings.
  /// - Parameter path: empty, or beginning with `/`; without query and fragment.
  func outward(_ bytes: Span<UInt8>, _ path: Range<Int>) -> Outward {
    if !base.isEmpty, Self.isBelow(base, bytes, path) { return .moved(dropping: base.count) }
    if prefix.isEmpty { return base.isEmpty ? .same : .outside }
    if Self.isBelow(prefix, bytes, path) { return .same }
    return base.isEmpty ? .moved(dropping: 0) : .outside
  }

  /// Whether the path consists of the segments of `lead` and any others after them. Attack: `/wikiadmin` does not
  /// begin with the segment of `/wiki`.
  private static func isBelow(_ lead: [UInt8], _ bytes: Span<UInt8>, _ path: Range<Int>) -> Bool {
    guard path.count >= lead.count else { return false }
    for index in lead.indices where bytes[path.lowerBound + index] != lead[index] { return false }
    return path.count == lead.count || bytes[path.lowerBound + lead.count] == UInt8(ascii: "/")
  }

  /// The end of `strip` in a path that encodes letters of it or adds parameters to its segments, as in `/%77iki;a=b/x`.
  /// The route has matched such a path in its decoded form.
  ///
  /// Attack: `%2F` is data within a segment, never the end of one, and nothing is decoded twice.
  private func decodedEnd(_ path: Span<UInt8>) -> Int? {
    var index = 0
    for (place, byte) in strip.enumerated() {
      if byte == UInt8(ascii: "/") {
        if place > 0 { index = Self.afterParameters(path, from: index) }
        guard index < path.count, path[index] == byte else { return nil }
        index += 1
      } else {
        guard let next = Self.decoded(path, at: index), next.byte == byte else { return nil }
        index = next.end
      }
    }
    index = Self.afterParameters(path, from: index)
    return index == path.count || path[index] == UInt8(ascii: "/") ? index : nil
  }

  /// The end of the segment if parameters begin at the index, plain or encoded; otherwise the index.
  private static func afterParameters(_ path: Span<UInt8>, from start: Int) -> Int {
    guard decoded(path, at: start)?.byte == UInt8(ascii: ";") else { return start }
    var index = start
    while index < path.count, path[index] != UInt8(ascii: "/") { index += 1 }
    return index
  }

  /// The byte at the index, decoded once, and the index after it.
  private static func decoded(_ path: Span<UInt8>, at index: Int) -> (byte: UInt8, end: Int)? {
    guard index < path.count else { return nil }
    guard path[index] == UInt8(ascii: "%") else { return (path[index], index + 1) }
    guard index + 2 < path.count else { return nil }
    let (high, low) = (ByteClass.hexValue(path[index + 1]), ByteClass.hexValue(path[index + 2]))
    guard high < 16, low < 16 else { return nil }
    return (high << 4 | low, index + 3)
  }

  /// Percent-encodes what a path cannot contain (RFC 3986 section 3.3).
  private static func encoded(_ path: String) -> String {
    let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/".utf8)
    var text: [UInt8] = []
    for byte in path.utf8 {
      if plain.contains(byte) {
        text.append(byte)
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        text += Array((digits.utf8.count == 1 ? "%0" : "%").utf8) + Array(digits.utf8)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
