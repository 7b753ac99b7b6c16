import MoongateCore

/// Facts that all requests of one connection share. The streams of an HTTP/2 connection share them too.
final class PeerKnowledge {
  /// The peer's address as text; empty until it is needed.
  var addressText: [UInt8] = []
  var lastHost: RequestHost?
  /// The last host that a trusted proxy named in a header.
  var lastAskedHost: RequestHost?
  /// `ConnectionPeer.mayForward`.
  var mayForward = true
  /// Whether the peer is a trusted proxy, and the version of the generation that says so.
  var trust: (version: UInt64, isTrusted: Bool)?
}
