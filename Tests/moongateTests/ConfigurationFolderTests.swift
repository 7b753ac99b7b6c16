import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The checks of `check`, start and reload beyond the syntax of the files.
@Suite struct ConfigurationFolderTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path

  private func scratch(_ files: [String: String]) throws -> ScratchFolder {
    let folder = try ScratchFolder()
    for name in [
      "gateway.lua", "routes.lua", "flows/login.lua", "flows/register.lua", "flows/enter.lua", "policies/phone_otp.lua",
      "tests/by_phone.lua",
    ] {
      try folder.write(try String(contentsOfFile: Self.root + "/config/" + name, encoding: .utf8), to: name)
    }
    for (name, text) in files { try folder.write(text, to: name) }
    return folder
  }

  private func problems(_ folder: ScratchFolder, unless active: String? = nil) async throws -> [String] {
    switch await ConfigurationFolder(path: folder.path, providers: try Providers.registry()).load(unless: active) {
    case .success: []
    case .failure(let refused): refused.problems.map(\.description)
    }
  }

  @Test func theShippedFolderIsGood() async throws { #expect(try await problems(try scratch([:])) == []) }

  @Test func aCaseThatFailsRefusesTheGenerationByItsLine() async throws {
    let folder = try scratch([
      "tests/mine.lua": """
      return tests {
        case "eight tries" {
          flow "enter", phone "+919999999999", send(), wrong { times = 8 },
          expect { status = 401 },
        },
      }
      """
    ])
    #expect(
      try await problems(folder) == [
        "tests/mine.lua:4: case \"eight tries\" fails: status should be 401, but is 429 too_many_attempts"
      ])
  }

  @Test func aGenerationThatIsActiveIsNotTriedAgain() async throws {
    let folder = try scratch([
      "tests/mine.lua": "return tests { case \"never\" { flow \"enter\", expect { status = 404 } } }"
    ])
    guard
      case .failure(let refused) = await ConfigurationFolder(path: folder.path, providers: try Providers.registry())
        .load()
    else {
      Issue.record("it should be refused")
      return
    }
    #expect(try await problems(folder, unless: refused.id) == [])
  }

  @Test func guessesAboveTheBudgetAreRefusedAtItsLine() async throws {
    let folder = try scratch([
      "policies/phone_otp.lua": """
      return policy "phone_otp" {
        limits = {
          send = { on = "send", per = "phone", max = 4, window = "15m" },
          verify = { on = "verify", per = "phone", max = 50, window = "1h", lock = "1h" },
        },
      }
      """
    ])
    let problems = try await problems(folder)
    #expect(problems.count == 1)
    let first = problems.first ?? ""
    #expect(
      first.contains(
        /^gateway\.lua:\d+: risk_budget: guessing opens an account with a probability of 3\.\d+ % per 30 days/),
      "\(first)")
    #expect(
      first.contains(
        "phone_otp allows 36000 guesses per 30 days by limits.verify (policies/phone_otp.lua:4), the most of all"),
      "\(first)")
  }

  /// The number that the message suggests is accepted, and the next one is not.
  @Test func suggestedNumberIsAccepted() async throws {
    let policy = { (max: Int) in
      """
      return policy "phone_otp" {
        limits = {
          send = { on = "send", per = "phone", max = 4, window = "15m" },
          verify = { on = "verify", per = "phone", max = \(max), window = "24h", lock = "24h" },
        },
      }
      """
    }
    let folder = try scratch(["policies/phone_otp.lua": policy(50)])
    let told = try await problems(folder)
    let number = try #require(
      told.first?.firstMatch(of: /limits\.verify\.max = (\d+) in policies\/phone_otp\.lua/).flatMap { Int($0.1) },
      "\(told)")
    try folder.write(policy(number), to: "policies/phone_otp.lua")
    #expect(try await problems(folder) == [])
    try folder.write(policy(number + 1), to: "policies/phone_otp.lua")
    #expect(try await problems(folder).count == 1)
  }

  /// Every change that the message names is enough on its own, and nothing less is.
  @Test func everySuggestedChangeIsEnough() async throws {
    let policy = { (length: Int, lock: String) in
      """
      return policy "phone_otp" {
        code = { length = \(length) },
        limits = {
          send = { on = "send", per = "phone", max = 4, window = "15m" },
          verify = { on = "verify", per = "phone", max = 10, window = "24h", lock = \(lock) },
        },
      }
      """
    }
    let folder = try scratch(["policies/phone_otp.lua": policy(6, "\"1h\"")])
    let told = try #require(try await problems(folder).first)
    let length = try #require(
      told.firstMatch(of: /code\.length = (\d+) in policies\/phone_otp\.lua/).flatMap { Int($0.1) })
    try folder.write(policy(length, "\"1h\""), to: "policies/phone_otp.lua")
    #expect(try await problems(folder) == [], "\(told)")
    try folder.write(policy(length - 1, "\"1h\""), to: "policies/phone_otp.lua")
    #expect(try await problems(folder).count == 1, "\(told)")
    if let lock = told.firstMatch(of: /limits\.verify\.lock = ("[^"]+"|\{[^}]+\}) in/) {
      try folder.write(policy(6, String(lock.1)), to: "policies/phone_otp.lua")
      #expect(try await problems(folder) == [], "\(told)")
    }
    let raised = try #require(told.firstMatch(of: /risk_budget = "([^"]+)" in gateway\.lua/)).1
    let gateway = try String(contentsOfFile: folder.path + "/gateway.lua", encoding: .utf8)
    try folder.write(
      gateway.replacing(/risk_budget = "[^"]+"/, with: "risk_budget = \"\(raised)\""), to: "gateway.lua")
    try folder.write(policy(6, "\"1h\""), to: "policies/phone_otp.lua")
    #expect(try await problems(folder) == [], "\(told)")
  }

  /// A branch without a test case: `check` refuses it, and a running gateway accepts it.
  @Test func aFunctionThatWouldFailIsFound() async throws {
    let folder = try scratch([
      "policies/phone_otp.lua": """
      return policy "phone_otp" {
        send = function(f)
          if f.phone.country == "IR" and f.account.age < 60 then return deny "too_young" end
          return allow
        end,
        reasons = { too_young = "Come back later." },
      }
      """
    ])
    let configuration = ConfigurationFolder(path: folder.path, providers: try Providers.registry())
    guard case .failure(let refused) = await configuration.load(casesOfProviders: true) else {
      Issue.record("check should refuse it")
      return
    }
    let fault = """
      policies/phone_otp.lua:3: attempt to compare nil with number; check first that the value is not nil, as in `f.account.exists and f.account.age > 60`, where \
      f.account.age is nil, f.phone.country is "IR"
      """
    #expect(refused.problems.map(\.description) == [fault])
    _ = try await configuration.load().get()
  }
}
