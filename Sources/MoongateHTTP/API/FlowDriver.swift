import Hummingbird
import MoongateCore
import MoongateSDK

/// Runs flows for HTTP requests. All calls and pages use it, so binding flows to browsers and setting cookies is in one
/// place.
package struct FlowDriver: Sendable {
  package let engine: FlowEngine
  package let sessions: SessionDirectory
  package let random: any RandomSource

  /// The result of a flow operation, with cookies to set.
  package struct Outcome: Sendable {
    package var view: FlowView
    /// `Set-Cookie` header values.
    package var cookies: [String] = []
    /// The browser that this request has bound the flow to.
    package var browser: TokenHash?
  }

  /// The client, with its live session, if any.
  package func caller(_ exchange: Exchange) async throws(Refusal) -> ClientContext {
    var client = ClientContext(
      decision: exchange.decision, address: exchange.client.address, userAgent: exchange.request.headers[.userAgent],
      browser: exchange.credentials.browserHash, session: try await session(exchange),
      device: exchange.credentials.device,
      entryPoint: exchange.kind == .page ? .page : .api)
    client.sessionToken = exchange.credentials.session
    client.languages = LanguageChoice.wanted(by: exchange.request)
    client.allowedApps = exchange.credentials.allowedApps
    return client
  }

  /// The flow, if this client may see it. The page that answers the request names the app that the flow is for.
  /// - Parameter browser: the browser that this request has bound the flow to, which does not have its cookie yet.
  func view(_ id: FlowID, in browser: TokenHash? = nil, _ exchange: Exchange) async throws(Refusal)
    -> Result<FlowView, Refusal>
  {
    var client = try await caller(exchange)
    if let browser { client = client.with(browser: browser) }
    let result = await engine.view(id, client: client)
    if case .success(let view) = result { exchange.shown.show(view) }
    return result
  }

  /// The live session of the request.
  package func session(_ exchange: Exchange) async throws(Refusal) -> SessionSnapshot? {
    guard let token = exchange.credentials.session else { return nil }
    let found = try await exchange.mappingFaults { () async throws(StoreFault) in try await sessions.find(token) }
    // Attack: a token of one root domain is used at a host of another.
    return found.flatMap { exchange.gateway.accepts($0.session.domain, at: exchange.client.host?.name) ? $0 : nil }
  }

  /// The live session of a token that the same request has issued.
  package func session(of token: SecretText, _ exchange: Exchange) async throws(Refusal) -> SessionSnapshot? {
    let hash = TokenHash(of: token.reveal().utf8)
    return try await exchange.mappingFaults { () async throws(StoreFault) in try await sessions.find(hash) }
  }

  /// The invitation whose link the browser has opened, if it can be used now. Only pages use it: an app sends the code
  /// itself.
  func invitation(_ exchange: Exchange) async throws(Refusal) -> Invitation? {
    guard exchange.kind == .page, let code = exchange.credentials.invitation else { return nil }
    return try await exchange.mappingFaults { () async throws(StoreFault) in try await engine.invitation(code) }
  }

  /// More than five parameters: what a call that creates a flow may say.
  /// Begins a flow. If a page begins it, or the request has an `Origin`, the flow is bound to the browser.
  /// - Parameters:
  /// - grant: the app that receives the result.
  /// - session: the session that the flow belongs to, if the same request has created it.
  /// - remember: the user's choice to stay signed in; nil: none yet.
  /// - invitation: the code of an invitation; nil: none.
  package func create(
    _ name: String, returnTo: String?, grant: Grant? = nil, in session: SessionSnapshot? = nil,
    remember: Bool? = nil, invitation: SecretText? = nil, _ exchange: Exchange
  ) async throws(Refusal) -> Outcome {
    var invitation = invitation
    // A code that was used up meanwhile is left out: users who have an account sign in all the same.
    if invitation == nil, try await self.invitation(exchange) != nil { invitation = exchange.credentials.invitation }
    var client = try await caller(exchange).remembering(remember).invited(by: invitation)
    if let session { client = client.with(session: session) }
    let returnTo = exchange.targets.accept(returnTo)
    let purpose = exchange.generation.purpose(of: name)
    // Attack: a page that a site shows in a frame changes the account by a session of that frame.
    guard !exchange.credentials.isFramed || purpose.isForFrames else {
      throw exchange.refusal(.denied, reason: "a session of a frame begins no flow that changes the account")
    }
    exchange.shown.note(purpose, returnTo: returnTo)
    guard exchange.kind == .page || !exchange.credentials.origins.isEmpty else {
      return Outcome(
        view: try await engine.create(name, returnTo: returnTo, browser: nil, grant: grant, client: client).get())
    }
    let browser = exchange.credentials.browser ?? SecretText(Base64URL.encode(random.bytes(32)))
    let hash = TokenHash(of: browser.reveal().utf8)
    let view = try await engine.create(
      name, returnTo: returnTo, browser: hash, grant: grant, client: client.with(browser: hash)
    ).get()
    return Outcome(
      view: view, cookies: [exchange.cookies.begin(browser)] + exchange.identifyFrame(browser), browser: hash)
  }

  /// Performs an operation on a flow. If it completes a flow that is bound to the browser, the browser is signed in.
  /// - Parameters:
  /// - created: the result of `create` in the same request, whose cookie the browser does not have yet.
  /// - session: as for `create`.
  package func drive(
    _ exchange: Exchange, as created: Outcome? = nil, in session: SessionSnapshot? = nil,
    _ verb: (FlowEngine, ClientContext) async -> Result<FlowView, Refusal>
  ) async throws(Refusal) -> Outcome {
    var client = try await caller(exchange)
    if let browser = created?.browser { client = client.with(browser: browser) }
    if let session { client = client.with(session: session) }
    var view = try await verb(engine, client).get()
    exchange.shown.show(view)
    let method = RememberedSignInMethod.keep(after: view, exchange).map { [$0] } ?? []
    guard view.session != nil else {
      // The session is the app's. The browser remains a known device.
      return Outcome(view: view, cookies: (view.deviceToken.map { [exchange.cookies.remember($0)] } ?? []) + method)
    }
    if view.isOfBrowser { view.next = await next(after: view, client: client, exchange) }
    // A flow that proved nothing leaves the session its token.
    guard let session = view.session, let token = session.token else { return Outcome(view: view) }
    guard view.isOfBrowser else { return Outcome(view: view) }
    let cookies = exchange.cookies
    let device = view.deviceToken.map { [cookies.remember($0)] } ?? []
    return Outcome(view: view, cookies: cookies.signIn(token, for: session.cookieLifetime) + device + method)
  }
}

extension ShownFlow {
  /// Shows the app that the flow is for.
  fileprivate func show(_ view: FlowView) {
    show(view.app)
    note(view.purpose, returnTo: view.returnTo)
  }
}

extension ClientContext {
  fileprivate func with(browser: TokenHash) -> ClientContext {
    var client = self
    client.browser = browser
    return client
  }

  fileprivate func with(session: SessionSnapshot) -> ClientContext {
    var client = self
    client.session = session
    return client
  }
}
