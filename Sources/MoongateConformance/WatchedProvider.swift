import Foundation
import MoongateSDK

/// A provider that runs where the suite's lent tools do not reach, such as another program, and is watched by the
/// caller that started it.
///
/// The suite lends it tools as to any, of which it uses none; what those would have shown is asked here.
public protocol WatchedProvider: Provider {
  /// Why what it sends cannot be seen, as the end of a sentence; nil where it can.
  var isUnseen: String? { get }
  /// Whether what it sends by can be made to wait: then it can be seen how it ends a call that nobody waits for.
  var canBeHeldUp: Bool { get }
  /// The language in whose words its author is advised.
  var language: ProviderLanguage { get }
  /// How what it sends by behaves from now on.
  func meets(_ manner: SiteManner)
  /// What was seen of it since this was asked last.
  func sightings() -> Sightings
  /// What it declares when it is started once more; nil where it cannot be.
  func declaredAgain() async -> Result<ProviderDescriptor, RestartProblem>?
  /// Ends it, so that what it writes last is seen.
  func end() async
}

extension WatchedProvider {
  /// The JSON messages.
  public var language: ProviderLanguage { .json }

  /// It cannot be started once more.
  public func declaredAgain() async -> Result<ProviderDescriptor, RestartProblem>? { nil }
}

/// A provider that runs elsewhere could not be started once more.
public struct RestartProblem: Error, Sendable {
  /// Why, as the end of a sentence.
  public let sentence: String

  public init(_ sentence: String) { self.sentence = sentence }
}

/// How the sites that a provider sends by behave.
public enum SiteManner: Sendable {
  case works
  case fails
  /// Until the call is cancelled.
  case hangs
}

/// What was seen of a provider that runs elsewhere.
public struct Sightings: Sendable {
  /// What it sent, in its order.
  public var requests: [WebRequest]
  /// What it wrote for an operator: lines of a log and of its standard error, and the texts of its faults, as it wrote
  /// them.
  public var lines: [String]
  /// What it did beside that it may not do.
  public var findings: [ConformanceFinding]
  /// The messages that were exchanged with it, in their order: `→ {…}` to it, `← {…}` from it.
  public var messages: [String]

  public init(
    requests: [WebRequest] = [], lines: [String] = [], findings: [ConformanceFinding] = [], messages: [String] = []
  ) {
    self.requests = requests
    self.lines = lines
    self.findings = findings
    self.messages = messages
  }
}

extension ConformanceHarness {
  /// Notes what was seen of a provider that runs elsewhere while the call was under way.
  func look(_ capabilities: RecordedCapabilities) {
    guard let watched else { return }
    let seen = watched.sightings()
    capabilities.saw(seen)
    note(seen)
  }

  private func note(_ seen: Sightings) {
    for finding in seen.findings { finds(finding.rule, finding.seen, finding.advice) }
    overheard.add(seen.lines)
    for message in seen.messages { trace.note(message) }
  }

  /// Ends a provider that runs elsewhere, and looks at what it did when nobody asked it any more.
  func judgeLeavings() async {
    guard let watched else { return }
    let late = watched.sightings()
    note(late)
    if !late.requests.isEmpty {
      finds(
        .cleanup, "Something was sent after the call had ended.",
        "Answer after what you have sent is handed over. A failure after the answer is reported to no one.")
    }
    await watched.end()
    note(watched.sightings())
    // A line may come later than the call that it is about: each is held against all that was typed.
    for line in overheard.all.sorted() { judgeLine(line, typed: typedEver.all) }
  }
}

extension WebRequest {
  /// What of it leaves the machine, as text: as it is, and as addresses and forms mean it.
  var text: String {
    let sent = "\(url) \(String(decoding: body, as: UTF8.self))"
    return sent.removingPercentEncoding.map { "\(sent)\n\($0)" } ?? sent
  }

  /// Whether the text is in it, as it is or as addresses and bodies spell it.
  func carries(_ text: String) -> Bool { SecretSearch([text]).isIn(self.text) }
}
