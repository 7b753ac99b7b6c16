import MoongateCore
import NIOCore
import NIOPosix
import NIOSSL

/// One upstream as one event loop knows it: its idle connections, and whether it was down.
final class UpstreamTarget {
  private static let mostIdle = 256
  /// "One that was down is tried again within 5 s" (http.md, "Proxy").
  private static let downTime: TimeAmount = .seconds(3)
  /// Services close idle connections, many after 5 s: what cannot be repeated goes out on one that was just in use.
  private static let freshness: TimeAmount = .seconds(2)

  let upstream: Upstream
  private unowned let loop: ProxyLoop
  private var idle: [UpstreamConnection] = []
  private var counted = EventLoopMetrics.Upstream()
  private var downUntil = NIODeadline.uptimeNanoseconds(0)
  private var isRetired = false

  init(_ upstream: Upstream, loop: ProxyLoop) {
    self.upstream = upstream
    self.loop = loop
  }

  /// What there is of it, and was.
  var numbers: EventLoopMetrics.Upstream {
    var now = counted
    now.idle = idle.count
    return now
  }

  /// Whether it failed a moment ago.
  func isDown(at now: NIODeadline) -> Bool { now < downUntil }

  func failed(at now: NIODeadline) { downUntil = now + Self.downTime }

  func succeeded() { downUntil = NIODeadline.uptimeNanoseconds(0) }

  /// The idle connection that was used last.
  func takeIdle(canRepeat: Bool, now: NIODeadline) -> UpstreamConnection? {
    while let connection = idle.popLast() {
      guard connection.isOpen else { continue }
      if !canRepeat, now - connection.idleSince > Self.freshness {
        connection.close()
        continue
      }
      counted.reused += 1
      return connection
    }
    return nil
  }

  func putIdle(_ connection: UpstreamConnection) {
    guard idle.count < Self.mostIdle, !isRetired else { return connection.close() }
    connection.idleSince = loop.now
    idle.append(connection)
  }

  func closed(_ connection: UpstreamConnection) {
    if let index = idle.lastIndex(where: { $0 === connection }) { idle.remove(at: index) }
  }

  /// No route leads there any more. Requests at work go on; nobody would ever look after the connections that they
  /// leave behind.
  func retire() {
    isRetired = true
    closeIdle(before: .distantFuture)
  }

  /// Closes what has been idle since before the moment.
  func closeIdle(before moment: NIODeadline) {
    let old = idle.filter { $0.idleSince < moment }
    guard !old.isEmpty else { return }
    idle.removeAll { $0.idleSince < moment }
    for connection in old { connection.close() }
  }

  /// Opens a connection. The callback comes on the event loop, with the connection ready for bytes (TLS included).
  func connect(timeout: TimeAmount, _ callback: @escaping (Result<UpstreamConnection, any Error>) -> Void) {
    let tls: NIOSSLContext?
    do {
      tls = upstream.isSecure ? try loop.clientTLSContext() : nil
    } catch {
      return callback(.failure(error))
    }
    let upstream = upstream
    let bare = upstream.host.hasPrefix("[") ? String(upstream.host.dropFirst().dropLast()) : upstream.host
    let bound = NIOLoopBound((target: self, loop: loop), eventLoop: loop.eventLoop)
    let ready = loop.eventLoop.makePromise(of: Void.self)
    let opening = ClientBootstrap(group: loop.eventLoop)
      .connectTimeout(timeout)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try SocketBuffers.bound(channel)
          if let tls {
            // A name is verified; SNI may not be an address (RFC 6066 section 3), which is then compared as one.
            let isAddress = IPAddressText.parse(bare.utf8) != nil
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : bare))
          }
          let handler = UpstreamConnection(
            target: bound.value.target, loop: bound.value.loop, ready: tls == nil ? nil : ready)
          try channel.pipeline.syncOperations.addHandler(handler)
        }
      }
    opening.connect(host: bare, port: upstream.port).assumeIsolated().whenComplete { [loop] result in
      switch result {
      case .failure(let error):
        self.counted.failed += 1
        ready.fail(error)
        callback(.failure(error))
      case .success(let channel):
        self.counted.opened += 1
        self.counted.open += 1
        // Not `channelInactive`: a connection that is closed from the callback below was never active, and gets none.
        channel.closeFuture.assumeIsolated().whenComplete { _ in self.counted.open -= 1 }
        let found = Result { try channel.pipeline.syncOperations.handler(type: UpstreamConnection.self) }
        guard tls != nil else {
          ready.succeed()
          return callback(found)
        }
        // An upstream that takes connections and never shakes hands is as silent as one that does not answer.
        let late = loop.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
          ready.fail(ChannelError.connectTimeout(timeout))
          channel.close(promise: nil)
        }
        ready.futureResult.assumeIsolated().whenComplete { handshake in
          late.cancel()
          callback(handshake.flatMap { found })
        }
      }
    }
  }
}
