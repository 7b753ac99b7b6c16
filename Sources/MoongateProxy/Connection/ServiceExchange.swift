import MoongateCore
import NIOCore

/// The session on which a tunnel or an event stream depends.
struct BoundSession {
  var session: CachedSession
  /// Whether the session may have ended, and the store has not been asked since.
  var isDoubted: Bool
  var isBeingChecked = false
}

/// The part of an exchange that exists only while a service is asked: the targets of the route, and what the request
/// tells them.
final class ServiceExchange {
  let route: RoutePlan
  let session: CachedSession?
  /// The entitlements that the service receives with the request.
  let entitlements: Entitlements
  /// Whether the service may not widen the scope of a service worker (`AnswerRewriter`).
  let keepsWorkerScope: Bool
  /// The head for the upstream, kept while it might have to be sent again.
  private var head: ByteBuffer
  /// The client's view of the request, if the route changes responses.
  let client: RequestOrigin?
  /// The connection that is used; nil before one is open, and after it has ended.
  var upstream: UpstreamConnection?
  /// Set for a tunnel and for an event stream.
  var boundSession: BoundSession?
  /// The maximum number of bytes of a sent body that are kept.
  private static let maxKeptBody = 64 * 1024

  private var attempts = UpstreamAttempts()
  /// Whether the method allows `retry`.
  private var isIdempotent = false
  /// The body as far as it was sent, in case that it is sent again; nil if it is not kept, or not all of it.
  private(set) var sentBody: ByteBuffer?
  /// Why no target that was tried has answered: a timeout, or the last failure.
  private(set) var failure: (cause: UpstreamFailureCause, reason: String?) = (.unreachable, nil)
  /// Whether the connection that is used, or was used last, had been used before.
  var isReused = false
  /// How often the same upstream may still get a request that it has not handled.
  private var repeatsLeft = 3
  /// Whether the next attempt must not use an idle connection.
  var needsFreshConnection = false

  /// - Parameters:
  ///   - grant: the permission to ask the service.
  ///   - head: the head for the upstream.
  ///   - client: where the request comes from, if the route changes responses.
  ///   - keepsWorkerScope: whether the service may not widen the scope of a service worker.
  init(_ grant: AccessGrant, head: ByteBuffer, client: RequestOrigin? = nil, keepsWorkerScope: Bool) {
    route = grant.route
    session = grant.session
    entitlements = grant.entitlements
    self.head = head
    self.client = client
    self.keepsWorkerScope = keepsWorkerScope
    // Upstreams of HTTP/2 say which requests they have not handled.
    if route.usesHTTP2 { sentBody = ByteBuffer() }
  }

  /// Chooses the targets and attempts of the request, if the route has several.
  func chooseAttempts(for head: RequestHead, from address: ClientAddress, at now: NIODeadline) {
    isIdempotent = route.rule.retry != nil && head.isIdempotent
    attempts = route.attempts(
      isIdempotent: isIdempotent, for: session.map { .account($0.snapshot.account.id) } ?? .address(address), at: now)
    if isIdempotent { sentBody = ByteBuffer() }
  }

  /// The target that is tried.
  var target: UpstreamTarget { route.targets[attempts.target] }

  /// An attempt has failed.
  /// - Parameters:
  ///   - failure: the cause, and the reason if it is known more exactly.
  ///   - isUsual: whether a target that was not tried before is tried without `retry`.
  ///   - isCovered: whether `retry` names the failure.
  ///   - requestIsDone: whether the gateway has the whole body.
  func next(
    after failure: (cause: UpstreamFailureCause, reason: String?), isUsual: Bool, isCovered: Bool,
    requestIsDone: Bool, at now: NIODeadline
  ) -> UpstreamAttempts.Next {
    if self.failure.cause != .timeout { self.failure = failure }
    return attempts.next(
      isUsual: isUsual, isCovered: isCovered && canSendAgain(requestIsDone: requestIsDone), &route.retryBudget, at: now)
  }

  /// The head for the target. With `host_header = "upstream"`, each has its own Host.
  func head(for target: UpstreamTarget) -> ByteBuffer {
    guard case .ofUpstream? = route.rewriting?.sentHost else { return head }
    return ServiceRewriting.head(head, for: target.upstream)
  }

  /// Whether the method allows `retry`, and the gateway has each byte that was sent, and the rest.
  func canSendAgain(requestIsDone: Bool) -> Bool {
    isIdempotent && sentBody.map { requestIsDone || $0.readableBytes == 0 } ?? false
  }

  /// Takes one of a few attempts at the same upstream, which has not handled the request.
  /// - Returns: false if none is left.
  func takeRepeat() -> Bool {
    repeatsLeft -= 1
    return repeatsLeft >= 0
  }

  /// Keeps a part of the body that is sent.
  func keep(_ data: ByteBuffer) {
    guard var kept = sentBody else { return }
    // Without another reference, the buffer grows in place.
    sentBody = nil
    guard kept.readableBytes + data.readableBytes <= Self.maxKeptBody else { return }
    kept.writeImmutableBuffer(data)
    sentBody = kept
  }

  /// `retry` does not apply, because the client has a part of the response, or not all that was sent is kept.
  func dropBody() { sentBody = nil }

  /// The response has begun, so the request is not sent again.
  func dropHead() {
    head = ByteBuffer()
    dropBody()
  }
}
