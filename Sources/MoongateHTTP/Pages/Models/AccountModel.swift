/// What `account.mustache` shows: the user's profile, sign-in methods, factors, sessions and tokens.
struct AccountModel: PageModel {
  static let template = PageTemplate.account

  struct Link: Decodable {
    let label: String
    let address: String
    /// For screen readers: the label together with the row's name.
    let name: String
  }

  struct Row: Decodable {
    let name: String
    let value: String?
    let badge: String?
    let isGood: Bool
    let links: [Link]
    /// The row's button, such as the one that disconnects a provider.
    var button: Button?
    /// The items that the provider stores.
    var items: [Item] = []
    var hasItems: Bool = false
  }

  /// One of several items that a provider stores for the account, such as a passkey.
  struct Item: Decodable {
    let name: String
    let details: [String]
    /// When it was added, and when it was last used.
    let added: String?
    let used: String?
    /// Links to the flows that change or remove this item.
    let links: [Link]
  }

  struct Button: Decodable {
    /// The action: `connect` or `disconnect`.
    let action: String
    let label: String
    let value: String
    /// For screen readers: the label together with the row's name.
    let name: String
  }

  /// The form for the user's names.
  struct NameForm: Decodable {
    let first: String?
    let last: String?
    /// The full name, as it is shown.
    let shown: String?
    let label: String
    let isOpen: Bool
    let problem: String?
    let firstIsInvalid: Bool
    let lastIsInvalid: Bool
  }

  struct Place: Decodable {
    let id: String
    let device: String
    let since: String
    let seen: String
    /// The client addresses from which the session began and was last used, if known.
    let address: String?
    let lastAddress: String?
    let isCurrent: Bool
    let isPhone: Bool
    let label: String
  }

  /// A trusted device.
  struct Device: Decodable {
    let id: String
    let name: String
    let since: String
    let seen: String
    let isCurrent: Bool
    /// For screen readers: the label of the row's button.
    let label: String
  }

  /// A personal token of the user.
  struct Token: Decodable {
    let id: String
    let name: String
    let expires: String?
    let isOver: Bool
    let used: String?
    let from: String?
    /// For screen readers: the label of the row's button.
    let label: String
  }

  struct Tokens: Decodable {
    let items: [Token]
    let hasItems: Bool
    /// The routes that accept them.
    let routes: [String]
    let hasRoutes: Bool
  }

  /// An app that the user has signed in to.
  struct ConnectedApp: Decodable {
    let id: String
    let name: String
    /// What it may do, a line for each scope.
    let scopes: [String]
    let since: String
    let used: String
    /// For screen readers: the label of the row's button.
    let label: String
  }

  let notice: String?
  /// Why the requested change was not made.
  let refusal: String?
  /// The service that the user came from.
  let back: String
  let backLabel: String
  /// The first letter of the user's name; nil if only a number is known.
  let initial: String?
  /// The user's display name.
  let called: String
  let isUnverified: Bool
  let verify: String
  let name: NameForm
  /// The user's sign-in methods.
  let rows: [Row]
  /// The factors that protect the account.
  let factors: [Row]
  let hasFactors: Bool
  let language: String
  let places: [Place]
  /// Whether the account has other sessions.
  let hasOthers: Bool
  let devices: [Device]
  let hasDevices: Bool
  let apps: [ConnectedApp]
  let hasApps: Bool
  /// The user's personal tokens; nil if no route accepts personal tokens.
  let tokens: Tokens?
  var stressesSupport = false
}
