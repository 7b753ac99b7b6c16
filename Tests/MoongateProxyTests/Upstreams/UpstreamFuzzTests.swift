import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Random frames of an upstream: whatever it sends, each exchange gets the bytes of its own response, in their order,
/// and nothing that is incomplete looks complete.
///
/// `HTTP2_FUZZ_CONNECTIONS` sets the number of connections for each seed.
@Suite struct UpstreamFuzzTests {
  private static let connections =
    ProcessInfo.processInfo.environment["HTTP2_FUZZ_CONNECTIONS"].flatMap { Int($0) } ?? 20

  /// A frame or a part of a response, made when its turn comes, because heads share a table of compression.
  private enum Step {
    case head([(String, String)], ends: Bool)
    case data(String, padding: Int, ends: Bool)
    case reset(UInt8)
    case window(UInt8)
  }

  /// What an upstream sends on one stream, and what of it an exchange must get.
  private struct Script {
    var steps: [Step] = []
    /// The body that is sent.
    var body = ""
    /// Whether the response is well formed and complete.
    var isWhole = false
  }

  private static let breaks: [(String, String)] = [
    ("x", "a\r\nHTTP/1.1 200 OK"), ("x", " a"), ("X", "a"), ("connection", "close"), (":path", "/"),
    ("transfer-encoding", "chunked"), ("content-length", "x"), ("a b", "c"), (":status", "200"), ("x", "a\u{0}"),
  ]

