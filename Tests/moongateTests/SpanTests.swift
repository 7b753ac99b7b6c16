import Testing

@testable import MoongateGateway

@Suite struct SpanTests {
  @Test(
    arguments: [
      ("90s", 90), ("12h", 43_200), ("30d", 2_592_000), ("1h30m", 5_400), ("36500d", 3_153_600_000), ("36501d", nil),
      ("+5m", nil), ("-5m", nil), ("0s", nil), ("999ms", nil), ("5", nil), ("m", nil), ("", nil),
    ] as [(String, Int64?)]) func isWrittenAsInLuaFiles(_ text: String, _ seconds: Int64?)
  {
    #expect(MoongateGateway.Span(argument: text)?.duration == seconds.map { Duration.seconds($0) })
  }

  @Test func helpShowsTheDefaults() {
    #expect(MoongateGateway.Span.month.defaultValueDescription == "30d")
    #expect(MoongateGateway.Span.nineSeconds.defaultValueDescription == "9s")
  }
}
