import MoongateCore
import NIOCore
import Testing

@testable import MoongateProxy

/// What a connection does after each event, without sockets.
@Suite struct ConnectionStateTests {
  /// A state with its clock, which receives text and tells the names of actions.
  fileprivate struct Driven {
    var state = ConnectionState()
    var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    var takesAnswer = true
    private var spare: [HeadField] = []

    init(_ text: String = "") { if !text.isEmpty { receive(text) } }

    @discardableResult
    mutating func receive(_ text: String) -> String {
      name(state.received(ByteBuffer(string: text), takesAnswer: takesAnswer, at: now))
    }

    mutating func next() -> ConnectionAction { state.next(takesAnswer: takesAnswer, spare: &spare) }

    mutating func wait(_ time: TimeAmount) -> ConnectionAction {
      now = now + time
      return state.checkTime(now, takesAnswer: takesAnswer, idleWhileDraining: .seconds(1))
    }
  }

  fileprivate static func head(of action: ConnectionAction) throws -> RequestHead {
    guard case .serve(let head) = action else { throw Unexpected(action: name(action)) }
    return head
  }

  fileprivate struct Unexpected: Error { let action: String }

  @Test func pipelinedRequestsAreServedOneAfterTheOther() throws {
    var driven = Driven()
    #expect(driven.receive("GET /one HTTP/1.1\r\nHost: a\r\n\r\nGET /two HT") == "process")
    let first = try Self.head(of: driven.next())
    #expect(first.text(first.path) == "/one")
    driven.state.prepareToAnswer(unread: false)
    #expect(name(driven.state.answered(unread: false, at: driven.now)) == "finish")
    #expect(name(driven.state.finish(at: driven.now)) == "process")
    #expect(name(driven.next()) == "wait")
    driven.receive("TP/1.1\r\nHost: a\r\n\r\n")
    let second = try Self.head(of: driven.next())
    #expect(second.text(second.path) == "/two" && driven.state.serial == 2)
  }

  /// Attack: bytes after the request of an HTTP/2 stream.
  @Test func streamReadsOneHeadOnly() throws {
    let next = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
    var driven = Driven()
    driven.state.hasOneRequest = true
    driven.receive("GET /one HTTP/1.1\r\nHost: a\r\n\r\n" + next)
    _ = try Self.head(of: driven.next())
    driven.state.prepareToAnswer(unread: false)
    #expect(name(driven.state.answered(unread: false, at: driven.now)) == "finish")
    #expect(name(driven.state.finish(at: driven.now)) == "wait")
    #expect(driven.state.input.readableBytes == 0)
    #expect(driven.receive(next) == "wait" && name(driven.next()) == "wait" && driven.state.serial == 1)
    // A response that the client does not take.
    #expect(name(driven.wait(.seconds(59))) == "wait" && name(driven.wait(.seconds(1))) == "close")
  }

