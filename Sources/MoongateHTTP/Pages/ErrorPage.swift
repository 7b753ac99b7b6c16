import Hummingbird
import MoongateCore

/// `/auth/error?code=…`: explains an error code, for programs that redirect users here; `?decision=…`: shows a refusal
/// that could not be shown where it happened.
struct ErrorPage: Sendable {
  let pages: PageRenderer
  let audit: AuditTrail

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.error, servesAllDomains: true) { exchange throws(Refusal) in
        if let decision = try await storedRefusal(try exchange.query()["decision"]) {
          return pages.page(for: decision, to: exchange.request, exchange.generation)
        }
        // Only known codes are accepted. Text from a link is never shown.
        let name = try exchange.query()["code"]
        throw exchange.refusal(
          RefusalCode(reserved: name ?? "") ?? .badRequest, detail: name == nil ? "Something went wrong." : nil)
      }
    ]
  }

  /// A refusal whose message was stored for this page. Nothing else of a decision is shown here.
  private func storedRefusal(_ id: String?) async throws(Refusal) -> Refusal? {
    guard let id, id.hasPrefix("dc_"), let event = try? await audit.event(DecisionID(text: id)),
      let sentence = event.detail["told"],
      let code = event.code.flatMap({ RefusalCode(reserved: $0) })
    else { return nil }
    return Refusal(code, decision: event.id, detail: sentence)
  }
}
