import MoongateCore
import MoongateSDK

/// The query of a call to the admin listener. Operators type these by hand: what is not understood is refused, and
/// never ignored.
struct AdminQuery: Sendable {
  /// What follows a name that is none: "; did you mean `kind`?".
  typealias Suggestion = @Sendable (_ word: String, _ known: [String]) -> String

  let fields: FormFields
  private let exchange: Exchange
  private let suggestion: Suggestion

  /// - Parameter known: the parameters that the call has.
  /// - Throws: 400 where the query has another one.
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
  /// - Parameter most: a greater one counts as this.
  func count(_ name: String, usual: Int, most: Int) throws(Refusal) -> Int {
    guard let text = fields[name] else { return usual }
    guard let number = Int(text), number > 0 else {
      throw refusal(name, "`\(name)` must be a whole number, 1 or more.")
    }
    return min(number, most)
  }

  /// A moment, or a length of time before now.
  func since(_ name: String, before now: Timestamp) throws(Refusal) -> Timestamp? {
    guard let text = fields[name] else { return nil }
    do throws(SinceProblem) {
      return try Timestamp.since(text, before: now)
    } catch {
      throw refusal(name, "`\(name)` \(error.sentence)")
    }
  }

  /// Kinds of events, with commas between them.
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

  /// `1`, where the parameter is there.
  func flag(_ name: String) throws(Refusal) -> Bool {
    guard let text = fields[name] else { return false }
    guard text == "1" else { throw refusal(name, "`\(name)` is 1, or is left out.") }
    return true
  }

  /// A suggestion that is a question ends the sentence.
  private static func missing(_ what: String, _ suggestion: String) -> String {
    "There is no \(what)\(suggestion)" + (suggestion.hasSuffix("?") ? "" : ".")
  }

  private func refusal(_ name: String, _ detail: String) -> Refusal {
    exchange.refusal(.badRequest, detail: detail, field: name)
  }
}
