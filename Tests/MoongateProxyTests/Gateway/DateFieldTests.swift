import MoongateCore
import Testing

@testable import MoongateProxy

@Suite struct DateFieldTests {
  @Test(arguments: [
    (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
    (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
    (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
  ]) func writesFixedDates(seconds: Int64, text: String) {
    var field = DateField()
    #expect(
      String(decoding: field.line(at: Timestamp(milliseconds: seconds * 1000 + 999)), as: UTF8.self)
        == "Date: \(text)\r\n")
  }

  @Test func changesWithTheSecond() {
    var field = DateField()
    let first = field.line(at: Timestamp(milliseconds: 10_000))
    #expect(field.line(at: Timestamp(milliseconds: 10_999)) == first)
    #expect(field.line(at: Timestamp(milliseconds: 11_000)) != first)
    #expect(field.line(at: Timestamp(milliseconds: 10_500)) == first)
  }
}
