/// The operator of an action, for the audit trail.
package struct OperatorIdentity: Sendable, Equatable {
  /// The name that the operator gave, their user name on the machine, or the name of the admin token; nil if unknown.
  package let name: String?
  /// The tool that was used: `admin listener`, `moongate account`.
  package let tool: String
  /// The client address of the request; nil for an action on the machine itself.
  package let address: String?

  /// The maximum length of a name. Longer names are truncated.
  private static let longest = 100

  package init(name: String?, tool: String, address: String? = nil) {
    // A name comes from a command line or a file, so control characters are removed: they could forge log lines.
    self.name = name.map {
      String($0.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }.prefix(Self.longest).map(Character.init))
    }
    self.tool = tool
    self.address = address
  }

  /// The fields for `AuditEvent.detail`.
  package var detail: [String: String] {
    var detail = ["by": tool]
    detail["operator"] = name
    return detail
  }
}
