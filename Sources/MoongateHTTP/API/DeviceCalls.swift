import MoongateCore
import MoongateSDK

/// `/api/auth/devices`: the trusted devices of the account.
struct DeviceCalls: Sendable {
  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .devices) { exchange throws(Refusal) in
        let found = try await driver.engine.trustedDevices(client: try await driver.caller(exchange)).get()
        return .json(.list(found.devices.map { .device($0, isCurrent: $0.id == found.current) }))
      },
      Endpoint(.call, .removeDevice) { exchange throws(Refusal) in
        try await driver.engine.removeDevice(exchange.parameters[0], client: try await driver.caller(exchange)).get()
        return .nothing
      },
    ]
  }
}

extension JSONValue {
  /// A trusted device (`Components.device`).
  /// - Parameter isCurrent: whether the request comes from it; nil where the list does not say it.
  static func device(_ device: TrustedDevice, isCurrent: Bool? = nil) -> JSONValue {
    let current = isCurrent.map { [JSONMember(name: "current", value: .flag($0))] } ?? []
    let members: KeyValuePairs<String, JSONValue> = [
      "id": .text(device.id), "created_at": .text(device.createdAt.text),
      "last_seen_at": .text(device.lastSeenAt.text), "user_agent": .optional(device.userAgent),
    ]
    return .object(members.map { JSONMember(name: $0.key, value: $0.value) } + current)
  }
}
