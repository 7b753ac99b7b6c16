import NIOCore
import NIOSSL

#if canImport(Glibc)
  import Glibc
#endif

/// The system's knowledge of written bytes that are still on their way.
enum SocketProgress {
  /// The longer of two times: since bytes were last sent, and since the peer last acknowledged bytes. nil if the
  /// channel is not a socket. This is a system call, so do not use it for every request.
  ///
  /// To a peer that has vanished, the same bytes are sent again and again, and it acknowledges none. A peer that reads
  /// nothing acknowledges that its buffer is full, and no bytes are sent.
  static func sinceBytesMoved(_ channel: any Channel) -> TimeAmount? {
    guard let socket = channel as? any SocketOptionProvider else { return nil }
    var found: TimeAmount?
    // On the socket's own event loop, the future completes at once.
    socket.getTCPInfo().assumeIsolated().whenSuccess {
      found = .milliseconds(Int64(max($0.tcpi_last_data_sent, $0.tcpi_last_ack_recv)))
    }
    return found
  }

  /// Whether bytes that the system has taken are not acknowledged by the peer. This is a system call.
  static func hasBytesOnTheWay(_ channel: any Channel) -> Bool {
    guard let socket = channel as? any SocketOptionProvider else { return false }
    var isWaiting = false
    socket.getTCPInfo().assumeIsolated().whenSuccess { isWaiting = $0.tcpi_unacked > 0 }
    return isWaiting
  }
}

/// The end of a connection by a reset, which shows the peer that it has not got everything.
enum SocketReset {
  /// Closes the channel with RST, and without the closing alert of TLS (RFC 8446 section 6.1). Call on the channel's
  /// event loop.
  static func close(_ channel: any Channel) {
    if let socket = channel as? any SocketOptionProvider { _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)) }
    // Closed below the TLS handler, which would send the alert.
    guard let tls = try? channel.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) else {
      return channel.close(promise: nil)
    }
    tls.close(promise: nil)
  }
}

/// TCP keep-alive, which detects silent peers that have vanished (RFC 9293 section 3.8.4).
///
/// Attack, or a train in a tunnel: a peer vanishes without closing its connection. A tunnel has no timeout of its own
/// and would stay open forever.
enum Keepalive {
  /// Seconds of silence before the first probe, seconds between probes, and the number of unanswered probes: two
  /// minutes in total.
  private static let bounds: [(option: CInt, value: Int)] = [(TCP_KEEPIDLE, 60), (TCP_KEEPINTVL, 15), (TCP_KEEPCNT, 4)]

  static func enable(_ channel: any Channel) {
    guard channel is any SocketOptionProvider else { return }
    for (option, value) in bounds {
      _ = channel.setOption(ChannelOptions.tcpOption(NIOBSDSocket.Option(rawValue: option)), value: value)
    }
    _ = channel.setOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
  }
}
