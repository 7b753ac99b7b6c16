import MoongateSDK

/// The conformance suite: one call runs all rules against a provider of either shape, in-process or external.
///
/// The suite provides its own tools (clock, messenger, HTTP client, hasher, key-value store, log), plays the user with
/// the answers of the subject, and checks the results. It needs no gateway. Only time limits for calls use the system
/// clock.
public enum Conformance {
  /// Runs the rules.
  /// - Parameters:
  ///   - provider: a `CodeProvider` or a `FullProvider`.
  ///   - subject: nil to derive the subject from the descriptor.
  ///   - patience: the time limit for a call, and for a cancelled call to end.
  ///   - rules: nil for all rules.
  ///   - trace: whether the report contains all messages between the suite and the provider.
  public static func run(
    _ provider: any Provider, _ subject: ConformanceSubject? = nil, patience: Duration = .seconds(10),
    rules: Set<ConformanceRule>? = nil,
    trace: ConformanceTrace = .off
  ) async -> ConformanceReport {
    let descriptor = provider.descriptor
    let harness = ConformanceHarness(
      descriptor, subject ?? ConformanceSubject(of: descriptor), patience: patience, rules: rules, trace: trace,
      watched: provider as? any WatchedProvider)
    let declaration = DescriptorRules(harness: harness, provider: provider)
    await declaration.run()
    switch provider {
    case let code as any CodeProvider: await CodeRules(harness: harness, provider: code).run()
    case let full as any FullProvider: await FullRules(harness: harness, provider: full).run()
    default:
      harness.addFinding(
        .descriptor, "The provider is neither a CodeProvider nor a FullProvider.",
        "Conform to one of the two: the core supports no other shape.")
    }
    await harness.checkLateToolUse()
    await declaration.checkAgain()
    await harness.checkAfterStop()
    return harness.report
  }
}
