/// The operator of an action, for the audit trail.
package struct OperatorIdentity: Sendable, Equatable {
  /// The name that the operator gave, their user name on the machine, or the name of the admin token; nil if unknown.
  package let name: String?
  /// The tool that was used: `admin listener`, `moongate account`.
  package let tool: String
  /// The client address of the request; nil for an action on the machine itself.
  package let address: String?
  /// The name that the holder of an admin token gave, which is recorded beside the token's own; nil if none was given.
  package let claimedName: String?

  /// The maximum length of a name. Longer names are truncated.
  private static let longest = 100

  package init(name: String?, tool: String, address: String? = nil, claimedName: String? = nil) {
    self.name = name.map { Self.printable($0, max: Self.longest) }
    self.tool = tool
    self.address = address
    self.claimedName = claimedName.map { Self.printable($0, max: Self.longest) }
  }

  /// A text from a command line or a file without control characters, which could forge log lines.
  /// - Parameter max: the maximum number of Unicode scalars. The rest is dropped.
  static func printable(_ text: String, max: Int) -> String {
    String(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }.prefix(max).map(Character.init))
  }

  /// The fields for `AuditEvent.detail`.
  package var detail: [String: String] {
    var detail = ["by": tool]
    detail["operator"] = name
    detail["as"] = claimedName
    return detail
  }
}
