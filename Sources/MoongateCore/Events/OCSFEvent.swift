import MoongateSDK

/// An audit event in the Open Cybersecurity Schema Framework: a record of the class Authentication (3002). Fields that
/// the class does not have are in `unmapped`.
package struct OCSFEvent: Sendable {
  /// The `activity_id` of the class.
  package enum Activity: Int, Sendable {
    case logon = 1
    case logoff = 2
    case other = 99
  }

  private let event: AuditEvent
  private let service: String

  /// - Parameter service: the name of the gateway's service.
  package init(_ event: AuditEvent, service: String) {
    self.event = event
    self.service = service
  }

  package var activity: Activity {
    switch event.kind {
    case .refused, .codeVerified, .sessionStarted, .locked, .appAuthorized, .appRefused: .logon
    case .sessionEnded: .logoff
    default: .other
    }
  }

  /// The OCSF severity: 1 informational, 3 medium (for events that operators should look at first).
  private var severity: Int {
    switch event.kind {
    case .locked, .accountLocked, .accountDisabled, .generationRefused: 3
    default: 1
    }
  }

  private var isFailure: Bool {
    [.refused, .locked, .deliveryFailed, .generationRefused, .appRefused].contains(event.kind)
  }

  /// JSON on one line, without a line end.
  package var line: [UInt8] {
    var record = JSONObjectText()
    record.add("category_uid", 3)
    record.add("class_uid", 3002)
    record.add("activity_id", activity.rawValue)
    record.add("activity_name", event.kind.rawValue)
    record.add("type_uid", 3002 * 100 + activity.rawValue)
    record.add("time", event.at.milliseconds)
    record.add("severity_id", severity)
    record.add("status_id", isFailure ? 2 : 1)
    record.add("status", isFailure ? "Failure" : "Success")
    record.add("status_code", event.code)
    record.add("status_detail", event.detail["rule"] ?? event.detail["reason"])
    record.add("count", event.count)
    record.add("metadata", metadata)
    if event.account != nil || event.identifier != nil { record.add("user", user) }
    if let address = event.address { record.add("src_endpoint", endpoint(address)) }
    if let name = event.detail["operator"] {
      var actor = JSONObjectText()
      actor.add("user", object([("name", name)]))
      record.add("actor", actor)
    }
    if let session = event.detail["session"] { record.add("session", object([("uid", session)])) }
    record.add("auth_protocol", event.provider?.rawValue)
    record.add("service", object([("name", service)]))
    record.add("unmapped", unmapped)
    return record.closed
  }

  private func endpoint(_ address: String) -> JSONObjectText {
    var endpoint = object([("ip", address)])
    if let country = event.country { endpoint.add("location", object([("country", country)])) }
    if let asn = event.asn {
      var system = JSONObjectText()
      system.add("number", asn)
      endpoint.add("autonomous_system", system)
    }
    return endpoint
  }

  private var metadata: JSONObjectText {
    var metadata = JSONObjectText()
    metadata.add("version", "1.3.0")
    metadata.add("uid", event.id.text)
    metadata.add("correlation_uid", event.detail["request"])
    metadata.add("product", object([("name", "Moongate"), ("vendor_name", "Moongate")]))
    return metadata
  }

  private var user: JSONObjectText {
    var user = JSONObjectText()
    user.add("uid", event.account)
    // A keyed hash: equal for the same user, and revealing nothing else.
    user.add("uid_alt", event.identifier)
    return user
  }

  private var unmapped: JSONObjectText {
    var unmapped = JSONObjectText()
    unmapped.add("flow", event.flow)
    unmapped.add("flow_prefix", event.flowPrefix)
    for (name, value) in event.detail.sorted(by: { $0.key < $1.key }) { unmapped.add("detail.\(name)", value) }
    return unmapped
  }

  private func object(_ members: [(String, String)]) -> JSONObjectText {
    var object = JSONObjectText()
    for (name, value) in members { object.add(name, value) }
    return object
  }
}
