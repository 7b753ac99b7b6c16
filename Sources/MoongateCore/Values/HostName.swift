import MoongateSDK

/// The canonical form of a request's host, independent of how its `Host` header spelled it.
///
/// Attack: `ADMIN.example.com`, `admin.example.com.` and `admin.example.com:80` reach the same service. A gateway that
/// treats them as three hosts has two without a rule (RFC 9110 section 7.2).
package struct HostName: Hashable, Sendable {
  /// Lower case, without port or trailing dot; an IPv6 address in brackets in RFC 5952 form.
  package let name: String
  /// The port in the request, 1...65535; nil if it names none, as in `localhost:` (RFC 3986 section 3.2.3).
  package let port: Int?

  /// `name`, with the port if there is one.
  package var authority: String { port.map { "\(name):\($0)" } ?? name }

  /// The origin of the host, serialised as in RFC 6454 section 6.2: scheme, host, and the port unless it is the
  /// scheme's default.
  package func origin(isSecure: Bool) -> String {
    let port = port.flatMap { $0 == (isSecure ? 443 : 80) ? nil : ":\($0)" } ?? ""
    return "\(isSecure ? "https" : "http")://\(name)\(port)"
  }

  /// - Parameter field: the value of a Host header, or the authority of an absolute target, without surrounding
  ///   whitespace.
  /// - Returns: nil if it is malformed: empty, userinfo, percent-encoding, an empty label, an invalid port.
  package init?(_ field: Span<UInt8>) {
    guard field.count > 0, field.count <= 262 else { return nil }
    var end = field.count
    var port: Int?
    if let colon = Self.portColon(field) {
      if colon + 1 < field.count {
        guard let number = Self.number(field, from: colon + 1) else { return nil }
        port = number
      }
      end = colon
    }
    self.port = port
    if field[0] == UInt8(ascii: "[") {
      guard end > 2, field[end - 1] == UInt8(ascii: "]") else { return nil }
      var text: [UInt8] = []
      for index in 1..<(end - 1) { text.append(field[index]) }
      guard let bytes = IPAddressBytes.parseV6(text) else { return nil }
      name = "[\(ClientAddress.text(bytes))]"
      return
    }
    if end > 1, field[end - 1] == UInt8(ascii: ".") { end -= 1 }
    guard end > 0, end <= 253 else { return nil }
    var text: [UInt8] = []
    text.reserveCapacity(end)
    var label = 0
    for index in 0..<end {
      let byte = field[index]
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        text.append(byte)
        label += 1
      case UInt8(ascii: "A")...UInt8(ascii: "Z"):
        text.append(byte | 0x20)
        label += 1
      case UInt8(ascii: "."):
        guard label > 0 else { return nil }
        text.append(byte)
        label = 0
      default: return nil
      }
      if label > 63 { return nil }
    }
    guard label > 0 else { return nil }
    name = String(decoding: text, as: UTF8.self)
  }

  /// Parses the text of a Host header.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    self.init(bytes.span)
  }

  /// The index of the colon before the port. In an IPv6 address, it comes after the bracket.
  private static func portColon(_ field: Span<UInt8>) -> Int? {
    var index = 0
    if field[0] == UInt8(ascii: "[") {
      while index < field.count, field[index] != UInt8(ascii: "]") { index += 1 }
    }
    while index < field.count {
      if field[index] == UInt8(ascii: ":") { return index }
      index += 1
    }
    return nil
  }

  private static func number(_ field: Span<UInt8>, from start: Int) -> Int? {
    guard field.count - start <= 5 else { return nil }
    var value = 0
    for index in start..<field.count {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(field[index]) else { return nil }
      value = value * 10 + Int(field[index] - UInt8(ascii: "0"))
    }
    return (1...65535).contains(value) ? value : nil
  }
}
