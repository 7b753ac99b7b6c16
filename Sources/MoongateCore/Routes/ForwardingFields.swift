/// The headers by which a proxy tells the gateway about the client's request.
package enum ForwardingHeader: String, Sendable {
  case address = "X-Forwarded-For"
  case scheme = "X-Forwarded-Proto"
  case host = "X-Forwarded-Host"
}

/// A forwarding header of a trusted proxy that cannot be read.
package struct ForwardingFault: Error, Sendable, Hashable {
  private static let maxLength = 100

  package let header: ForwardingHeader
  /// The member of the list that cannot be read, cut to 100 bytes. Empty if the list has no members.
  package let value: String

  package init(_ header: ForwardingHeader, _ bytes: Span<UInt8>, _ member: Range<Int>) {
    self.header = header
    var text: [UInt8] = []
    for index in member.prefix(Self.maxLength) { text.append(bytes[index]) }
    value = String(decoding: text, as: UTF8.self)
  }

  /// For operators. Does not contain the value.
  package var reason: String {
    switch header {
    case .address: "X-Forwarded-For names no address"
    case .scheme: "X-Forwarded-Proto is not http, https, ws or wss"
    case .host: "X-Forwarded-Host is no host"
    }
  }
}

/// The positions of the forwarding headers in the bytes of a request. The proxy, forward-auth and the gateway's own
/// endpoints all read them by this type.
///
/// All lines of a header are one list (RFC 9110 section 5.3), whose last member is that of the nearest proxy. Read them
/// only if the peer is a trusted proxy.
package struct ForwardingFields: Sendable {
  /// The values of the lines of one header. Most requests have one line, which needs no array.
  package struct Lines: Sendable {
    private var last: Range<Int>?
    private var earlier: [Range<Int>] = []

    package init() {}

    package var isEmpty: Bool { last == nil }

    /// The value of the only line, which may be a list. nil if there is no line, or more than one.
    package var only: Range<Int>? { earlier.isEmpty ? last : nil }

    package mutating func append(_ value: Range<Int>) {
      if let last { earlier.append(last) }
      last = value
    }

    /// Calls the closure for each member that is not empty, from the last one, until it returns a result.
    fileprivate func fromTheRight<Result>(
      _ bytes: Span<UInt8>, _ body: (Range<Int>) throws(ForwardingFault) -> Result?
    ) throws(ForwardingFault) -> Result? {
      var line = last
      var next = earlier.count
      while let value = line {
        var rest = value
        while let member = ListMember.last(in: bytes, rest) {
          if let result = try body(member) { return result }
          rest = rest.lowerBound..<member.lowerBound
        }
        next -= 1
        line = next >= 0 ? earlier[next] : nil
      }
      return nil
    }
  }

  package var addresses = Lines()
  package var schemes = Lines()
  package var hosts = Lines()

  package init() {}

  package var isEmpty: Bool { addresses.isEmpty && schemes.isEmpty && hosts.isEmpty }

  /// The rightmost address in `X-Forwarded-For` that is not a trusted proxy.
  ///
  /// Attack: a client adds addresses to the list, or a new port with each guess. Only what trusted proxies added is
  /// read, and a port is not part of the address.
  /// - Returns: nil if the header names none.
  /// - Throws: a fault if a member cannot be read before such an address was found.
  package func address(_ bytes: Span<UInt8>, trusted: [AddressBlock]) throws(ForwardingFault) -> ClientAddress? {
    try addresses.fromTheRight(bytes) { member throws(ForwardingFault) in
      guard let address = ForwardedNode.address(bytes.extracting(member)) else {
        throw ForwardingFault(.address, bytes, member)
      }
      return ForwardedClient.trusts(address, trusted) ? nil : address
    }
  }

  /// Whether the client used TLS, by the last member of `X-Forwarded-Proto`.
  /// - Returns: nil if the request does not have the header.
  /// - Throws: a fault if it is no scheme of HTTP or WebSocket.
  package func isSecure(_ bytes: Span<UInt8>) throws(ForwardingFault) -> Bool? {
    if schemes.isEmpty { return nil }
    let member = try last(of: schemes, bytes)
    guard let member, let isSecure = Self.isSecure(scheme: bytes.extracting(member)) else {
      throw ForwardingFault(.scheme, bytes, member ?? 0..<0)
    }
    return isSecure
  }

  /// The last member of `X-Forwarded-Host`, which the caller parses.
  /// - Returns: nil if the request does not have the header.
  /// - Throws: a fault if all members are empty. The Host of the proxy's own request must not count then.
  package func host(_ bytes: Span<UInt8>) throws(ForwardingFault) -> Range<Int>? {
    if hosts.isEmpty { return nil }
    guard let member = try last(of: hosts, bytes) else { throw ForwardingFault(.host, bytes, 0..<0) }
    return member
  }

  /// Whether a scheme uses TLS. WebSocket schemes are equivalent to those of HTTP (RFC 6455 section 10.2 and 11.1).
  /// - Parameter scheme: in any case (RFC 3986 section 3.1).
  /// - Returns: nil for any other scheme.
  package static func isSecure(scheme: Span<UInt8>) -> Bool? {
    if equals(scheme, "https") || equals(scheme, "wss") { return true }
    return equals(scheme, "http") || equals(scheme, "ws") ? false : nil
  }

  private func last(of lines: Lines, _ bytes: Span<UInt8>) throws(ForwardingFault) -> Range<Int>? {
    try lines.fromTheRight(bytes) { member throws(ForwardingFault) in member }
  }

  private static func equals(_ bytes: Span<UInt8>, _ lowered: StaticString) -> Bool {
    guard bytes.count == lowered.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count where bytes[index] | 0x20 != lowered.utf8Start[index] { return false }
    return true
  }
}
