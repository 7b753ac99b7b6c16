import MoongateCore
import MoongateSDK

/// Leads a person who has just signed in by the page on which they may set up what `accounts.lua` offers (`offer`), and
/// may skip it.
///
/// The page is the one of the flow that sets the factor up, with a link past it. `offer=1` in its address shows that
/// link and does nothing else, so whoever makes such an address up gains nothing.
enum OfferedPage {
  private static let mark = "offer"

  /// - Parameter next: where the person was going.
  /// - Returns: nil where the person is on the way to a page of ours, which asks for something by itself.
  fileprivate static func address(of offered: OfferedFactor, next: String, _ exchange: Exchange) -> String? {
    let path = exchange.page(of: offered.provider)?.ownPath ?? ProviderPage.stepPath
    return FormFields.address(path, ["flow": offered.flow, "return_to": next, mark: "1"])
  }

  /// Whether an address is one of our own pages.
  fileprivate static func isOurs(_ address: String, _ exchange: Exchange) -> Bool {
    address.hasPrefix("/auth/") || address.hasPrefix("\(exchange.gateway.publicURL)/auth/")
  }

  /// Whether the request is about a page that is offered.
  fileprivate static func isNamed(by exchange: Exchange) -> Bool { (try? exchange.query()[mark]) == "1" }

  /// The address of the same page, offered.
  fileprivate static func marked(_ address: String) -> String {
    address + (address.contains("?") ? "&" : "?") + mark + "=1"
  }
}

extension Exchange {
  /// Whether the page is shown as an offer, which can be skipped.
  var isOffer: Bool { OfferedPage.isNamed(by: self) }

  /// The address of a page of the flow that is offered, if this one is.
  func keepingOffer(_ address: String) -> String { isOffer ? OfferedPage.marked(address) : address }

  /// Where "Skip for now" leads; nil where the page is no offer.
  /// - Parameter returnTo: judged already.
  func skipping(_ purpose: FlowPurpose, _ flow: String, to returnTo: String?) -> String? {
    guard isOffer, purpose.setProvider != nil else { return nil }
    return returnTo ?? generation.flows[flow]?.next.returning ?? "/"
  }
}

extension FlowDriver {
  /// Where a sign-in leads that has just completed in the person's own browser: to what is offered first, if something
  /// is.
  ///
  /// A ceremony is offered only to a browser that has said that it can run one. Without scripts, and after a sign-in at
  /// another site, nobody knows.
  func next(after view: FlowView, client: ClientContext, _ exchange: Exchange) async -> String? {
    guard exchange.kind == .page, let next = view.next, !OfferedPage.isOurs(next, exchange) else { return view.next }
    let canRunCeremonies = exchange.canRunCeremonies
    let offered = await engine.offer(after: view, client: client) { descriptor in
      if case .ceremony? = descriptor.presentation { canRunCeremonies } else { true }
    }
    return offered.flatMap { OfferedPage.address(of: $0, next: next, exchange) } ?? next
  }
}
