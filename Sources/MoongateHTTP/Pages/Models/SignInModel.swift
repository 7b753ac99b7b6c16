/// What `login.mustache` shows: the pages that sign in and register.
struct SignInModel: PageModel {
  static let template = PageTemplate.login
  static let isForFrames = true

  struct Link: Decodable {
    let label: String
    let address: String
    var question: String?
  }

  let heading: String
  let subtitle: String
  let action: String
  let isLogin: Bool
  let isPhone: Bool
  let isEmail: Bool
  let isAddress: Bool
  let way: String
  let id: String?
  let flow: String?
  let returnTo: String?
  let phone: String?
  let region: String
  let callingCode: String
  let email: String?
  let firstName: String?
  let lastName: String?
  /// Whether the page offers to keep the user signed in.
  let offersRemember: Bool
  let isRemembered: Bool
  let hasNames: Bool
  let identifierLabel: String
  /// Whether the field also takes a user name.
  let takesName: Bool
  let code: String?
  let problem: String?
  let isCalm: Bool
  let phoneIsInvalid: Bool
  let emailIsInvalid: Bool
  let passwordIsInvalid: Bool
  let wait: Countdown?
  let waitLabel: String
  let button: String
  /// The other sites that are offered.
  let sites: [SiteButton]
  let hasSites: Bool
  /// The ceremonies that identify the account.
  let ceremonies: [SignInCeremony]
  /// Whether there is a ceremony, before or after the form.
  let hasCeremonies: Bool
  /// Whether this device has signed in by the form last.
  let isLast: Bool
  /// The site or the ceremony by which it has, which comes before the form.
  let lastSites: [SiteButton]
  let lastCeremonies: [SignInCeremony]
  let ways: [Link]
  /// Links to other sign-in methods, to which scripts carry over the input.
  let forms: [Link]
  /// The link to the password reset; nil if it is not offered.
  let forgotten: String?
  /// The link to the other page, if the user needs it.
  let offer: Link?
  let other: Link?
  let isArrival: Bool
  let stressesSupport: Bool
}

/// A WebAuthn ceremony on the sign-in page: a button, and the browser's suggestions in the identifier field.
struct SignInCeremony: Decodable {
  let flow: String
  let provider: String
  let label: String
  let returnTo: String?
  /// Messages, as on the page of its step.
  let cancelled: String
  let failed: String
  /// Whether this device has signed in by it last.
  var isLast = false
}
