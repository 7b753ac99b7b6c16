import HTTPTypes
import Hummingbird
import Logging
import MoongateCore
import MoongateSDK

/// A request with everything that is determined before its handler runs. It lives as long as the request.
package struct Exchange: Sendable {
  package let request: Request
  /// The kind of endpoint that the request is for.
  let kind: Endpoint.Kind
  /// The path parameters, one for each `{}`, as received.
  let parameters: [String]
  /// The generation that serves this request to its end.
  package let generation: any PolicyGeneration
  /// The address of the connection's peer.
  let peer: ClientAddress
  package let client: ForwardedClient
  package let credentials: Credentials
  /// The id of the decision for this request.
  package let decision: DecisionID
  let recorder: RefusalRecorder
  /// Reads the body within limits on size and time.
  let reader: BodyReader
  /// The providers of the program.
  let builtIn: ProviderRegistry
  /// The keys with which requests of apps are sealed; nil where none arrive.
  let keys: KeyRing?
  /// Whether the endpoint serves frames of other sites (`Endpoint.inFrames`).
  var isInFrames = false
  /// What the page that answers the request shows about its flow.
  package let shown = ShownFlow()

  /// The providers of the generation, or else of the program.
  package var providers: ProviderRegistry { generation.registry ?? builtIn }

  package var gateway: GatewaySettings { generation.gateway }

  /// The allowed targets of `return_to`.
  package var targets: RedirectTargets {
    RedirectTargets(publicURL: gateway.publicURL, redirectHosts: gateway.redirectHosts, routes: generation.routes)
  }

  /// The path parameter at an index, with its percent-encoding removed; nil if the encoding is invalid.
  func decodedParameter(_ index: Int) -> String? { PercentEncoding.decodeSegment(parameters[index]) }

  /// The fields of the query.
  /// - Throws: 400 if it is ambiguous.
  package func query() throws(Refusal) -> FormFields {
    let target = (request.head.path ?? "").utf8
    guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return .empty }
    guard let fields = FormFields(target[target.index(after: mark)...]) else { throw refusal(.badRequest) }
    shown.note(fields)
    return fields
  }

  /// The gateway's cookies for the root domain of the request.
  package var cookies: GatewayCookies {
    GatewayCookies(gateway, at: client.host?.name, isFramed: credentials.isFramed)
  }

  /// More than five parameters: all but the code are optional details.
  /// Creates and records a refusal of this request, which can then be found by its decision id.
  /// - Parameters:
  /// - detail: a sentence for the user, instead of that of the code.
  /// - fault, reason: for the operator. A fault is also logged as an error.
  package func refusal(
    _ code: RefusalCode, detail: String? = nil, field: String? = nil, retryAfter: Duration? = nil, fault: String? = nil,
    reason: String? = nil
  ) -> Refusal {
    recorder.record(
      Refusal(code, decision: decision, detail: detail, field: field, retryAfter: retryAfter), from: client.address,
      fault: fault, reason: reason)
  }

  /// The refusal of a request without the live session that it needs.
  package func unauthenticated() -> Refusal {
    recorder.record(
      Refusal(.unauthenticated, decision: decision), from: client.address, fault: nil,
      detail: RefusalCause.detail(ofSessionToken: credentials.session))
  }

  /// Logs a refusal that the handler answers itself.
  package func log(_ refusal: Refusal) { recorder.log(refusal, method: request.method.rawValue) }

  /// Accesses the store.
  /// - Throws: 503 if the store is unavailable.
  package func mappingFaults<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(Refusal) -> Answer {
    do {
      return try await body()
    } catch {
      throw refusal(.storeUnavailable, fault: error.description)
    }
  }
}

/// Writes refusals to the audit trail and the log, except those that the flow engine has already written.
struct RefusalRecorder: Sendable {
  let audit: AuditTrail
  let clock: any GatewayClock
  let logger: Logger

  /// Logs a refusal in one line, without query, codes, tokens and identifiers.
  func log(_ refusal: Refusal, method: String) {
    logger.debug(
      "refused", metadata: ["decision": "\(refusal.decision)", "code": "\(refusal.code.name)", "method": "\(method)"])
  }

  /// - Parameter fault, reason, detail: for the operator. They are never sent to a client.
  func record(
    _ refusal: Refusal, from address: ClientAddress, fault: String?, reason: String? = nil,
    detail: [String: String] = [:]
  ) -> Refusal {
    var detail = detail
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
