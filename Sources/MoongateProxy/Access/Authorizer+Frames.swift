import MoongateCore
import NIOCore

/// The session cookie of frames (`Route.frames`).
extension Authorizer {
  /// Lets the session cookie of a frame count, if the route may be shown in frames, and no page of another site sent
  /// the request. Otherwise the request continues as if the browser had not sent the cookie, as with `SameSite=Lax`.
  ///
  /// Attack: a site that may show one service in a frame shows another one, which no rule protects from being framed,
  /// or sends requests to it. The cookie has no meaning on routes without `frames`.
  /// - Returns: the refusal of a request that does more than read.
  func useFramedCookie(
    _ credentials: inout Credentials, of request: AccessRequest, on route: RoutePlan
  ) -> RequestRefusal? {
    guard !route.rule.frames.isEmpty else { return nil }
    let isReading = request.isSafe && !request.head.wantsUpgrade
    if request.head.frameRequest.admitsCookies(isReading: isReading, hasOwnOrigin: request.hasRightOrigin(plan)) {
      credentials.useFramedCookie(request.head.bytes.readableBytesUInt8Span)
      return nil
    }
    guard !isReading, !route.rule.isOpen else { return nil }
    return RequestRefusal(
      .originRefused,
      reason:
        "no page of the service sent the request with a frame's session: its Origin is another one, or null (Referrer-Policy: no-referrer)"
    )
  }
}
