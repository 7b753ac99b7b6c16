import MoongateCore

/// The host that requests name, judged once for each spelling of it.
final class RequestHost {
  /// As it was received.
  let raw: [UInt8]
  let host: HostName
  /// In its one spelling, with the port where one was named: what goes upstream.
  let authority: [UInt8]

  init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    guard let host = HostName(bytes.extracting(range)) else { return nil }
    var raw: [UInt8] = []
    raw.reserveCapacity(range.count)
    for index in range { raw.append(bytes[index]) }
    self.raw = raw
    self.host = host
    authority = Array(host.authority.utf8)
  }

  /// Whether the range holds the spelling that this was made from.
  func isSpelled(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard raw.count == range.count else { return false }
    for offset in raw.indices where raw[offset] != bytes[range.lowerBound + offset] { return false }
    return true
  }

  /// Whether the authority of an absolute target names the same host and port. `defaultPort` is its scheme's own.
  func agrees(with other: HostName, defaultPort: Int) -> Bool {
    host.name == other.name && (host.port ?? defaultPort) == (other.port ?? defaultPort)
  }
}

/// Where a request came from, as far as its peer may be believed.
struct RequestOrigin {
  var address: ClientAddress
  var isSecure: Bool
  var host: HostName

  /// Scheme, host and a port that is not the scheme's own (RFC 6454 section 6.2).
  var origin: String {
    let port = host.port.flatMap { $0 == (isSecure ? 443 : 80) ? nil : ":\($0)" } ?? ""
    return "\(isSecure ? "https" : "http")://\(host.name)\(port)"
  }
}
