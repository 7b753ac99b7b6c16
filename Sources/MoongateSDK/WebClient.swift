/// Reaches other sites for a provider: bounded in time and size, certificates verified, redirects not followed.
public protocol WebClient: Sendable {
  /// Sends a request and reads the whole answer.
  /// - Throws: where there is no answer within five seconds, or it is larger than a mebibyte.
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer
}

/// A request to another site.
public struct WebRequest: Sendable {
  /// `GET` or `POST`.
  public let method: String
  /// Absolute, http or https.
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

/// What another site answered.
public struct WebAnswer: Sendable {
  public let status: Int
  /// Names in lower case.
  public let headers: [(name: String, value: String)]
  public let body: [UInt8]

  public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8]) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The first header of the name.
  /// - Parameter name: in lower case.
  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// Another site could not be asked.
public struct WebFault: Error, Sendable, Equatable {
  /// For the operator's log: which site and why, without its query or body.
  public let reason: String

  public init(reason: String) { self.reason = reason }
}
