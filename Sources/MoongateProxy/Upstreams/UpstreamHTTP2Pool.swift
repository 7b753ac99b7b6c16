import NIOCore

/// The HTTP/2 connections of one upstream in one event loop. Usually there is one: the next is opened when the others
/// have no room for another stream.
final class UpstreamHTTP2Pool {
  /// A connection that is being opened, and what waits for it.
  private final class Opening {
    var callbacks: [(Result<UpstreamConnection, any Error>) -> Void]

    init(_ first: @escaping (Result<UpstreamConnection, any Error>) -> Void) { callbacks = [first] }
  }

  /// The maximum number of requests that wait for one connection. Servers allow a hundred streams at least (RFC 9113
  /// section 6.5.2).
  private static let maxWaiting = 100

  private unowned let target: UpstreamTarget
  private var open: [UpstreamHTTP2] = []
  private var opening: [Opening] = []
  private var isRetired = false

  init(_ target: UpstreamTarget) { self.target = target }

  /// The number of connections without a stream.
  var idle: Int { open.reduce(0) { $1.isIdle ? $0 + 1 : $0 } }

  /// Makes a stream on an open connection; nil if none has room.
  func take(forBody hasBody: Bool) -> UpstreamStream? {
    open.first { $0.hasRoom(forBody: hasBody) }?.makeStream()
  }

  /// Makes a stream on an open connection or on one that is opened for it. The callback runs on the event loop, and may
  /// run within the call.
  func connect(timeout: TimeAmount, _ callback: @escaping (Result<UpstreamConnection, any Error>) -> Void) {
    if let stream = take(forBody: true) { return callback(.success(stream)) }
    if let last = opening.last, last.callbacks.count < Self.maxWaiting {
      last.callbacks.append(callback)
      return
    }
    let attempt = Opening(callback)
    opening.append(attempt)
    target.openHTTP2(for: self, timeout: timeout) { result in
      self.opening.removeAll { $0 === attempt }
      self.opened(result, attempt.callbacks, timeout: timeout)
    }
  }

  private func opened(
    _ result: Result<UpstreamHTTP2, any Error>,
    _ callbacks: [(Result<UpstreamConnection, any Error>) -> Void], timeout: TimeAmount
  ) {
    switch result {
    case .failure(let error):
      for callback in callbacks { callback(.failure(error)) }
    case .success(let connection) where !connection.allowsStreams:
      connection.drain()
      let fault = FrameFault(FrameCode.noError, "its SETTINGS allow no streams")
      for callback in callbacks { callback(.failure(fault)) }
    case .success(let connection):
      add(connection)
      for callback in callbacks {
        if connection.hasRoom(forBody: false) {
          callback(.success(connection.makeStream()))
        } else {
          connect(timeout: timeout, callback)
        }
      }
      if isRetired { connection.drain() }
    }
  }

  /// Adds an open connection.
  func add(_ connection: UpstreamHTTP2) { open.append(connection) }

  /// The connection begins no streams any more.
  func closed(_ connection: UpstreamHTTP2) { open.removeAll { $0 === connection } }

  /// Closes connections that have been idle since before the time.
  func closeIdle(before moment: NIODeadline) {
    for connection in open where connection.isIdle && connection.idleSince < moment { connection.drain() }
  }

  /// Ends all connections after their last streams.
  func retire() {
    isRetired = true
    for connection in open { connection.drain() }
  }
}
