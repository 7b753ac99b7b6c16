/// A provider that a vendor's servers call: delivery receipts, push approvals. Its descriptor says `receivesWebhooks`,
/// and the vendor calls `POST /auth/hook/NAME`.
///
/// Anybody can send a request there. Verify it, by the vendor's signature over the raw body, before you look at
/// anything else, and refuse a delivery that was there before. A webhook knows no flow and no session: it writes into
/// `tools.store`, under a handle that `begin` made at random and gave the vendor, and the next poll of the step reads
/// it there.
public protocol WebhookReceiver: Provider {
  /// Takes a request. The gateway limits how many arrive, by the client's address and in total, before it calls.
  /// - Throws: where it cannot be taken now. The vendor is answered 503, and tries again.
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer
}

/// A request that a vendor sent.
public struct WebhookRequest: Sendable {
  /// Names in lower case. Cookies and what proxies on the way say of the client are left out.
  public let headers: [(name: String, value: String)]
  /// As it was sent, of at most 65,536 bytes: signatures are over these bytes.
  public let body: [UInt8]
  /// The client's address.
  public let remote: String

  public init(headers: [(name: String, value: String)], body: [UInt8], remote: String) {
    self.headers = headers
    self.body = body
    self.remote = remote
  }

  /// The only header of the name; nil where there is none, or more than one.
  /// - Parameter name: in lower case.
  public func header(_ name: String) -> String? {
    let values = headers.filter { $0.name == name }
    return values.count == 1 ? values[0].value : nil
  }
}

/// What a vendor is answered.
public enum WebhookAnswer: Sendable, Equatable {
  /// Why a request is refused.
  public enum Refusal: String, Sendable, CaseIterable {
    /// 401: its signature is missing or wrong.
    case unauthenticated
    /// 400: it cannot be read.
    case malformed
    /// 413: it is longer than can be taken.
    case tooLarge = "too_large"
  }

  /// 204, or 200 with a plain text of at most 4,096 bytes, such as the challenge of a vendor's handshake.
  case accepted(text: String? = nil)
  case refused(Refusal)
}
