import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `gate` of gateway.lua, and the id of a change.
@Suite struct GateReadingTests {
  private func read(_ gate: String) throws -> (gate: GateSettings?, problems: [String], warnings: [String]) {
    let folder = try ScratchFolder()
    try folder.write(
      """
      return gateway {
        public_url = "http://127.0.0.1:8080",
        gate = \(gate),
        providers = {},
      }
      """, to: "gateway.lua")
    switch ConfigurationLoader(providers: []).load(folder: folder.path) {
    case .success(let generation): return (generation.gateway.gate, [], generation.warnings.map(\.description))
    case .failure(let refused): return (nil, refused.problems.map(\.description), [])
    }
  }

  @Test func gateSettingsAreRead() throws {
    #expect(try read("{}").gate == GateSettings(replay: .seconds(86_400), mostFlips: 0.005))
    let said = try read(#"{ replay = "90m", most_flips = "12.5%", flips_accepted = "0123456789ABCDEF" }"#).gate
    #expect(said == GateSettings(replay: .seconds(5_400), mostFlips: 0.125, accepted: "0123456789ABCDEF"))
    #expect(said?.accepts("0123456789abcdef99") == true && said?.accepts("0123456789abcdee99") == false)
    #expect(GateSettings().accepts("0123456789abcdef99") == false)
  }

  @Test(arguments: [
    (
      #"{ most_flips = "0.5" }"#,
      "gateway.lua:3: gate.most_flips: \"0.5\" is not a share of the decisions, such as \"0.5%\": from \"0%\" to \"100%\"; did you mean \"0.5%\"?"
    ),
    (
      #"{ most_flips = "many%" }"#,
      "gateway.lua:3: gate.most_flips: \"many%\" is not a share of the decisions, such as \"0.5%\": from \"0%\" to \"100%\""
    ),
    (
      #"{ most_flips = "101%" }"#,
      "gateway.lua:3: gate.most_flips: \"101%\" is not a share of the decisions, such as \"0.5%\": from \"0%\" to \"100%\""
    ),
    (#"{ replay = "30d" }"#, "gateway.lua:3: gate.replay: \"30d\" is too long: from \"1m\" to \"7d\""),
    (#"{ replay = "1s" }"#, "gateway.lua:3: gate.replay: \"1s\" is too short: from \"1m\" to \"7d\""),
    (
      #"{ flips_accepted = "yes" }"#,
      "gateway.lua:3: gate.flips_accepted: \"yes\" is not the id of a change: write the 16 digits from the message of the refused reload"
    ),
  ])
  func invalidGates(_ text: String, _ problem: String) throws { #expect(try read(text).problems == [problem]) }

  @Test func gateThatAllowsEverythingGivesAWarning() throws {
    #expect(try read(#"{ most_flips = "100%" }"#).warnings.contains { $0.contains("allows every change") })
  }

  private func mark(_ gateway: String) -> String {
    String(decoding: ConfigurationFiles.unmarked(Array(gateway.utf8)), as: UTF8.self)
  }

  @Test func acceptingAChangeKeepsTheMark() {
    let plain = mark(#"return gateway { gate = { most_flips = "1%" }, x = 1 }"#)
    for accepted in [
      #"return gateway { gate = { most_flips = "1%", flips_accepted = "0123" }, x = 1 }"#,
      "return gateway {\n  -- accepted\n  gate = { most_flips = \"1%\", flips_accepted = \"0123\", },\n  x = 1,\n}",
      #"return gateway { gate = { flips_accepted = "9999", most_flips = "1%" }, x = 1 }"#,
    ] { #expect(mark(accepted) == plain) }
    #expect(mark(#"return gateway { gate = { most_flips = "2%" }, x = 1 }"#) != plain)
  }

  /// Attack: one change is accepted, and another one hides behind further fields of the same name.
  @Test func markIgnoresOnlyOneAcceptedField() {
    let one = mark(#"flips_accepted = "a" flips_accepted = "b""#)
    #expect(one != mark(#"flips_accepted = "a" flips_accepted = "c""#))
    #expect(mark("flips_accepted = secret") != mark("flips_accepted = other"))
  }
}
