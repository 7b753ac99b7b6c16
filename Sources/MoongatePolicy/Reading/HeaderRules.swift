import MoongateCore

/// Which headers a route may set, and to which values.
enum HeaderRules {
  /// Headers of the connection and of the message itself, or that the gateway writes for each request.
  private static let framing: [StaticString] = HopByHopHeaders.names + ["content-length", "host", "cookie", "expect"]

  /// What clients state about the request itself, folded (`ReservedHeaders.folded`). A name of `identity` is removed
  /// from all requests.
  private static let ofClients: [StaticString] = [
    "authorization", "range", "origin", "referer", "user-agent", "via", "date", "cache-control", "pragma", "from",
    "max-forwards", "priority", "depth", "destination", "last-event-id", "x-csrf-token", "x-requested-with",
    "traceparent", "tracestate",
  ]
  private static let prefixesOfClients: [StaticString] = ["accept", "content-", "if-", "sec-", "access-control-"]

  /// Reserved names that may state who the user is. Other reserved ones state something about the request or the
  /// client.
  private static let identifying: [StaticString] = ["remote-", "x-webauth-", "x-remote-user", "x-forwarded-"]
  private static let forwarding: Set<String> = [
    "by", "client-ip", "for", "host", "method", "path", "port", "prefix", "proto", "protocol", "scheme", "server",
    "ssl",
    "uri", "url",
  ]

  /// Whether the text is a token (RFC 9110 section 5.6.2) of at most 100 characters.
  static func isName(_ text: String) -> Bool { text.wholeMatch(of: /[A-Za-z0-9!#$%&'*+.^_`|~\-]{1,100}/) != nil }

  /// The message for a value that `isValue` refuses.
  static let valueRule = "must be printable ASCII without space at its ends"

  static func isValue(_ text: String) -> Bool {
    text.utf8.allSatisfy { (32...126).contains($0) } && text.utf8.first != 32 && text.utf8.last != 32
  }

  /// Whether `headers` must not set the request header.
  static func isReserved(_ name: String) -> Bool { ReservedHeaders.contains(name) || isFraming(name) }

  private static func isFraming(_ name: String) -> Bool { framing.contains { ReservedHeaders.equal($0, name) } }

  /// Why a header cannot state who the user is; nil if it can.
  static func problem(ofIdentity name: String) -> String? {
    let example = "choose a name such as \"X-User\""
    guard isName(name) else { return "\"\(name)\" is not a valid header name; \(example)" }
    let folded = ReservedHeaders.folded(name)
    // Attack: a value that a user can choose, such as a name, decides where a message ends (RFC 9112 section 6).
    if isFraming(name) { return "`\(name)` belongs to the connection or to the framing of messages; \(example)" }
    if ofClients.contains(where: { $0.description == folded })
      || prefixesOfClients.contains(where: { folded.hasPrefix($0.description) })
    {
      return "`\(name)` is removed from all requests if it states who the user is, but clients need it; \(example)"
    }
    guard ReservedHeaders.contains(name) else { return nil }
    let isForwarding = folded.hasPrefix("x-forwarded-") && forwarding.contains(String(folded.dropFirst(12)))
    if !isForwarding, identifying.contains(where: { folded.hasPrefix($0.description) }) { return nil }
    return "the gateway itself uses `\(name)` for something else; \(example)"
  }

  /// Why `response_headers` cannot set or remove the header; nil if it can.
  /// - Parameter isSet: false if it is removed.
  static func problem(ofResponse name: String, isSet: Bool) -> String? {
    let folded = ReservedHeaders.folded(name)
    if HopByHopHeaders.names.contains(where: { $0.description == folded }) || folded == "content-length"
      || folded.hasPrefix("x-moongate-")
    {
      return "the gateway itself sets or removes this header"
    }
    if ["content-encoding", "content-range"].contains(folded) { return "describes the body, which stays as it is" }
    guard isSet else { return nil }
    switch folded {
    case "date": return "is the time of the response, which only the service knows"
    case "set-cookie": return "would replace all cookies of the service: let the service set them"
    case "service-worker-allowed": return "write `service_worker = true` instead"
    default: return nil
    }
  }
}
