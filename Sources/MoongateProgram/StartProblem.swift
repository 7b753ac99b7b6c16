/// Why a command ended early, as a sentence that says what happened, where, and what to do.
package struct StartProblem: Error {
  package let sentence: String
  package let status: ExitStatus

  package init(_ sentence: String, status: ExitStatus = .found) {
    self.sentence = sentence
    self.status = status
  }
}

/// The exit status of a command.
package enum ExitStatus: Int32 {
  case fine = 0
  /// Problems were found and printed.
  case found = 1
  /// Bad usage, or the input is missing.
  case couldNotRun = 2
}
