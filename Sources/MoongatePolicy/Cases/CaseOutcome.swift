import MoongateCore

/// What came of one case.
package struct CaseOutcome: Sendable {
  /// One act as it went.
  package struct Line: Sendable {
    /// Virtual time since the case began.
    package let at: Duration
    /// As it is written in the file.
    package let act: String
    package let outcome: String
    package let location: SourceLocation
  }

  /// Something that was expected, and was otherwise.
  package struct Difference: Sendable, Equatable {
    /// As `expect` spells it.
    package let field: String
    package let expected: String
    package let actual: String
  }

  /// Why a case failed.
  package struct Failure: Sendable {
    package let location: SourceLocation
    /// What could not be done; nil where an expectation was not met.
    package let sentence: String?
    package let differences: [Difference]
    /// The policy's own failure that is behind it, with its file and line.
    package var cause: String?

    /// The same failure, and what is behind it.
    func because(_ cause: String?) -> Self {
      var failure = self
      failure.cause = cause
      return failure
    }

    /// In one sentence, as a problem of a generation says it.
    package var summary: String {
      let words = sentence ?? differences.map { "\($0.field) should be \($0.expected) and is \($0.actual)" }.joined(separator: "; ")
      return cause.map { "\(words): \($0)" } ?? words
    }
  }

  package let name: String
  package let location: SourceLocation
  package let trace: [Line]
  /// nil: it holds.
  package let failure: Failure?

  package var holds: Bool { failure == nil }

  /// As a problem of the generation that wanted to be judged by it.
  package var problem: ConfigurationProblem? {
    failure.map { ConfigurationProblem(location: $0.location, path: "", message: "case \"\(name)\" fails: \($0.summary)") }
  }
}

/// What came of all cases.
package struct CaseReport: Sendable {
  package let outcomes: [CaseOutcome]
  /// The case before which time ran out; it and those after it were not run.
  package let unreached: PolicyCase?
  package let coverage: Coverage

  package var failures: [CaseOutcome] { outcomes.filter { !$0.holds } }
  package var holds: Bool { failures.isEmpty && unreached == nil }

  /// Every reason against the generation.
  package func problems(after limit: Duration) -> [ConfigurationProblem] {
    var problems = outcomes.compactMap(\.problem)
    if let unreached {
      problems.append(
        ConfigurationProblem(
          location: unreached.location, path: "",
          message: "case \"\(unreached.name)\" was not reached: the files in tests/ may take \(limit.asWritten) together"))
    }
    return problems
  }
}
