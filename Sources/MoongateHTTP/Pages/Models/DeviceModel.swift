/// What `device.mustache` shows: the field for the code that a device shows (RFC 8628 section 3.3).
package struct DeviceModel: PageModel {
  package static let template = PageTemplate.device

  let subtitle: String
  let action: String
  /// The code that the user typed, or that the address of a device's QR code has.
  let typed: String?
  let problem: String?
  let signedInAs: String?
  /// The page where the user signs in with another account.
  let other: String?

  /// More than five parameters: one for each field.
  package init(
    subtitle: String, action: String, typed: String?, problem: String?, signedInAs: String?, other: String?
  ) {
    self.subtitle = subtitle
    self.action = action
    self.typed = typed
    self.problem = problem
    self.signedInAs = signedInAs
    self.other = other
  }
}
