import NIOCore
import NIOHTTP2
import Testing

@testable import MoongateProxy

/// The limits and the shutdown of a connection, without a connection.
@Suite struct HTTP2ShutdownTests {
  private let now = NIODeadline.uptimeNanoseconds(1_000_000_000)

  /// Counts up to the result that is not `isWithinLimit`, at most as often as given.
  private func count(
    _ shutdown: inout HTTP2Shutdown, _ limit: HTTP2Limit = .resets, times: Int = 201, isTrusted: Bool = false
  ) -> (HTTP2Shutdown.CountResult, Int) {
    for number in 1...times {
      let result = shutdown.count(limit, at: now, isTrusted: isTrusted)
      if result != .isWithinLimit { return (result, number) }
    }
    return (.isWithinLimit, times)
  }

  private func opened(_ ids: Int...) -> HTTP2Shutdown {
    var shutdown = HTTP2Shutdown()
    for id in ids { #expect(shutdown.open(HTTP2StreamID(id)) == true) }
    return shutdown
  }

  @Test func onlyNewStreamsBegin() {
    var shutdown = opened(1, 5)
    #expect(shutdown.open(HTTP2StreamID(5)) == false)
    #expect(shutdown.open(HTTP2StreamID(3)) == false)
    #expect(shutdown.open(HTTP2StreamID(7)) == true)
    #expect(shutdown.lastServed == nil && shutdown.nextGoAway() == nil)
  }

  /// Attack: a client resets streams without end. Streams of other users of a proxy go on, and no new one begins, not
  /// even before the client is told.
  @Test(arguments: [HTTP2Limit.resets, .errors, .controlFrames]) func limitEndsNewStreams(limit: HTTP2Limit) {
    var shutdown = opened(1, 3)
    #expect(count(&shutdown, limit) == (.endsNewStreams, 201))
    #expect(shutdown.open(HTTP2StreamID(5)) == false)
    #expect(shutdown.failure == nil)
    #expect(shutdown.nextGoAway() == .noMoreStreams(last: HTTP2StreamID(3)))
    #expect(shutdown.lastServed == HTTP2StreamID(3))
    #expect(shutdown.nextGoAway() == nil, "the client is told once")
  }

  @Test func kindsAreCountedApart() {
    var shutdown = HTTP2Shutdown()
    #expect(count(&shutdown, .resets, times: 200).0 == .isWithinLimit)
    #expect(count(&shutdown, .errors, times: 200).0 == .isWithinLimit)
    #expect(count(&shutdown, .resets, times: 1).0 == .endsNewStreams)
  }

  /// Attack: the client continues after GOAWAY.
  @Test func secondLimitEndsTheConnection() {
    var shutdown = opened(1)
    _ = count(&shutdown)
    _ = shutdown.nextGoAway()
    #expect(count(&shutdown, .errors) == (.endsConnection, 201))
    #expect(shutdown.failure == .enhanceYourCalm)
    #expect(shutdown.nextGoAway() == .failure(.enhanceYourCalm, last: HTTP2StreamID(1)))
    #expect(count(&shutdown).0 == .isWithinLimit, "it ends already")
  }

  @Test func trustedProxiesHaveALargerLimit() {
    var shutdown = HTTP2Shutdown()
    #expect(count(&shutdown, times: 30_000, isTrusted: true) == (.endsNewStreams, 20_001))
  }

  @Test func failureNamesTheLastStream() {
    var shutdown = opened(1, 9)
    shutdown.fail(.internalError)
    #expect(shutdown.nextGoAway() == .failure(.internalError, last: HTTP2StreamID(9)))
  }

  /// The manager would name a later stream than the client was told.
  @Test func managerSaysGoAwayUnlessTheClientWasTold() {
    var shutdown = opened(1)
    #expect(shutdown.quiesce() == true)
    #expect(shutdown.lastServed == HTTP2StreamID(1))
    var limited = opened(1)
    _ = count(&limited)
    #expect(limited.quiesce() == true, "it is not told yet")
    _ = limited.nextGoAway()
    #expect(limited.quiesce() == false)
  }

  /// Attack: a client that ignores GOAWAY keeps its connection open forever.
  @Test func connectionWithoutStreamsCloses() {
    var idle = opened(1)
    #expect(idle.action(afterIdle: .seconds(59)) == nil && idle.lastServed == nil)
    #expect(idle.action(afterIdle: .seconds(60)) == .shutDown && idle.lastServed == HTTP2StreamID(1))
    #expect(idle.action(afterIdle: .seconds(65)) == .close)
    var told = opened(1)
    _ = told.quiesce()
    #expect(told.action(afterIdle: .seconds(4)) == nil)
    #expect(told.action(afterIdle: .seconds(5)) == .close)
    var limited = opened(1)
    _ = count(&limited)
    _ = limited.nextGoAway()
    #expect(limited.action(afterIdle: .seconds(5)) == .close)
  }

  /// The gateway repeats no error that the library has told. Its own GOAWAY after a limit is not one.
  @Test func errorsOfTheLibraryAreNoted() {
    var shutdown = opened(1)
    shutdown.wroteGoAway(last: HTTP2StreamID(1), .noError)
    #expect(!shutdown.hasToldError)
    _ = count(&shutdown)
    _ = shutdown.nextGoAway()
    shutdown.wroteGoAway(last: HTTP2StreamID(1), .enhanceYourCalm)
    #expect(!shutdown.hasToldError)
    shutdown.wroteGoAway(last: .maxID, .protocolError)
    #expect(shutdown.hasToldError)
    var draining = opened(1)
    _ = draining.quiesce()
    draining.wroteGoAway(last: HTTP2StreamID(1), .protocolError)
    #expect(draining.hasToldError, "a shutdown is no GOAWAY with an error")
  }
}
