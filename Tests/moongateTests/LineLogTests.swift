import Logging
import MoongateProgram
import Synchronization
import Testing

@testable import MoongateGateway

@Suite("A log line") struct LineLogTests {
  /// The logged lines without their time.
  private func lines(_ log: (Logger) -> Void) -> [String] {
    let written = Written()
    log(
      Logger(label: "serve") { LineLog(label: $0, level: .info) { line in written.lines.withLock { $0.append(line) } } }
    )
    return written.lines.withLock { $0.map { String($0.dropFirst(25)) } }
  }

  private final class Written: Sendable {
    let lines = Mutex<[String]>([])
  }

  @Test("has a time, level, label and message, then named values") func form() {
    let written = Written()
    let logger = Logger(label: "serve") {
      LineLog(label: $0, level: .info) { line in written.lines.withLock { $0.append(line) } }
    }
    logger.notice("ready", metadata: ["gateway": "http://localhost:8080", "admin": "http://127.0.0.1:9901"])
    let line = written.lines.withLock { $0.first } ?? ""
    #expect(
      line.wholeMatch(
        of:
          /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z notice  serve: ready admin=http:\/\/127\.0\.0\.1:9901 gateway=http:\/\/localhost:8080\n/
      ) != nil)
  }

  @Test("is one line for any client input") func injection() {
    let told = lines {
      $0.error(
        "bad\nvalue",
        metadata: ["agent": "x\r\n2026-01-01T00:00:00.000Z notice  serve: all is well\u{1B}[2J\u{2028}\u{85}"])
    }
    #expect(
      told == [
        #"error   serve: bad\nvalue agent="x\r\n2026-01-01T00:00:00.000Z notice  serve: all is well\u{1b}[2J\u{2028}\u{85}""#
          + "\n"
      ])
  }

  @Test("quotes ambiguous values") func quotes() {
    let told = lines { $0.info("x", metadata: ["a": "", "b": "c d", "e": #"f"g"#, "h": "i=j", "k": "l"]) }
    #expect(told == [#"info    serve: x a="" b="c d" e="f\"g" h="i=j" k=l"# + "\n"])
  }

  @Test("is omitted below the configured level") func level() {
    #expect(lines { $0.debug("not this") }.isEmpty)
  }
}
