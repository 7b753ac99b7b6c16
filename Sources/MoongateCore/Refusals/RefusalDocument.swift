import MoongateSDK

/// The representation of a refusal for a client: `application/problem+json` (RFC 9457).
extension Refusal {
  package static let mediaType = "application/problem+json"

  /// The value of `Retry-After` in seconds (RFC 9110 section 10.2.3); nil if the refusal names no time.
  package var retryAfterSeconds: Int? { retryAfter.map(\.retryAfterSeconds) }

  /// The document in UTF-8, ending with a line feed.
  /// - Parameter more: additional text members.
  package func document(with more: KeyValuePairs<String, String> = [:]) -> [UInt8] {
    var object = JSONObjectText()
    object.add("type", "urn:moongate:problem:\(code.name)")
    object.add("title", code.title)
    object.add("status", code.status)
    object.add("detail", sentence)
    object.add("code", code.name)
    object.add("decision_id", decision.text)
    object.add("attempts_left", attemptsLeft)
    object.add("retry_after", retryAfterSeconds)
    object.add("resend_at", resendAt?.text)
    object.add("field", field)
    object.add("provider", provider?.rawValue)
    object.add("flow", flow)
    // A single group is written as a text, several as a list.
    if let groups {
      if groups.anyOf.count == 1 {
        object.add("group", groups.anyOf[0].rawValue)
      } else {
        object.add("group", groups.anyOf.map(\.rawValue))
      }
    }
    object.add("reason", deliveryReason?.reason.rawValue ?? invitationProblem?.rawValue)
    object.add("permanent", deliveryReason?.isPermanent)
    for member in more { object.add(member.key, member.value) }
    return object.closed + [UInt8(ascii: "\n")]
  }
}
