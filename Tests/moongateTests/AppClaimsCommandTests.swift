import MoongateCore
import MoongateProgram
import MoongateSDK
import Testing

@testable import MoongateGateway

/// `moongate app claims`.
@Suite struct AppClaimsCommandTests {
  /// A passkey may prove two factors by itself, so an app with `factors = 2` allows such a session.
  @Test func assumedStepsProveWhatTheyCan() throws {
    let names: [ProviderName] = ["passkey", "phone_otp"]
    let steps = ShowAppClaims.steps(names, try Providers.registry(), at: Timestamp(milliseconds: 0))
    #expect(steps.map(\.provider) == names && steps.map(\.isMultiFactor) == [true, nil])
    #expect(Session.assuranceLevel(of: [steps[0]]) == 2 && Session.assuranceLevel(of: [steps[1]]) == 1)
  }
}
