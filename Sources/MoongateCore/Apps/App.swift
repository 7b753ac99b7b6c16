import MoongateSDK

/// An app of apps.lua: a client in the sense of RFC 6749 section 2, which receives the results of sign-ins.
package struct App: Sendable, Equatable {
  /// When a page asks the user before the app receives the result of a sign-in.
  package enum Consent: String, Sendable, CaseIterable {
    /// Never. The pages of the sign-in still name the app.
    case never
    /// Once in each browser, until it is closed.
    case once
    /// Before each sign-in.
    case always
  }

  /// The `client_id`.
  package let id: String
  /// The name that users read.
  package let name: String
  package let redirectURIs: [RedirectURI]
  package let consent: Consent
  /// The source location of each setting, by its name; the app's own under the empty name.
  package let locations: [String: SourceLocation]

  package init(
    id: String, name: String, redirectURIs: [RedirectURI], consent: Consent, locations: [String: SourceLocation] = [:]
  ) {
    self.id = id
    self.name = name
    self.redirectURIs = redirectURIs
    self.consent = consent
    self.locations = locations
  }

  package static func == (left: App, right: App) -> Bool {
    left.id == right.id && left.name == right.name && left.redirectURIs == right.redirectURIs
      && left.consent == right.consent
  }

  /// Whether the text can be a client id: 1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
  package static func isID(_ text: String) -> Bool {
    text.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._-]{0,63}/) != nil
  }
}

/// The apps of apps.lua, by client id.
package struct AppTable: Sendable {
  /// No apps: the folder has no apps.lua.
  package static let none = AppTable([], own: nil)

  /// Sorted by client id.
  package let apps: [App]
  private let byID: [String: App]
  /// `public_url`. No code goes there, whatever is registered.
  private let own: PublicURL?

  package init(_ apps: [App], own: PublicURL?) {
    self.apps = apps.sorted { $0.id < $1.id }
    byID = Dictionary(apps.map { ($0.id, $0) }) { first, _ in first }
    self.own = own
  }

  package subscript(id: String) -> App? { byID[id] }

  /// The app that may receive codes at the address; nil if none has registered it.
  ///
  /// Attack: a flow that sends its code to any page of a known host. An attacker who can read a request line there has
  /// the code, and PKCE does not help, because the attacker created the flow (RFC 9700 sections 2.1 and 4.1).
  package func app(receivingAt address: String) -> App? { apps.first { receives($0, at: address) } }

  /// Whether the app of the grant still exists and still registers the redirect URI.
  package func registers(_ grant: Grant) -> Bool {
    byID[grant.client].map { receives($0, at: grant.redirect) } ?? false
  }

  private func receives(_ app: App, at address: String) -> Bool {
    guard let uri = app.redirectURIs.first(where: { $0.matches(address) }) else { return false }
    // Attack: a loopback address matches with any port, also with the gateway's own.
    return own == nil || uri.origin(of: address) != own
  }
}
