/// A person who is signed in and may not have what they asked for.
package struct RefusedVisitor: Sendable {
  package let account: Account
  /// The absolute address that they asked for; nil where nothing leads back to it, as to what a form was sent to.
  package let address: String?

  package init(account: Account, address: String?) {
    self.account = account
    self.address = address
  }
}
