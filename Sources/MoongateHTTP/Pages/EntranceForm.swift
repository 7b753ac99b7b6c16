import MoongateCore

/// What a person has typed on the way in, and what is to be said of it.
struct EntranceForm {
  var way: EntrancePage.SignInMethod
  /// A flow of the operator's own.
  var flow: String?
  var returnTo: String?
  /// The flow that is gone on with.
  var id: String?
  var phone: String?
  var region: String?
  var email: String?
  var firstName: String?
  var lastName: String?
  var problem: String?
  /// Whether what is said of it went as the person wanted.
  var isCalm = false
  /// The refusal that a person has come back with from another site.
  var refused: String?
  /// The name of the provider whose site has refused, if the address says it.
  var refusedBy: String?
  /// The refusal's, for scripts.
  var code: String?
  /// The field that is meant.
  var invalid: String?
  /// Until it may be tried again.
  var wait: Countdown?
  /// Whether it is another code that is waited for.
  var waitsForCode = false
  /// The way to the other page is what the person needs.
  var offersOther = false
  var stressesSupport = false
  /// Whether the account's own password is chosen anew, by somebody who is signed in.
  var isSignedIn = false
  /// The first page that this browser sees of us.
  var isArrival = false

  /// - Parameters:
  ///   - name: what the address says of it.
  ///   - site: the provider that the address names.
  mutating func told(_ sentence: String?, by name: String?, of site: String?) {
    problem = sentence
    isCalm = name == RefusalCode.oauthCancelled.name
    refused = sentence == nil ? nil : name
    refusedBy = sentence == nil ? nil : site
  }

  /// The country that a number without its code is of, as a form or an address names it; nil for what is no two
  /// letters.
  static func region(_ text: String?) -> String? {
    text.flatMap { $0.wholeMatch(of: /[A-Za-z]{2}/) == nil ? nil : $0.uppercased() }
  }
}

/// A ceremony on the page for signing in: a button, and what the browser offers in the field for an identifier.
struct EntranceCeremony: Decodable {
  let flow: String
  let provider: String
  let label: String
  let returnTo: String?
  /// What is said, as on the page of its step.
  let cancelled: String
  let failed: String
}

/// What `login.mustache` shows.
struct EntranceModel: PageModel {
  static let template = PageTemplate.login
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
  let hasNames: Bool
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
  /// The ceremonies that tell whose account it is.
  let ceremonies: [EntranceCeremony]
  let ways: [Link]
  /// Other ways, to which scripts take along what was typed.
  let forms: [Link]
  /// Where a forgotten password is chosen anew; nil where that is not offered.
  let forgotten: String?
  /// The way to the other page, where that is what the person needs.
  let offer: Link?
  let other: Link?
  let isArrival: Bool
  let stressesSupport: Bool
}
