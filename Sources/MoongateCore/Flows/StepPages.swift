import MoongateSDK

// Where the steps of providers are shown: it follows from what they declare, for pages and for the proxy that leads
// people there.

extension ProviderRegistry {
  /// How the pages show the provider's steps; nil for a provider that there is not.
  package func presentation(of name: ProviderName) -> Presentation? {
    descriptor(name).map { $0.presentation ?? (self[name] is any CodeProvider ? .codeEntry : .form) }
  }

  /// The path of the provider's own page: boxes for a code or a pad for digits; nil where it has none.
  package func ownPage(of name: ProviderName) -> String? {
    switch presentation(of: name) {
    case .codeEntry? where self[name] is any CodeProvider, .digitPad?:
      "/auth/" + (descriptor(name)?.page ?? "step/\(name)")
    default: nil
    }
  }

  /// Whether the provider's steps are shown on the page for signing in: a password beside an address, and another site
  /// that is offered by a button there.
  package func isOnEntrance(_ name: ProviderName) -> Bool {
    switch (presentation(of: name), descriptor(name)?.entrance) {
    case (.form?, .field?): descriptor(name)?.passwordField != nil
    case (.externalSite?, .button?): true
    default: false
    }
  }

  /// The path of the page on which a session passes the provider.
  package func stepPage(of name: ProviderName) -> String {
    ownPage(of: name) ?? (isOnEntrance(name) ? "/auth/login" : Self.allSteps)
  }

  /// The page of all providers without one of their own.
  package static let allSteps = "/auth/step"
}

extension ProviderDescriptor {
  /// Whether its secret is a factor beside what says who somebody is: it keeps one and proves no identifier.
  package var isSecondFactor: Bool { role.contains(.keepsFactor) && !role.contains(.provesIdentifier) }

  /// The one field that it asks for, where that is a password.
  package var passwordField: String? {
    guard submitFields.count == 1, let field = submitFields.first, field.kind == .password else { return nil }
    return field.name
  }

  /// Whether its factor is entered on a pad of digits, such as a PIN. Policies know it as `f.account.has_pin`.
  package var showsPad: Bool { pad != nil }

  /// The pad's digits and the names of its fields, where it shows one.
  package var pad: (count: Int, current: String, new: String)? {
    if case .digitPad(let count, let current, let new)? = presentation { (count, current, new) } else { nil }
  }
}
