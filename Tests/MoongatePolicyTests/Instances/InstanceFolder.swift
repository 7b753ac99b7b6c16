import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting

@testable import MoongatePolicy

/// A folder with two instances of `phone_otp` and two of `pin`.
enum InstanceFolder {
  static let providers = """
    sms_in = phone_otp { sms = outbox(), title = "SMS (India)" },
    sms_us = phone_otp { sms = outbox(), title = "SMS (USA)" },
    pin = {},
    door_pin = pin { title = "EntryPoint code" },
    """

  static func files(_ more: [String: String?] = [:], providers: String = Self.providers) -> [String: String?] {
    let files: [String: String?] = [
      "gateway.lua": """
      return gateway {
        public_url = "http://localhost:8080",
        region = "IN",
        providers = {
          \(providers)
        },
      }
      """,
      "flows/login.lua":
        "return flow \"login\" { account = \"existing\", steps = { any_of { \"sms_in\", \"sms_us\" } } }",
      "policies/sms_in.lua": "return policy \"sms_in\" { message = \"{code} from India\" }",
      "policies/sms_us.lua": "return policy \"sms_us\" { message = \"{code} from the USA\", code = { length = 8 } }",
      "policies/pin.lua": "return policy \"pin\" {}", "policies/door_pin.lua": "return policy \"door_pin\" {}",
      "policies/phone_otp.lua": nil, "policies/email_code.lua": nil,
    ]
    return files.merging(more) { $1 }
  }

  static func loaded(_ more: [String: String?] = [:], providers: String = Self.providers) throws -> LoadedConfiguration
  {
    let folder = try TestFolder(files(more, providers: providers))
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder.scratch.path) {
    case .success(let loaded): return loaded
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  static func problems(_ more: [String: String?] = [:], providers: String = Self.providers) throws -> [String] {
    do {
      _ = try loaded(more, providers: providers)
      return []
    } catch let refused as TestFolder.Refused {
      return refused.problems
    }
  }

  /// Runs cases.
  static func run(_ cases: [PolicyCase], of loaded: LoadedConfiguration) async throws -> CaseReport {
    try await CaseRunner(
      loaded.generation, providers: ProviderRegistry(ShippedProviders.all), makeStore: { try SQLiteStore.memory() }
    ).run(cases)
  }
}
