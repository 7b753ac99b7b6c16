import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongatePolicy

/// Cases with a step that waits for an approval on another device: `right()` approves, `wrong()` denies.
@Suite struct WaitingCaseTests {
  private final class Approval: FullProvider, DecidedRehearsal {
    private let decision = Mutex<Bool?>(nil)

    let descriptor = ProviderDescriptor(
      name: "approval", beginFields: [InputField(name: "phone", kind: .phone)], submitFields: [], settings: [],
      policy: PolicySource(
        file: "approval.lua",
        text: """
          return policy "approval" {
            limits = { verify = { on = "verify", per = "phone", max = 5, window = "24h", counts = "failures", lock = { "15m" } } },
            unknown_account = "reveal",
          }
          """), identifierKinds: [.phone], outcomes: [Outcome("declined", "You declined.")])

    func decide(_ isApproved: Bool) { decision.withLock { $0 = isApproved } }

    func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
      let phone = try input.text("phone")
      return Identifier(kind: .phone, value: phone, display: phone)
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .wait(poll: .seconds(2), state: [])
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      switch decision.withLock({ $0 }) {
      case nil: .wait(poll: .seconds(2), state: [])
      case true?: .proved(Proof())
      case false?: .refused("declined")
      }
    }
  }

  private static let files = [
    "gateway.lua": """
    return gateway {
      public_url = "http://localhost:8080", region = "IN",
      providers = { phone_otp = { sms = outbox() }, approval = {} },
    }
    """,
    "flows/approve.lua": "return flow \"approve\" { account = \"existing\", steps = { { \"approval\" } } }",
  ]

  @Test(arguments: [
    "send(), expect { status = \"pending\", step = \"approval\", waiting = true }, right(), expect { status = \"complete\", waiting = false }",
    "send(), wrong(), expect { status = 401, code = \"declined\", attempts_left = 4, waiting = false }, send(), expect { waiting = true }",
  ]) func personDecides(_ acts: String) async throws {
    let providers = ShippedProviders.all + [Approval()]
    let folder = try TestFolder(
      Self.files.merging([
        "tests/a.lua":
          "return tests { case \"x\" { phone \"+919999999999\", account { exists = true }, flow \"approve\", \(acts) } }"
      ]) { $1 })
    let loaded = try ConfigurationLoader(providers: providers, environment: [:]).read(folder: folder.scratch.path).get()
    let report = try await CaseRunner(
      loaded.generation, providers: ProviderRegistry(providers), makeStore: { try SQLiteStore.memory() }
    ).run(loaded.cases)
    #expect(report.holds, "\(report.text(colour: false))")
  }
}
