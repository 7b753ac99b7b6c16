import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/choose?id=…`: several accounts claim the email address that was just verified, and the user selects one.
struct ChoosePage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  private static let path = "/auth/choose"

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.path) { exchange throws(Refusal) in
        guard let text = try exchange.query()["id"] else { throw exchange.refusal(.flowNotFound) }
        return try await show(FlowID(text: text), nil, exchange)
      },
      Endpoint(.page, .post, Self.path) { exchange throws(Refusal) in
        guard let text = try exchange.query()["id"] else { throw exchange.refusal(.flowNotFound) }
        let id = FlowID(text: text)
        if try exchange.isSwitch { return try await show(id, nil, exchange) }
        let chosen = try await exchange.form()["account"] ?? ""
        do throws(Refusal) {
          let driven = try await driver.drive(exchange) { engine, client in
            await engine.submit(id, fields: ["account": .text(chosen)], client: client)
          }
          let next = await PageFlow(driver: driver).beginDueSteps(driven, exchange)
          return exchange.redirect(to: exchange.address(of: next.view), next.cookies)
        } catch {
          return try await show(id, error, exchange)
        }
      },
    ]
  }

  /// Whether the flow waits for this choice.
  static func isDue(in view: FlowView) -> Bool { !(view.step?.accounts ?? []).isEmpty }

  static func address(of view: FlowView) -> String { FormFields.address(path, ["id": view.id.secret.reveal()]) }

  private func show(_ id: FlowID, _ refusal: Refusal?, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard case .success(let view) = try await driver.view(id, exchange),
      Self.isDue(in: view)
    else {
      if let refusal { throw refusal }
      let view = try await driver.view(id, exchange).get()
      return exchange.redirect(to: exchange.address(of: view))
    }
    let words = pages.words(exchange)
    let options = (view.step?.accounts ?? []).map { option in
      ChooseModel.Option(
        value: option.value, created: option.createdAt.text, used: option.lastUsedAt.text,
        label: words.text("choose_account", ["number": option.value]))
    }
    let address = Self.address(of: view)
    let model = ChooseModel(action: address, options: options, problem: refusal.map { words.sentence(of: $0) })
    if let refusal { exchange.log(refusal) }
    return pages.page(model, title: words["choose_title"], refusal: refusal, at: address, exchange)
  }
}
