import MoongateCore
import NIOCore

/// One request and its answer, as far as they have come.
struct Exchange {
  // What the request said; its head need not be kept for it.
  var isHead = false
  var isGET = false
  var minorVersion: UInt8 = 1
  var keepsAlive = false
  var isBrowser = false
  /// A browser's `Accept-Language`, where it is of a sane length.
  var languages: String?
  var expectsContinue = false
  var wantsUpgrade = false
  var hasBody = false
  /// Bytes, where the head told.
  var bodyLength: Int?
  var isChunked = false

  /// The client's address behind trusted proxies, where it was looked for; else the peer's stands for it.
  var client: ClientAddress?
  /// Whether it is for one of our pages that lead people back to where they came from.
  var leadsBack = false

  // The request's body.
  var body = BodyDecoder(.none)
  var requestIsDone = false
  /// How many bytes more of it are accepted; nil: any number.
  var bodyLeft: Int?
  /// The window in which the body's rate is counted: when it began, and what has come in it.
  var bodyWindow = (began: NIODeadline.uptimeNanoseconds(0), bytes: 0)

  /// Whether its route takes tokens of programs: a 401 says so.
  var takesTokens = false

  // Proxying.
  var route: RoutePlan?
  var session: CachedSession?
  /// What the upstream was told of the session.
  var entitlements = Entitlements.none
  /// As the upstream gets it; kept while it might have to be sent again.
  var upstreamHead = ByteBuffer()
  /// The order in which the route's targets are tried; empty where there is only one.
  var order: [Int] = []
  var tried = 0
  var needsFreshConnection = false
  var isReused = false
  var hasTimedOut = false
  var bytesWereSent = false

  // For numbers and the access log.
  /// Whether it has begun and not been counted yet.
  var isOpen = false
  var startedAt = NIODeadline.uptimeNanoseconds(0)
  /// Where the route is counted.
  var place = EventLoopMetrics.unrouted
  var outcome = Outcome.aborted
  var status = 0
  /// Of the answer's body.
  var answerBytes = 0
  var account: String?
  var decision: DecisionID?
  var trace: TraceContext?
  /// When it was decided what becomes of it, where that is recorded.
  var judgedAt: NIODeadline?
  /// The method's name, where it is recorded.
  var method = ""

  // The answer.
  var answerHasBegun = false
  var framing = AnswerRewriter.Framing.none
  var closesAfter = false

  init() {}

  init(_ head: borrowing RequestHead) {
    isHead = head.method == .head
    isGET = head.method == .get
    minorVersion = head.minorVersion
    keepsAlive = head.keepsAlive
    expectsContinue = head.expectsContinue
    wantsUpgrade = head.wantsUpgrade
    hasBody = head.framing != .none && head.framing != .length(0)
    isChunked = head.framing == .chunked
    if case .length(let length) = head.framing { bodyLength = length }
    body = BodyDecoder(head.framing)
    requestIsDone = !hasBody
    isRepeatable = (isHead || isGET || head.method == .options) && !hasBody
  }

  /// Whether it may be sent again after bytes of it were sent (RFC 9110 section 9.2.2, and http.md narrower).
  private(set) var isRepeatable = false
}
