/// What `contact.mustache` shows: the form for a phone number or an email address.
struct ContactModel: PageModel {
  static let template = PageTemplate.contact

  let heading: String
  let subtitle: String
  /// The account's own identifier; nil if a new one is requested.
  let sentTo: String?
  let asksPhone: Bool
  let asksEmail: Bool
  let action: String
  let id: String?
  let flow: String
  let returnTo: String?
  let typed: String?
  let region: String
  let callingCode: String
  let problem: String?
  let isInvalid: Bool
  let back: String
  let wait: Countdown?
  let waitLabel: String
  let confirms: String?
  /// Where the form without an identifier is posted; nil if the step cannot be skipped.
  let skip: String?
  let stressesSupport: Bool
}
