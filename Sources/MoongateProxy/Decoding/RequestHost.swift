import MoongateCore

/// A host as spelled in requests, parsed once per spelling.
final class RequestHost {
  /// The received spelling.
  let raw: [UInt8]
  let host: HostName
  /// The normalized host with its port, if any, as sent upstream.
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

  /// A configured host with its port, if any.
  convenience init?(_ authority: String) {
    let bytes = Array(authority.utf8)
    self.init(bytes.span, bytes.indices)
  }

  /// Whether the range contains the same spelling.
  func isSpelled(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard raw.count == range.count else { return false }
    for offset in raw.indices where raw[offset] != bytes[range.lowerBound + offset] { return false }
    return true
  }

  /// Whether the authority of an absolute request target names the same host and port. `defaultPort` is that of the
  /// scheme.
  func agrees(with other: HostName, defaultPort: Int) -> Bool {
    host.name == other.name && (host.port ?? defaultPort) == (other.port ?? defaultPort)
  }
}
