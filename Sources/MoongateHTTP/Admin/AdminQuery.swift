import MoongateCore
import MoongateSDK

/// The query of a call to the admin listener. Operators type queries by hand, so unknown parameters are refused, not
/// ignored.
struct AdminQuery: Sendable {
  /// The text after an unknown name, such as "; did you mean `kind`?".
  typealias Suggestion = @Sendable (_ word: String, _ known: [String]) -> String

  let fields: FormFields
  private let exchange: Exchange
  private let suggestion: Suggestion

  /// - Parameter known: the parameters of the call.
  /// - Throws: 400 if the query has another parameter.
  init(_ exchange: Exchange, known: [String], suggestion: @escaping Suggestion) throws(Refusal) {
    fields = try exchange.query()
    self.exchange = exchange
    self.suggestion = suggestion
    for name in fields.names where !known.contains(name) {
      throw exchange.refusal(
        .badRequest, detail: Self.missing("parameter `\(name)`", suggestion(name, known)), field: name)
    }
    // `?account=$ACCOUNT` with an unset variable must not answer with the events of everybody.
    if let empty = fields.names.first(where: fields.isEmpty) {
      throw refusal(empty, "`\(empty)` is empty. Give it a value, or leave it out.")
    }
  }

  subscript(name: String) -> String? { fields[name] }

  /// A whole number, 1 or more.
  /// - Parameter most: the maximum; greater numbers are reduced to it.
  func count(_ name: String, usual: Int, most: Int) throws(Refusal) -> Int {
    guard let text = fields[name] else { return usual }
    guard let number = Int(text), number > 0 else {
      throw refusal(name, "`\(name)` must be a whole number, 1 or more.")
    }
    guard number <= most else { throw refusal(name, "`\(name)` must be at most \(most).") }
    return number
  }

  /// A time, or a duration before now.
  func since(_ name: String, before now: Timestamp) throws(Refusal) -> Timestamp? {
    guard let text = fields[name] else { return nil }
    do throws(SinceProblem) {
      return try Timestamp.since(text, before: now)
    } catch {
      throw refusal(name, "`\(name)` \(error.sentence)")
    }
  }

  /// Kinds of events, separated by commas.
  func kinds(_ name: String) throws(Refusal) -> Set<AuditEvent.Kind>? {
    guard let text = fields[name] else { return nil }
    var kinds: Set<AuditEvent.Kind> = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
      guard let kind = AuditEvent.Kind(rawValue: word) else {
        let known = AuditEvent.Kind.allCases.map(\.rawValue).sorted()
        throw refusal(name, Self.missing("kind of event `\(word)`", suggestion(word, known)))
      }
      kinds.insert(kind)
    }
    return kinds
  }

  /// The id of a decision.
  func decision(_ name: String) throws(Refusal) -> DecisionID? {
    guard let text = fields[name] else { return nil }
    guard text.hasPrefix("dc_"), text.utf8.count <= 64 else {
      throw refusal(name, "`\(name)` must be the id of a decision, such as dc_Zx81cWqDDtPGYLNU.")
    }
    return DecisionID(text: text)
  }

  /// Whether the parameter is `1`. It may be omitted.
  func flag(_ name: String) throws(Refusal) -> Bool {
    guard let text = fields[name] else { return false }
    guard text == "1" else { throw refusal(name, "`\(name)` is 1, or is left out.") }
    return true
  }

  /// Ends the sentence with a full stop, unless the suggestion is a question.
  private static func missing(_ what: String, _ suggestion: String) -> String {
    "There is no \(what)\(suggestion)" + (suggestion.hasSuffix("?") ? "" : ".")
  }

  private func refusal(_ name: String, _ detail: String) -> Refusal {
    exchange.refusal(.badRequest, detail: detail, field: name)
  }
}
