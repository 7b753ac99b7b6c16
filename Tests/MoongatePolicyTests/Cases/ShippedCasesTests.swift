import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The cases in config/tests and those that providers ship. They pass for the shipped policies, and for any numbers in
/// them.
@Suite struct ShippedCasesTests {
  private func run(_ folder: String) async throws -> CaseReport {
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder) {
    case .success(let loaded):
      return try await CaseRunner(
        loaded.generation, providers: ProviderRegistry(ShippedProviders.all), makeStore: { try SQLiteStore.memory() }
      ).run(
        loaded.cases + loaded.providerCases)
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  @Test func shippedCasesPass() async throws {
    let report = try await run(TestFolder.root + "/config")
    let text = report.text(colour: false)
    let holds = report.holds
    #expect(holds, "\(text)")
    #expect(report.outcomes.count >= 8)
  }

  /// Attack on the operator: a stricter limit during an attack is refused because of a test.
  @Test(arguments: [("phone_otp", "phone", "by_phone"), ("email_code", "email", "by_email")])
  func anyNumbersWillDo(provider: String, key: String, cases: String) async throws {
    let random = SeededRandom(seed: 42)
    let durations = ["1s", "20s", "90s", "10m", "1h", "26h", "40d"]
    func pick(_ most: Int) -> Int { Int(random.uniform(below: UInt32(most))) + 1 }
    func duration() -> String { "\"\(random.pick(durations) ?? "1h")\"" }
    for _ in 0..<20 {
      let locks = (0..<pick(3)).map { _ in duration() }.joined(separator: ", ")
      let policy = """
        return policy "\(provider)" {
          code = { length = \(3 + pick(7)), ttl = \(duration()) },
          timers = { resend_after = { \(duration()), \(duration()) } },
          limits = {
            send = { on = "send", per = "\(key)", max = \(pick(4)), window = \(duration()) },
            send_ip = { on = "send", per = "ip", max = \(pick(4)), window = \(duration()) },
            verify = { on = "verify", per = "\(key)", max = \(pick(9)), window = \(duration()), lock = { \(locks) } },
            hard = { on = "verify", per = "account", max = \(pick(20)), counts = "consecutive_failures", disable = true },
          },
        }
        """
      let folder = try ScratchFolder()
      let flows = try FileManager.default.contentsOfDirectory(atPath: TestFolder.root + "/config/flows").map {
        "flows/" + $0
      }
      for name in ["gateway.lua", "routes.lua", "tests/\(cases).lua"] + flows {
        try folder.write(try String(contentsOfFile: TestFolder.root + "/config/" + name, encoding: .utf8), to: name)
      }
      try folder.write(policy, to: "policies/\(provider).lua")
      let report = try await run(folder.path)
      let text = report.text(colour: false)
      let holds = report.holds
      #expect(holds, "\(policy)\n\(text)")
    }
  }

  /// The same for providers that send no codes.
  @Test(arguments: [("pin", "account", "by_phone"), ("password", "email", "by_password")])
  func anyNumbersOfASecretWillDo(provider: String, key: String, cases: String) async throws {
    let random = SeededRandom(seed: 43)
    let durations = ["1s", "20s", "90s", "10m", "1h", "5h"]
    func pick(_ most: Int) -> Int { Int(random.uniform(below: UInt32(most))) + 1 }
    func duration() -> String { "\"\(random.pick(durations) ?? "1h")\"" }
    for _ in 0..<12 {
      let policy = """
        return policy "\(provider)" {
          limits = {
            verify = { on = "verify", per = "\(key)", max = \(pick(9)), window = \(duration()), lock = { \(duration()), \(duration()) } },
          },
        }
        """
      let folder = try ScratchFolder()
      let flows = try FileManager.default.contentsOfDirectory(atPath: TestFolder.root + "/config/flows").map {
        "flows/" + $0
      }
      for name in ["gateway.lua", "routes.lua", "tests/\(cases).lua"] + flows {
        try folder.write(try String(contentsOfFile: TestFolder.root + "/config/" + name, encoding: .utf8), to: name)
      }
      try folder.write(policy, to: "policies/\(provider).lua")
      let report = try await run(folder.path)
      let text = report.text(colour: false)
      let holds = report.holds
      #expect(holds, "\(policy)\n\(text)")
    }
  }

  /// If a sign-in method is removed from `login`, the failing case names the missing step instead of an unrelated
  /// error.
  @Test func aCaseWhoseStepIsGoneIsNotSentElsewhere() async throws {
    let folder = try ScratchFolder()
    let flows = try FileManager.default.contentsOfDirectory(atPath: TestFolder.root + "/config/flows").map {
      "flows/" + $0
    }
    for name in ["gateway.lua", "routes.lua", "tests/by_email.lua"] + flows {
      try folder.write(try String(contentsOfFile: TestFolder.root + "/config/" + name, encoding: .utf8), to: name)
    }
    try folder.write(
      "return flow \"login\" { account = \"existing\", steps = { any_of { \"phone_otp\", \"google_oauth\" } } }",
      to: "flows/login.lua")
    let report = try await run(folder.path)
    let text = report.text(colour: false)
    #expect(!report.holds)
    #expect(text.contains("422 invalid_input") && !text.contains("busy"), "\(text)")
  }
}
