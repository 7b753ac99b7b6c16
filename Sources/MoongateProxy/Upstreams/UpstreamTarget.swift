import MoongateCore
import MoongateSDK
import NIOCore
import NIOPosix
import NIOSSL

/// One upstream in one event loop: its idle connections, how busy it is, and its failure state.
final class UpstreamTarget {
  private static let maxIdle = 256
  /// A failed upstream comes last for this time.
  private static let downTime: TimeAmount = .seconds(3)
  /// Many services close idle connections after 5 s. A request that cannot be repeated uses only a recently used
  /// connection.
  private static let freshness: TimeAmount = .seconds(2)

  let upstream: Upstream
  private let eventLoop: any EventLoop
  private let tls: UpstreamTLS
  let spare: SpareFields
  private var idle: [UpstreamConnection] = []
  private var counted = EventLoopMetrics.Upstream()
  private var downUntil = NIODeadline.uptimeNanoseconds(0)
  private var unreachableUntil = NIODeadline.uptimeNanoseconds(0)
  /// The requests of this event loop that the upstream has not completed, and the connections that are being opened.
  private(set) var busy = 0
  private var isRetired = false
  /// nil unless the upstream is spoken to by HTTP/2.
  private(set) var http2: UpstreamHTTP2Pool?
  /// Logs a fault of the upstream that no exchange tells.
  var report: (_ reason: String) -> Void = { _ in }

  init(_ upstream: Upstream, eventLoop: any EventLoop, tls: UpstreamTLS, spare: SpareFields) {
    self.upstream = upstream
    self.eventLoop = eventLoop
    self.tls = tls
    self.spare = spare
    if upstream.usesHTTP2 { http2 = UpstreamHTTP2Pool(self) }
  }

  /// The current metrics.
  var metrics: EventLoopMetrics.Upstream {
    var now = counted
    now.idle = idle.count + (http2?.idle ?? 0)
    return now
  }

  /// Whether the upstream failed recently.
  func isDown(at now: NIODeadline) -> Bool { now < downUntil }

  /// Whether the upstream recently accepted no connection. Unlike other failures, a request cannot cause that.
  func isUnreachable(at now: NIODeadline) -> Bool { now < unreachableUntil }

  /// A request failed at the upstream.
  func failed(at now: NIODeadline) { downUntil = now + Self.downTime }

  /// The upstream accepted no connection.
  func refusedConnection(at now: NIODeadline) {
    failed(at: now)
    unreachableUntil = downUntil
  }

  func succeeded() {
    downUntil = NIODeadline.uptimeNanoseconds(0)
    unreachableUntil = downUntil
  }

  /// A request was given to one of the connections. `requestEnded` follows in any case.
  func requestBegan() { busy += 1 }

  func requestEnded() { busy -= 1 }

  /// A request whose attempt here failed was sent again, here or to another upstream.
  func wasRetried(_ cause: UpstreamFailureCause) { counted.retries[cause, default: 0] += 1 }

  /// Takes the most recently used idle connection, or a stream of an HTTP/2 connection.
  /// - Parameter forUpgrade: whether another protocol is asked for, which only HTTP/1.1 can do.
  func takeIdle(canRepeat: Bool, forUpgrade: Bool = false, now: NIODeadline) -> UpstreamConnection? {
    if let http2, !forUpgrade {
      let stream = http2.take(forBody: !canRepeat)
      if stream != nil { counted.reused += 1 }
      return stream
    }
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
    guard idle.count < Self.maxIdle, !isRetired else { return connection.close() }
    connection.idleSince = eventLoop.now
    idle.append(connection)
  }

  func closed(_ connection: UpstreamConnection) {
    if let index = idle.lastIndex(where: { $0 === connection }) { idle.remove(at: index) }
  }

  /// Marks a target without routes. Requests in progress continue, but their connections are not kept afterwards.
  func retire() {
    isRetired = true
    closeIdle(before: .distantFuture)
    http2?.retire()
  }

  /// Closes connections that have been idle since before the time.
  func closeIdle(before moment: NIODeadline) {
    http2?.closeIdle(before: moment)
    let old = idle.filter { $0.idleSince < moment }
    guard !old.isEmpty else { return }
    idle.removeAll { $0.idleSince < moment }
    for connection in old { connection.close() }
  }

