import MoongateCore
import MoongateSDK

/// The input and messages of the sign-in and registration pages.
struct SignInForm {
  var method: SignInPage.SignInMethod
  /// A flow of the operator, which a route or link names.
  var flow: String?
  var returnTo: String?
  /// The id of the flow that continues.
  var id: String?
  var phone: String?
  var region: String?
  var email: String?
  /// Whether the user has chosen to stay signed in.
  var isRemembered = false
  var firstName: String?
  var lastName: String?
  var problem: String?
  /// Whether the message is neutral, such as after a cancelled sign-in.
  var isCalm = false
  /// The refusal with which a user has returned from another site.
  var refused: String?
  /// The provider whose site has refused, if the address names it.
  var refusedBy: String?
  /// The error code, for scripts.
  var code: String?
  /// The invalid field.
  var invalid: String?
  /// The time until the next attempt.
  var wait: Countdown?
  /// Whether the wait is for another code.
  var waitsForCode = false
  /// Whether to highlight the link to the other page.
  var offersOther = false
  var stressesSupport = false
  /// Whether a signed-in user chooses a new password for the account.
  var isSignedIn = false
  /// The id of the session that began with a password that attackers know; nil: they do not.
  var exposed: String?
  /// The target of a user who does not choose a new password; nil: the page is not an offer.
  var skip: String?
  /// Whether this is the browser's first visit.
  var isArrival = false

  /// The typed phone number as the page shows it: at most its first 64 characters.
  var shownPhone: String? { phone.map { String($0.prefix(64)) } }

  /// - Parameters:
  /// - name: the refusal's name in the address.
  /// - site: the provider in the address.
  mutating func show(_ sentence: String?, by name: String?, of site: String?) {
    problem = sentence
    isCalm = name == RefusalCode.oauthCancelled.name
    offersOther = sentence != nil && name == RefusalCode.accountNotFound.name
    refused = sentence == nil ? nil : name
    refusedBy = sentence == nil ? nil : site
  }

  /// Fills in what an invitation is for.
  /// - Parameter takesEmail: whether the field is for an email address, and not for a name alone.
  mutating func fill(from invitation: Invitation?, takesEmail: Bool) {
    guard let named = invitation?.identifier else { return }
    switch named.kind {
    case .phone: phone = phone ?? named.value
    case .email where takesEmail: email = email ?? named.display
    default: break
    }
  }

  /// The country of a number without a country code, from a form or an address; nil if it does not have two letters.
  static func region(_ text: String?) -> String? {
    text.flatMap { $0.wholeMatch(of: /[A-Za-z]{2}/) == nil ? nil : $0.uppercased() }
  }
}
