import MoongateCore

/// The result of one case.
package struct CaseOutcome: Sendable {
  /// An act with its outcome.
  package struct Line: Sendable {
    /// Virtual time since the beginning of the case.
    package let at: Duration
    /// The act in Lua syntax.
    package let act: String
    package let outcome: String
    package let location: SourceLocation
  }

  /// An expectation that was not met.
  package struct Difference: Sendable, Equatable {
    /// The name in `expect`.
    package let field: String
    package let expected: String
    package let actual: String
  }

  /// Why a case failed.
  package struct Failure: Sendable {
    package let location: SourceLocation
    /// The act that was not possible; nil if an expectation was not met.
    package let sentence: String?
    package let differences: [Difference]
    /// The failure of a policy function that caused it, with its file and line.
    package var cause: String?

    /// The same failure with its cause.
    func because(_ cause: String?) -> Self {
      var failure = self
      failure.cause = cause
      return failure
    }

    /// The failure in one sentence, for a problem.
    package var summary: String {
      let words =
        sentence
        ?? differences.map { "\($0.field) should be \($0.expected), but is \($0.actual)" }.joined(separator: "; ")
      return cause.map { "\($0); so \(words)" } ?? words
    }
  }

  package let name: String
  package let location: SourceLocation
  package let trace: [Line]
  /// Nil if the case passes.
  package let failure: Failure?

  package var holds: Bool { failure == nil }

  /// The failure as a problem of the generation.
  package var problem: ConfigurationProblem? {
    failure.map {
      ConfigurationProblem(location: $0.location, path: "", message: "case \"\(name)\" fails: \($0.summary)")
    }
  }
}

/// The results of all cases.
package struct CaseReport: Sendable {
  package let outcomes: [CaseOutcome]
  /// The first case that was not run because time ran out; nil if all were run.
  package let unreached: PolicyCase?
  package let coverage: Coverage
  /// Warnings from running the cases: results of `vary` outside their bounds.
  package let warnings: [ConfigurationProblem]

  package var failures: [CaseOutcome] { outcomes.filter { !$0.holds } }
  package var holds: Bool { failures.isEmpty && unreached == nil }

  /// The failing cases that have the same failing function as their cause, in the order of their first occurrence.
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

  /// All problems of the generation. A failing function is one problem, however many cases it affects.
  package func problems(after limit: Duration) -> [ConfigurationProblem] {
    var problems = causes.map { cause, failures in
      let (location, message) = SourceLocation.leading(cause) ?? (failures[0].location, cause)
      let count = failures.count == 1 ? "case" : "\(failures.count) cases fail because of it, the first is"
      return ConfigurationProblem(
        location: location, path: "",
        message:
          "\(message); \(count) \"\(failures[0].name)\"\(failures.count == 1 ? " fails because of it" : "") (\(failures[0].location))"
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
  /// The location at the beginning of a message such as `policies/phone_otp.lua:4: boom`, and the rest of the message.
  /// - Returns: nil if the message does not begin with a location.
  static func leading(_ text: String) -> (location: SourceLocation, message: String)? {
    guard let match = text.prefixMatch(of: #/([^:\n]+):([0-9]{1,9}): /#), let line = Int(match.2) else { return nil }
    return (SourceLocation(file: String(match.1), line: line), String(text[match.range.upperBound...]))
  }
}
