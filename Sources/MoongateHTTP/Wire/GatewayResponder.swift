import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateProxy
import MoongateSDK
import Tracing

/// Answers requests to the gateway's own endpoints: finds the endpoint, reads the credentials, and converts refusals
/// into answers.
package struct GatewayResponder: HTTPResponder {
  let table: EndpointTable
  let generations: ActiveGeneration
  let random: any RandomSource
  let recorder: RefusalRecorder
  let reader: BodyReader
  let forwardingFaults: FoldedLog<LoggedForwardingFault>
  var providers = ProviderRegistry.none
  /// The keys with which requests of apps are sealed; nil on a listener that has none.
  var keys: KeyRing?
  /// Shows a refusal as a page, to a browser.
  let refusalPage: @Sendable (Refusal, Request, any PolicyGeneration, FramedRefusal?) -> Response
  /// Checks a request before it reaches its endpoint.
  let guarded: @Sendable (Exchange, Endpoint.Kind) throws(Refusal) -> Void

  /// `EndpointTable.undescribed`.
  package var undescribed: [String] { table.undescribed }

  package func respond(to request: Request, context: ConnectionContext) async throws -> Response {
    var trace = InstrumentationContext.topLevel
    InstrumentationSystem.instrument.extract(request.headers, into: &trace, using: HeaderExtractor())
    guard trace.place != nil else { return try await answer(request, context) }
    return try await InstrumentationContext.withValue(trace) { try await answer(request, context) }
  }

  private func answer(_ request: Request, _ context: ConnectionContext) async throws -> Response {
    // Applies to the pool thread that runs this. A flood of sign-ins must not take processor time from
    // authenticated requests.
    ThreadPriority.answering.take()
    let path = (request.head.path ?? "").prefix { $0 != "?" }
    // RFC 9110 section 9.3.7: about the listener itself, not one of its endpoints.
    if request.method == .options, path == "*" { return .nothing }
    let decision = DecisionID(from: random)
    let generation = generations.current
    let (client, forwardingFault) = client(of: request, context.peer, generation.gateway)
    let elsewhere = CrossOrigin(path, generation)
    var kind = path.hasPrefix("/api/") || path.hasPrefix("/.well-known/") ? Endpoint.Kind.call : .page
    var response: Response
    var cookies: [String] = []
    var asked: Exchange?
    do throws(Refusal) {
      let refuse = { (code: RefusalCode) in
        recorder.record(
          Refusal(code, decision: decision), from: client.address, fault: nil, reason: forwardingFault?.reason)
      }
      if forwardingFault != nil { throw refuse(.badRequest) }
      switch table.find(request.method, path) {
      case .nothing: throw refuse(.notFound)
      case .wrongMethod(let allowed):
        if let preflight = elsewhere?.preflight(request, methods: allowed) {
          response = preflight
        } else {
          response = answer(refuse(.methodNotAllowed), as: kind, to: request, generation: generation)
          response.headers[.allow] = allowed.joined(separator: ", ")
        }
      case .found(let endpoint, let parameters):
        kind = endpoint.kind
        var credentials = try credentials(of: request, endpoint, generation, decision, from: client)
        if kind == .page, credentials.browser == nil, request.opensFlow {
          let browser = SecretText(Base64URL.encode(random.bytes(32)))
          credentials.begin(browser)
          cookies.append(GatewayCookies(generation.gateway).begin(browser))
        }
        let exchange = Exchange(
          request: request, kind: kind, parameters: parameters, generation: generation, peer: context.peer.address,
          client: client,
          credentials: credentials, decision: decision,
          recorder: recorder, reader: reader, builtIn: providers, keys: keys, isInFrames: endpoint.isInFrames)
        asked = exchange
        try guarded(exchange, kind)
        if !endpoint.servesAllDomains, generation.gateway.furtherDomain(of: client.host?.name) != nil {
          response = try exchange.redirectHome()
        } else {
          response = try await endpoint.handle(exchange)
        }
      }
    } catch {
      response = answer(error, as: kind, to: request, generation: generation, in: asked?.framedRefusal)
    }
    response.setCookies(cookies)
    elsewhere?.mark(&response, for: request)
    return request.method == .head ? response.createHeadResponse() : response
  }

  /// The client of a request, and why its scheme or host is unknown.
  private func client(
    of request: Request, _ peer: ConnectionPeer, _ gateway: GatewaySettings
  ) -> (ForwardedClient, ForwardingFault?) {
    var client = ForwardedClient(
      peer: peer.address, isSecure: gateway.tls != nil, host: request.head.authority.flatMap { HostName($0) })
    var bytes: [UInt8] = []
    let fields = ForwardingFields(request.headers, in: &bytes)
    if fields.isEmpty || !peer.mayForward { return (client, nil) }
    do throws(ForwardingFault) {
      try client.read(fields, bytes.span, trusted: gateway.trustedProxies)
    } catch {
      forwardingFaults.report(LoggedForwardingFault(error, from: peer.address))
      return (client, error)
    }
    if let fault = client.addressFault { forwardingFaults.report(LoggedForwardingFault(fault, from: peer.address)) }
    return (client, nil)
  }

  private func credentials(
    of request: Request, _ endpoint: Endpoint, _ generation: any PolicyGeneration, _ decision: DecisionID,
    from client: ForwardedClient
  ) throws(Refusal) -> Credentials {
    let gateway = generation.gateway
    let admitsFramed =
      endpoint.isInFrames && generation.routes.hasFrames
      && request.admitsFramedCookies(from: [gateway.publicURL.description, client.origin])
    do throws(Credentials.Contradiction) {
      // Attack: a form of another site acts with the cookies of the user who views it.
      return try Credentials(
        endpoint.kind == .inbound ? [:] : request.headers, gateway: gateway, admitsFramed: admitsFramed)
    } catch {
      throw recorder.record(
        Refusal(
          .badRequest, decision: decision,
          detail: "The request's cookie and its Authorization name different sessions."),
        from: client.address, fault: nil)
    }
  }

  /// Logs the refusal and converts it into an answer that the client can read.
  private func answer(
    _ refusal: Refusal, as kind: Endpoint.Kind, to request: Request, generation: any PolicyGeneration,
    in frame: FramedRefusal? = nil
  ) -> Response {
    recorder.log(refusal, method: request.method.rawValue)
    return kind != .call && request.wantsHTML ? refusalPage(refusal, request, generation, frame) : .problem(refusal)
  }
}

