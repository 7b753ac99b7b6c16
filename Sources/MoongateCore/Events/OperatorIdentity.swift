/// Who acts on the gateway from outside it, for the audit trail.
package struct OperatorIdentity: Sendable, Equatable {
  /// The name that the operator gave, or has on the machine, or that the token of the admin listener has; nil: none is
  /// known.
  package let name: String?
  /// By what: `admin listener`, `moongate account`.
  package let tool: String
  /// The address that the request came from; nil: the machine itself.
  package let address: String?

  /// Longer names are cut.
  private static let longest = 100

  package init(name: String?, tool: String, address: String? = nil) {
    // A name comes from a command line or a file: no line of a log may be forged by it.
    self.name = name.map {
      String($0.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }.prefix(Self.longest).map(Character.init))
    }
    self.tool = tool
    self.address = address
  }

  /// For `AuditEvent.detail`.
  package var detail: [String: String] {
    var detail = ["by": tool]
    detail["operator"] = name
    return detail
  }
}
