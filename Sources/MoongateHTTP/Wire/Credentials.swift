import HTTPTypes
import MoongateCore
import MoongateProxy

/// What a request brings along to say who it is from (http.md, "Sessions and cookies").
struct Credentials: Sendable {
  /// The hash of the session's token, by cookie or `Authorization: Bearer`; nil where there is none, or nothing that
  /// could be one.
  let session: TokenHash?
  /// The value of the one `moongate-flow` cookie, where it has the form of one.
  private(set) var browser: SecretText?
  /// What the device carries from sign-ins before, by cookie or the header `Moongate-Device`: any text; the core tells
  /// whether it is ours.
  let device: SecretText?
  /// Whether a cookie of ours is there, under any of its names and of any shape: then the browser sent the request, and
  /// maybe not because its owner asked for it.
  let holdsCookie: Bool
  /// The values of `Origin`.
  let origins: [String]

  /// The hash of `browser`.
  var browserHash: TokenHash? { browser.map { TokenHash(of: $0.reveal().utf8) } }

  /// Cookie and Bearer that differ: nobody can say which of the two was meant.
  struct Contradiction: Error {}

  /// A browser that opens a page of a flow without the cookie: a native app has sent it there. It is known from now on.
  mutating func begin(_ browser: SecretText) { self.browser = browser }

  init(_ headers: HTTPFields, gateway: GatewaySettings) throws(Contradiction) {
    let carried = CarriedCredentials(
      cookies: headers[values: .cookie], authorizations: headers[values: .authorization], settings: gateway)
    if carried.isContradictory { throw Contradiction() }
    let names = GatewayCookies(gateway)
    session = carried.token.map { TokenHash(of: $0.utf8) }
    let flows = carried.values(of: names.flow)
    browser = flows.count == 1 && CarriedCredentials.isToken(flows[0]) ? SecretText(flows[0]) : nil
    let devices =
      carried.values(of: names.device) + (HTTPField.Name("Moongate-Device").map { headers[values: $0] } ?? [])
    device = devices.count == 1 ? SecretText(devices[0]) : nil
    holdsCookie = carried.holdsCookie
    origins = headers[values: .origin]
  }
}
