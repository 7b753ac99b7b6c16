import NIOCore
import NIOHTTP2

/// How an HTTP/2 connection ends: the limits of what costs a client less than the gateway, the streams that are still
/// served, and what the client is told (GOAWAY, RFC 9113 section 6.8).
struct HTTP2Shutdown {
  /// What counting something leads to.
  enum CountResult {
    case isWithinLimit
    /// The client may open no more streams, and those that are open are served to their end: a proxy in front has the
    /// requests of many users on the connection.
    case endsNewStreams
    /// A limit is reached for the second time.
    case endsConnection
  }

  /// A GOAWAY frame of the gateway, besides those of the library and of the manager of connections.
  enum GoAway: Equatable {
    /// Open streams are served to their end.
    case noMoreStreams(last: HTTP2StreamID)
    /// The connection closes.
    case failure(HTTP2ErrorCode, last: HTTP2StreamID)
  }

  /// What is due on a connection without streams.
  enum IdleAction {
    /// The manager is to shut down.
    case shutDown
    case close
  }

  private static let idleTime: TimeAmount = .seconds(60)
  /// The time limit for a client to close after GOAWAY.
  private static let graceTime: TimeAmount = .seconds(5)

  /// The last stream that is served, once a shutdown has begun; nil before. The library begins no later stream.
  private(set) var lastServed: HTTP2StreamID?
  /// Why the connection has to end, if the library has not told the client.
  private(set) var failure: HTTP2ErrorCode?
  /// Whether the library has told the client of an error of the connection.
  private(set) var hasToldError = false
  /// The last stream that the client has opened.
  private var lastOpened = HTTP2StreamID.rootStream
  private var counts = HTTP2LimitCounts()
  /// Whether a limit was reached: no stream is begun any more.
  private var isOverLimit = false
  /// The stream of `noMoreStreams`, once the client was told.
  private var lastAnnounced: HTTP2StreamID?
  private var isQuiescing = false

  /// Notes a stream that the client opens.
  /// - Returns: false if it must not begin: it is not a new one, or a limit was reached.
  mutating func open(_ stream: HTTP2StreamID) -> Bool {
    guard stream > lastOpened, !isOverLimit else { return false }
    lastOpened = stream
    return true
  }

  /// Counts what is limited.
  ///
  /// Attack: CVE-2023-44487 and CVE-2025-8671. A stream that the client resets, or makes the gateway reset, costs the
  /// client nothing, and a service gets its request.
  /// - Parameter isTrusted: whether the client is a trusted proxy, whose limits are larger.
  mutating func count(
    _ limit: HTTP2Limit, at now: NIODeadline, isTrusted: @autoclosure () -> Bool
  ) -> CountResult {
    let count = counts.count(limit, at: now)
    guard count > HTTP2LimitCounts.most, failure == nil else { return .isWithinLimit }
    guard count > HTTP2LimitCounts.mostOfProxies || !isTrusted() else { return .isWithinLimit }
    counts = HTTP2LimitCounts()
    guard isOverLimit else {
      isOverLimit = true
      return .endsNewStreams
    }
    failure = .enhanceYourCalm
    return .endsConnection
  }

  /// Notes an error of the connection.
  mutating func fail(_ code: HTTP2ErrorCode) { failure = code }

  /// The frame that is due, after all others are written.
  mutating func nextGoAway() -> GoAway? {
    if let failure { return .failure(failure, last: lastOpened) }
    guard isOverLimit, lastAnnounced == nil else { return nil }
    lastAnnounced = lastOpened
    lastServed = lastOpened
    isQuiescing = true
    return .noMoreStreams(last: lastOpened)
  }

  /// Begins the shutdown of the gateway.
  /// - Returns: whether the manager is to say GOAWAY. It would name a later stream than the client was told.
  mutating func quiesce() -> Bool {
    isQuiescing = true
    lastServed = lastOpened
    return lastAnnounced == nil
  }

  /// What is due after a time without streams.
  ///
  /// Attack: a client that ignores GOAWAY keeps its connection open forever.
  mutating func action(afterIdle time: TimeAmount) -> IdleAction? {
    if time >= Self.idleTime + Self.graceTime || isQuiescing && time >= Self.graceTime { return .close }
    guard time >= Self.idleTime, !isQuiescing else { return nil }
    lastServed = lastOpened
    return .shutDown
  }

  /// Notes a GOAWAY frame that is written, of the library or of the gateway.
  mutating func wroteGoAway(last: HTTP2StreamID, _ code: HTTP2ErrorCode) {
    if code != .noError, last != lastAnnounced { hasToldError = true }
  }
}
