import HTTPTypes
import Hummingbird
import MoongateCore

/// An endpoint of the gateway.
package struct Endpoint: Sendable {
  /// The format of refusals and the required Origin.
  package enum Kind: Sendable {
    /// JSON. Unsafe methods need the gateway's Origin if the request has a cookie of the gateway.
    case call
    /// HTML. Forms always need the gateway's Origin: even without a cookie, another site could sign a user in to a
    /// foreign account.
    case page
    /// A request from another site or its servers, which has a foreign Origin. Cookies and tokens in it are ignored.
    case inbound
    /// Static content, served without authentication.
    case asset
  }

  let kind: Kind
  let method: HTTPRequest.Method
  /// The path segments. `{}` matches any segment that is not empty.
  let path: [Substring]
  /// Whether a slash at the end of the path is accepted.
  let toleratesSlash: Bool
  /// Whether hosts of further root domains (`domains`) serve it. Other endpoints are served only at `public_url`.
  let servesAllDomains: Bool
  /// The description for `openapi.json`; nil if the endpoint does not belong to the API.
  let operation: Operation?
  /// Whether the cookies of frames count, and pages may be shown in frames (`Exchange.frames`).
  private(set) var isInFrames = false
  private(set) var handle: Handler

  /// Answers a request.
  package typealias Handler = @Sendable (Exchange) async throws(Refusal) -> Response

  /// An address of a page, an asset or another site's requests, which `openapi.json` does not describe.
  package init(
    _ kind: Kind, _ method: HTTPRequest.Method, _ path: String, servesAllDomains: Bool = false,
    handle: @escaping Handler
  ) {
    self.init(
      kind, method, path, nil, toleratesSlash: false, servesAllDomains: servesAllDomains || kind == .asset,
      handle: handle)
  }

  /// A call of the API, at the address of its operation.
  package init(
    _ kind: Kind, _ operation: Operation, toleratesSlash: Bool = false, servesAllDomains: Bool = false,
    handle: @escaping Handler
  ) {
    self.init(
      kind, operation.method, operation.path, operation, toleratesSlash: toleratesSlash,
      servesAllDomains: servesAllDomains, handle: handle)
  }

  /// The same endpoint for frames of other sites as well: one of a sign-in, with no access to the account.
  var inFrames: Endpoint {
    var endpoint = self
    endpoint.isInFrames = true
    return endpoint
  }

  /// The endpoint with something around its handler.
  package func wrapped(
    _ outer: @escaping @Sendable (Exchange, Handler) async throws(Refusal) -> Response
  ) -> Endpoint {
    var endpoint = self
    endpoint.handle = { [handle] exchange throws(Refusal) in try await outer(exchange, handle) }
    return endpoint
  }

  /// More than five parameters: one for each field.
  private init(
    _ kind: Kind, _ method: HTTPRequest.Method, _ path: String, _ operation: Operation?, toleratesSlash: Bool,
    servesAllDomains: Bool, handle: @escaping Handler
  ) {
    self.kind = kind
    self.method = method
    self.path = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
      $0.hasPrefix("{") ? "{}" : $0
    }
    self.toleratesSlash = toleratesSlash
    self.operation = operation
    self.servesAllDomains = servesAllDomains
    self.handle = handle
  }
}

/// All endpoints of the gateway. Paths are compared byte by byte, without normalization.
///
/// Hummingbird's router is not used, because it treats `/auth//login/` as `/auth/login`, and answers a wrong method
/// like an unknown path.
struct EndpointTable: Sendable {
  enum Match: Sendable {
    case found(Endpoint, parameters: [String])
    /// The path exists, but not for this method: the allowed methods for `Allow` (RFC 9110, section 10.2.1).
    case wrongMethod(allowed: [String])
    case nothing
  }

  private let endpoints: [Int: [Endpoint]]

  init(_ endpoints: [Endpoint]) { self.endpoints = Dictionary(grouping: endpoints, by: \.path.count) }

  /// Calls of the API without a description for `openapi.json`. A test asserts that this is empty.
  var undescribed: [String] {
    endpoints.values.flatMap { $0 }.filter { $0.operation == nil && $0.path.starts(with: ["api", "auth"]) }.map {
      "\($0.method.rawValue) /\($0.path.joined(separator: "/"))"
    }
  }

  /// - Parameter path: the path as received, without the query. HEAD is handled like GET.
  func find(_ method: HTTPRequest.Method, _ path: Substring) -> Match {
    guard path.utf8.first == UInt8(ascii: "/") else { return .nothing }
    var segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var candidates = (endpoints[segments.count] ?? []).filter { $0.matches(segments) }
    if candidates.isEmpty, segments.count > 1, segments.last == "" {
      segments.removeLast()
      candidates = (endpoints[segments.count] ?? []).filter { $0.toleratesSlash && $0.matches(segments) }
    }
    guard !candidates.isEmpty else { return .nothing }
    // An exact path has priority over one with a parameter.
    let exact = candidates.filter { $0.path == segments }
    if !exact.isEmpty { candidates = exact }
    if let endpoint = candidates.first(where: { $0.method == method || ($0.method == .get && method == .head) }) {
      return .found(endpoint, parameters: zip(endpoint.path, segments).filter { $0.0 == "{}" }.map { String($0.1) })
    }
    let methods = Set(candidates.map(\.method.rawValue))
    return .wrongMethod(allowed: (methods.contains("GET") ? methods.union(["HEAD"]) : methods).sorted())
  }
}

extension Endpoint {
  fileprivate func matches(_ segments: [Substring]) -> Bool {
    // From the end, because most paths begin alike.
    zip(path.reversed(), segments.reversed()).allSatisfy { pattern, segment in
      pattern == "{}" ? !segment.isEmpty : pattern == segment
    }
  }
}
