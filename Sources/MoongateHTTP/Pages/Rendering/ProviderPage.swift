import Hummingbird
import MoongateCore
import MoongateSDK

/// How pages present a provider: where its steps are shown and with which words. Everything comes from its descriptor;
/// no page knows a provider by name.
struct ProviderPage {
  let name: ProviderName
  let descriptor: ProviderDescriptor
  /// Whether the core generates and verifies its codes.
  let sendsCodes: Bool
  let presentation: Presentation
  /// The path of its page, for code boxes and PIN pads; nil for other presentations.
  let ownPath: String?
  /// Whether its steps are shown on the sign-in page.
  let isOnSignInPage: Bool
  /// The sentences of its policy and of accounts.lua for the reasons of `deny`.
  let reasons: [String: String]

  /// - Parameter reasons: of its policy, for pages that show why a step was refused.
  /// - Returns: nil for a provider that this program does not have.
  init?(_ name: ProviderName, _ providers: ProviderRegistry, reasons: [String: String] = [:]) {
    guard let descriptor = providers.descriptor(name), let presentation = providers.presentation(of: name) else {
      return nil
    }
    self.name = name
    self.reasons = reasons
    self.descriptor = descriptor
    self.presentation = presentation
    sendsCodes = providers[name] is any CodeProvider
    ownPath = providers.ownPage(of: name)
    isOnSignInPage = providers.isOnSignInPage(name)
  }

  // MARK: - Paths

  /// The page of all providers without their own page.
  static let stepPath = PagePath.step

  /// Whether its steps are shown on `/auth/step`.
  var isOnStepPage: Bool { ownPath == nil && !isOnSignInPage }

  /// Its password field, if that is its only field.
  var passwordField: String? { descriptor.passwordField }

  /// The number of digits of its PIN pad and the names of its fields.
  var pad: (count: Int, current: String, new: String)? { descriptor.pad }

  /// The label of the button that leads to its site.
  var siteButton: String? {
    if case .externalSite(let button) = presentation { button } else { nil }
  }

  /// The name of its site in the events of the audit trail: the provider's name up to the first `_`, such as `google`.
  var eventName: String { String(name.rawValue.prefix { $0 != "_" }) }

  /// The label of the button that starts its ceremony.
  var ceremonyButton: String? {
    if case .ceremony(let button) = presentation { button } else { nil }
  }

  /// Whether an account may have several of its factors, so that another one can be added.
  var keepsSeveral: Bool { descriptor.role.contains(.keepsSeveral) }

  /// The priority of its button on the sign-in page.
  var buttonPriority: Int { if case .button(_, _, let priority)? = descriptor.entrance { priority } else { 0 } }

  /// The provider of the field for a kind of identifier: the first with the highest priority.
  static func accepting(_ kind: IdentifierKind, of pages: [ProviderPage]) -> ProviderPage? {
    let able = pages.compactMap { page -> (page: ProviderPage, priority: Int)? in
      if case .field(kind, let priority)? = page.descriptor.entrance { (page, priority) } else { nil }
    }
    return able.reduce(nil as (page: ProviderPage, priority: Int)?) { best, next in
      best.map { $0.priority >= next.priority } ?? false ? best : next
    }?.page
  }

  /// The page of its step in a flow that is not begun yet.
  /// - Parameters:
  /// - refused: the name of the refusal from the provider's site.
  /// - item: the item that the flow concerns (`HeldItem.field`).
  static func stepAddress(
    _ flow: String, with provider: ProviderName?, returnTo: String?, refused: String? = nil, about item: String? = nil
  ) -> String {
    FormFields.address(
      stepPath,
      ["flow": flow, "with": provider?.rawValue, HeldItem.field.name: item, "return_to": returnTo, "refused": refused])
  }

  // MARK: - Identifiers

  /// The first kind of identifier that it reads.
  var kind: IdentifierKind? { descriptor.identifierKinds.first }

  /// Whether its codes go to email addresses.
  var isEmail: Bool { kind == .email }

  /// The field that a code provider reads the identifier from.
  var identifierField: String {
    descriptor.beginFields.first { $0.kind == .phone || $0.kind == .email }?.name ?? (isEmail ? "email" : "phone")
  }

  /// Whether it reads identifiers of the kind at the beginning of a step.
  func takes(_ kind: IdentifierKind) -> Bool {
    descriptor.beginFields.contains { descriptor.identifierKind(of: $0) == kind }
  }

