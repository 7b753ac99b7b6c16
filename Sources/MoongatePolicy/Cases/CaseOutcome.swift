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
      let words =
        sentence
        ?? differences.map { "\($0.field) should be \($0.expected) and is \($0.actual)" }.joined(separator: "; ")
      return cause.map { "\($0); so \(words)" } ?? words
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
    failure.map {
      ConfigurationProblem(location: $0.location, path: "", message: "case \"\(name)\" fails: \($0.summary)")
    }
  }
}

/// What came of all cases.
package struct CaseReport: Sendable {
  package let outcomes: [CaseOutcome]
  /// The case before which time ran out; it and those after it were not run.
  package let unreached: PolicyCase?
  package let coverage: Coverage
  /// What the cases met that the operator should know: results of `vary` outside of its bounds.
  package let warnings: [ConfigurationProblem]

  package var failures: [CaseOutcome] { outcomes.filter { !$0.holds } }
  package var holds: Bool { failures.isEmpty && unreached == nil }

  /// The cases that fail because a function fails, by that failure, in the order in which the failures were met.
  var causes: [(cause: String, failures: [CaseOutcome])] {
    var order: [String] = []
    var byCause: [String: [CaseOutcome]] = [:]
    for outcome in failures {
      guard let cause = outcome.failure?.cause else { continue }
      if byCause[cause] == nil { order.append(cause) }
      byCause[cause, default: []].append(outcome)
    }
    return order.map { ($0, byCause[$0] ?? []) }
  }

  /// Every reason against the generation. A function that fails is one reason, however many cases meet it.
  package func problems(after limit: Duration) -> [ConfigurationProblem] {
    var problems = causes.map { cause, failures in
      let (location, message) = SourceLocation.leading(cause) ?? (failures[0].location, cause)
      let count = failures.count == 1 ? "case" : "\(failures.count) cases fail by it, the first is"
      return ConfigurationProblem(
        location: location, path: "",
        message:
          "\(message); \(count) \"\(failures[0].name)\"\(failures.count == 1 ? " fails by it" : "") (\(failures[0].location))"
      )
    }
    problems += failures.filter { $0.failure?.cause == nil }.compactMap(\.problem)
    if let unreached {
      problems.append(
        ConfigurationProblem(
          location: unreached.location, path: "",
          message:
            "case \"\(unreached.name)\" was not reached: the files in tests/ may take \(limit.asWritten) together"))
    }
    return problems
  }
}

extension SourceLocation {
  /// The place that a sentence such as `policies/phone_otp.lua:4: boom` begins with, and the rest of it.
  /// - Returns: nil where it begins with none.
  static func leading(_ text: String) -> (location: SourceLocation, message: String)? {
    guard let match = text.prefixMatch(of: #/([^:\n]+):([0-9]{1,9}): /#), let line = Int(match.2) else { return nil }
    return (SourceLocation(file: String(match.1), line: line), String(text[match.range.upperBound...]))
  }
}
