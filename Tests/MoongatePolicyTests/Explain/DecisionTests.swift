import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// A refusal by its id: the rule, its line, the facts that it read, and the counters.
@Suite struct DecisionTests {
  private static let number = "+919999999999"

  private func gateway(_ policy: String) throws -> VirtualGateway {
    let folder = try TestFolder([
      "policies/phone_otp.lua": policy,
      "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
    ])
    return try VirtualGateway(
      folder.generation(), providers: ProviderRegistry([PhoneOTP()]), store: SQLiteStore.memory())
  }

  private func decision(_ result: Result<FlowView, Refusal>, _ gateway: VirtualGateway) async throws -> Decision {
    guard case .failure(let refusal) = result else { throw StoreFault("it was not refused") }
    return Decision(try #require(try await gateway.audit.event(refusal.decision)))
  }

  /// Names of any length stand apart from their values.
  @Test func namesAndValuesStandApart() {
    let event = AuditEvent(
      id: DecisionID(text: "dc_x"), at: Timestamp(milliseconds: 0), kind: .refused, code: "unauthenticated",
      detail: ["cause": "session_ended", "session_end": "not known", "session_hash": "lGx", "session": "se_1"])
    let lines = Decision(event).text(colour: false).split(separator: "\n")
    for line in ["  session end  not known", "  session hash  lGx", "  session    se_1"] {
      #expect(lines.contains { $0 == line }, "\(line)")
    }
  }

  /// A refusal of an app: the rule with its line, and why it was not met.
  @Test(arguments: [
    ("not_in_group", "grafana.require", "the account was in none of the groups that `require` names"),
    ("needs_factors", "grafana.require", "the session had passed fewer factors than `require` demands"),
    ("needs_totp", "grafana.require", "the session had not passed `totp`, or not recently enough"),
    ("too_new_totp", "grafana.require", "what the user passed by `totp` was too new to count"),
    ("needs_review", "apps.grafana.decide", "`decide` denied it with this reason"),
  ]) func refusalOfAnAppIsExplained(reason: String, rule: String, cause: String) {
    let event = AuditEvent(
      id: DecisionID(text: "dc_x"), at: Timestamp(milliseconds: 0), kind: .appRefused, account: "ac_1",
      detail: ["app": "grafana", "reason": reason, "rule": rule, "at": "apps.lua:5"])
    let text = Decision(event).text(colour: false)
    for line in [
      "app_refused  dc_x", "  rule       \(rule)  apps.lua:5", "  because    \(cause)", "  app        grafana",
    ] {
      #expect(text.split(separator: "\n").contains { $0 == line }, "\(text)")
    }
    #expect(!text.contains("counters"))
  }

  /// A request beyond the `rate` of a route: the rate with its line, and no counter of a policy.
  @Test func requestBeyondTheRateOfARouteIsExplained() {
    let event = AuditEvent(
      id: DecisionID(text: "dc_x"), at: Timestamp(milliseconds: 0), kind: .refused, code: "rate_limited",
      detail: ["rule": "rate", "at": "routes.lua:4", "per": "ip", "max": "100", "window": "60", "retry_after": "7"])
    let text = Decision(event).text(colour: false)
    for line in [
      "429 rate_limited  dc_x", "  rule       rate  routes.lua:4", "             at most 100 per ip in 1m",
      "  told       to try again after 7s",
    ] {
      #expect(text.split(separator: "\n").contains { $0 == line }, "\(text)")
    }
    #expect(!text.contains("counter"))
  }

  private static let limits = """
    return policy "phone_otp" {
      limits = {
        send = { on = "send", per = "phone", max = 2, window = "15m" },
        verify = { on = "verify", per = "phone", max = 2, window = "24h", lock = "15m" },
      },
    """

  private func opened(_ gateway: VirtualGateway) async throws -> FlowID {
    let id = try await gateway.create("enter", by: gateway.client()).get().id
    _ = try await gateway.begin(id, provider: nil, fields: ["phone": .text(Self.number)], by: gateway.client()).get()
    return id
  }

  @Test func faultOfAProviderIsShown() async throws {
    let gateway = try gateway(Self.limits + "}")
    gateway.mailbox.disconnect(ProviderName(test: "phone_otp"))
    var text = ""
    for _ in 0..<2 {
      let id = try await gateway.create("enter", by: gateway.client()).get().id
      let refused = await gateway.begin(id, provider: nil, fields: ["phone": .text(Self.number)], by: gateway.client())
      text = try await decision(refused, gateway).text(colour: false)
    }
    #expect(text.hasPrefix("503 delivery_failed"))
    #expect(
      text.contains(
        "  fault      undeliverable in this case\n             of `phone_otp`, in deliver, 2 times since \(gateway.clock.now().exactText)\n"
      ),
      "\(text)")
  }

