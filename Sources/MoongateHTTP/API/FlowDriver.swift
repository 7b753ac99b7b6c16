import Hummingbird
import MoongateCore
import MoongateSDK

/// Runs flows for whoever asks over HTTP: API, pages and the seeds' own calls all go through it, so that the binding of
/// a flow to its browser and the setting of cookies are in one place.
struct FlowDriver: Sendable {
  let engine: FlowEngine
  let sessions: SessionDirectory
  let random: any RandomSource

  /// What a request's answer has to say besides the flow.
  struct Driven: Sendable {
    var view: FlowView
    /// Lines of `Set-Cookie`.
    var cookies: [String] = []
    /// The browser that the flow was bound to in this request.
    var browser: TokenHash?
  }

  /// Who asks, with their session where there is a live one.
  func caller(_ exchange: Exchange) async throws(Refusal) -> ClientContext {
    var client = ClientContext(
      decision: exchange.decision, address: exchange.client.address, userAgent: exchange.request.headers[.userAgent],
      browser: exchange.credentials.browserHash, session: try await session(exchange),
      device: exchange.credentials.device,
      entryPoint: exchange.kind == .page ? .page : .api)
    client.languages = LanguageChoice.wanted(by: exchange.request)
    return client
  }

  /// The live session that the request brought.
  func session(_ exchange: Exchange) async throws(Refusal) -> SessionSnapshot? {
    guard let token = exchange.credentials.session else { return nil }
    let found = try await exchange.asking { () async throws(StoreFault) in try await sessions.find(token) }
    // Attack: a token of one root domain at a host of another.
    return found.flatMap { exchange.gateway.accepts($0.session, at: exchange.client.host?.name) ? $0 : nil }
  }

  /// Begins a flow. One that a page begins, or whose creation carries an `Origin`, is the browser's that sent it
  /// (exact.md, "JSON").
  /// - Parameters:
  ///   - app: the app that takes over what it ends in.
  ///   - session: whose flow it is, where that is a session that the same request has begun.
  func create(
    _ name: String, returnTo: String?, app: AppReturn? = nil, in session: SessionSnapshot? = nil, _ exchange: Exchange
  ) async throws(Refusal) -> Driven {
    var client = try await caller(exchange)
    if let session { client = client.with(session: session) }
    let returnTo = exchange.targets.accept(returnTo)
    guard exchange.kind == .page || !exchange.credentials.origins.isEmpty else {
      return Driven(
        view: try await engine.create(name, returnTo: returnTo, browser: nil, app: app, client: client).get())
    }
    let browser = exchange.credentials.browser ?? SecretText(Base64URL.encode(random.bytes(32)))
    let hash = TokenHash(of: browser.reveal().utf8)
    let view = try await engine.create(
      name, returnTo: returnTo, browser: hash, app: app, client: client.with(browser: hash)
    ).get()
    return Driven(view: view, cookies: [exchange.cookies.begin(browser)], browser: hash)
  }

  /// Does something with a flow; where that completes one that is bound to the browser, the browser is signed in.
  /// - Parameters:
  ///   - created: what made the flow, where that was in the same request: then its cookie is not there yet.
  ///   - session: as for `create`.
  func drive(
    _ exchange: Exchange, as created: Driven? = nil, in session: SessionSnapshot? = nil,
    _ verb: (FlowEngine, ClientContext) async -> Result<FlowView, Refusal>
  ) async throws(Refusal) -> Driven {
    var client = try await caller(exchange)
    if let browser = created?.browser { client = client.with(browser: browser) }
    if let session { client = client.with(session: session) }
    var view = try await verb(engine, client).get()
    guard let token = view.session?.token else { return Driven(view: view) }
    if view.isOfBrowser { view.next = await next(after: view, client: client, exchange) }
    return Driven(view: view, cookies: view.isOfBrowser ? signIn(token, view.deviceToken, exchange) : [])
  }

  private func signIn(_ token: SecretText, _ device: SecretText?, _ exchange: Exchange) -> [String] {
    let cookies = exchange.cookies
    return cookies.signIn(token) + (device.map { [cookies.remember($0)] } ?? [])
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
