import MoongateCore
import NIOCore

/// What a service learns about one user by headers.
struct IdentityHeaders {
  /// In the order of the statements; empty if a value is unknown.
  let values: [(name: String, value: String)]
  /// The header line of HTTP Basic, for services that know nothing else; empty for others.
  let authorization: [UInt8]

  /// The headers of an anonymous request: none.
  init() {
    values = []
    authorization = []
  }

  /// - Parameter identity: what the service of the route expects.
  init(_ identity: ServiceIdentity, of account: Account, _ entitlements: Entitlements) {
    values = ServiceIdentity.Statement.allCases.map { statement in
      let header =
        identity.headers[statement]
        ?? ServiceIdentity.Header(name: statement.usualHeader, value: IdentityTemplate(usual: statement))
      let text = header.value.text(of: account, entitlements) ?? ""
      return (header.name, identity.encoding.value(of: text))
    }
    let basic = identity.basic?.value(for: account, entitlements)
    authorization = basic.map { Array("Authorization: \($0)\r\n".utf8) } ?? []
  }

  /// The headers with a value, as header lines.
  var lines: [UInt8] { values.flatMap { name, value in value.isEmpty ? [] : Array("\(name): \(value)\r\n".utf8) } }

  /// The forward-auth "allow" response: a complete head with its empty line.
  ///
  /// Attack: a proxy that only replaces headers which the answer has passes on a client's `X-User` on a route that does
  /// not state one. Therefore the answer has the headers of all routes, empty if the route states nothing by them.
  /// - Parameters:
  ///   - names: the identity headers of all routes, in their order.
  ///   - assertion: the header line of the signed assertion.
  ///   - more: header lines of every response.
  func forwardAnswer(_ names: [String], assertion: [UInt8], _ more: [UInt8]) -> ByteBuffer {
    let known = Dictionary(values.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
    var out = ByteBuffer()
    out.writeStaticString("HTTP/1.1 200 OK\r\n")
    for name in names { out.writeString("\(name): \(known[name.lowercased()] ?? "")\r\n") }
    out.writeBytes(assertion)
    out.writeBytes(more)
    // Without a length, the response would be chunked, and the proxies would not reuse the connection.
    out.writeStaticString("Cache-Control: no-store\r\nContent-Length: 0\r\n\r\n")
    return out
  }
}

/// What a route says about identity, prepared for one event loop.
final class RouteIdentity {
  /// The credential that the gateway states in Authorization.
  enum Credential {
    /// None: the client's own Authorization is for the service.
    case none
    /// `identity.basic`.
    case basic
    /// `bearer`: an access token of this app.
    indirect case bearer(App)
  }

  /// Equal for all routes with the usual headers, and different for any other.
  let index: Int
  let settings: ServiceIdentity
  let credential: Credential

  /// The index of the usual headers.
  static let usual = 0

  convenience init() { self.init(ServiceIdentity(), bearer: nil, index: Self.usual) }

  /// - Parameters:
  ///   - bearer: the app of `bearer`.
  ///   - index: unique in the generation, and not 0.
  init(_ settings: ServiceIdentity, bearer: App?, index: Int) {
    self.settings = settings
    self.index = settings.isUsual ? Self.usual : index
    credential = settings.basic != nil ? .basic : bearer.map { .bearer($0) } ?? .none
  }

  /// Whether the client's Authorization is not for the service.
  ///
  /// Attack: an anonymous client guesses the password by which a service with `identity.basic` believes the gateway. A
  /// service with `bearer` believes only signed tokens, so it may get those of clients without a session.
  /// - Parameter isSignedIn: whether the request has a session or an access token of the gateway.
  func dropsAuthorization(isSignedIn: Bool) -> Bool {
    switch credential {
    case .none: false
    case .basic: true
    case .bearer: isSignedIn
    }
  }
}
