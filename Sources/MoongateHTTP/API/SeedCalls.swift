import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// The calls of the apps that started the project (http.md, "The seeds' own calls"): thin adapters over the same flows,
/// with the same limits and refusals, under the names that those apps use.
struct SeedCalls: Sendable {
  let driver: FlowDriver
  let sessions: SessionCalls
  let clock: any GatewayClock
  let remembered = RememberedFlows()

  init(driver: FlowDriver, sessions: SessionCalls, clock: any GatewayClock) {
    self.driver = driver
    self.sessions = sessions
    self.clock = clock
  }

  var endpoints: [Endpoint] { phoneEndpoints + emailEndpoints + passcodeEndpoints }

  /// One of them; a slash at the end of the path is let through.
  func endpoint(
    _ name: String, _ operation: Operation, servesAllDomains: Bool = false,
    _ handle: @escaping @Sendable (Exchange, CallFields) async throws(Refusal) -> Response
  ) -> Endpoint {
    Endpoint(.call, .post, "/api/auth/\(name)", operation, toleratesSlash: true, servesAllDomains: servesAllDomains) {
      exchange throws(Refusal) in
      try await handle(exchange, try await CallFields(exchange))
    }
  }

  // MARK: - What they share

  /// Begins a flow whose first step is judged or sent by the same call.
  /// - Parameter names: what the app calls a field that we call otherwise: `field` of a refusal is the app's own name.
  func run(
    _ flow: String, _ provider: String, _ inputs: [String: InputValue], naming names: [String: String] = [:],
    in session: SessionSnapshot? = nil,
    _ exchange: Exchange
  ) async throws(Refusal) -> FlowDriver.Driven {
    let created = try await driver.create(flow, returnTo: nil, in: session, exchange)
    var driven: FlowDriver.Driven
    do throws(Refusal) {
      driven = try await driver.drive(exchange, as: created, in: session) { engine, client in
        await engine.begin(created.view.id, provider: provider, fields: inputs, client: client)
      }
    } catch {
      throw error.renamed(names)
    }
    driven.cookies = created.cookies + driven.cookies
    driven.browser = created.browser
    return driven
  }

  /// The name of the flow for a purpose; where there is none, the usual one, which is then refused.
  func name(of purpose: FlowPurpose, _ exchange: Exchange) -> String {
    exchange.generation.flow(for: purpose)?.name ?? purpose.usualName ?? ""
  }

  /// The answer to a flow that is complete; 403 with the flow's id where it wants another step (exact.md).
  func complete(
    _ driven: FlowDriver.Driven, _ exchange: Exchange, _ body: (AccountView, SecretText) -> JSONValue,
    status: HTTPResponse.Status = .ok
  ) -> Response {
    guard let account = driven.view.account, let token = driven.view.session?.token else {
      return another(driven, exchange)
    }
    var response = Response.json(body(account, token), status: status)
    response.setCookies(driven.cookies)
    return response
  }

  /// The flow wants another step.
  func another(_ driven: FlowDriver.Driven, _ exchange: Exchange) -> Response {
    var refusal = exchange.refusal(.stepUpRequired)
    exchange.note(refusal)
    refusal.flow = driven.view.flow
    refusal.provider = driven.view.due
    var response = Response.problem(refusal, ["flow_id": driven.view.id.secret.reveal()])
    response.setCookies(driven.cookies)
    return response
  }

  func user(_ account: AccountView) -> JSONValue {
    guard case .object(let members) = JSONValue.account(account) else { return .null }
    return .object(members + [JSONMember(name: "account_type", value: .text("free"))])
  }

  func signedIn(_ account: AccountView, _ token: SecretText) -> JSONValue {
    .members(["user": user(account), "token": .text(token.reveal())])
  }
}

extension Refusal {
  /// `field` is the name that the client sent (exact.md).
  func renamed(_ names: [String: String]) -> Refusal {
    guard let field, let name = names[field] else { return self }
    var refusal = self
    refusal.field = name
    if let detail { refusal.detail = detail.replacing(field + " ", with: name + " ") }
    return refusal
  }
}