  /// Opens a connection, or a stream of an HTTP/2 connection. The callback runs on the event loop after the TLS
  /// handshake, if any.
  /// - Parameter forUpgrade: whether another protocol is asked for, which only HTTP/1.1 can do.
  func connect(
    timeout: TimeAmount, forUpgrade: Bool = false,
    _ callback: @escaping (Result<UpstreamConnection, any Error>) -> Void
  ) {
    if let http2, !forUpgrade { return http2.connect(timeout: timeout, callback) }
    open(timeout: timeout, byHTTP2: false) { target, ready in
      UpstreamHTTP1(target: target, spare: target.spare, ready: target.upstream.isSecure ? ready : nil)
    } _: { (result: Result<UpstreamHTTP1, any Error>) in
      callback(result.map { $0 })
    }
  }

  /// Opens an HTTP/2 connection. The callback runs on the event loop after the upstream's SETTINGS.
  func openHTTP2(
    for pool: UpstreamHTTP2Pool, timeout: TimeAmount, _ callback: @escaping (Result<UpstreamHTTP2, any Error>) -> Void
  ) {
    open(
      timeout: timeout, byHTTP2: true,
      { target, ready in UpstreamHTTP2(target: target, pool: pool, eventLoop: target.eventLoop, ready: ready) },
      callback)
  }

  /// - Parameter make: makes the handler that follows TLS. It completes the promise when it can be used, except without
  ///   TLS in HTTP/1.1.
  private func open<Handler: ChannelHandler>(
    timeout: TimeAmount, byHTTP2: Bool, _ make: @escaping (UpstreamTarget, EventLoopPromise<Void>) -> Handler,
    _ callback: @escaping (Result<Handler, any Error>) -> Void
  ) {
    let tls: NIOSSLContext?
    do {
      tls = upstream.isSecure ? try self.tls.context(for: upstream, byHTTP2: byHTTP2) : nil
    } catch {
      counted.failed += 1
      return callback(.failure(error))
    }
    busy += 1
    let upstream = upstream
    let bare = IPAddressBytes.withoutBrackets(upstream.host)
    let name = upstream.trust?.name ?? bare
    let bound = NIOLoopBound((target: self, make: make), eventLoop: eventLoop)
    let ready = eventLoop.makePromise(of: Void.self)
    let opening = ClientBootstrap(group: eventLoop)
      .connectTimeout(timeout)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try SocketBuffers.bound(channel)
          if let tls {
            // Verify a host name by SNI. SNI cannot contain an IP address (RFC 6066 section 3), which is then compared
            // as such.
            let isAddress = IPAddressText.parse(name.utf8) != nil
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : name))
          }
          try channel.pipeline.syncOperations.addHandler(bound.value.make(bound.value.target, ready))
        }
      }
    opening.connect(host: bare, port: upstream.port).assumeIsolated().whenComplete { result in
      switch result {
      case .failure(let error):
        self.counted.failed += 1
        self.busy -= 1
        ready.fail(error)
        callback(.failure(error))
      case .success(let channel):
        self.counted.opened += 1
        self.counted.open += 1
        // Use the close future instead of `channelInactive`, which is not called if the callback below closes the
        // channel.
        channel.closeFuture.assumeIsolated().whenComplete { _ in self.counted.open -= 1 }
        let found = Result { try channel.pipeline.syncOperations.handler(type: Handler.self) }
        guard tls != nil || byHTTP2 else {
          ready.succeed()
          self.busy -= 1
          return callback(found)
        }
        self.limit(ready, of: channel, to: timeout)
        ready.futureResult.assumeIsolated().whenComplete { handshake in
          self.busy -= 1
          if case .failure = handshake { self.counted.failed += 1 }
          callback(handshake.flatMap { found })
        }
      }
    }
  }

  /// Closes a connection that is not ready in time. An upstream that accepts a connection but does not complete the
  /// handshake counts as not responding.
  private func limit(_ ready: EventLoopPromise<Void>, of channel: any Channel, to timeout: TimeAmount) {
    let late = eventLoop.assumeIsolated().scheduleTask(in: timeout) {
      ready.fail(ChannelError.connectTimeout(timeout))
      channel.close(promise: nil)
    }
    ready.futureResult.assumeIsolated().whenComplete { _ in late.cancel() }
  }
}
