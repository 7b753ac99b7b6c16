import NIOCore

/// Writes the header blocks of requests to upstreams (RFC 7541).
///
/// Every field is a literal, without Huffman codes and without the dynamic table. That takes a fraction of the time of
/// the library's encoder, which searches its table for each field.
///
/// Attack (CRIME, RFC 7541 section 7.1): the requests of all users share a connection. With a table, the length of one
/// user's request would tell a guess at another user's cookie or token that was sent before.
enum HeaderBlock {
  /// The first block of a connection begins with this: the dynamic table gets the size 0 (RFC 7541 section 6.3).
  private static let tableOfNoSize: UInt8 = 0x20

  // Representations (RFC 7541 section 6) of entries of the static table.
  private static let methodGET: UInt8 = 0x82
  private static let methodPOST: UInt8 = 0x83
  private static let schemeHTTP: UInt8 = 0x86
  private static let schemeHTTPS: UInt8 = 0x87
  // Literals that are not indexed, with the names of the static table.
  private static let authority: UInt8 = 0x01
  private static let method: UInt8 = 0x02
  private static let path: UInt8 = 0x04
  // Literals with a name of their own. The second may not be indexed by any program on the way.
  private static let literal: UInt8 = 0x00
  private static let neverIndexed: UInt8 = 0x10

  /// Converts the head of a request.
  /// - Parameters:
  ///   - text: a head in HTTP/1.1 that the gateway has written.
  ///   - isSecure: whether the upstream is spoken to with TLS.
  ///   - isFirst: whether it is the first block of the connection.
  /// - Returns: nil if the text is not a head, or has more than 65,535 bytes.
  static func request(_ text: ByteBuffer, isSecure: Bool, isFirst: Bool) -> ByteBuffer? {
    let bytes = text.readableBytesUInt8Span
    guard let methodEnd = end(of: bytes, from: 0, at: 0x20),
      let targetEnd = end(of: bytes, from: methodEnd + 1, at: 0x20),
      let lineEnd = end(of: bytes, from: targetEnd + 1, at: 0x0a)
    else { return nil }
    var out = ByteBuffer()
    out.reserveCapacity(bytes.count + 128)
    if isFirst { out.writeInteger(tableOfNoSize) }
    if ByteClass.equalCase(bytes, 0..<methodEnd, "GET") {
      out.writeInteger(methodGET)
    } else if ByteClass.equalCase(bytes, 0..<methodEnd, "POST") {
      out.writeInteger(methodPOST)
    } else {
      out.writeInteger(method)
      out.writeValue(bytes, 0..<methodEnd)
    }
    out.writeInteger(isSecure ? schemeHTTPS : schemeHTTP)
    out.writeInteger(path)
    out.writeValue(bytes, methodEnd + 1..<targetEnd)
    // Pseudo-headers come first (RFC 9113 section 8.3). `Host` is the first line of the gateway's heads.
    return FieldLine.forEach(bytes, from: lineEnd + 1) { write($0, bytes, to: &out) } ? out : nil
  }

  /// Converts lines of trailers.
  /// - Returns: nil if the text is not a list of lines.
  static func trailers(_ lines: ByteBuffer) -> ByteBuffer? {
    let bytes = lines.readableBytesUInt8Span
    var out = ByteBuffer()
    return FieldLine.forEach(bytes) { write($0, bytes, to: &out) } ? out : nil
  }

  private static func write(_ field: HeadField, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    switch field.kind {
    case .host:
      out.writeInteger(authority)
      return out.writeValue(bytes, field.value)
    // Of the connection, which has frames for all this (RFC 9113 section 8.2.2).
    case .connection, .transferEncoding, .upgrade, .trailer, .hopByHop: return
    case .cookie, .authorization, .reserved: out.writeInteger(neverIndexed)
    default: out.writeInteger(literal)
    }
    let name = field.name
    out.writePrefixedInteger(name.count)
    out.writeWithUnsafeMutableBytes(minimumWritableBytes: name.count) { room in
      for offset in 0..<name.count { room[offset] = ByteClass.lower(bytes[name.lowerBound + offset]) }
      return name.count
    }
    out.writeValue(bytes, field.value)
  }

  private static func end(of bytes: Span<UInt8>, from start: Int, at byte: UInt8) -> Int? {
    var index = start
    while index < bytes.count, bytes[index] != byte { index += 1 }
    return index < bytes.count ? index : nil
  }
}

extension ByteBuffer {
  /// Appends a string literal without Huffman code (RFC 7541 section 5.2).
  fileprivate mutating func writeValue(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    writePrefixedInteger(range.count)
    writeBytes(bytes.extracting(range).bytes)
  }

  /// Appends an integer with a prefix of seven bits, whose first bit is 0 (RFC 7541 section 5.1).
  fileprivate mutating func writePrefixedInteger(_ number: Int) {
    guard number >= 127 else { return _ = writeInteger(UInt8(number)) }
    writeInteger(UInt8(127))
    var rest = number - 127
    while rest >= 128 {
      writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    writeInteger(UInt8(rest))
  }
}
