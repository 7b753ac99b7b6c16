import MoongateCore
import Synchronization

/// What the page that answers a request shows about its flow, whichever page it is.
package final class ShownFlow: Sendable {
  private struct State {
    var app: ReceivingApp?
    var returnTo: String?
    var named: String?
    var flow: (purpose: FlowPurpose, returnTo: String?)?
  }

  private let state = Mutex(State())

  /// The app that receives the result of the flow.
  var app: ReceivingApp? { state.withLock { $0.app } }

  /// Where the flow leads, as its address, its form or its record says.
  var returnTo: String? { state.withLock { $0.returnTo } }

  /// The name of the flow that the address or a form begins; nil for the usual one of the page.
  var named: String? { state.withLock { $0.named } }

  /// The flow of the request, as its record says; nil if it has none.
  var flow: (purpose: FlowPurpose, returnTo: String?)? { state.withLock { $0.flow } }

  /// Shows the app of the flow that the request is about.
  package func show(_ app: ReceivingApp?) {
    guard let app else { return }
    state.withLock { $0.app = app }
  }

  /// Notes what the address or a form says about the flow of the request.
  func note(_ fields: FormFields) {
    state.withLock { state in
      state.returnTo = fields["return_to"] ?? state.returnTo
      state.named = fields["flow"] ?? state.named
    }
  }

  /// Notes what the record of the request's flow says.
  package func note(_ purpose: FlowPurpose, returnTo: String?) {
    state.withLock { state in
      state.flow = (purpose, returnTo)
      state.returnTo = returnTo ?? state.returnTo
    }
  }
}

extension Exchange {
  /// The app that the page names, and to which its forms may lead: the one that receives the result of the flow, or
  /// the one that has begun the sign-in to which the flow leads (`AuthorizationRequest`).
  ///
  /// Attack: a link with a sign-in that the attacker has begun lets the victim's page name the attacker's app, and lets
  /// its forms lead there. It counts only in the browser in which it was begun.
  var receivingApp: ReceivingApp? {
    if let app = shown.app { return app }
    guard let keys, let browser = credentials.browserHash, let sealed = Self.continuation(behind: shown.returnTo),
      let begun = keys.authorizationRequest(sealed, at: recorder.clock.now()), begun.browser == browser
    else { return nil }
    return begun.receivingApp(in: generation.apps)
  }

  /// The sealed request in the address to which a sign-in leads. Pages on the way, such as one that sets up a required
  /// factor, have it in their own `return_to`.
  private static func continuation(behind returnTo: String?) -> String? {
    var target = returnTo
    for _ in 0..<3 {
      guard let address = target, address.hasPrefix("/auth/") else { return nil }
      let fields = FormFields(address.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst())
      if address.prefix(while: { $0 != "?" }) == PagePath.appContinuation { return fields?["request"] }
      target = fields?["return_to"]
    }
    return nil
  }
}
