import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Several instances of one provider, each with its own limits, locks, messages and records.
@Suite struct InstanceCasesTests {
  @Test(arguments: [
    // Attack: a lock of one instance locks the other one, or guessing at the other instance avoids the lock of the
    // first.
    """
    account {}, flow "login", provider "sms_in", send(), wrong { until_locked = true }, expect { locked = true },
    flow "login", provider "sms_us", send(), right(), expect { status = "complete" },
    flow "login", provider "sms_in", send(), expect { locked = true },
    """,
    // Each sends within its own limits.
    """
    account {}, flow "login", provider "sms_in", send(), wait "70s", resend(), expect { messages = 2 },
    flow "login", provider "sms_us", send(), expect { messages = 3 },
    """,
    // Attack: the PIN of one instance is entered at the other.
    """
    account { factors = { pin = "739154", door_pin = "402917" } },
    flow "door_pin_unlock", enter { pin = "739154" }, expect { status = "refused", code = "invalid_pin" }, right(), expect { status = "complete" },
    flow "pin_unlock", enter { pin = "402917" }, expect { status = "refused", code = "invalid_pin" }, right(), expect { status = "complete" },
    """,
    // Attack: the record of one instance is accepted by the other.
    """
    account { pin = "739154" }, flow "door_pin_unlock", enter { pin = "739154" }, expect { status = 409, code = "no_pin" },
    """,
    """
    account { factors = { pin = "739154", door_pin = "402917" } }, flow "door_pin_unlock", wrong { until_locked = true },
    flow "pin_unlock", right(), expect { status = "complete" }, flow "door_pin_unlock", right(), expect { locked = true },
    """,
    // Removing one keeps the other.
    """
    account { factors = { pin = "739154", door_pin = "402917" } }, flow "door_pin_disable", right(), expect { status = "complete" },
    flow "pin_unlock", right(), expect { status = "complete" },
    """,
  ]) func areApart(_ acts: String) async throws {
    let loaded = try InstanceFolder.loaded([
      "tests/a.lua": "return tests { case \"x\" { phone \"+919999999999\", \(acts) } }"
    ])
    let report = try await InstanceFolder.run(loaded.cases, of: loaded)
    let text = report.text(colour: false)
    #expect(report.holds, "\(text)")
  }

  /// The cases that a provider ships also exist for each of its instances, and pass.
  @Test func providerCasesPassForEachInstance() async throws {
    let loaded = try InstanceFolder.loaded()
    #expect(loaded.providerCases.count { $0.origin == "door_pin" } == loaded.providerCases.count { $0.origin == "pin" })
    #expect(loaded.providerCases.contains { $0.origin == "sms_us" })
    let report = try await InstanceFolder.run(loaded.providerCases, of: loaded)
    let text = report.text(colour: false)
    #expect(report.holds, "\(text)")
  }

  /// Attack: the code of one instance is entered at the other, in a flow that offers both, and in another flow.
  @Test func codeOfOneInstanceIsWrongAtAnother() async throws {
    // Codes with the same format, so that only the instance differs.
    let loaded = try InstanceFolder.loaded(["policies/sms_us.lua": "return policy \"sms_us\" {}"])
    let gateway = try VirtualGateway(
      loaded.generation, providers: ProviderRegistry(ShippedProviders.all), store: SQLiteStore.memory(), seed: 4)
    let number = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999")
    _ = try await gateway.makeAccount(holding: [number])
    let client = gateway.client()
    let phone: [String: InputValue] = ["phone": .text(number.value)]
    let first = try await gateway.create("login", by: client).get()
    _ = try await gateway.begin(first.id, provider: "sms_in", fields: phone, by: client).get()
    let code = try #require(gateway.mailbox.latest(to: number.value)?.code)
    #expect(gateway.mailbox.latest(to: number.value)?.text.hasPrefix("\(code) from India") == true)
    let second = try await gateway.create("login", by: client).get()
    _ = try await gateway.begin(second.id, provider: "sms_us", fields: phone, by: client).get()
    let answer = await gateway.submit(second.id, fields: ["code": .text(code)], by: client)
    #expect(throws: Refusal.self) { try answer.get() }
    if case .failure(let refusal) = answer { #expect(refusal.code == .invalidCode) }
    gateway.clock.advance(by: .seconds(120))
    // The step of the first flow is begun again with the other instance, which invalidates the first code.
    _ = try await gateway.begin(first.id, provider: "sms_us", fields: phone, by: client).get()
    let again = await gateway.submit(first.id, fields: ["code": .text(code)], by: client)
    if case .failure(let refusal) = again {
      #expect(refusal.code == .invalidCode)
    } else {
      Issue.record("the code of sms_in passed sms_us")
    }
  }

  @Test func guaranteesKnowInstances() throws {
    let guarantee = """
      return guarantees { guarantee "a door needs its own code" { route = "/door/**", passed = "door_pin" } }
      """
    let routes = """
      return routes {
        { path = "/door/**", to = "http://127.0.0.1:3000", require = { passed = "door_pin", within = "5m" }, flow = "door_pin_unlock" },
        { path = "/**", to = "http://127.0.0.1:3000" },
      }
      """
    let loaded = try InstanceFolder.loaded(["guarantees.lua": guarantee, "routes.lua": routes])
    let prover = try #require(GuaranteeProver(loaded.generation, providers: try ProviderRegistry(ShippedProviders.all)))
    #expect(prover.problems().map(\.description) == [])
    let wrong = try InstanceFolder.loaded([
      "guarantees.lua": guarantee, "routes.lua": routes.replacing("passed = \"door_pin\"", with: "passed = \"pin\""),
    ])
    let other = try #require(GuaranteeProver(wrong.generation, providers: try ProviderRegistry(ShippedProviders.all)))
    #expect(other.problems().count == 1, "the PIN is not the door's code")
  }
}
