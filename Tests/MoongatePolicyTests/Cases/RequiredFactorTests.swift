import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `require_also` of `verify` and of `send`, with the shipped providers.
@Suite struct RequiredFactorTests {
  private static let files = [
    "gateway.lua": """
    return gateway {
      public_url = "http://localhost:8080", region = "IN",
      providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() }, pin = {} },
    }
    """,
    "policies/pin.lua": "return policy \"pin\" {}",
    "policies/phone_otp.lua": """
    return policy "phone_otp" {
      verify = function(f) if f.flow.name == "login" then return require_also "email_code" end return allow end,
    }
    """,
    "policies/email_code.lua": """
    return policy "email_code" {
      send = function(f) if f.flow.name == "ladder" and not f.flow.passed.pin then return require_also "pin" end return allow end,
    }
    """,
    "flows/ladder.lua":
      "return flow \"ladder\" { account = \"existing\", steps = { { \"phone_otp\" }, { \"email_code\" } } }",
  ]

  @Test(arguments: [
    // After the step, for `verify`. An account without a verified address is denied.
    """
    account { email = "a@example.com" }, flow "login", send(), right(), expect { status = "pending", step = "email_code" },
    email "a@example.com", send(), right(), expect { status = "complete" },
    """,
    """
    account { email = "a@example.com", email_verified = false }, flow "login", send(), right(), expect { status = 403, code = "denied" },
    """,
    // Before the step, for `send`. An account without a PIN is denied, and so is a number that is not verified yet.
    """
    account { email = "a@example.com", pin = "739154" }, flow "ladder", send(), right(), expect { status = "pending", step = "email_code" },
    email "a@example.com", send(), expect { status = "pending", step = "pin", messages = 1 },
    right(), expect { status = "pending", step = "email_code", messages = 1 }, send(), right(), expect { status = "complete" },
    """,
    """
    account { email = "a@example.com" }, flow "ladder", send(), right(), email "a@example.com", send(), expect { status = 403, code = "denied" },
    """,
    // A denial charges no counter, however often it is repeated.
    """
    account { email = "a@example.com" }, flow "ladder", send(), right(), email "a@example.com", send(), send(), send(), send(), send(),
    expect { status = 403, code = "denied", messages = 1 },
    """,
  ]) func isAskedOrDenied(_ acts: String) async throws {
    let folder = try TestFolder(
      Self.files.merging(["tests/a.lua": "return tests { case \"x\" { phone \"+919999999999\", \(acts) } }"]) { $1 })
    let loaded = try ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(
      folder: folder.scratch.path
    ).get()
    let report = try await CaseRunner(
      loaded.generation, providers: ProviderRegistry(ShippedProviders.all), makeStore: { try SQLiteStore.memory() }
    ).run(loaded.cases)
    #expect(report.holds, "\(report.text(colour: false))")
  }
}
