import Hummingbird
import MoongateCore

/// A message of the outbox, as the admin listener shows it.
package struct OutboxEntry: Sendable {
  package let id: String
  package let at: Timestamp
  /// `sms` or `mail`.
  package let channel: String
  package let to: String
  package let subject: String?
  package let text: String
  package let code: String?

  /// More than five parameters: one for each field.
  package init(id: String, at: Timestamp, channel: String, to: String, subject: String?, text: String, code: String?) {
    self.id = id
    self.at = at
    self.channel = channel
    self.to = to
    self.subject = subject
    self.text = text
    self.code = code
  }
}

/// `/outbox`: the messages that a demo or a test would have sent, as JSON and as a page. Available only if a provider
/// uses `outbox()`.
struct OutboxCalls: Sendable {
  /// Newest first.
  let entries: @Sendable () -> [OutboxEntry]
  let pages: PageRenderer

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .outbox) { exchange throws(Refusal) in
        guard exchange.gateway.providers.values.contains(where: { $0.deliveries.values.contains(.outbox) }) else {
          throw exchange.refusal(.notFound, detail: "No provider uses outbox().")
        }
        let entries = entries()
        guard exchange.request.wantsHTML else { return .json(.list(entries.map(document))) }
        let words = pages.words(exchange)
        let rows = entries.prefix(100).map { entry in
          OutboxModel.Row(
            at: entry.at.text, line: words.text("outbox_to", ["to": entry.to]), subject: entry.subject,
            text: entry.text, code: entry.code)
        }
        return pages.page(OutboxModel(rows: rows, isEmpty: rows.isEmpty), title: words["outbox"], exchange)
      }
    ]
  }

  private func document(_ entry: OutboxEntry) -> JSONValue {
    .members([
      "id": .text(entry.id), "at": .text(entry.at.text), "channel": .text(entry.channel), "to": .text(entry.to),
      "subject": .optional(entry.subject),
      "text": .text(entry.text), "code": .optional(entry.code),
    ])
  }
}
