import MoongateCore
import Testing

extension Route {
  /// The route with `allow.networks`.
  func open(to networks: String...) -> Route {
    var route = self
    route.openNetworks = networks.compactMap(AddressBlock.init)
    return route
  }

  /// The route with `rate`.
  func limited(to count: Int, per subject: RouteRate.Subject, in window: Duration = .seconds(3_600)) -> Route {
    var route = self
    route.rate = RouteRate(count: count, window: window, subject: subject)
    return route
  }
}
