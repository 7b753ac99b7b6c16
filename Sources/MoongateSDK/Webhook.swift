/// A provider that a vendor's servers call, such as for delivery receipts or push approvals. Its descriptor sets
/// `receivesWebhooks`, and the vendor calls `POST /auth/hook/NAME`.
///
/// Anyone can send a request there. First verify the vendor's signature over the raw body, and refuse a delivery that
/// was processed before. A webhook has no flow and no session: write its content to `tools.store` under a random handle
/// that `begin` generated and gave to the vendor, and read it there in the next poll of the step.
public protocol WebhookReceiver: Provider {
  /// Handles a request. The gateway limits the number of requests, by client address and in total, before it calls
  /// this.
  /// - Throws: if the request cannot be handled now. The vendor gets 503 and retries.
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer
}

/// A request from a vendor.
public struct WebhookRequest: Sendable {
  /// Names are in lower case. Cookies are removed, and so are headers that only the
  /// gateway may send to a service, such as `X-Forwarded-For`.
  public let headers: [(name: String, value: String)]
  /// The raw body of at most 65,536 bytes. Signatures are computed over these bytes.
  public let body: [UInt8]
  /// The client's address.
  public let remote: String

  public init(headers: [(name: String, value: String)], body: [UInt8], remote: String) {
    self.headers = headers
    self.body = body
    self.remote = remote
  }

  /// The only header with the name; nil if it is missing or repeated.
  /// - Parameter name: in lower case.
  public func header(_ name: String) -> String? {
    let values = headers.filter { $0.name == name }
    return values.count == 1 ? values[0].value : nil
  }
}

/// The response to a vendor.
public enum WebhookAnswer: Sendable, Equatable {
  /// Why a request is refused.
  public enum Refusal: String, Sendable, CaseIterable {
    /// 401: its signature is missing or wrong.
    case unauthenticated
    /// 400: it is malformed.
    case malformed
    /// 413: it is too large.
    case tooLarge = "too_large"
  }

  /// 204, or 200 with a plain text of at most 4,096 bytes, such as the challenge of a vendor's handshake.
  case accepted(text: String? = nil)
  case refused(Refusal)
}
