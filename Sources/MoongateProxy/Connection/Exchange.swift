import MoongateCore
import NIOCore

/// One request and its response, as far as they have progressed.
struct Exchange {
  // Facts of the request's head, which is not kept.
  var isHead = false
  var minorVersion: UInt8 = 1
  var keepsAlive = false
  var isBrowser = false
  /// The `Accept-Language` of a browser, unless it is too long.
  var languages: String?
  var expectsContinue = false
  var wantsUpgrade = false
  var hasBody = false
  /// The length of the body in bytes, if the head states it.
  var bodyLength: Int?
  var isChunked = false

  /// The client's address behind trusted proxies, if the proxy names one; nil means the peer's address.
  var client: ClientAddress?
  /// How a refusal allows pages of other origins to read it; nil if CORS does not apply to the request.
  var marks: CrossOriginMarks?
  /// Whether the request is for a gateway page that redirects users back to a service.
  var redirectsBack = false

  // The request's body.
  var body = BodyDecoder(.none)
  var requestIsDone = false
  /// How many more bytes of the body are accepted; nil for no limit.
  var bodyLeft: Int?
  /// The current window for the body's rate: its start, and the bytes received in it.
  var bodyWindow = (began: NIODeadline.uptimeNanoseconds(0), bytes: 0)

  /// Whether the service answers with an event stream, which may be silent for any time.
  var isEventStream = false

  /// Whether the request is a call of gRPC to an upstream of HTTP/2. Its body may be silent for long.
  var isCall = false
  /// Whether the client accepts trailers.
  var acceptsTrailers = false
  /// The trailers of the service's response.
  var trailers: ByteBuffer?

  /// Whether the request has counted for the `rate` of its route by its account or token.
  var isRateCounted = false

  /// Whether the route accepts access tokens. A 401 then contains a challenge.
  var takesTokens = false
  /// How a refusal is shown to browsers; nil for the usual page.
  var refusalStyle: RefusalStyle?

  /// Whether bytes of the request were sent to an upstream.
  var bytesWereSent = false

  // For metrics and the access log.
  /// Whether the exchange has begun and was not counted yet.
  var isOpen = false
  var startedAt = NIODeadline.uptimeNanoseconds(0)
  /// The index of the route in the metrics.
  var metricsIndex = EventLoopMetrics.unrouted
  var outcome = Outcome.aborted
  var status = 0
  /// The number of bytes of the response body.
  var answerBytes = 0
  var account: String?
  var decision: DecisionID?
  var trace: TraceContext?
  /// The name of the method, if spans are recorded.
  var method = ""
  /// When the access decision was made and the addresses of the service that was asked, if spans are recorded.
  var asked: (at: NIODeadline, service: String)?

  // The response.
  var answerHasBegun = false
  var framing = BodyFraming.none
  var closesAfter = false
  /// Bytes of the upstream's response that are not written yet, so that a head and a small body are one write.
  var pending: ByteBuffer?

  init() {}

  init(_ head: borrowing RequestHead) {
    isHead = head.method == .head
    minorVersion = head.minorVersion
    keepsAlive = head.keepsAlive
    expectsContinue = head.expectsContinue
    acceptsTrailers = head.acceptsTrailers
    wantsUpgrade = head.wantsUpgrade
    hasBody = head.framing != .none && head.framing != .length(0)
    isChunked = head.framing == .chunked
    if case .length(let length) = head.framing { bodyLength = length }
    body = BodyDecoder(head.framing)
    requestIsDone = !hasBody
    isRepeatable = (isHead || head.method == .get || head.method == .options) && !hasBody
  }

  /// Whether the request may be sent again after bytes of it were sent, without `retry`. This is stricter than RFC 9110
  /// section 9.2.2.
  var isRepeatable = false
}
