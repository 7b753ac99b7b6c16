import Foundation
import MoongateSDK

/// `hook`: a request of a vendor's server (webhook).
struct HookCall: Encodable {
  /// By lower-case name. Several fields of one name are joined with commas.
  let headers: [String: String]
  /// The raw body if it is UTF-8.
  let body: String?
  /// The raw body in base64 otherwise.
  let bodyBase64: String?
  let remote: String
  let now: Int64

  enum CodingKeys: String, CodingKey {
    case headers, body, remote, now
    case bodyBase64 = "body_base64"
  }

  init(_ webhook: WebhookRequest, now: Int64) {
    headers = Dictionary(webhook.headers.map { ($0.name, $0.value) }) { "\($0), \($1)" }
    body = String(validating: webhook.body, as: UTF8.self)
    bodyBase64 = body == nil ? Data(webhook.body).base64EncodedString() : nil
    remote = webhook.remote
    self.now = now
  }
}

/// The answer to `hook`, with exactly one of these members.
struct HookReply: Decodable {
  struct Accepted: Decodable {
    let text: String?
  }

  let answer: WebhookAnswer

  private enum Keys: String, CodingKey { case accepted, refused }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    let refused = try container.decodeIfPresent(String.self, forKey: .refused)
    let accepted = try container.decodeIfPresent(Accepted.self, forKey: .accepted)
    switch (accepted, refused.map(WebhookAnswer.Refusal.init(rawValue:))) {
    case (let accepted?, nil): answer = .accepted(text: accepted.text)
    case (nil, .some(let refusal?)): answer = .refused(refusal)
    default:
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath,
          debugDescription: "exactly one of accepted and refused, which is unauthenticated, malformed or too_large"))
    }
  }
}
