import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// The App API (v1): adapters over the same flows, with the same limits and refusals, under the names that existing
/// apps use.
struct AppAPICalls: Sendable {
  let driver: FlowDriver
  let sessions: SessionCalls
  let clock: any GatewayClock
  let remembered: RememberedFlows

  var endpoints: [Endpoint] { phoneEndpoints + emailEndpoints + passcodeEndpoints }

  /// An endpoint of the App API. It accepts a slash at the end of the path.
  func endpoint(
    _ operation: Operation, servesAllDomains: Bool = false,
    _ handle: @escaping @Sendable (Exchange, CallFields) async throws(Refusal) -> Response
  ) -> Endpoint {
    Endpoint(.call, operation, toleratesSlash: true, servesAllDomains: servesAllDomains) {
      exchange throws(Refusal) in
      try await handle(exchange, try await CallFields(exchange))
    }
  }

  // MARK: - Shared

  /// More than five parameters: the first step of a flow; three have defaults.
  /// Begins a flow whose first step is submitted or sent by the same call.
  /// - Parameters:
  ///   - names: the app's names of fields. Refusals use the app's name in `field`.
  ///   - invitation: the code of an invitation; nil: none.
  func run(
    _ flow: String, _ provider: String, _ inputs: [String: InputValue], naming names: [String: String] = [:],
    in session: SessionSnapshot? = nil, invitation: SecretText? = nil,
    _ exchange: Exchange
  ) async throws(Refusal) -> FlowDriver.Outcome {
    let created = try await driver.create(flow, returnTo: nil, in: session, invitation: invitation, exchange)
    var driven: FlowDriver.Outcome
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

  /// The name of the flow for a purpose; without one, the usual name, which is then refused.
  func name(of purpose: FlowPurpose, _ exchange: Exchange) -> String {
    exchange.generation.flowName(for: purpose)
  }

  /// The answer to a complete flow; 403 with the flow's id if it requires another step.
  func complete(
    _ driven: FlowDriver.Outcome, _ exchange: Exchange, _ body: (AccountView, SecretText) -> JSONValue,
    status: HTTPResponse.Status = .ok
  ) -> Response {
    guard let account = driven.view.account, let token = driven.view.session?.token else {
      return another(driven, exchange)
    }
    var response = Response.json(body(account, token), status: status)
    response.setCookies(driven.cookies)
    return response
  }

  /// The answer to a flow that requires another step.
  func another(_ driven: FlowDriver.Outcome, _ exchange: Exchange) -> Response {
    var refusal = exchange.refusal(.stepUpRequired)
    exchange.log(refusal)
    refusal.flow = driven.view.flow
    refusal.provider = driven.view.due
    let id = driven.view.id.secret.reveal()
    var response =
      driven.view.changeDue.map { Response.problem(refusal, ["flow_id": id, "change_due": $0.rawValue]) }
      ?? Response.problem(refusal, ["flow_id": id])
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
  /// Replaces `field` by the name that the client sent.
  func renamed(_ names: [String: String]) -> Refusal {
    guard let field, let name = names[field] else { return self }
    var refusal = self
    refusal.field = name
    if let detail { refusal.detail = detail.replacing(field + " ", with: name + " ") }
    return refusal
  }
}
