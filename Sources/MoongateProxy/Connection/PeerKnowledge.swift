import MoongateCore

/// What requests of one connection have in common: found out once, and shared by the streams of HTTP/2.
final class PeerKnowledge {
  /// The peer's address as text, where it was needed.
  var addressText: [UInt8] = []
  var lastHost: RequestHost?
  /// The host that a proxy asked about last.
  var lastAskedHost: RequestHost?
  /// Whether the peer is a trusted proxy, and of which generation that is known.
  var trust: (version: UInt64, isTrusted: Bool)?
}
