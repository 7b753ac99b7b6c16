import HTTPTypes
import Hummingbird
import MoongateCore

/// Pages of a sign-in in frames of other sites (`Route.frames`).
///
/// Attack: clickjacking. A page in a frame cannot tell what lies over it. Therefore only the pages on the way to a
/// route with `frames` may be shown, and only to the sites of that route. The flow's record decides, or before there is
/// a flow, the return address, which must lead to the route. Pages that change an account are never shown.
extension Exchange {
  /// The origins of the sites that may show the page that answers the request in a frame.
  var frames: [String] {
    guard isInFrames, generation.routes.hasFrames else { return [] }
    let flow = shown.flow
    let purpose = flow?.purpose ?? shown.named.map { generation.purpose(of: $0) } ?? .signIn
    guard purpose.isForFrames,
      let target = Self.target(behind: targets.accept(flow == nil ? shown.returnTo : flow?.returnTo))
    else { return [] }
    return generation.routes.frames(at: target, host: client.host?.name ?? gateway.publicURL.host)
  }

  /// How a refusal of the request is shown in a frame; nil if no site may show it.
  var framedRefusal: FramedRefusal? {
    guard isInFrames else { return nil }
    // A flow that has ended no longer says where it led. The refusal has no form, and says the same to everybody.
    let sites = frames.isEmpty && credentials.isFramed ? generation.routes.allFrames : frames
    guard !sites.isEmpty else { return nil }
    return FramedRefusal(sites: sites, isInFrame: credentials.isFramed, returnTo: targets.accept(shown.returnTo))
  }

  /// The `Set-Cookie` values by which a frame is identified for its flows, in addition to the usual one.
  ///
  /// Browsers refuse the usual cookie in a frame of another site, where `SameSite=Lax` does not allow it, and keep this
  /// one. Everywhere else, they send both, and the usual one counts.
  func identifyFrame(_ browser: SecretText) -> [String] {
    guard !credentials.isFramed, !request.frameRequest.isTopLevel, !frames.isEmpty else { return [] }
    let cookies = GatewayCookies(gateway, at: client.host?.name, isFramed: true)
    return cookies.isFramed ? [cookies.begin(browser)] : []
  }

  /// Where a sign-in continues that may be in a frame. In a frame of another site, that is where it leads: the page for
  /// new users, for example, knows no session there unless its route has `frames` as well.
  func nextInFrame(_ next: String, _ returnTo: String?) -> String {
    let host = client.host?.name ?? gateway.publicURL.host
    guard credentials.isFramed, generation.routes.frames(at: next, host: host).isEmpty else { return next }
    return returnTo ?? next
  }

  /// The final target of the user: the address of a service. Pages of the gateway on the way, such as one that sets up
  /// a required factor, have it in their own `return_to`.
  static func target(behind returnTo: String?) -> String? {
    var target = returnTo
    for _ in 0..<3 {
      guard let address = target, address.hasPrefix("/auth/") else { return target }
      target = FormFields(address.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst())?["return_to"]
    }
    return nil
  }
}

/// A refusal on the way to a route with `frames`.
package struct FramedRefusal: Sendable {
  /// The origins of the sites that may show it.
  let sites: [String]
  /// Whether the request comes from a frame of another site.
  let isInFrame: Bool
  /// Where the sign-in led; nil: unknown.
  let returnTo: String?
}

extension FlowPurpose {
  /// Whether its pages may be shown in frames, and a session of a frame can begin it: it proves something, and changes
  /// nothing that only the owner of an account may change.
  var isForFrames: Bool {
    switch self {
    case .signIn, .register, .stepUp, .verify, .factor(_, .unlock), .factor(_, .recover): true
    case .change, .join, .factor(_, .set), .factor(_, .change), .factor(_, .disable), .factor(_, .reset): false
    }
  }
}

extension Request {
  /// Which page the request comes from, for the cookies of frames.
  var frameRequest: FrameRequest {
    var found = FrameRequest()
    for field in headers {
      let (name, value) = (Array(field.name.rawName.utf8), Array(field.value.utf8))
      found.read(name.span, value.span)
    }
    return found
  }

  /// Whether the cookies of a frame count for the request: a page of one of the origins sent it, or a browser opens a
  /// page with it.
  func admitsFramedCookies(from origins: [String?]) -> Bool {
    let named = headers[values: .origin]
    return frameRequest.admitsCookies(
      isReading: [.get, .head, .options].contains(method), hasOwnOrigin: named.count == 1 && origins.contains(named[0]))
  }
}