  /// The field that a typed identifier belongs to. Names have no `@`, and addresses have one.
  func identifierField(for typed: String) -> String {
    takes(.name) && !(takes(.email) && typed.contains("@")) ? InputField.userName.name : identifierField
  }

  /// Whether a federated identity belongs to this provider. Identities of instances and programs begin with their
  /// names.
  func proves(_ identity: Identifier, among providers: ProviderRegistry) -> Bool {
    providers.proves(identity, by: name)
  }

  // MARK: - Words

  /// Its title for users.
  func title(_ words: Words) -> String {
    words.withTranslations(of: descriptor.words).translated(descriptor.words?.title ?? Self.spoken(name.rawValue))
  }

  /// Its short name in a choice.
  func shortName(_ words: Words) -> String {
    words.text(ofChoice: name) ?? descriptor.words?.name.map(words.withTranslations(of: descriptor.words).translated)
      ?? title(words)
  }

  /// The label of the link that offers it; nil if it declares none.
  func linkLabel(_ words: Words) -> String? {
    if case .link(let label)? = descriptor.entrance {
      words.withTranslations(of: descriptor.words).translated(label)
    } else {
      nil
    }
  }

  /// The label of one of its fields.
  func label(_ field: String, _ words: Words) -> String? {
    descriptor.words?.labels[field].map(words.withTranslations(of: descriptor.words).translated)
  }

  /// The label of the link to one of its flows.
  func link(to purpose: StepPurpose, _ words: Words) -> String? {
    descriptor.words?.links[purpose].map(words.withTranslations(of: descriptor.words).translated)
  }

  /// The message if its site could not sign the user in. The provider's own message may name its usual site, which
  /// differs for an instance or an entry with a title.
  func siteFailed(_ words: Words) -> String {
    if isOnSignInPage, descriptor.instanceOf == nil, descriptor.title == nil,
      let outcome = descriptor.outcome(.oauthFailed)
    {
      return words.withTranslations(of: descriptor.words).translated(outcome.sentence)
    }
    return words.text("site_failed", ["site": shortName(words)])
  }

  /// A name such as `recovery_code` in words.
  static func spoken(_ name: String) -> String {
    let text = name.replacing("_", with: " ")
    return text.prefix(1).uppercased() + text.dropFirst()
  }
}

/// The events of a sign-in with another site in the audit trail, such as `login_google_started`.
package enum SiteEvent: String, Sendable, CaseIterable {
  case started, success, cancelled

  /// - Parameter site: `ProviderPage.eventName`.
  package func name(at site: String) -> String { "login_\(site)_\(rawValue)" }

  /// The names of the other sites, for a program's providers or a registry with instances and programs.
  package static func sites(of providers: ProviderRegistry) -> [String] {
    providers.all.compactMap { ProviderPage($0.descriptor.name, providers) }.filter { $0.siteButton != nil }.map(
      \.eventName)
  }
}

extension Exchange {
  /// How pages present a provider; nil for one that is not configured or that this program does not have.
  func page(of provider: ProviderName) -> ProviderPage? {
    generation.policies[provider].flatMap { policy in
      ProviderPage(
        provider, providers, reasons: generation.accounts.reasons.merging(policy.reasons) { _, own in own })
    }
  }

  /// The usable providers of a flow's first step, in the flow's order.
  func offered(first flow: String) -> [ProviderPage] {
    guard let first = generation.flows[flow]?.steps.first else { return [] }
    let able = first.choices.compactMap(page(of:))
    return first.isFallback ? Array(able.prefix(1)) : able
  }

  /// All usable providers, in the order of the program's list.
  var pages: [ProviderPage] { providers.all.compactMap { page(of: $0.descriptor.name) } }

  /// The other site of a refusal in an address: the named one, or else the first with a button on the sign-in page.
  func refusingSite(_ name: String?) -> ProviderPage? {
    let sites = pages.filter { $0.isOnSignInPage && $0.siteButton != nil }
    guard let name else { return sites.first }
    return sites.first { $0.name.rawValue == name }
  }

  /// The calling code of a country; empty if it is unknown.
  func callingCode(_ region: String) -> String { providers.formatter(for: .phone)?.callingCode(region: region) ?? "" }

  /// The providers that store a factor of accounts and have a flow that sets it up.
  var factors: [ProviderPage] {
    pages.filter { $0.descriptor.role.contains(.keepsFactor) && generation.flow(for: .factor($0.name, .set)) != nil }
  }
}
