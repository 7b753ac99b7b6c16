import NIOCore

#if canImport(Glibc)
  import Glibc
#endif

/// What the system knows of bytes that we have written and no longer see.
enum SocketProgress {
  /// How long ago bytes last left and the peer last took some; nil for what is no socket. Asks the system: not for
  /// every request.
  ///
  /// The longer of the two. A peer that is gone is sent the same bytes again and again, and acknowledges none; one that
  /// reads nothing acknowledges that it has no room, and is sent none.
  static func sinceBytesMoved(_ channel: any Channel) -> TimeAmount? {
    guard let socket = channel as? any SocketOptionProvider else { return nil }
    var found: TimeAmount?
    // On the socket's own event loop it is answered at once.
    socket.getTCPInfo().assumeIsolated().whenSuccess {
      found = .milliseconds(Int64(max($0.tcpi_last_data_sent, $0.tcpi_last_ack_recv)))
    }
    return found
  }
}

/// TCP's own question whether a silent peer is still there (RFC 9293 section 3.8.4).
///
/// Attack, or a train in a tunnel: a peer that vanishes without a word. A tunnel has no time-out of its own, and would
/// stay for ever.
enum Keepalive {
  /// Seconds of silence before the first question, seconds between them, and how many may stay unanswered: two minutes
  /// in all.
  private static let bounds: [(option: CInt, value: Int)] = [(TCP_KEEPIDLE, 60), (TCP_KEEPINTVL, 15), (TCP_KEEPCNT, 4)]

  static func turnOn(_ channel: any Channel) {
    guard channel is any SocketOptionProvider else { return }
    for (option, value) in bounds {
      _ = channel.setOption(ChannelOptions.tcpOption(NIOBSDSocket.Option(rawValue: option)), value: value)
    }
    _ = channel.setOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
  }
}
