import Hummingbird
import MoongateCore
import MoongateSDK

/// A provider that the pages do not know by name: its steps are shown on `/auth/step` in the words that it brings.
struct Stranger {
  let name: ProviderName
  let descriptor: ProviderDescriptor
  /// Whether the core makes and judges its codes.
  let sendsCodes: Bool

  /// Providers that have pages of their own.
  private static let known: Set<String> = ["phone_otp", "email_code", "pin", "password", "google_oauth"]

  /// Whether steps of the provider are shown on `/auth/step`.
  static func isOne(_ name: ProviderName) -> Bool { !known.contains(name.rawValue) }

  /// - Returns: nil for one that has a page of its own, or that this program does not have.
  init?(_ name: ProviderName, _ providers: ProviderRegistry) {
    guard Self.isOne(name), let provider = providers[name] else { return nil }
    self.name = name
    descriptor = provider.descriptor
    sendsCodes = provider is any CodeProvider
  }

  /// What people read as its name.
  func title(_ words: Words) -> String { words.speaking(descriptor.words).translated(descriptor.words?.title ?? Self.spoken(name.rawValue)) }

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
    // The usual sentence speaks of Google.
    if code == .oauthFailed { return words.text("site_failed", ["site": title(words)]) }
    return NextPage.shown.contains(code) ? words.translated(code.sentence) : nil
  }

  /// `recovery_code` as people write it.
  static func spoken(_ name: String) -> String {
    let text = name.replacing("_", with: " ")
    return text.prefix(1).uppercased() + text.dropFirst()
  }

  /// Those of the flow's first step that can be used now.
  static func all(first flow: String, _ providers: ProviderRegistry, _ exchange: Exchange) -> [Stranger] {
    let choices = exchange.generation.flows[flow]?.steps.first?.choices ?? []
    return choices.filter { exchange.generation.policies[$0] != nil }.compactMap { Stranger($0, exchange.known(providers)) }
  }

  /// Those that keep something for an account, and have a flow that makes it.
  static func kept(_ providers: ProviderRegistry, _ exchange: Exchange) -> [Stranger] {
    let known = exchange.known(providers)
    return known.all.map(\.descriptor.name).filter {
      exchange.generation.policies[$0] != nil && exchange.generation.flows[FlowPurpose.secret($0, .set).rawValue] != nil
    }.compactMap { Stranger($0, known) }
  }

  /// The page of its step in a flow that is not begun yet.
  /// - Parameter refused: the name of what a person comes back with from the provider's site.
  static func address(_ flow: String, with provider: ProviderName?, returnTo: String?, refused: String? = nil) -> String {
    FormFields.address("/auth/step", ["flow": flow, "with": provider?.rawValue, "return_to": returnTo, "refused": refused])
  }
}
