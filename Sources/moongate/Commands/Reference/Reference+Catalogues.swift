import MoongateCore

/// The reference pages of metrics, events, codes and headers.
extension Reference {
  static let metrics = ReferencePage(
    file: "metrics.md", title: "Metrics",
    introduction: "The metrics of `GET /metrics` of the admin listener, in the Prometheus text format.",
    sections: [
      ReferenceSection(
        title: "All metrics", summary: "Histograms also have the label `le`.", subject: "Metric",
        entries: MetricDefinition.all.map {
          ReferenceEntry(
            name: "metric.\($0.name)",
            properties: ["type": $0.kind.rawValue, "labels": $0.labels.joined(separator: ", ")], help: $0.help)
        }, prefix: "metric.")
    ])

  static let events = ReferencePage(
    file: "events.md", title: "Events",
    introduction:
      "The kinds of events of the audit trail. [The guide](../guides/audit.md) describes how to read and forward them.",
    sections: [
      ReferenceSection(
        title: "All events",
        summary: "Each quota has its own space in the trail, so that a flood of one does not displace the others.",
        subject: "Kind",
        entries: AuditEvent.Kind.allCases.sorted { $0.rawValue < $1.rawValue }.map {
          ReferenceEntry(name: "event.\($0.rawValue)", properties: ["quota": "\($0.quota)"], help: $0.help)
        }, prefix: "event.")
    ])

  static let codes = ReferencePage(
    file: "codes.md", title: "Error codes",
    introduction:
      "The member `code` of `application/problem+json`. A policy's own `deny \"reason\"` has the status 403 and its reason as code.",
    sections: [
      ReferenceSection(
        title: "All codes", summary: "A sentence can contain more detail, for example how long to wait.",
        subject: "Code",
        entries: RefusalCode.all.filter { $0 != .versionNotSupported }.sorted { $0.name < $1.name }.map { code in
          let statuses = RefusalCode.all.filter { $0.name == code.name }.map { String($0.status) }
          return ReferenceEntry(
            name: "code.\(code.name)", properties: ["status": statuses.joined(separator: ", ")], help: code.sentence)
        }, prefix: "code."),
      ReferenceSection(
        title: "Causes",
        summary:
          "The member `cause` in the `detail` of a refusal's event, where neither the code nor a rule says why. Clients never see it.",
        subject: "Cause",
        entries: RefusalCause.allCases.sorted { $0.rawValue < $1.rawValue }.map {
          ReferenceEntry(name: "cause.\($0.rawValue)", properties: [:], help: $0.sentence)
        }, prefix: "cause."),
    ])

  static let headers = ReferencePage(
    file: "headers.md", title: "Headers",
    introduction:
      "The HTTP headers that Moongate defines. `identity` of a route gives those about the user other names.",
    sections: [
      ReferenceSection(
        title: "All headers", summary: "", subject: "Header",
        entries: HeaderDefinition.all.map {
          ReferenceEntry(name: "header.\($0.name)", properties: ["on": $0.place.rawValue], help: $0.help)
        }, prefix: "header.")
    ])
}

/// An HTTP header defined by Moongate.
struct HeaderDefinition: Sendable {
  /// The message that carries the header.
  enum Place: String, Sendable {
    case service = "requests to services"
    case forward = "forward-auth answers"
    case call = "requests to the gateway"
    case webhook = "requests to audit webhooks"
  }

  let name: String
  let place: Place
  let help: String

  static let all: [HeaderDefinition] = [
    HeaderDefinition(
      name: "Remote-User", place: .service,
      help: "The id of the account, or `token:NAME` of a service token. A value sent by a client is removed."),
    HeaderDefinition(
      name: "Remote-Email", place: .service, help: "The verified email address of the account, if it has one."),
    HeaderDefinition(
      name: "Remote-Phone", place: .service, help: "The verified phone number of the account, if it has one."),
    HeaderDefinition(
      name: "Remote-Name", place: .service, help: "The user's first and last name, if known."),
    HeaderDefinition(name: "Remote-Groups", place: .service, help: "The groups of the account, separated by commas."),
    HeaderDefinition(
      name: "X-Moongate-Assertion", place: .service,
      help:
        "A signed token (JWT, ES256) with the identity of the client. Its keys are at `/.well-known/moongate/jwks.json`."
    ),
    HeaderDefinition(
      name: "X-Moongate-Authorization", place: .forward,
      help:
        "`remove`: the proxy must not forward the client's `Authorization`, because it contains a token of the gateway."
    ),
    HeaderDefinition(
      name: "Moongate-Device", place: .call,
      help: "The device token that an app keeps from earlier sign-ins, in place of the cookie."),
    HeaderDefinition(name: "Moongate-Language", place: .call, help: "The language of the hosted page that calls."),
    HeaderDefinition(
      name: "Moongate-Page", place: .call,
      help: "The capabilities of the browser on a hosted page, sent by the page's script."
    ),
    HeaderDefinition(
      name: ForwardingProbe.header, place: .call,
      help: "The ticket of `moongate doctor`, which asks how its request arrived. It is made with the master key."),
    HeaderDefinition(
      name: "Moongate-Signature", place: .webhook,
      help: "`t=SECONDS,v1=HEX`: HMAC-SHA256 of the time, a full stop and the body, with the sink's secret."),
  ]
}
