import HTTPTypes
import Hummingbird
import MoongateCore

/// One of the gateway's own addresses.
struct Endpoint: Sendable {
  /// How its refusals look and what is asked of who posts there.
  enum Kind: Sendable {
    /// JSON; unsafe methods need our Origin when a cookie of ours comes with them.
    case call
    /// HTML; its forms need our Origin always: without a cookie, another site could still sign a person in as somebody
    /// else.
    case page
    /// Sent by another site or its servers: it brings no Origin of ours, so the cookies and tokens that come along are
    /// not read.
    case inbound
    /// The same for everyone: nobody is asked who they are.
    case asset
  }

  let kind: Kind
  let method: HTTPRequest.Method
  /// Segments; `{}` stands for any one of them, which is not empty.
  let path: [Substring]
  /// Whether a slash at the end of the path is let through (http.md, "The seeds' own calls").
  let toleratesSlash: Bool
  /// Whether hosts of further root domains (`domains`) answer it themselves. The others are `public_url`'s alone.
  let servesAllDomains: Bool
  /// What `openapi.json` tells of it; nil where it is none of the API.
  let operation: Operation?
  let handle: @Sendable (Exchange) async throws(Refusal) -> Response

  init(
    _ kind: Kind, _ method: HTTPRequest.Method, _ path: String, _ operation: Operation? = nil,
    toleratesSlash: Bool = false,
    servesAllDomains: Bool = false, handle: @escaping @Sendable (Exchange) async throws(Refusal) -> Response
  ) {
    self.kind = kind
    self.method = method
    self.path = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    self.toleratesSlash = toleratesSlash
    self.operation = operation
    self.servesAllDomains = servesAllDomains || kind == .asset
    self.handle = handle
  }
}

/// All of the gateway's own addresses. Paths are compared byte for byte: one that is spelled otherwise is not there.
///
/// Not Hummingbird's router: to that, `/auth//login/` is `/auth/login`, and a wrong method is a path that is not there.
struct EndpointTable: Sendable {
  enum Match: Sendable {
    case found(Endpoint, parameters: [String])
    /// There is something, but not by this method: what is allowed, for `Allow` (RFC 9110 section 10.2.1).
    case wrongMethod(allowed: [String])
    case nothing
  }

  private let endpoints: [Int: [Endpoint]]

  init(_ endpoints: [Endpoint]) { self.endpoints = Dictionary(grouping: endpoints, by: \.path.count) }

  /// Calls of the API that `openapi.json` does not tell of: there are none, as a test holds.
  var undescribed: [String] {
    endpoints.values.flatMap { $0 }.filter { $0.operation == nil && $0.path.starts(with: ["api", "auth"]) }.map {
      "\($0.method.rawValue) /\($0.path.joined(separator: "/"))"
    }
  }

  /// - Parameter path: as received, without its query. HEAD goes with GET.
  func find(_ method: HTTPRequest.Method, _ path: Substring) -> Match {
    guard path.utf8.first == UInt8(ascii: "/") else { return .nothing }
    var segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var candidates = (endpoints[segments.count] ?? []).filter { $0.matches(segments) }
    if candidates.isEmpty, segments.count > 1, segments.last == "" {
      segments.removeLast()
      candidates = (endpoints[segments.count] ?? []).filter { $0.toleratesSlash && $0.matches(segments) }
    }
    guard !candidates.isEmpty else { return .nothing }
    // An address that is spelled out goes before one with a place for any name.
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
    zip(path, segments).allSatisfy { pattern, segment in pattern == "{}" ? !segment.isEmpty : pattern == segment }
  }
}
