import MoongateCore
import MoongateSDK

// "Edit" on the page of a code leads to the page on which the flow began. The next code is sent by the same provider in
// the same flow, whichever provider takes the field where people sign in.

extension EntrancePage {
  /// The flow of a form that changes the number or address of a flow under way.
  struct EditedFlow {
    let view: FlowView
    /// The name of the flow, where the page shows its ways and not those of everybody; nil for a flow that the page
    /// begins by itself.
    let flow: String?
  }

  /// The flow that a form goes on with; nil where it begins one, or where the flow has ended meanwhile.
  func edited(_ id: String?, _ exchange: Exchange) async throws(Refusal) -> EditedFlow? {
    guard let id,
      case .success(let view) = await driver.engine.view(FlowID(text: id), client: try await driver.caller(exchange)),
      view.status == .pending
    else { return nil }
    return EditedFlow(view: view, flow: ownFlow(of: view, exchange))
  }

  /// The name of a flow that the page begins only where something names it; nil for those that it begins by itself.
  func ownFlow(of view: FlowView, _ exchange: Exchange) -> String? {
    let isUsual =
      view.flow == defaultFlow || SignInMethod.allCases.contains { entry($0, nil, exchange)?.flow == view.flow }
    return isUsual ? nil : ownFlow(view.flow, exchange)
  }

  /// The provider that sends the code of a flow under way, and the flow; nil where the form is about something else.
  func sender(of edited: EditedFlow, as way: SignInMethod, _ exchange: Exchange) -> (
    provider: ProviderPage, flow: String
  )? {
    let view = edited.view
    guard way != .email, !view.isUnderWay, !view.purpose.needsSession,
      let provider = view.due.flatMap(exchange.page(of:)), provider.sendsCodes,
      provider.isEmail == (way != .phone)
    else { return nil }
    return (provider, view.flow)
  }

  /// The provider that sends the first code of a flow which takes the field of another page, and the flow: the flow
  /// that was edited has ended meanwhile, and begins once more.
  func sender(in flow: String, as way: SignInMethod, _ exchange: Exchange) -> (provider: ProviderPage, flow: String)? {
    guard way != .email else { return nil }
    return exchange.offered(first: flow).first { $0.sendsCodes && $0.isEmail == (way != .phone) }.map { ($0, flow) }
  }
}
