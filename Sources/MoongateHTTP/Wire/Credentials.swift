import HTTPTypes
import MoongateCore
import MoongateProxy

/// The credentials of a request.
package struct Credentials: Sendable {
  /// The hash of the session token, from the cookie or `Authorization: Bearer`; nil without a valid token.
  package let session: TokenHash?
  /// The value of the single `moongate-flow` cookie, if it has a valid form.
  package private(set) var browser: SecretText?
  /// The device token, from the cookie or the header `Moongate-Device`. It can be any text; the core verifies it.
  let device: SecretText?
  /// The cookie with the apps that the browser's user has allowed. It can be any text; the core verifies it.
  let allowedApps: SecretText?
  /// The code of the invitation whose link the browser has opened. It can be any text; the core verifies it.
  let invitation: SecretText?
  /// Whether the request comes from a frame of another site, where it has only the cookies of frames. New cookies are
  /// such cookies too.
  let isFramed: Bool
  /// Whether a sign-in has been opened in a frame of this site's tab. The request may come from that frame, with the
  /// usual cookies if both sites are the same (RFC 6265bis section 5.2).
  let mayBeInFrame: Bool
  /// Whether the request has a cookie of the gateway, under any of its names and in any form. The request then comes
  /// from a browser, possibly without the user's intent.
  let holdsCookie: Bool
  /// The values of `Origin`.
  package let origins: [String]

  /// The hash of `browser`.
  package var browserHash: TokenHash? { browser.map { TokenHash(of: $0.reveal().utf8) } }

  /// Cookie and Bearer name different sessions, so the intended one is ambiguous.
  struct Contradiction: Error {}

  /// Assigns a browser id to a browser that opens a page of a flow without the cookie, because a native app has sent it
  /// there.
  mutating func begin(_ browser: SecretText) { self.browser = browser }

  /// - Parameter admitsFramed: whether the cookies of frames count (`FrameRequest`). The usual ones have priority.
  init(_ headers: HTTPFields, gateway: GatewaySettings, admitsFramed: Bool = false) throws(Contradiction) {
    let carried = CarriedCredentials(
      cookies: headers[values: .cookie], authorizations: headers[values: .authorization], settings: gateway,
      admitsFramed: admitsFramed)
    if carried.isContradictory { throw Contradiction() }
    let usual = GatewayCookies(gateway)
    let framed = GatewayCookies(gateway, isFramed: true)
    isFramed =
      admitsFramed && framed.isFramed && carried.values(of: usual.flow).isEmpty
      && carried.values(of: usual.session).isEmpty
      && (carried.isFramed || !carried.values(of: framed.flow).isEmpty)
    mayBeInFrame = isFramed || admitsFramed && !carried.values(of: framed.flow).isEmpty
    let names = isFramed ? framed : usual
    session = carried.token.map { TokenHash(of: $0.utf8) }
    let flows = carried.values(of: names.flow)
    browser = flows.count == 1 && CarriedCredentials.isToken(flows[0]) ? SecretText(flows[0]) : nil
    let devices =
      carried.values(of: names.device) + (HTTPField.Name("Moongate-Device").map { headers[values: $0] } ?? [])
    device = devices.count == 1 ? SecretText(devices[0]) : nil
    let apps = carried.values(of: names.apps)
    allowedApps = apps.count == 1 ? SecretText(apps[0]) : nil
    let invitations = carried.values(of: names.invitation)
    invitation = invitations.count == 1 ? SecretText(invitations[0]) : nil
    holdsCookie = carried.holdsCookie
    origins = headers[values: .origin]
  }
}
