/// How the hosted pages show the steps of a provider.
///
/// Every provider with the same presentation has the same page, whoever wrote it: the same behaviour, keyboard,
/// accessibility and languages.
public enum Presentation: Sendable, Equatable {
  /// Boxes for a code that was sent to the person: paste, submission with the last character, countdowns of the next
  /// message and of a lock. For code providers.
  case codeEntry
  /// A pad for a secret of `count` digits, such as a PIN. `current` names the field of the secret that the account has,
  /// `new` the field of one that is chosen: the page asks for it twice.
  case digitPad(count: Int, current: String, new: String)
  /// A form with the fields that the provider asks for.
  case form
  /// Another site judges. `button` is what the button that leads there says.
  case externalSite(button: String)
  /// A ceremony of the browser's credential API (Web Authentication, Level 3), such as a passkey. The page calls the
  /// browser with the options that the step shows (``Shown/ceremony(_:options:)``) and submits its answer in the one
  /// field of kind `json`. `button` is what the button says that starts it.
  case ceremony(button: String)
}

/// How a provider is offered on the pages for signing in and registering.
public enum Entrance: Sendable, Equatable {
  /// By the field for a phone number or an email address. Of several providers with the same field, the one with the
  /// highest priority takes it; the others are offered by a link.
  case field(kind: IdentifierKind, priority: Int)
  /// By a button of its own below the fields, those of the highest priority first. `icon` is the text of an SVG
  /// picture; nil for none.
  case button(label: String, icon: String?, priority: Int)
  /// By a link.
  case link(label: String)
}

/// What a provider is to an account.
///
/// Only a provider that keeps a factor may keep a record, and the account page lists it. One that keeps a factor and
/// proves no identifier is a second factor: accounts may require it, and it authorises changes. When gateway.lua no
/// longer configures a provider, the identifiers that it proved stay verified, and its factors no longer count: the
/// account is treated as one that has none.
public struct ProviderRole: OptionSet, Sendable, Hashable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// It proves an identifier: a number, an address, an identity elsewhere.
  public static let provesIdentifier = ProviderRole(rawValue: 1)
  /// It keeps a factor for the account: a PIN, a password, an authenticator app.
  public static let keepsFactor = ProviderRole(rawValue: 2)
  /// It keeps several of its kind in one record, such as passkeys. A step of the purpose `set` then adds one to those
  /// that there are.
  public static let keepsSeveral = ProviderRole(rawValue: 4)
  /// Its ceremony tells whose account it is, so that people can sign in by it with nothing typed: the options of
  /// `create` have the account's `id` as `user.id`, and the answer of `get` brings it back as `response.userHandle`.
  /// The core then hands the provider that account and its record, as if it had been known before. With the
  /// presentation `.ceremony`.
  public static let findsAccount = ProviderRole(rawValue: 8)
}
