import Hummingbird
import MoongateCore

/// `/auth/error?code=…`: what one of our codes means, for programs that send people here; `?decision=…`: what was
/// decided and could not be shown where it was.
struct ErrorPage: Sendable {
  let pages: PageRenderer
  let audit: AuditTrail

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/error", servesAllDomains: true) { exchange throws(Refusal) in
        if let decision = try await told(try exchange.query()["decision"]) {
          return pages.page(for: decision, to: exchange.request, exchange.generation)
        }
        // From the closed set of codes: the text of a link is never shown.
        let name = try exchange.query()["code"]
        throw exchange.refusal(
          RefusalCode(reserved: name ?? "") ?? .badRequest, detail: name == nil ? "Something went wrong." : nil)
      }
    ]
  }

  /// A refusal whose sentence was kept for this page; nothing else of a decision is shown here.
  private func told(_ id: String?) async throws(Refusal) -> Refusal? {
    guard let id, id.hasPrefix("dc_"), let event = try? await audit.event(DecisionID(text: id)),
      let sentence = event.detail["told"],
      let code = event.code.flatMap({ RefusalCode(reserved: $0) })
    else { return nil }
    return Refusal(code, decision: event.id, detail: sentence)
  }
}
