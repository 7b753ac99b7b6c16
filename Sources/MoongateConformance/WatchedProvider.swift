import Foundation
import MoongateSDK

/// A provider outside the reach of the suite's tools, for example a separate program, observed by the caller that
/// started it.
///
/// The suite offers it tools as usual, but it does not use them. The observations replace their records.
public protocol WatchedProvider: Provider {
  /// Why its messages cannot be observed, as the end of a sentence; nil if they can.
  var unobservableReason: String? { get }
  /// Whether the delivery of its messages can be delayed, so that the end of a cancelled call can be observed.
  var canDelayDelivery: Bool { get }
  /// The language of the terms in findings.
  var language: ProviderLanguage { get }
  /// Sets the behavior of the services that it sends messages to, from now on.
  func setServiceBehavior(_ behavior: ServiceBehavior)
  /// The observations since the last call.
  func takeObservations() -> ProviderObservations
  /// The descriptor after another start; nil if it cannot be started again.
  func restartedDescriptor() async -> Result<ProviderDescriptor, RestartProblem>?
  /// Stops it, so that its last output is observed.
  func end() async
}

extension WatchedProvider {
  /// The JSON messages.
  public var language: ProviderLanguage { .json }

  /// It cannot be started again.
  public func restartedDescriptor() async -> Result<ProviderDescriptor, RestartProblem>? { nil }
}

/// Why an external provider could not be started again.
public struct RestartProblem: Error, Sendable {
  /// The reason, as the end of a sentence.
  public let sentence: String

  public init(_ sentence: String) { self.sentence = sentence }
}

/// The behavior of the services that a provider sends messages to.
public enum ServiceBehavior: Sendable {
  case works
  case fails
  /// Until the call is cancelled.
  case hangs
}

/// The former name of `ServiceBehavior`.
@available(*, deprecated, renamed: "ServiceBehavior")
public typealias SiteManner = ServiceBehavior

/// The former name of `ProviderObservations`.
@available(*, deprecated, renamed: "ProviderObservations")
public typealias Sightings = ProviderObservations

/// The observations of an external provider.
public struct ProviderObservations: Sendable {
  /// The sent requests, in order.
  public var requests: [WebRequest]
  /// Its output for operators: lines of logs and standard error, and texts of faults, unredacted.
  public var lines: [String]
  /// Other violations.
  public var findings: [ConformanceFinding]
  /// The messages, in order: `→ {…}` to the provider, `← {…}` from it.
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
  /// Adds the observations of an external provider during a call.
  func look(_ capabilities: RecordedCapabilities) {
    guard let watched else { return }
    let seen = watched.takeObservations()
    capabilities.addObservations(seen)
    note(seen)
  }

  private func note(_ seen: ProviderObservations) {
    for finding in seen.findings { addFinding(finding.rule, finding.seen, finding.advice) }
    operatorOutput.add(seen.lines)
    for message in seen.messages { trace.record(message) }
  }

  /// Stops an external provider and checks its late actions.
  func checkAfterStop() async {
    guard let watched else { return }
    let late = watched.takeObservations()
    note(late)
    if !late.requests.isEmpty {
      addFinding(
        .cleanup, "Something was sent after the call had ended.",
        "Answer after all messages are handed over. A failure after the answer cannot be reported.")
    }
    await watched.end()
    note(watched.takeObservations())
    // A line may arrive after its call, so check each against all secrets.
    for line in operatorOutput.all.sorted() { checkLine(line, typed: typedEver.all) }
  }
}

extension WebRequest {
  /// The content of a request as text, raw and percent-decoded.
  var text: String {
    let sent = "\(url) \(String(decoding: body, as: UTF8.self))"
    return sent.removingPercentEncoding.map { "\(sent)\n\($0)" } ?? sent
  }

  /// Whether the request contains the text, in any encoding of URLs and bodies.
  func carries(_ text: String) -> Bool { SecretSearch([text]).isIn(self.text) }
}