private struct HeaderExtractor: Extractor {
  func extract(key: String, from carrier: HTTPFields) -> String? { HTTPField.Name(key).flatMap { carrier[$0] } }
}

extension Request {
  /// Whether the request opens a page of a flow. HEAD requests open nothing.
  fileprivate var opensFlow: Bool {
    guard method == .get, let target = head.path, let mark = target.firstIndex(of: "?") else { return false }
    let fields = target[target.index(after: mark)...].split(separator: "&")
    return fields.contains { $0.hasPrefix("id=") }
  }

  /// Whether the client is a browser, whose `Accept` contains `text/html`.
  var wantsHTML: Bool {
    headers[values: .accept].contains { value in
      let bytes = Array(value.utf8)
      return AcceptHeader.containsHTML(bytes.span)
    }
  }
}

extension ForwardingFields {
  /// - Parameter bytes: receives the values, to which the fields refer.
  fileprivate init(_ headers: HTTPFields, in bytes: inout [UInt8]) {
    self.init()
    for header in [ForwardingHeader.address, .scheme, .host] {
      guard let name = HTTPField.Name(header.rawValue) else { continue }
      for value in headers[values: name] {
        let range = bytes.count..<bytes.count + value.utf8.count
        bytes += value.utf8
        switch header {
        case .address: addresses.append(range)
        case .scheme: schemes.append(range)
        case .host: hosts.append(range)
        }
      }
    }
  }
}

extension Exchange {
  /// The answer of hosts of a further root domain to paths that are served only at `public_url`: pages are redirected
  /// there; everything else is refused.
  ///
  /// Attack: a token of one root domain changes the account, or begins its own step-up. Only the token of the sign-in
  /// itself may do that.
  fileprivate func redirectHome() throws(Refusal) -> Response {
    let home = gateway.publicURL.description
    guard kind == .page, [.get, .head].contains(request.method) else {
      throw refusal(.notFound, detail: "Only \(home) answers this address.")
    }
    return .seeOther(home + (request.head.path ?? "/"))
  }

  /// Attack: a form or script of another site acts with the cookies of the user who views it.
  /// - Throws: 403 `origin_refused`.
  func checkOrigin(for kind: Endpoint.Kind) throws(Refusal) {
    switch request.method {
    case .get, .head, .options: return
    default: break
    }
    var own = [gateway.publicURL.description, client.origin]
    switch kind {
    case .asset, .inbound: return
    case .call:
      guard credentials.holdsCookie else { return }
      if CrossOrigin.coversAPI((request.head.path ?? "").prefix { $0 != "?" }) { own += gateway.corsOrigins }
    case .page: break
    }
    guard credentials.origins.count == 1, own.contains(credentials.origins[0]) else { throw refusal(.originRefused) }
  }
}
