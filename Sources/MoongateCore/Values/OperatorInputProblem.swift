/// A problem in the input of an operator, by a command or a call of the admin listener.
package struct OperatorInputProblem: Error, Sendable, Equatable {
  /// The field's name in the admin API, which is also the name of the command's option.
  package let field: String
  package let sentence: String
}
