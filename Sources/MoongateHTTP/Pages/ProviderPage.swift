import Hummingbird
import MoongateCore
import MoongateSDK

/// What the pages know of a provider: how its steps are shown, where, and in which words. It is all that its descriptor
/// says; no page knows a provider by name.
struct ProviderPage {
  let name: ProviderName
  let descriptor: ProviderDescriptor
  /// Whether the core makes and judges its codes.
  let sendsCodes: Bool
  let presentation: Presentation
  /// The path of its own page, for boxes and pads; nil for every other presentation.
  let ownPath: String?
  /// Whether its steps are shown on the page for signing in.
  let isOnEntrance: Bool

  /// - Returns: nil for a provider that this program does not have.
  init?(_ name: ProviderName, _ providers: ProviderRegistry) {
    guard let descriptor = providers.descriptor(name), let presentation = providers.presentation(of: name) else {
      return nil
    }
    self.name = name
    self.descriptor = descriptor
    self.presentation = presentation
    sendsCodes = providers[name] is any CodeProvider
    ownPath = providers.ownPage(of: name)
    isOnEntrance = providers.isOnEntrance(name)
  }

  // MARK: - Where

  /// The page of all providers without one of their own.
  static let stepPath = ProviderRegistry.allSteps

  /// Whether its steps are shown on `/auth/step`.
  var isOnStepPage: Bool { ownPath == nil && !isOnEntrance }

  /// The one field that it asks for, where that is a password.
  var passwordField: String? { descriptor.passwordField }

  /// The pad's digits and the names of its fields.
  var pad: (count: Int, current: String, new: String)? { descriptor.pad }

  /// What the button says that leads to its site.
  var siteButton: String? {
    if case .externalSite(let button) = presentation { button } else { nil }
  }

  /// What client events call its site: the provider's name up to its first `_`, such as `google`.
  var eventName: String { String(name.rawValue.prefix { $0 != "_" }) }

  /// What the button says that starts its ceremony.
  var ceremonyButton: String? {
    if case .ceremony(let button) = presentation { button } else { nil }
  }

  /// Whether an account may have several of its factor, so that another one can be added.
  var keepsSeveral: Bool { descriptor.role.contains(.keepsSeveral) }

  /// The priority of its button on the page for signing in.
  var buttonPriority: Int { if case .button(_, _, let priority)? = descriptor.entrance { priority } else { 0 } }

  /// The provider that takes the field for identifiers of a kind: of those with the highest priority the first.
  static func taking(_ kind: IdentifierKind, of pages: [ProviderPage]) -> ProviderPage? {
    let able = pages.compactMap { page -> (page: ProviderPage, priority: Int)? in
      if case .field(kind, let priority)? = page.descriptor.entrance { (page, priority) } else { nil }
    }
    return able.reduce(nil as (page: ProviderPage, priority: Int)?) { best, next in
      best.map { $0.priority >= next.priority } ?? false ? best : next
    }?.page
  }

  /// The page of its step in a flow that is not begun yet.
  /// - Parameters:
  ///   - refused: the name of what a person comes back with from the provider's site.
  ///   - item: the one of several things that the flow is about (`HeldItem.field`).
  static func stepAddress(
    _ flow: String, with provider: ProviderName?, returnTo: String?, refused: String? = nil, about item: String? = nil
  ) -> String {
    FormFields.address(
      stepPath,
      ["flow": flow, "with": provider?.rawValue, HeldItem.field.name: item, "return_to": returnTo, "refused": refused])
  }

  // MARK: - For whom

  /// The kind of identifier that it reads first.
  var kind: IdentifierKind? { descriptor.identifierKinds.first }

  /// Whether its codes go to email addresses, which the pages say.
  var isEmail: Bool { kind == .email }

  /// The field that a code provider reads the identifier from.
  var identifierField: String {
    descriptor.beginFields.first { $0.kind == .phone || $0.kind == .email }?.name ?? (isEmail ? "email" : "phone")
  }

  /// Whether an identity elsewhere is one of this provider. Those of instances and of programs begin with their names.
  func proves(_ identity: Identifier, among providers: ProviderRegistry) -> Bool {
    providers.proves(identity, by: name)
  }

  // MARK: - In which words

