import MoongateCore
import Testing

@Suite struct TimestampTextTests {
  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
    (1_795_176_900_007, "2026-11-20T12:15:00Z", "2026-11-20T12:15:00.007Z"),
    (951_826_154_250, "2000-02-29T12:09:14Z", "2000-02-29T12:09:14.250Z"),
    (-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"),
  ]) func secondsAndMilliseconds(_ milliseconds: Int64, _ text: String, _ exact: String) {
    let moment = Timestamp(milliseconds: milliseconds)
    #expect(moment.text == text)
    #expect(moment.exactText == exact)
  }
}