  /// - Parameter mark: a text that no other stream has.
  private func script(_ mark: String, _ generator: inout SeededGenerator) -> Script {
    var script = Script()
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }
    for _ in 0..<(chance(10) ? Int.random(in: 1...3, using: &generator) : 0) {
      script.steps.append(.head([(":status", "103"), ("x-mark", mark)], ends: false))
    }
    let hidden = "HTTP/1.1 200 OK\r\nX-Mark: \(mark)\r\nContent-Length: 1\r\n\r\n"
    let parts = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
      [mark, hidden, "", "0\r\n\r\n" + hidden, String(repeating: mark, count: 500)].randomElement(using: &generator)
        ?? ""
    }
    script.body = parts.joined()
    let isBroken = chance(40)
    let fault = isBroken ? Int.random(in: 0..<7, using: &generator) : -1
    var fields = [(":status", ["200", "404", "500"].randomElement(using: &generator) ?? "200"), ("x-mark", mark)]
    let declares = chance(40)
    let wrongLength = fault == 0
    if declares || wrongLength {
      fields.append(("content-length", "\(script.body.utf8.count + (wrongLength ? 1 : 0))"))
    }
    if fault == 1 { fields.append(Self.breaks.randomElement(using: &generator) ?? ("", "")) }
    let endsByHead = parts.isEmpty && chance(50) && fault != 2 && fault != 3 && fault != 4
    if fault == 2 { script.steps.append(.data(hidden, padding: 0, ends: chance(50))) }
    script.steps.append(.head(fields, ends: endsByHead))
    let trailed = !endsByHead && chance(30)
    for (index, part) in parts.enumerated() {
      let ends = index == parts.count - 1 && !trailed && fault != 3 && fault != 4 && chance(60)
      script.steps.append(.data(part, padding: chance(20) ? Int.random(in: 1...20, using: &generator) : 0, ends: ends))
      if ends { script.isWhole = true }
    }
    if chance(20) { script.steps.insert(.window(UInt8.random(in: 1...9, using: &generator)), at: 0) }
    switch fault {
    case 3: script.steps.append(.reset(UInt8.random(in: 0...13, using: &generator)))
    case 4: script.steps.append(.head([("x-mark", mark)], ends: false))
    case 5 where trailed: script.steps.append(.head([("x", "a\r\nb: c")], ends: true))
    default:
      if trailed {
        script.steps.append(.head([("x-mark", mark)], ends: true))
      } else if !script.isWhole, !endsByHead {
        script.steps.append(.data("", padding: 0, ends: true))
      }
    }
    script.isWhole = !isBroken || fault == 5 && !trailed || fault == 6
    return script
  }

  @Test(arguments: 0..<8 as Range<UInt64>) func everyExchangeGetsItsOwnResponse(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    for round in 0..<Self.connections {
      let upstream = try EmbeddedUpstream()
      defer { upstream.end() }
      let count = Int.random(in: 1...12, using: &generator)
      var exchanges: [RecordedExchange] = []
      var scripts: [Script] = []
      for number in 0..<count {
        exchanges.append(try upstream.ask("/\(number)", hasBody: Bool.random(using: &generator)))
        scripts.append(script("<\(seed)-\(round)-\(number)>", &generator))
        if Int.random(in: 0..<10, using: &generator) == 0 { exchanges[number].takesAnswer = false }
      }
      let isLethal = Int.random(in: 0..<6, using: &generator) == 0
      try play(scripts, on: upstream, exchanges, isLethal: isLethal, &generator)
      for exchange in exchanges where !exchange.takesAnswer {
        exchange.takesAnswer = true
        exchange.stream.resumeReading()
      }
      for (number, exchange) in exchanges.enumerated() {
        check(exchange, scripts[number], mark: "<\(seed)-\(round)-\(number)>", isLethal: isLethal)
      }
      upstream.end()
      #expect(exchanges.allSatisfy { ["end"].contains($0.events.last) || $0.events.last?.hasPrefix("failed") ?? false })
      #expect(upstream.target.busy == 0)
    }
  }

  /// Sends the steps of all streams in a random order, cut into random pieces.
  private func play(
    _ scripts: [Script], on upstream: EmbeddedUpstream, _ exchanges: [RecordedExchange], isLethal: Bool,
    _ generator: inout SeededGenerator
  ) throws {
    var places = scripts.map { _ in 0 }
    var bytes: [UInt8] = []
    while let number = scripts.indices.filter({ places[$0] < scripts[$0].steps.count }).randomElement(using: &generator)
    {
      let id = 2 * number + 1
      switch scripts[number].steps[places[number]] {
      case .head(let fields, let ends):
        bytes += try upstream.head(id, nil, fields, end: ends)
      case .data(let text, let padding, let ends):
        let tail = Array(repeating: UInt8(0), count: padding)
        let payload = padding > 0 ? [UInt8(padding)] + Array(text.utf8) + tail : Array(text.utf8)
        bytes += EmbeddedStreams.frame(0, flags: (ends ? 1 : 0) | (padding > 0 ? 8 : 0), stream: id, payload)
      case .reset(let code): bytes += EmbeddedUpstream.code(3, stream: id, code)
      case .window(let count): bytes += EmbeddedUpstream.code(8, stream: id, count)
      }
      places[number] += 1
      if isLethal, Int.random(in: 0..<8, using: &generator) == 0 {
        bytes += (0..<12).map { _ in UInt8.random(in: 0...255, using: &generator) }
      }
      if Int.random(in: 0..<3, using: &generator) > 0 { continue }
      for piece in DecoderFuzzTests.split(bytes, &generator) { try upstream.answer(piece) }
      bytes = []
    }
    try upstream.answer(bytes)
  }

  private func check(_ exchange: RecordedExchange, _ script: Script, mark: String, isLethal: Bool) {
    let body = exchange.events.filter { $0.hasPrefix("'") }.map { $0.dropFirst().dropLast() }.joined()
    let text = exchange.events.filter { !$0.hasPrefix("'") }.joined(separator: "\n") + "\n" + body
    let marks = text.split(separator: "<").dropFirst().map { "<\($0.prefix { $0 != ">" })>" }
    #expect(marks.allSatisfy { mark.hasPrefix($0.dropLast()) }, "\(mark) got \(text)")
    // By bytes: CR LF is one Character.
    #expect(script.body.utf8.starts(with: body.utf8), "\(mark): \(script.steps) became \(text)")
    let isWhole = exchange.events.contains("end")
    #expect(exchange.events.count { $0 == "end" || $0.hasPrefix("failed") } <= 1)
    if isWhole { #expect(script.isWhole && body == script.body, "\(mark): \(script.steps) became \(text)") }
    if !isLethal { #expect(isWhole == script.isWhole, "\(mark): \(script.steps) became \(text)") }
  }
}
