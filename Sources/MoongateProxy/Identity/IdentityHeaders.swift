import MoongateCore
import MoongateSDK
import NIOCore

/// The identity headers for upstreams.
struct IdentityHeaders {
  /// The order in which the headers are written, in addition to the assertion. Forward-auth responses always contain
  /// all of them.
  static let names = ["Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name", "Remote-Groups"]

  /// The headers with their values; empty if a value is unknown.
  let values: [(name: String, value: String)]

  /// The headers of an anonymous request.
  init() { values = Self.names.map { ($0, "") } }

  init(_ account: Account, groups: [GroupName]) {
    let name = [account.firstName, account.lastName].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    let texts = [
      account.id, account.verified(.email)?.value ?? "", account.verified(.phone)?.value ?? "", name,
      groups.headerValue,
    ]
    values = zip(Self.names, texts).map { header, text in
      // Attack: a name with a line break would inject a header.
      (
        header,
        String(
          String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })
        )
      )
    }
  }

  /// The forward-auth "allow" response: a complete head with its empty line.
  /// - Parameters:
  ///   - assertion: the header line of the signed assertion.
  ///   - more: header lines of every response.
  func forwardAnswer(assertion: [UInt8], _ more: [UInt8]) -> ByteBuffer {
    var out = ByteBuffer()
    out.writeStaticString("HTTP/1.1 200 OK\r\n")
    for (name, value) in values { out.writeString("\(name): \(value)\r\n") }
    out.writeBytes(assertion)
    out.writeBytes(more)
    // Without a length, the response would be chunked, and the proxies would not reuse the connection.
    out.writeStaticString("Cache-Control: no-store\r\nContent-Length: 0\r\n\r\n")
    return out
  }

  /// The headers with a value, as header lines.
  var lines: [UInt8] { values.flatMap { name, value in value.isEmpty ? [] : Array("\(name): \(value)\r\n".utf8) } }
}
