import HTTPTypes
import Hummingbird
import Logging
import MoongateCore

/// One request, with what was found out about it before its handler runs. It lives as long as the request.
struct Exchange: Sendable {
  let request: Request
  /// Whether a page asks or the API.
  let kind: Endpoint.Kind
  /// What stood in the place of each `{}`.
  let parameters: [String]
  /// The generation that serves this request to its end.
  let generation: any PolicyGeneration
  let client: ForwardedClient
  let credentials: Credentials
  /// Names this request's decision.
  let decision: DecisionID
  let recorder: RefusalRecorder
  /// How long a body may take, and how long it may be.
  let reader: BodyReader
  /// The providers of this program.
  let builtIn: ProviderRegistry

  /// The providers of this program, and those that the generation brought with it.
  var providers: ProviderRegistry { generation.registry ?? builtIn }

  var gateway: GatewaySettings { generation.gateway }

  /// Where `return_to` may lead.
  var targets: RedirectTargets {
    RedirectTargets(publicURL: gateway.publicURL, redirectHosts: gateway.redirectHosts, routes: generation.routes)
  }

  /// The fields of the query.
  /// - Throws: 400 where they can be read in more than one way.
  func query() throws(Refusal) -> FormFields {
    let target = (request.head.path ?? "").utf8
    guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return .empty }
    guard let fields = FormFields(target[target.index(after: mark)...]) else { throw refusal(.badRequest) }
    return fields
  }

  /// The gateway's cookies on the root domain that the request is for.
  var cookies: GatewayCookies { GatewayCookies(gateway, at: client.host?.name) }

  /// A refusal of this request, to be thrown: it is found under its decision id from now on.
  /// - Parameters:
  ///   - detail: for the person, in place of the code's sentence.
  ///   - fault, reason: for the operator; a fault is logged as an error too.
  func refusal(
    _ code: RefusalCode, detail: String? = nil, field: String? = nil, retryAfter: Duration? = nil, fault: String? = nil,
    reason: String? = nil
  ) -> Refusal {
    recorder.record(
      Refusal(code, decision: decision, detail: detail, field: field, retryAfter: retryAfter), from: client.address,
      fault: fault, reason: reason)
  }

  /// One line for the operator about a refusal that the handler answers by itself.
  func note(_ refusal: Refusal) { recorder.note(refusal, method: request.method.rawValue) }

  /// Asks the store.
  /// - Throws: 503 where it does not answer.
  func asking<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(Refusal) -> Answer {
    do {
      return try await body()
    } catch {
      throw refusal(.storeUnavailable, fault: error.description)
    }
  }
}

/// Writes refusals to the audit trail and the log: those that the flow engine has not written already.
struct RefusalRecorder: Sendable {
  let audit: AuditTrail
  let clock: any GatewayClock
  let logger: Logger

  /// One line for the operator: never a query, a code, a token or an identifier.
  func note(_ refusal: Refusal, method: String) {
    logger.debug(
      "refused", metadata: ["decision": "\(refusal.decision)", "code": "\(refusal.code.name)", "method": "\(method)"])
  }

  /// - Parameter fault, reason: for the operator; never shown to a client.
  func record(_ refusal: Refusal, from address: ClientAddress, fault: String?, reason: String? = nil) -> Refusal {
    var detail: [String: String] = [:]
    if let reason { detail["reason"] = reason }
    if let fault {
      detail["fault"] = fault
      logger.error(
        "a request failed",
        metadata: ["decision": "\(refusal.decision)", "code": "\(refusal.code.name)", "fault": "\(fault)"])
    }
    if let field = refusal.field { detail["field"] = field }
    var refusal = refusal
    refusal.decision = audit.record(
      AuditEvent(
        id: refusal.decision, at: clock.now(), kind: .refused, address: address.description, code: refusal.code.name,
        detail: detail))
    return refusal
  }
}
