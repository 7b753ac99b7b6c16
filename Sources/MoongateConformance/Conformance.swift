import MoongateSDK

/// The conformance suite: one call runs every rule against a provider, whichever shape it has and wherever it runs.
///
/// It lends the provider tools of its own (a clock, a messenger, other sites, a hasher, a key-value store, a log),
/// plays a person's part by the subject, and looks at what comes of it. It needs no gateway, and no rule looks at the
/// wall clock but for calls that do not end.
public enum Conformance {
  /// Runs the rules.
  /// - Parameters:
  ///   - provider: a `CodeProvider` or a `FullProvider`.
  ///   - subject: nil for one made of the descriptor.
  ///   - patience: how long a call may take, and a cancelled one to end.
  ///   - rules: nil for all of them.
  ///   - trace: whether the report has every message between the suite and the provider.
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
      harness.finds(
        .descriptor, "The provider is neither a CodeProvider nor a FullProvider.",
        "Conform to one of the two: the core knows no other shape.")
    }
    await harness.judgeStragglers()
    await declaration.judgeAgain()
    await harness.judgeLeavings()
    return harness.report
  }
}
