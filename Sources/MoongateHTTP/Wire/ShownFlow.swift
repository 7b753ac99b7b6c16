import MoongateCore
import Synchronization

/// What the page that answers a request shows about its flow, whichever page it is.
package final class ShownFlow: Sendable {
  private struct State {
    var app: ReceivingApp?
    var returnTo: String?
  }

  private let state = Mutex(State())

  /// The app that receives the result of the flow.
  var app: ReceivingApp? { state.withLock { $0.app } }

  /// Where the flow leads, as its address, its form or its record says.
  var returnTo: String? { state.withLock { $0.returnTo } }

  /// Shows the app of the flow that the request is about.
  package func show(_ app: ReceivingApp?) {
    guard let app else { return }
    state.withLock { $0.app = app }
  }

  /// Notes where the flow of the request leads.
  func note(returnTo: String?) {
    guard let returnTo else { return }
    state.withLock { $0.returnTo = returnTo }
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
