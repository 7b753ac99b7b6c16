import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/callback/{provider}`: where another site sends a person back to, with a `state` of ours and what the provider is to judge.
///
/// Attacks: the link of somebody else's sign-in (works only in the browser that began it), an answer given twice, an open redirect
/// (nothing in the address says where to go on to).
struct CallbackPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  /// What is handed to the provider; whatever else the site has added is not looked at.
  private static let fields = ["code", "state", "iss", "error"]

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/callback/{}") { exchange throws(Refusal) in
        // A look ahead (HEAD) must not spend the code.
        guard exchange.request.method == .get else { throw exchange.refusal(.methodNotAllowed) }
        guard let name = ProviderName(rawValue: exchange.parameters[0]), exchange.generation.policies[name] != nil,
          exchange.providers[name] is any FullProvider
        else { throw exchange.refusal(.notFound) }
        let query = try exchange.query()
        guard let state = query["state"] else { throw exchange.refusal(.flowNotFound) }
        let caller = try await driver.caller(exchange)
        let called = try await driver.engine.flow(ofCallback: state, provider: name, client: caller).get()
        return try await judge(called, of: name, query, caller, exchange)
      }
    ]
  }

  private func judge(
    _ called: CalledBack, of provider: ProviderName, _ query: FormFields, _ caller: ClientContext, _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let id = called.id
    guard case .success(let before) = await driver.engine.view(id, client: caller), before.step?.provider == provider else {
      throw exchange.refusal(.stepNotOpen)
    }
    let inputs = Dictionary(Self.fields.compactMap { name in query[name].map { (name, InputValue.text($0)) } }) { first, _ in first }
    do throws(Refusal) {
      let driven = try await driver.drive(exchange) { engine, client in await engine.submit(id, fields: inputs, client: client) }
      let next = await PageFlow(driver: driver).onward(driven, exchange)
      var response = Response.seeOther(exchange.address(of: next.view))
      response.setCookies(next.cookies)
      return response
    } catch {
      exchange.note(error)
      // The state is spent with the answer that came with it. What was proved before in this flow is not lost.
      if !before.isUnderWay { _ = await driver.engine.delete(id, client: caller) }
      // The person began in the app, and is not left on a page of ours.
      if let app = called.app { return .seeOther(app.address(refused: NextPage.told(error.code))) }
      let kept = before.isUnderWay ? id : nil
      return .seeOther(exchange.address(ofRefused: error.code, of: before, by: provider, id: kept, returnTo: called.returnTo))
    }
  }
}
