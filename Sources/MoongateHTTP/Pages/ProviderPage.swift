import Hummingbird
import MoongateCore
import MoongateSDK

/// What the pages know of a provider: how its steps are shown, where, and in which words. It is all that its descriptor says; no page knows a
/// provider by name.
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
    guard let descriptor = providers.descriptor(name), let presentation = providers.presentation(of: name) else { return nil }
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
  var pad: (count: Int, current: String, new: String)? {
    if case .digitPad(let count, let current, let new) = presentation { (count, current, new) } else { nil }
  }

  /// What the button says that leads to its site.
  var siteButton: String? {
    if case .externalSite(let button) = presentation { button } else { nil }
  }

  /// The priority of its button on the page for signing in.
  var buttonPriority: Int { if case .button(_, _, let priority)? = descriptor.entrance { priority } else { 0 } }

  /// The page of its step in a flow that is not begun yet.
  /// - Parameter refused: the name of what a person comes back with from the provider's site.
  static func stepAddress(_ flow: String, with provider: ProviderName?, returnTo: String?, refused: String? = nil) -> String {
    FormFields.address(stepPath, ["flow": flow, "with": provider?.rawValue, "return_to": returnTo, "refused": refused])
  }

  // MARK: - For whom

  /// The kind of identifier that it reads first.
  var kind: IdentifierKind? { descriptor.identifierKinds.first }

  /// Whether its codes go to email addresses, which the pages say.
  var isEmail: Bool { kind == .email }

  /// The field that a code provider reads the identifier from.
  var identifierField: String { descriptor.beginFields.first { $0.kind == .phone || $0.kind == .email }?.name ?? (isEmail ? "email" : "phone") }

  // MARK: - In which words

  /// What people read as its name.
  func title(_ words: Words) -> String { words.speaking(descriptor.words).translated(descriptor.words?.title ?? Self.spoken(name.rawValue)) }

  /// What people call it where it is one of several.
  func shortName(_ words: Words) -> String {
    words.text(ofChoice: name) ?? descriptor.words?.name.map(words.speaking(descriptor.words).translated) ?? title(words)
  }

  /// What people read at the link by which it is offered; nil where it declares none.
  func linkLabel(_ words: Words) -> String? {
    if case .link(let label)? = descriptor.entrance { words.speaking(descriptor.words).translated(label) } else { nil }
  }

  /// What people read at one of its fields.
  func label(_ field: String, _ words: Words) -> String? { descriptor.words?.labels[field].map(words.speaking(descriptor.words).translated) }

  /// What people read at the link to one of its flows.
  func link(to purpose: StepPurpose, _ words: Words) -> String? { descriptor.words?.links[purpose].map(words.speaking(descriptor.words).translated) }

  /// The sentence of what a person comes back with from its site: one of ours, or one that it has declared; never the text of a link.
  func sentence(ofRefused name: String, _ words: Words) -> String? {
    guard let code = RefusalCode(reserved: name) else {
      let outcome = RefusalReason(rawValue: name).flatMap(descriptor.outcome)
      return outcome.map { words.speaking(descriptor.words).translated($0.sentence) }
    }
    // The usual sentence speaks of one site.
    if code == .oauthFailed, !isOnEntrance { return words.text("site_failed", ["site": title(words)]) }
    return NextPage.shown.contains(code) ? words.translated(code.sentence) : nil
  }

  /// `recovery_code` as people write it.
  static func spoken(_ name: String) -> String {
    let text = name.replacing("_", with: " ")
    return text.prefix(1).uppercased() + text.dropFirst()
  }
}

extension Exchange {
  /// What the pages know of a provider; nil for one that is not configured, or that this program does not have.
  func page(of provider: ProviderName) -> ProviderPage? {
    generation.policies[provider] == nil ? nil : ProviderPage(provider, providers)
  }

  /// Those of a flow's first step that can be used now, in the flow's order.
  func offered(first flow: String) -> [ProviderPage] {
    (generation.flows[flow]?.steps.first?.choices ?? []).compactMap(page(of:))
  }

  /// All that can be used now, in the order of the program's list.
  var pages: [ProviderPage] { providers.all.compactMap { page(of: $0.descriptor.name) } }

  /// Those that keep a factor for accounts and have a flow that sets it.
  var factors: [ProviderPage] { pages.filter { generation.flow(for: .factor($0.name, .set)) != nil } }
}
