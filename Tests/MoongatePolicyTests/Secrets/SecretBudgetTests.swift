import MoongateCore
import MoongatePolicy
import MoongateSDK
import PIN
import Password
import Testing

/// The report of `check` for secrets that users choose.
@Suite struct SecretBudgetTests {
  private func shipped() throws -> any PolicyGeneration {
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).load(
      folder: TestFolder.root + "/config")
    {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  @Test func pinBudgetAssumesAndStatesAnEvenChoice() throws {
    let policy = try #require(try shipped().policies["pin"])
    let budget = GuessBudget(chosenBy: policy, PIN().descriptor)
    #expect(budget.perDay == 20 && budget.per30Days == 447)
    #expect(abs((budget.probability30Days ?? 0) - 447.0 / 901_441) < 1e-6)
    #expect(budget.commonShare30Days == 0.447)
    let table = GuessBudget.table([budget], accepted: nil, alone: [], colour: false)
    #expect(
      table.contains("pin: if chosen uniformly; guesses cover 44.7 % of the 1,000 most common"))
    #expect(table.contains("not alone"))
  }

  @Test func aPasswordsProbabilityIsNotKnownAndItsGuessesAreShown() throws {
    let policy = try #require(try shipped().policies["password"])
    let budget = GuessBudget(chosenBy: policy, Password().descriptor)
    #expect(budget.probability30Days == nil && budget.commonShare30Days == nil && budget.per30Days == 447)
  }

  @Test func singleFactorBudgetsAddUpWithinTheLimit() throws {
    let generation = try shipped()
    #expect(generation.singleFactorProviders.isSuperset(of: ["phone_otp", "email_code", "password"]))
    #expect(!generation.singleFactorProviders.contains("pin"), "a PIN's flows begin with a session")
    let sum = ["phone_otp", "email_code"].compactMap { generation.policies[$0] }.map(GuessBudget.init(codesOf:))
      .compactMap(\.probability30Days)
      .reduce(0, +)
    #expect(sum > 0 && sum < generation.gateway.riskBudget ?? 0)
  }
}
