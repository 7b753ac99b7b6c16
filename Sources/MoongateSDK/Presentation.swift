/// How the hosted pages show the steps of a provider.
///
/// All providers with the same presentation share the same page, with the same behaviour, keyboard, accessibility and
/// languages.
public enum Presentation: Sendable, Equatable {
  /// Boxes for a code that was sent to the user, with paste, submission on the last character, and countdowns of the
  /// next message and of a lock. For code providers.
  case codeEntry
  /// A pad for a secret of `count` digits, such as a PIN. `current` names the field of the existing secret, `new` the
  /// field of a new one, which the page asks for twice.
  case digitPad(count: Int, current: String, new: String)
  /// A form with the fields that the provider asks for.
  case form
  /// Another site authenticates the user. `button` is the label of the button that leads there.
  case externalSite(button: String)
  /// A ceremony of the browser's credential API (Web Authentication, Level 3), such as a passkey. The page calls the
  /// browser with the options that the step shows (``Shown/ceremony(_:options:)``) and submits the answer in the one
  /// field of kind `json`. `button` is the label of the button that starts it.
  case ceremony(button: String)
}

/// How the sign-in and registration pages offer a provider.
public enum Entrance: Sendable, Equatable {
  /// With a field for a phone number or an email address. If several providers have the same field, the one with the
  /// highest priority uses it; the others are offered by a link.
  case field(kind: IdentifierKind, priority: Int)
  /// With a separate button below the fields, sorted by descending priority. `icon` is the text of an SVG image; nil
  /// for none.
  case button(label: String, icon: String?, priority: Int)
  /// With a link.
  case link(label: String)
}

/// What a provider does for an account.
///
/// Only a provider that keeps a factor may store a record, and the account page lists it. A provider that keeps a
/// factor and proves no identifier is a second factor: accounts can require it, and it authorises changes. If
/// gateway.lua no longer configures a provider, the identifiers that it proved stay verified, but its factors no longer
/// count.
public struct ProviderRole: OptionSet, Sendable, Hashable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// It proves an identifier: a number, an address, a federated identity.
  public static let provesIdentifier = ProviderRole(rawValue: 1)
  /// It keeps a factor for the account: a PIN, a password, an authenticator app.
  public static let keepsFactor = ProviderRole(rawValue: 2)
  /// It keeps several items in one record, such as passkeys. A step of the purpose `set` adds an item to the existing
  /// ones.
  public static let keepsSeveral = ProviderRole(rawValue: 4)
  /// Its ceremony identifies the account, so that users can sign in without entering anything: the options of `create`
  /// have the account's `id` as `user.id`, and the answer of `get` returns it as `response.userHandle`. The core then
  /// passes that account and its record to the provider, as if it had been known before. Requires the presentation
  /// `.ceremony`.
  public static let findsAccount = ProviderRole(rawValue: 8)
}
