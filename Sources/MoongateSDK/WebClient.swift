/// Sends HTTP requests for a provider, with limits on time and size. Verifies certificates and does not follow
/// redirects.
public protocol WebClient: Sendable {
  /// Sends a request and reads the whole response.
  /// - Throws: if no response arrives within five seconds, or if it is larger than 1 MiB.
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer
}

/// A request to another site.
public struct WebRequest: Sendable {
  /// `GET` or `POST`.
  public let method: String
  /// An absolute http or https URL.
  public let url: String
  public let headers: [(name: String, value: String)]
  public let body: [UInt8]

  public init(method: String = "GET", url: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// The response of another site.
public struct WebAnswer: Sendable {
  public let status: Int
  /// Names are in lower case.
  public let headers: [(name: String, value: String)]
  public let body: [UInt8]

  public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8]) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The first header with the name.
  /// - Parameter name: in lower case.
  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// A failed request to another site.
public struct WebFault: Error, Sendable, Equatable {
  /// For the operator's log: which site and why, without its query or body.
  public let reason: String

  public init(reason: String) { self.reason = reason }
}
