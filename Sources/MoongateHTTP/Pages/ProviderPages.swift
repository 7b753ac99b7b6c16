import Hummingbird
import MoongateCore
import MoongateSDK

/// The pages of providers with code boxes or a PIN pad: `/auth/PAGE` for providers that declare a page,
/// `/auth/step/NAME` for all others.
struct ProviderPages: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock

  var endpoints: [Endpoint] {
    ["/auth/{}", ProviderPage.stepPath + "/{}"].flatMap { path in
      [
        Endpoint(.page, .get, path) { exchange throws(Refusal) in
          let page = try page(at: path, exchange)
          if page.pad != nil {
            return try await PINPage(page: page, driver: driver, pages: pages, clock: clock).show(exchange)
          }
          return try await CodePage(page, driver, pages, clock: clock).show(exchange)
        },
        Endpoint(.page, .post, path) { exchange throws(Refusal) in
          let page = try page(at: path, exchange)
          if page.pad != nil {
            return try await PINPage(page: page, driver: driver, pages: pages, clock: clock).send(exchange)
          }
          return try await CodePage(page, driver, pages, clock: clock).send(exchange)
        },
      ]
    }
  }

  /// The provider of the page.
  private func page(at path: String, _ exchange: Exchange) throws(Refusal) -> ProviderPage {
    let address = path.replacing("{}", with: exchange.parameters[0])
    let found = exchange.providers.all.lazy.compactMap { ProviderPage($0.descriptor.name, exchange.providers) }.first {
      $0.ownPath == address
    }
    guard let found else { throw exchange.refusal(.notFound) }
    return found
  }
}
