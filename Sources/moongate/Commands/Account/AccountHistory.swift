import ArgumentParser
import MoongateCore
import MoongateHTTP
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate account history NAME`.
struct AccountHistory: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "Show the audit events of an account, newest first.",
    discussion: """
      Lists sign-ins, refusals, messages, changes and operator actions, as far back as the audit trail is kept: 7 days, or the newest 100,000 events of a kind. \
      Use `moongate policy explain` for the details of one decision.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(
    help:
      "An account id, a phone number, an email address or a user name. The identifier need not belong to an account.")
  var name: String
  @Option(help: "Show events since this age or time: 90s, 30m, 12h, 7d, or 2026-11-20T12:15:00Z.") var since: String?
  @Option(help: "Show only these event kinds, separated by commas.") var kind: String?
  @Option(help: "Maximum number of events to show.") var limit = 1_000
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard limit > 0 else { throw StartProblem("--limit must be 1 or more.", status: .couldNotRun) }
    let kinds = try kinds()
    try await OperatorStore.with(configuration) { opened in
      var filter = AuditFilter(
        people: try await opened.administration.people(named: name, region: opened.gateway.region), kinds: kinds)
      if let since {
        do throws(SinceProblem) {
          filter.since = try Timestamp.since(since, before: opened.now)
        } catch {
          throw StartProblem("--since \(error.sentence)", status: .couldNotRun)
        }
      }
      let events = try await opened.administration.events(matching: filter, limit: limit)
      if json { return print(try ToolJSON.text(OperatorDocument.events(events))) }
      for event in events { print(EventText(event: event).line) }
      if events.isEmpty {
        if try await opened.administration.accounts(named: name, region: opened.gateway.region).isEmpty {
          throw StartProblem("There is no account \(name), and the audit trail has no events for it.")
        }
        print("nothing happened")
      }
    }
  }

  private func kinds() throws -> Set<AuditEvent.Kind>? {
    guard let kind else { return nil }
    return Set(
      try kind.split(separator: ",").map { word in
        guard let kind = AuditEvent.Kind(rawValue: String(word)) else {
          let phrase = Suggestion.phrase(for: String(word), among: AuditEvent.Kind.allCases.map(\.rawValue))
          throw StartProblem("Unknown event kind \(word)\(phrase)", status: .couldNotRun)
        }
        return kind
      })
  }
}

/// One audit event as a line of text.
struct EventText {
  let event: AuditEvent

  var line: String {
    var parts = ["\(event.at.text)  \(event.kind.rawValue)\(event.code.map { " \($0)" } ?? "")"]
    if let count = event.count { parts.append("\(count) times") }
    parts += [event.flow, event.provider?.rawValue].compactMap(\.self)
    for name in ["limit", "reason", "rule", "cause"] {
      if let value = event.detail[name] { parts.append("\(name) \(value)") }
    }
    if let address = event.address { parts.append("from \(address)") }
    if let name = event.detail["operator"] { parts.append("by \(name)\(event.detail["by"].map { " (\($0))" } ?? "")") }
    parts.append(event.id.text)
    return parts.joined(separator: " · ")
  }
}
