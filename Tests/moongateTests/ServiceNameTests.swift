import MoongateCore
import ServiceLifecycle
import Testing

@testable import MoongateGateway

@Suite struct ServiceNameTests {
  private struct Keeper: Service {
    let secret = "the master key"
    func run() async throws {}
  }

  /// Attack: a service fails, and the library writes its name into the log, with all that it holds.
  @Test func loggedServiceNameIsItsType() {
    #expect(ServiceGroupConfiguration.ServiceConfiguration(byType: Keeper()).serviceName == "Keeper")
  }
}
