import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// Mutated files, the same in every run. Each one loads or is refused, and loaded functions can be called.
@Suite struct MutationTests {
  static let rich = """
    local served = { "IN", "NL" }
    local function strict(f) return not one_of(f.phone.country, served) end
    return policy "phone_otp" {
      code   = { length = 6, alphabet = "digits", ttl = "10m" },
      timers = { resend_after = { "60s", vary("60s", "10m", function(f) return f.client.new_device and "5m" or "2m" end) } },
      limits = {
        send    = { on = "send",   per = "phone",   max = 4,  window = "15m" },
        verify  = { on = "verify", per = "phone",   max = vary(2, 5, function(f) return f.account.exists and 5 or 2 end), window = "24h",
                    counts = "failures", lock = { "15m", "1h", "6h", "24h" } },
        hard    = { on = "verify", per = "account", max = 100, counts = "consecutive_failures", disable = true },
      },
      unknown_account = "reveal",
      message = "{code} is your {service} verification code",
      send   = function(f) if strict(f) then return deny "country_not_served" end return allow end,
      verify = function(f)
        local ok, err = pcall(function() return ("a"):rep(3):gsub("%w", string.upper) end)
        for k, v in pairs({ b = 1, a = 2 }) do if f.client.network_changed then return require_also "email_code" end end
        return allow
      end,
    }
    """

  static let pieces = [
    "{", "}", "(", ")", "[", "]", "\"", "'", "--", "[[", "]]", "=", "==", ",", ";", "..", "...", "function(f)", "end",
    "return", "nil", "0", "-1",
    "1e999", "0x7fffffffffffffff",
    "\"15m\"", "vary(", "any_of {", "local", "while true do", "goto x", "::x::", "f", "f.limits", "#", "%", "\\", "\n",
    "\u{0}", "é", "_ENV",
    "_moongate_at", "{{{{{{{{", "pcall(",
    "string.rep('x', 1e9)", "allow", "deny", "math.huge", "0/0", "<close>", "<const>",
  ].map { Array($0.utf8) }

  private static func mutated(_ text: [UInt8], _ random: SeededRandom) -> [UInt8] {
    var bytes = text
    for _ in 0...random.uniform(below: 4) {
      let at = Int(random.uniform(below: UInt32(bytes.count + 1)))
      let length = min(bytes.count - at, Int(random.uniform(below: 20)))
      switch random.uniform(below: 6) {
      case 0: bytes.removeSubrange(at..<(at + length))
      case 1: bytes.insert(contentsOf: random.pick(pieces) ?? [], at: at)
      case 2: if at < bytes.count { bytes[at] = random.bytes(1)[0] }
      case 3:
        let from = Int(random.uniform(below: UInt32(bytes.count + 1)))
        bytes.insert(contentsOf: bytes[from..<min(bytes.count, from + Int(random.uniform(below: 60)))], at: at)
      case 4: bytes.replaceSubrange(at..<(at + length), with: random.pick(pieces) ?? [])
      default: bytes = Array(bytes.prefix(max(1, at)))
      }
    }
    return bytes
  }

  @Test(
    arguments: [
      ("policies/phone_otp.lua", rich, 1), ("flows/login.lua", TestFolder.flow, 2),
      ("routes.lua", TestFolder.routes, 3),
      ("gateway.lua", TestFolder.gateway, 4),
    ] as [(String, String, UInt64)]) func neverCrashesOrHangs(_ file: String, _ text: String, _ seed: UInt64) throws
  {
    let folder = try TestFolder(["policies/phone_otp.lua": Self.rich])
    let random = SeededRandom(seed: seed)
    let clock = ContinuousClock()
    var loaded = 0
    for round in 0..<600 {
      let bytes = Self.mutated(Array(text.utf8), random)
      try Data(bytes).write(to: URL(fileURLWithPath: folder.scratch.path(file)))
      let start = clock.now
      switch folder.load() {
      case .failure(let refused): #expect(!refused.problems.isEmpty)
      case .success(let generation):
        loaded += 1
        let evaluator = try generation.makeEvaluator()
        for policy in generation.policies.values {
          for function in [policy.send, policy.verify].compactMap(\.self) {
            _ = evaluator.verdict(of: function, given: EvaluatorTests.facts)
          }
          for limit in policy.limits { _ = try? evaluator.value(of: limit.max, given: EvaluatorTests.facts) }
        }
      }
      #expect(clock.now - start < .seconds(5), "round \(round): \(String(decoding: bytes, as: UTF8.self))")
    }
    #expect(loaded > 0)
  }
}
