/// What `outbox.mustache` shows: the messages that a demo or a test would have sent.
struct OutboxModel: PageModel {
  static let template = PageTemplate.outbox

  struct Row: Decodable {
    let at: String
    let line: String
    let subject: String?
    let text: String
    let code: String?
  }

  let rows: [Row]
  let isEmpty: Bool
  var stressesSupport = false
}
