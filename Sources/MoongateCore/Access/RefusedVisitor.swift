/// A signed-in user who was refused access to a page.
package struct RefusedVisitor: Sendable {
  package let account: Account
  /// The absolute address of the request; nil if the user cannot be sent back to it, such as the target of a form.
  package let address: String?

  package init(account: Account, address: String?) {
    self.account = account
    self.address = address
  }
}
