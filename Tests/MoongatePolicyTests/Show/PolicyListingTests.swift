import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

@Suite struct PolicyListingTests {
  @Test func everyValueNamesItsLine() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": """
      return policy "phone_otp" {
        code = { ttl = "5m" },
        limits = {
          send = { on = "send", per = "phone", max = 4, window = "15m" },
          verify = { on = "verify", per = "phone", window = "24h", lock = { "15m", "1h" },
            max = vary(2, 5, function(f) return 5 end) },
        },
        send = function(f) return allow end,
      }
      """
    ])
    let policy = try #require(try folder.generation().policies[ProviderName(test: "phone_otp")])
    let text = PolicyListing(policy).text(colour: false)
    #expect(
      text == """
        policy "phone_otp"

          code.length           6                       Plugins/PhoneOTP/policy.lua:4
          code.alphabet         "digits"                Plugins/PhoneOTP/policy.lua:4
          code.ttl              "5m"                    policies/phone_otp.lua:2
          timers.resend_after   { "1m", "2m" }          Plugins/PhoneOTP/policy.lua:5
          limits.send.on        "send"                  policies/phone_otp.lua:4
          limits.send.per       "phone"                 policies/phone_otp.lua:4
          limits.send.max       4                       policies/phone_otp.lua:4
          limits.send.window    "15m"                   policies/phone_otp.lua:4
          limits.send.counts    "all"                   by default
          limits.verify.on      "verify"                policies/phone_otp.lua:5
          limits.verify.per     "phone"                 policies/phone_otp.lua:5
          limits.verify.max     vary(2, 5, function)    policies/phone_otp.lua:6
          limits.verify.window  "24h"                   policies/phone_otp.lua:5
          limits.verify.counts  "failures"              by default
          limits.verify.lock    { "15m", "1h" }         policies/phone_otp.lua:5
          unknown_account       "reveal"                Plugins/PhoneOTP/policy.lua:20
          message               "{code} is your {service} verification code"
                                                        Plugins/PhoneOTP/policy.lua:21
          send                  function                policies/phone_otp.lua:8
        """, "\(text)")
  }

  @Test(arguments: [
    (Int64(0), "0s"), (90, "1m30s"), (86_400, "24h"), (172_800, "2d"), (5_400, "1h30m"), (2_592_061, "30d1m1s"),
  ])
  func durationsAreWrittenAsFilesDo(_ seconds: Int64, _ text: String) {
    #expect(Duration.seconds(seconds).asWritten == text)
  }
}
