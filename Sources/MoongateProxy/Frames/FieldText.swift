import NIOCore
import NIOHPACK

/// Converts the fields of HTTP/2 to the text of HTTP/1.1, which the decoders of HTTP/1.1 read.
///
/// The library decodes values as UTF-8 and replaces invalid bytes with U+FFFD.
enum FieldText {
  /// Converts the head of an upstream's response.
  /// - Returns: the status, and a head without a reason phrase and without `Transfer-Encoding`; nil if the head is
  ///   malformed (RFC 9113 sections 8.2 and 8.3.2).
  static func answer(_ fields: HPACKHeaders) -> (status: Int, text: ByteBuffer)? {
    var text = ByteBuffer()
    text.reserveCapacity(512)
    var status = 0
    for (name, value, _) in fields {
      if status > 0 {
        guard write(name, value, to: &text) else { return nil }
        continue
      }
      // `:status` is the only pseudo-header, and comes first.
      guard name == ":status", value.utf8.count == 3, value.utf8.allSatisfy(ByteClass.isDigit),
        let code = Int(value), code >= 100
      else { return nil }
      status = code
      text.writeStaticString("HTTP/1.1 ")
      text.writeString(value)
      text.writeStaticString(" \r\n")
    }
    text.writeStaticString("\r\n")
    return status > 0 ? (status, text) : nil
  }

  /// Converts trailers.
  /// - Returns: a line for each field; nil if one is malformed or a pseudo-header (RFC 9113 section 8.1).
  static func trailers(_ fields: HPACKHeaders) -> ByteBuffer? {
    var text = ByteBuffer()
    for (name, value, _) in fields { guard write(name, value, to: &text) else { return nil } }
    return text
  }

  private static func write(_ name: String, _ value: String, to text: inout ByteBuffer) -> Bool {
    guard FieldSyntax.isName(name), FieldSyntax.isValue(value), !FieldSyntax.isOfConnection(name) else { return false }
    text.writeFieldLine(name, value)
    return true
  }
}

extension ByteBuffer {
  /// Appends `name: value CRLF`.
  mutating func writeFieldLine(_ name: String, _ value: String) {
    writeString(name)
    writeStaticString(": ")
    writeString(value)
    writeStaticString("\r\n")
  }
}
