import HTTPTypes
import MoongateCore

/// What a request brings along to say who it is from (http.md, "Sessions and cookies").
struct Credentials: Sendable {
  /// The hash of the session's token, by cookie or `Authorization: Bearer`; nil where there is none, or nothing that could be one.
  let session: TokenHash?
  /// The value of the one `moongate-flow` cookie, where it has the form of one.
  let browser: SecretText?
  /// What the device carries from sign-ins before, by cookie or the header `Moongate-Device`: any text; the core tells whether it is ours.
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

  init(_ headers: HTTPFields, cookies: GatewayCookies) throws(Contradiction) {
    let header = CookieHeader(headers[values: .cookie])
    let values = header.values(cookies.session)
    let authorizations = headers[values: .authorization]
    let bearer = authorizations.count == 1 ? Self.bearer(authorizations[0]) : nil
    guard authorizations.count <= 1, values.count != 1 || bearer == nil || bearer == values[0] else { throw Contradiction() }
    // Attack: a cookie planted by a neighbour beside ours. Two of one name are no session, whatever else is there.
    let token = values.count > 1 ? nil : bearer ?? values.first
    session = token.flatMap { isToken($0) ? TokenHash(of: $0.utf8) : nil }
    let flows = header.values(cookies.flow)
    browser = flows.count == 1 && isToken(flows[0]) ? SecretText(flows[0]) : nil
    let devices = header.values(cookies.device) + (HTTPField.Name("Moongate-Device").map { headers[values: $0] } ?? [])
    device = devices.count == 1 ? SecretText(devices[0]) : nil
    holdsCookie = header.holds(anyOf: GatewayCookies.allNames)
    origins = headers[values: .origin]
  }

  /// The token of `Bearer TOKEN`, the scheme in any case (RFC 9110 section 11.1); nil for other schemes.
  private static func bearer(_ value: String) -> String? {
    let parts = value.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return parts[1].trimmingPrefix { $0 == " " }.description
  }
}
