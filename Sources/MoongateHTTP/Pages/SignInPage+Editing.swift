import MoongateCore
import MoongateSDK

// "Edit" on a code page leads to the page on which the flow began. The next code is sent by the same provider in the
// same flow, even if another provider has the identifier field of the sign-in page.

extension SignInPage {
  /// A flow whose identifier a form changes.
  struct EditedFlow {
    let view: FlowView
    /// The name of a flow that is not the page's default; nil otherwise.
    let flow: String?
  }

  /// The flow that a form continues; nil if it begins one, or if the flow has ended meanwhile.
  func edited(_ id: String?, _ exchange: Exchange) async throws(Refusal) -> EditedFlow? {
    guard let id,
      case .success(let view) = try await driver.view(FlowID(text: id), exchange),
      view.status == .pending
    else { return nil }
    return EditedFlow(view: view, flow: ownFlow(of: view, exchange))
  }

  /// The name of a flow that the page begins only when it is named; nil for the page's default flows.
  func ownFlow(of view: FlowView, _ exchange: Exchange) -> String? {
    let isUsual =
      view.flow == defaultFlow || SignInMethod.allCases.contains { entry($0, nil, exchange)?.flow == view.flow }
    return isUsual ? nil : ownFlow(view.flow, exchange)
  }

  /// The provider that sends the code of an existing flow, and the flow; nil if the form does not edit it.
  func sender(of edited: EditedFlow, as method: SignInMethod, _ exchange: Exchange) -> (
    provider: ProviderPage, flow: String
  )? {
    let view = edited.view
    guard method != .email, !view.isUnderWay, !view.purpose.needsSession,
      let provider = view.due.flatMap(exchange.page(of:)), provider.sendsCodes,
      provider.isEmail == (method != .phone)
    else { return nil }
    return (provider, view.flow)
  }

  /// The provider that sends the first code of a flow with another page's field, and the flow. The edited flow has
  /// ended meanwhile, so it begins again.
  func sender(in flow: String, as method: SignInMethod, _ exchange: Exchange) -> (
    provider: ProviderPage, flow: String
  )? {
    guard method != .email else { return nil }
    return exchange.offered(first: flow).first { $0.sendsCodes && $0.isEmail == (method != .phone) }.map { ($0, flow) }
  }
}
