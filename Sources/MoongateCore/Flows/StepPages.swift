import MoongateSDK

// The pages that show the providers' steps, derived from the descriptors. Used by the pages and by the proxy's
// redirects.

extension ProviderRegistry {
  /// How the pages show the provider's steps; nil for an unknown provider.
  package func presentation(of name: ProviderName) -> Presentation? {
    descriptor(name).map { $0.presentation ?? (self[name] is any CodeProvider ? .codeEntry : .form) }
  }

  /// The path of the provider's own page, with boxes for a code or a pad for digits; nil if it has none.
  package func ownPage(of name: ProviderName) -> String? {
    switch presentation(of: name) {
    case .codeEntry? where self[name] is any CodeProvider, .digitPad?:
      "/auth/" + (descriptor(name)?.page ?? "step/\(name)")
    default: nil
    }
  }

  /// Whether the provider's steps are shown on the sign-in page: a password field beside an address, or a button for
  /// another site.
  package func isOnSignInPage(_ name: ProviderName) -> Bool {
    switch (presentation(of: name), descriptor(name)?.entrance) {
    case (.form?, .field?): descriptor(name)?.passwordField != nil
    case (.externalSite?, .button?): true
    default: false
    }
  }

  /// The path of the page on which a user verifies the email address of the account.
  package func verificationPage(in generation: any PolicyGeneration) -> String {
    let senders = all.filter { $0 is any CodeProvider && $0.descriptor.identifierKinds.contains(.email) }.map(
      \.descriptor.name)
    let verifying = generation.flow(for: .verify(.email))?.steps.first?.choices ?? []
    let ordered = verifying + senders.filter { generation.policies[$0] != nil } + senders
    return ordered.lazy.compactMap { self.ownPage(of: $0) }.first ?? PagePath.account
  }

  /// The path of the page on which a session passes the provider.
  package func stepPage(of name: ProviderName) -> String {
    ownPage(of: name) ?? (isOnSignInPage(name) ? PagePath.signIn : PagePath.step)
  }
}

extension ProviderDescriptor {
  /// Whether its secret is a second factor: it stores a factor and proves no identifier.
  package var isSecondFactor: Bool { role.contains(.keepsFactor) && !role.contains(.provesIdentifier) }

  /// The name of its only submit field, if that is a password.
  package var passwordField: String? {
    guard submitFields.count == 1, let field = submitFields.first, field.kind == .password else { return nil }
    return field.name
  }

  /// Whether its factor is entered on a digit pad, such as a PIN. Policies read it as `f.account.has_pin`.
  package var showsPad: Bool { pad != nil }

  /// The number of digits and the field names of its pad, if it has one.
  package var pad: (count: Int, current: String, new: String)? {
    if case .digitPad(let count, let current, let new)? = presentation { (count, current, new) } else { nil }
  }
}
