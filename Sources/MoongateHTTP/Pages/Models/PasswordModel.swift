/// What `password.mustache` shows: the password of a known user, and other sites that prove who it is.
struct PasswordModel: PageModel {
  static let template = PageTemplate.password
  static let isForFrames = true

  let heading: String
  let subtitle: String
  let label: String
  let button: String
  let autocomplete: String
  let asksPassword: Bool
  /// The provider that asks for the password.
  let provider: String?
  let sites: [SiteButton]
  let hasSites: Bool
  let isNew: Bool
  let id: String?
  let flow: String?
  let returnTo: String?
  /// The target for users who cancel; nil if the flow has already begun.
  let back: String?
  let problem: String?
  /// The time until the next attempt.
  let wait: Countdown?
  let stressesSupport: Bool
}
