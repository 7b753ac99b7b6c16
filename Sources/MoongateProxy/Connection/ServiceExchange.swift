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
  /// The order in which the route's targets are tried; empty if there is only one.
  private let order: [Int]
  private var tried = 0
  /// Why no target that was tried has answered: a timeout, or the last failure.
  private(set) var failure: (cause: UpstreamFailureCause, reason: String?) = (.unreachable, nil)
  /// Whether the connection that is used, or was used last, had been used before.
  var isReused = false
  /// Whether the next attempt must not use an idle connection.
  var needsFreshConnection = false

  /// - Parameters:
  ///   - grant: the permission to ask the service.
  ///   - head: the head for the upstream.
  ///   - client: where the request comes from, if the route changes responses.
  ///   - keepsWorkerScope: whether the service may not widen the scope of a service worker.
  init(
    _ grant: AccessGrant, head: ByteBuffer, client: RequestOrigin? = nil, keepsWorkerScope: Bool, at now: NIODeadline
  ) {
    route = grant.route
    session = grant.session
    entitlements = grant.entitlements
    self.head = head
    self.client = client
    self.keepsWorkerScope = keepsWorkerScope
    order = route.targets.count > 1 ? route.takeOrder(at: now) : []
  }

  /// The target to try now; nil if all have been tried.
  var target: UpstreamTarget? {
    guard tried < route.targets.count else { return nil }
    return route.targets[order.isEmpty ? 0 : order[tried]]
  }

  /// The target did not answer.
  /// - Parameter reason: the reason, if it is known more exactly than by the cause.
  func passOver(_ cause: UpstreamFailureCause, reason: String?) {
    tried += 1
    if failure.cause != .timeout { failure = (cause, reason) }
  }

  /// The head for the target. With `host_header = "upstream"`, each has its own Host.
  func head(for target: UpstreamTarget) -> ByteBuffer {
    guard case .ofUpstream? = route.rewriting?.sentHost else { return head }
    return ServiceRewriting.head(head, for: target.upstream)
  }

  /// The response has begun, so the head is not sent again.
  func dropHead() { head = ByteBuffer() }
}