  @Test func theNextRequestWaitsUntilTheClientReads() {
    var driven = Driven("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    driven.takesAnswer = false
    #expect(name(driven.next()) == "wait")
    // Attack: bytes of the next request postpone the end of a client that reads nothing.
    driven.now = driven.now + .seconds(50)
    driven.receive("GET /")
    #expect(name(driven.wait(.seconds(10))) == "close")
  }

  @Test func malformedBytesAreRefusedAndNothingAfterThemIsRead() throws {
    var driven = Driven("GET / HTTP/1.1\r\nHost : a\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n")
    guard case .refuseUnreadable(let refusal, _) = driven.next() else { throw Unexpected(action: "no refusal") }
    #expect(refusal.code == .badRequest && refusal.reason != nil && driven.state.serial == 0)
    driven.state.prepareToAnswer(unread: true)
    #expect(name(driven.state.answered(unread: true, at: driven.now)) == "linger")
    #expect(name(driven.state.linger(at: driven.now)) == "awaitWritten")
    #expect(driven.state.input.readableBytes == 0)
    #expect(driven.receive("GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n") == "wait")
    #expect(name(driven.next()) == "wait")
    #expect(name(driven.state.responseIsOut(at: driven.now)) == "closeOutput")
    #expect(name(driven.state.inputEnded(takesAnswer: true, at: driven.now)) == "close")
  }

  @Test func aRequestForTheGatewayIsDeliveredWhenItsBodyIsComplete() throws {
    var driven = Driven("POST /auth HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    let head = try Self.head(of: driven.next())
    #expect(name(driven.state.beginOwn(head, at: driven.now)) == "wait")
    #expect(name(driven.next()) == "wait")
    #expect(name(driven.wait(.seconds(9))) == "wait")
    driven.receive("def")
    guard case .deliver(let own) = driven.next() else { throw Unexpected(action: "no delivery") }
    #expect(String(buffer: own.body) == "abcdef" && driven.state.exchange.requestIsDone)
  }

  @Test func aClientThatAsksIsToldToSendItsBody() throws {
    var driven = Driven("POST /auth HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n")
    let head = try Self.head(of: driven.next())
    #expect(name(driven.state.beginOwn(head, at: driven.now)) == "sendContinue")
    #expect(name(driven.wait(.seconds(10))) == "refuse")
    // A client that sends it already needs no permission.
    var eager = Driven("POST /auth HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\nabc")
    let other = try Self.head(of: eager.next())
    #expect(name(eager.state.beginOwn(other, at: eager.now)) == "wait")
  }

  @Test func aBodyForTheGatewayIsBounded() throws {
    var driven = Driven("POST /auth HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n11000\r\n")
    let head = try Self.head(of: driven.next())
    _ = driven.state.beginOwn(head, at: driven.now)
    driven.receive(String(repeating: "a", count: 0x11000))
    guard case .refuse(let refusal, let about?) = driven.next() else {
      throw Unexpected(action: "no refusal")
    }
    #expect(refusal == .tooLarge && about.text(about.path) == "/auth")
  }

  @Test func theRestOfARefusedRequestIsDroppedInBoundedTime() throws {
    var driven = Driven("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    _ = try Self.head(of: driven.next())
    driven.state.prepareToAnswer(unread: false)
    #expect(name(driven.state.answered(unread: false, at: driven.now)) == "dropBody")
    #expect(name(driven.next()) == "wait")
    var slow = driven
    // Attack: the rest arrives byte by byte.
    slow.now = slow.now + .seconds(9)
    slow.receive("d")
    #expect(name(slow.wait(.seconds(1))) == "linger")
    driven.receive("def")
    #expect(name(driven.next()) == "finish")
  }

  @Test func endOfInputEndsIncompleteRequests() throws {
    var idle = Driven()
    #expect(name(idle.state.inputEnded(takesAnswer: true, at: idle.now)) == "linger")
    var collecting = Driven("POST /auth HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    let head = try Self.head(of: collecting.next())
    _ = collecting.state.beginOwn(head, at: collecting.now)
    #expect(name(collecting.state.inputEnded(takesAnswer: true, at: collecting.now)) == "linger")
    // A complete request is still answered.
    var looking = Driven("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    looking.state.beginLookup(for: try Self.head(of: looking.next()), at: looking.now)
    #expect(name(looking.state.inputEnded(takesAnswer: true, at: looking.now)) == "wait")
    #expect(name(looking.state.finish(at: looking.now)) == "awaitWritten")
    #expect(name(looking.state.responseIsOut(at: looking.now)) == "close")
  }

  @Test func aConnectionWithoutUnreadBytesClosesAtOnce() throws {
    var driven = Driven("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    _ = try Self.head(of: driven.next())
    driven.state.prepareToAnswer(unread: false)
    #expect(name(driven.state.answered(unread: false, at: driven.now)) == "finish")
    #expect(name(driven.state.finish(at: driven.now)) == "awaitWritten")
    #expect(name(driven.state.responseIsOut(at: driven.now)) == "close")
    // A reset would overtake the response if the next request were unread.
    var behind = Driven("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /two")
    _ = try Self.head(of: behind.next())
    behind.state.prepareToAnswer(unread: false)
    #expect(name(behind.state.finish(at: behind.now)) == "awaitWritten")
    #expect(name(behind.state.responseIsOut(at: behind.now)) == "closeOutput")
  }

  /// What was read of a head decides how its refusal looks.
  @Test func aRefusalKnowsThePartOfTheHeadThatWasRead() throws {
    var driven = Driven("HEAD /api/auth/session HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\nX : y\r\n\r\n")
    guard case .refuseUnreadable(_, let head?) = driven.next() else { throw Unexpected(action: "no head") }
    #expect(head.text(head.path) == "/api/auth/session" && driven.state.exchange.isHead)
    #expect(head.first(.origin).map { head.text($0.value) } == "https://b")
    var late = Driven("GET /api/auth/session HTTP/1.1\r\nHost: a\r\nAcc")
    _ = late.next()
    guard case .refuseUnreadable(.timeout, let part?) = late.wait(.seconds(10)) else {
      throw Unexpected(action: "no head")
    }
    #expect(part.text(part.path) == "/api/auth/session" && part.fields.count == 1)
    var rubbish = Driven("rubbish\r\n\r\n")
    guard case .refuseUnreadable(_, nil) = rubbish.next() else { throw Unexpected(action: "a head") }
  }

  @Test func aHeadMustBeCompleteInTenSeconds() throws {
    var driven = Driven("GET / HT")
    // Attack: one byte now and then.
    driven.now = driven.now + .seconds(9)
    driven.receive("T")
    #expect(name(driven.wait(.milliseconds(999))) == "wait")
    guard case .refuseUnreadable(.timeout, _) = driven.wait(.milliseconds(1)) else {
      throw Unexpected(action: "no refusal")
    }
    #expect(driven.state.exchange.requestIsDone && !driven.state.exchange.keepsAlive)
  }

  @Test func anIdleConnectionClosesSoonerWhileTheGatewayShutsDown() {
    var driven = Driven()
    driven.state.lastActivity = driven.now
    var draining = driven
    draining.state.isQuiescing = true
    #expect(name(draining.wait(.milliseconds(999))) == "wait")
    // A slow client may not have accepted all of the last response yet.
    #expect(name(draining.wait(.milliseconds(1))) == "awaitWritten")
    #expect(name(draining.wait(.seconds(30))) == "wait")
    #expect(name(draining.state.responseIsOut(at: draining.now)) == "close")
    #expect(name(driven.wait(.seconds(59))) == "wait")
    #expect(name(driven.wait(.seconds(1))) == "close")
    // A request that waits behind that response is answered.
    var behind = Driven("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    behind.takesAnswer = false
    behind.state.isQuiescing = true
    #expect(name(behind.wait(.seconds(30))) == "wait")
    behind.takesAnswer = true
    #expect(name(behind.next()) == "serve")
  }

  @Test func aRequestBehindAResponseThatWaitsIsAnsweredAlthoughTheClientHasClosedItsOutput() throws {
    var driven = Driven("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    driven.takesAnswer = false
    #expect(name(driven.state.inputEnded(takesAnswer: false, at: driven.now)) == "wait")
    #expect(name(driven.state.endIfIncomplete(takesAnswer: false)) == "wait")
    driven.takesAnswer = true
    driven.state.becameWritable(at: driven.now)
    _ = try Self.head(of: driven.next())
    var cut = Driven("GET / HT")
    #expect(name(cut.state.inputEnded(takesAnswer: true, at: cut.now)) == "linger")
  }

  @Test func aRequestDoesNotWaitForAStoreThatDoesNotAnswer() throws {
    var driven = Driven("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    driven.state.beginLookup(for: try Self.head(of: driven.next()), at: driven.now)
    #expect(name(driven.wait(.milliseconds(4_999))) == "wait")
    guard case .serveWithoutStore(let head) = driven.wait(.milliseconds(1)) else { throw Unexpected(action: "no end") }
    #expect(head.text(head.path) == "/")
  }

  @Test func finishedConnectionClosesDespiteASlowClient() {
    var driven = Driven()
    _ = driven.state.linger(at: driven.now)
    _ = driven.state.responseIsOut(at: driven.now)
    // Attack: one byte per second keeps a finished connection open.
    var seconds = 0
    var last = "wait"
    while last == "wait", seconds < 60 {
      driven.receive("a")
      last = name(driven.wait(.seconds(1)))
      seconds += 1
    }
    #expect(last == "close" && seconds == 30)
  }

  @Test func aFinishedConnectionWaitsForItsLastBytes() {
    var driven = Driven()
    _ = driven.state.linger(at: driven.now)
    #expect(name(driven.state.inputEnded(takesAnswer: true, at: driven.now)) == "wait")
    var stuck = driven
    #expect(name(stuck.wait(.seconds(59))) == "wait")
    #expect(name(stuck.wait(.seconds(1))) == "close")
    driven.state.inputHasEnded = false
    #expect(name(driven.state.responseIsOut(at: driven.now)) == "closeOutput")
    #expect(name(driven.wait(.milliseconds(1_999))) == "wait")
    #expect(name(driven.wait(.milliseconds(1))) == "close")
  }

  @Test func aFinishedConnectionDropsABoundedNumberOfBytes() {
    var driven = Driven()
    _ = driven.state.linger(at: driven.now)
    let part = String(repeating: "a", count: 512 * 1024)
    #expect(driven.receive(part) == "wait")
    #expect(driven.receive(part) == "wait")
    #expect(driven.receive("a") == "close")
  }

  /// Attack, or accident: to a client of HTTP/1.0, the end of the connection is the end of the response, so a truncated
  /// response must not end like that.
  @Test(arguments: [BodyFraming.untilClose, .length(9), .chunked])
  func truncatedResponseEndsByAResetIfItsFramingDoesNotShowIt(framing: BodyFraming) {
    var driven = Driven()
    driven.state.exchange.answerHasBegun = true
    driven.state.exchange.framing = framing
    let isReset = framing == .untilClose
    var aborted = driven
    #expect(name(aborted.state.abort()) == (isReset ? "resetAndClose" : "closeBoth"))
    #expect(name(driven.state.cut(at: driven.now)) == "awaitWritten")
    var stuck = driven
    #expect(name(stuck.wait(.seconds(60))) == (isReset ? "reset" : "close"))
    #expect(name(driven.state.responseIsOut(at: driven.now)) == (isReset ? "reset" : "closeOutput"))
    // Until the client has acknowledged everything.
    guard isReset else { return }
    guard case .reset(true) = driven.wait(.seconds(1)) else { return #expect(Bool(false), "it does not wait") }
    var ended = driven
    #expect(name(ended.state.inputEnded(takesAnswer: true, at: ended.now)) == "reset")
    guard case .reset(false) = driven.wait(.seconds(1)) else { return #expect(Bool(false), "it waits on") }
  }

  @Test func abortedConnectionIgnoresFurtherEvents() {
    var driven = Driven()
    #expect(name(driven.state.abort()) == "closeBoth")
    #expect(name(driven.state.abort()) == "wait")
    #expect(name(driven.state.linger(at: driven.now)) == "wait")
    #expect(name(driven.state.finish(at: driven.now)) == "wait")
    #expect(driven.receive("GET / HTTP/1.1\r\nHost: a\r\n\r\n") == "wait")
    #expect(name(driven.next()) == "wait")
  }
}

/// The same with a connection to an upstream.
@Suite struct ConnectionStateUpstreamTests {
  private typealias Driven = ConnectionStateTests.Driven

  /// Calls the closure with a connection whose channel accepts bytes.
  private func withUpstream(_ body: (UpstreamConnection) throws -> Void) async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1], open: true)])
    try {
      let exchange = try EmbeddedExchange(gateway)
      defer { exchange.end() }
      try body(exchange.connection)
    }()
    await gateway.stop()
  }

  /// A request that was sent to the upstream, except for its body.
  private func exchanging(_ request: String, with upstream: UpstreamConnection) throws -> Driven {
    var driven = Driven(request)
    _ = try ConnectionStateTests.head(of: driven.next())
    let service = service(of: upstream, at: driven.now)
    driven.state.beginExchange(service, at: driven.now)
    #expect(name(driven.next()) == "wait")
    driven.state.connected(service, to: upstream, at: driven.now)
    return driven
  }

  private func service(of upstream: UpstreamConnection, at now: NIODeadline) -> ServiceExchange {
    let route = RoutePlan(.test(ports: [1], open: true), metricsIndex: 0, targets: [upstream.target])
    let grant = AccessGrant(
      route: route, session: nil, entitlements: .none, isCookie: false, isBasic: false, hasOurCookies: false,
      dropsAuthorization: false, tokenAddress: nil)
    return ServiceExchange(
      grant, head: ByteBuffer(string: "GET /x HTTP/1.1\r\n\r\n"), keepsWorkerScope: false)
  }

  private let post = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"
  private let chunked = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

  @Test func aBodyWaitsForTheUpstreamAndPasses() async throws {
    try await withUpstream { upstream in
      var driven = try exchanging(post + "abcdefGET /two", with: upstream)
      guard case .forward(let data, let to) = driven.next() else { throw failure }
      #expect(String(buffer: data) == "abcdef" && to === upstream)
      #expect(name(driven.next()) == "endBody")
      // The next request waits for the response.
      #expect(name(driven.next()) == "wait" && driven.state.input.readableBytes == 8)
    }
  }

  /// Attack: a request behind a malformed chunk, which a lenient service or gateway would read.
  @Test func nothingBehindAMalformedBodyIsARequest() async throws {
    try await withUpstream { upstream in
      var driven = try exchanging(chunked + "x\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n", with: upstream)
      guard case .refuseBody(let refusal, let dropped) = driven.next() else { throw failure }
      #expect(refusal.code == .badRequest && dropped === upstream && driven.state.upstream == nil)
      #expect(driven.state.exchange.requestIsDone && !driven.state.exchange.keepsAlive)
      #expect(name(driven.next()) == "wait")
      driven.state.prepareToAnswer(unread: true)
      #expect(name(driven.state.answered(unread: true, at: driven.now)) == "linger")
    }
  }

  @Test func aBodyBeyondTheLimitOfTheRouteIsRefused() async throws {
    try await withUpstream { upstream in
      var driven = try exchanging(chunked + "4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n", with: upstream)
      driven.state.exchange.bodyLeft = 5
      #expect(name(driven.next()) == "forward")
      guard case .refuseBody(.tooLarge, _) = driven.next() else { throw failure }
      #expect(name(driven.next()) == "wait")
    }
  }

  @Test func aRequestWhoseBodyIsCutEndsTheConnection() async throws {
    try await withUpstream { upstream in
      var unconnected = Driven(post + "abc")
      _ = try ConnectionStateTests.head(of: unconnected.next())
      unconnected.state.beginExchange(service(of: upstream, at: unconnected.now), at: unconnected.now)
      #expect(name(unconnected.state.inputEnded(takesAnswer: true, at: unconnected.now)) == "wait")
      var cut = try exchanging(post + "abc", with: upstream)
      #expect(name(cut.state.inputEnded(takesAnswer: true, at: cut.now)) == "close")
      var complete = try exchanging("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", with: upstream)
      #expect(name(complete.state.inputEnded(takesAnswer: true, at: complete.now)) == "wait")
    }
  }

  @Test func anInterimResponseIsForwardedOnceAndOnRequest() async throws {
    try await withUpstream { upstream in
      let head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n"
      var driven = try exchanging(head + "Expect: 100-continue\r\n\r\n", with: upstream)
      #expect(name(driven.state.answerInterim(103, at: driven.now)) == "wait")
      #expect(name(driven.state.answerInterim(100, at: driven.now)) == "sendContinue")
      #expect(name(driven.state.answerInterim(100, at: driven.now)) == "wait")
      var unasked = try exchanging(post, with: upstream)
      #expect(name(unasked.state.answerInterim(100, at: unasked.now)) == "wait")
    }
  }

  @Test func aResponseBeforeTheEndOfTheBodyEndsTheConnection() async throws {
    try await withUpstream { upstream in
      var driven = try exchanging(post + "abc", with: upstream)
      #expect(name(driven.next()) == "forward")
      var decoder = ResponseDecoder()
      var bytes = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      var spare: [HeadField] = []
      let head = try #require(try decoder.next(&bytes, spare: &spare, toHead: false))
      driven.state.answerBegan(head, isEventStream: false, at: driven.now)
      #expect(driven.state.exchange.closesAfter)
      #expect(name(driven.state.answerEnded()) == "finish")
      #expect(name(driven.state.finish(at: driven.now)) == "awaitWritten")
      #expect(name(driven.state.responseIsOut(at: driven.now)) == "closeOutput")
    }
  }

  @Test func bufferedBytesPassIntoTheTunnel() async throws {
    try await withUpstream { upstream in
      var driven = try exchanging("GET /x HTTP/1.1\r\nHost: a\r\n\r\nearly", with: upstream)
      guard case .tunnel(let early, _) = driven.state.tunnelBegan(upstream, at: driven.now) else { throw failure }
      #expect(String(buffer: early) == "early" && driven.state.input.readableBytes == 0)
      #expect(driven.receive("more") == "tunnel" && driven.state.input.readableBytes == 0)
      // Attack: a client closes its side of a tunnel, and the service ignores that.
      #expect(name(driven.state.inputEnded(takesAnswer: true, at: driven.now)) == "closeUpstreamOutput")
      #expect(name(driven.wait(.seconds(59))) == "wait")
      #expect(name(driven.wait(.seconds(1))) == "abort")
    }
  }

  @Test func anEndClosesTheUpstreamOnce() async throws {
    try await withUpstream { upstream in
      var aborted = try exchanging(post + "abc", with: upstream)
      guard case .closeBoth(let both) = aborted.state.abort() else { throw failure }
      #expect(both === upstream)
      var ended = try exchanging(post + "abc", with: upstream)
      let serial = ended.state.serial
      guard case .closeUpstream(let closed) = ended.state.ended() else { throw failure }
      #expect(closed === upstream && ended.state.serial == serial + 1 && ended.state.input.readableBytes == 0)
      #expect(name(ended.state.ended()) == "wait")
    }
  }

  private let failure = ConnectionStateTests.Unexpected(action: "another action")
}

/// The name of an action's case.
private func name(_ action: ConnectionAction) -> String {
  String(String(describing: action).prefix { $0 != "(" })
}