  /// What people read as its name.
  func title(_ words: Words) -> String {
    words.speaking(descriptor.words).translated(descriptor.words?.title ?? Self.spoken(name.rawValue))
  }

  /// What people call it where it is one of several.
  func shortName(_ words: Words) -> String {
    words.text(ofChoice: name) ?? descriptor.words?.name.map(words.speaking(descriptor.words).translated)
      ?? title(words)
  }

  /// What people read at the link by which it is offered; nil where it declares none.
  func linkLabel(_ words: Words) -> String? {
    if case .link(let label)? = descriptor.entrance { words.speaking(descriptor.words).translated(label) } else { nil }
  }

  /// What people read at one of its fields.
  func label(_ field: String, _ words: Words) -> String? {
    descriptor.words?.labels[field].map(words.speaking(descriptor.words).translated)
  }

  /// What people read at the link to one of its flows.
  func link(to purpose: StepPurpose, _ words: Words) -> String? {
    descriptor.words?.links[purpose].map(words.speaking(descriptor.words).translated)
  }

  /// The sentence of what a person comes back with from its site: one of ours, or one that it has declared; never the
  /// text of a link.
  func sentence(ofRefused name: String, _ words: Words) -> String? {
    guard let code = RefusalCode(reserved: name) else {
      let outcome = RefusalReason(rawValue: name).flatMap(descriptor.outcome)
      return outcome.map { words.speaking(descriptor.words).translated($0.sentence) }
    }
    if code == .oauthFailed { return siteFailed(words) }
    return NextPage.shown.contains(code) ? words.translated(code.sentence) : nil
  }

  /// What people read if its site could not sign them in. The provider's own sentence may name its usual site, which is
  /// not the site of an instance or of an entry with a title.
  func siteFailed(_ words: Words) -> String {
    if isOnEntrance, descriptor.instanceOf == nil, descriptor.title == nil,
      let outcome = descriptor.outcome(.oauthFailed)
    {
      return words.speaking(descriptor.words).translated(outcome.sentence)
    }
    return words.text("site_failed", ["site": shortName(words)])
  }

  /// `recovery_code` as people write it.
  static func spoken(_ name: String) -> String {
    let text = name.replacing("_", with: " ")
    return text.prefix(1).uppercased() + text.dropFirst()
  }
}

extension Words {
  /// What the person is told where a code could not be delivered: the reason that the provider has declared, in its
  /// words, else this word of the page.
  func undelivered(_ refusal: Refusal, otherwise name: String, _ exchange: Exchange) -> String {
    guard let reason = refusal.deliveryReason, let provider = refusal.provider.flatMap(exchange.page(of:)) else {
      return self[name]
    }
    return speaking(provider.descriptor.words).translated(reason.sentence)
  }
}

extension Exchange {
  /// What the pages know of a provider; nil for one that is not configured, or that this program does not have.
  func page(of provider: ProviderName) -> ProviderPage? {
    generation.policies[provider] == nil ? nil : ProviderPage(provider, providers)
  }

  /// Those of a flow's first step that can be used now, in the flow's order.
  func offered(first flow: String) -> [ProviderPage] {
    guard let first = generation.flows[flow]?.steps.first else { return [] }
    let able = first.choices.compactMap(page(of:))
    return first.isFallback ? Array(able.prefix(1)) : able
  }

  /// All that can be used now, in the order of the program's list.
  var pages: [ProviderPage] { providers.all.compactMap { page(of: $0.descriptor.name) } }

  /// The other site that an address tells a refusal of: the one that it names, otherwise the first with a button on the
  /// page for signing in.
  func refusingSite(_ name: String?) -> ProviderPage? {
    let sites = pages.filter { $0.isOnEntrance && $0.siteButton != nil }
    guard let name else { return sites.first }
    return sites.first { $0.name.rawValue == name }
  }

  /// The code by which a country is called; empty where nothing knows it.
  func callingCode(_ region: String) -> String { providers.formatter(for: .phone)?.callingCode(region: region) ?? "" }

  /// Those that keep a factor for accounts and have a flow that sets it.
  var factors: [ProviderPage] {
    pages.filter { $0.descriptor.role.contains(.keepsFactor) && generation.flow(for: .factor($0.name, .set)) != nil }
  }
}