  @Test func aWrongCodeNamesItsLimitsBeforeAndAfter() async throws {
    let gateway = try gateway(Self.limits + "}")
    let id = try await opened(gateway)
    let code = gateway.mailbox.latest(to: Self.number)?.code == "000000" ? "000001" : "000000"
    _ = await gateway.submit(id, fields: ["code": .text(code)], by: gateway.client())
    let last = try await decision(
      await gateway.submit(id, fields: ["code": .text(code)], by: gateway.client()), gateway)
    let identifier = try #require(last.identifier)
    #expect(!identifier.contains("9999"))
    let text = last.text(colour: false).replacing(last.id, with: "dc_x").replacing(identifier, with: "HASH")
      .replacing(/generation .*/, with: "generation G")
    #expect(
      text == """
        429 too_many_attempts  dc_x
        2026-11-20T12:00:00.000Z, flow enter, phone_otp, from 0.0.0.0, of HASH

          rule       limits.verify  policies/phone_otp.lua:4
                     at most 2 failures per phone in 24h
          locked     until 2026-11-20T12:15:00Z
          told       to try again after 15m
          counters   verify  1 → 2 of 2
          generation G
        """, "\(text)")
    let again = try await decision(
      await gateway.submit(id, fields: ["code": .text(code)], by: gateway.client()), gateway)
    #expect(again.detail["at"] == "policies/phone_otp.lua:4" && again.detail["locked_until"] == "2026-11-20T12:15:00Z")
    #expect(again.detail["counter.verify"].map { $0.hasSuffix(" of 2") } ?? false)
  }

  @Test func refusalsOfAFlowSayWhereTheFlowWas() async throws {
    let gateway = try gateway(Self.limits + "}")
    let id = try await gateway.create("enter", by: gateway.client()).get().id
    let code: [String: InputValue] = ["code": .text("123456")]
    let early = try await decision(await gateway.submit(id, fields: code, by: gateway.client()), gateway)
    #expect(early.code == "step_not_open" && early.flow == "enter")
    #expect(early.detail["state"] == "waits for the begin of phone_otp")
    #expect(early.text(colour: false).contains("  because    The flow does not wait for this now.\n"))
    let unknown = try await decision(
      await gateway.submit(FlowID(text: "fl_unknown"), fields: code, by: gateway.client()), gateway)
    #expect(unknown.code == "flow_not_found" && unknown.detail["cause"] == "unknown_flow")
    let begun = try await opened(gateway)
    gateway.clock.advance(by: .seconds(901))
    let late = try await decision(await gateway.submit(begun, fields: code, by: gateway.client()), gateway)
    #expect(late.code == "flow_expired" && late.detail["cause"] == "lifetime_over" && late.provider == "phone_otp")
    #expect(late.identifier != nil && late.detail["state"] == "waits for the code of phone_otp")
  }

  @Test func aSendLimitAndAResendTimerNameTheirLines() async throws {
    let gateway = try gateway(Self.limits + "}")
    let id = try await opened(gateway)
    let soon = try await decision(await gateway.resend(id, by: gateway.client()), gateway)
    #expect(
      soon.code == "resend_too_soon" && soon.detail["rule"] == "timers.resend_after"
        && soon.detail["at"] == "Plugins/PhoneOTP/policy.lua:5")
    gateway.clock.advance(by: .seconds(61))
    _ = try await gateway.resend(id, by: gateway.client()).get()
    gateway.clock.advance(by: .seconds(121))
    let full = try await decision(await gateway.resend(id, by: gateway.client()), gateway)
    #expect(full.code == "send_limit" && full.detail["at"] == "policies/phone_otp.lua:3")
    #expect(full.text(colour: false).contains("at most 2 per phone in 15m, 2 used"))
  }

  @Test func aFunctionNamesTheFactsThatItReadAndNoOther() async throws {
    let gateway = try gateway(
      Self.limits + """
          send = function(f)
            if f.phone.country == "IN" and f.phone.e164 ~= "x" and f.limits.send.used == 0 then return deny "not_here" end
            return allow
          end,
        }
        """)
    let id = try await gateway.create("enter", by: gateway.client()).get().id
    let refused = try await decision(
      await gateway.begin(id, provider: nil, fields: ["phone": .text(Self.number)], by: gateway.client()), gateway)
    #expect(
      refused.code == "not_here" && refused.detail["rule"] == "policies/phone_otp.send"
        && refused.detail["at"] == "policies/phone_otp.lua:5")
    #expect(
      refused.detail["verdict"] == "deny \"not_here\"" && refused.detail["fact.phone.country"] == "IN"
        && refused.detail["fact.limits.send.used"] == "0")
    #expect(refused.detail["fact.client.ip"] == nil)
    // The identifier is recorded only as a keyed hash.
    #expect(refused.detail["fact.phone.e164"].map { !$0.contains("9999") } ?? false)
    #expect(!refused.detail.values.contains { $0.contains("9999999999") })
    #expect(refused.text(colour: false).contains("f.phone.country    = IN"))
  }

  @Test func factsReadByWhenAndVaryAreShown() async throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": """
      return policy "phone_otp" {
        limits = {
          send = { on = "send", per = "phone", window = "15m",
            max = vary(1, 4, function(f) if f.phone.country == "IN" then return 1 end return 4 end) },
        },
      }
      """,
      "flows/enter.lua": """
      return flow "enter" { account = "any", steps = {
        { "phone_otp", when = function(f) return f.client.new_device end }, { "email_code", when = function(f) return f.account.has_pin end },
      } }
      """,
    ])
    let gateway = try VirtualGateway(
      folder.generation(), providers: ProviderRegistry([PhoneOTP()]), store: SQLiteStore.memory())
    let id = try await opened(gateway)
    gateway.clock.advance(by: .seconds(61))
    let full = try await decision(await gateway.resend(id, by: gateway.client()), gateway)
    #expect(
      full.code == "send_limit" && full.detail["at"] == "policies/phone_otp.lua:3"
        && full.detail["counter.send"] == "1 -> 1 of 1")
    #expect(full.detail["asked.policies/phone_otp.limits.send.max"] == "1  policies/phone_otp.lua:4")
    #expect(full.detail["fact.phone.country"] == "IN")
    let text = full.text(colour: false)
    #expect(
      text.contains(
        "  counters   send  1 → 1 of 1\n  asked      policies/phone_otp.limits.send.max  1  policies/phone_otp.lua:4\n"),
      "\(text)")
    // A failing `when` of a step.
    let broken = try TestFolder([
      "flows/enter.lua":
        "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\", when = function(f)\n return f.client.ip > 5 end } } }"
    ])
    let second = try VirtualGateway(
      broken.generation(), providers: ProviderRegistry([PhoneOTP()]), store: SQLiteStore.memory())
    let refused = try await decision(await second.create("enter", by: second.client()), second)
    #expect(
      refused.code == "policy_error" && refused.detail["rule"] == "flows/enter.steps[1].when"
        && refused.detail["fact.client.ip"] == "0.0.0.0")
  }

  @Test func aFaultNamesItsLine() async throws {
    let gateway = try gateway(Self.limits + "\n  send = function(f)\n return f.phone['contry'] end }")
    let id = try await gateway.create("enter", by: gateway.client()).get().id
    let refused = try await decision(
      await gateway.begin(id, provider: nil, fields: ["phone": .text(Self.number)], by: gateway.client()), gateway)
    #expect(
      refused.code == "policy_error"
        && refused.detail["fault"]?.contains("policies/phone_otp.lua:7: unknown fact") ?? false)
  }

  @Test func anUnknownNumberNamesTheRuleThatRevealsIt() async throws {
    let gateway = try gateway(Self.limits + "}")
    let id = try await gateway.create("login", by: gateway.client()).get().id
    let refused = try await decision(
      await gateway.begin(id, provider: nil, fields: ["phone": .text(Self.number)], by: gateway.client()), gateway)
    #expect(
      refused.code == "account_not_found" && refused.detail["rule"] == "unknown_account"
        && refused.detail["at"] == "Plugins/PhoneOTP/policy.lua:20")
  }
}
