import Testing

@testable import MoongateProxy

/// A seeded random generator, so that failures can be reproduced.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    // SplitMix64.
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}

/// Our decoder with mutated and split bytes, compared with llhttp.
@Suite struct DecoderFuzzTests {
  static let corpus: [String] = [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /a?b=c HTTP/1.1\r\nHost: example.com:80\r\nContent-Length: 11\r\nCookie: a=b; moongate=c\r\n\r\nhello worldGET /next HTTP/1.1\r\nHost: x\r\n\r\n",
    "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4;x=\"y\"\r\nabcd\r\n0\r\nT: v\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET http://x/abs HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, X-Foo\r\nX-Foo: bar\r\n\r\n",
    "HEAD /h HTTP/1.0\r\nHost: y\r\nAccept: text/html\r\nUser-Agent: some thing (like; this)\r\n\r\n",
    "DELETE /d;p=1/e HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: 100-continue\r\nX-Forwarded-For: 1.2.3.4, 5.6.7.8\r\n\r\n",
  ]
  static let pieces: [String] = [
    "\r\n", "\n", "\r", "\0", " ", "\t", ":", ";", ",", "\r\n ", "\r\n\r\n", "0", "5", "a", "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding:\tchunked\r\n", "transfer-encoding: x\r\n", "Host: y\r\n", "HTTP/1.1", "GET ", "\u{7f}", "é",
    "=", "\"", "\\", "%", "#",
    "0\r\n\r\n",
    "Connection: close\r\n", "Content-Length : 1\r\n", "X: y\r\n z\r\n", "+", "-", "0x", "HTTP/1.0",
    "Content-length:5\r\n", "A: b\r\n",
    "1;e\r\nq\r\n",
  ]
  static let known: Set<String> = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND", "SEARCH",
    "UNLOCK", "BIND", "REPORT",
    "PURGE",
    "LINK", "UNLINK",
  ]

  static func mutated(_ generator: inout SeededGenerator) -> [UInt8] {
    var bytes = Array((corpus.randomElement(using: &generator) ?? "").utf8)
    for _ in 0..<Int.random(in: 0...4, using: &generator) {
      let at = Int.random(in: 0...bytes.count, using: &generator)
      switch Int.random(in: 0..<6, using: &generator) {
      case 0 where at < bytes.count: bytes[at] = UInt8.random(in: .min ... .max, using: &generator)
      case 1 where at < bytes.count: bytes.remove(at: at)
      case 2: bytes.insert(contentsOf: Array((pieces.randomElement(using: &generator) ?? "").utf8), at: at)
      case 3 where at < bytes.count: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 4:
        // Insert at the start of a line, where a piece is most likely to be parsed as a field.
        let starts = bytes.indices.filter { $0 > 0 && bytes[$0 - 1] == 0x0a }
        if let start = starts.randomElement(using: &generator) {
          bytes.insert(contentsOf: Array((pieces.randomElement(using: &generator) ?? "").utf8), at: start)
        }
      default:
        let end = Int.random(in: at...bytes.count, using: &generator)
        let slice = bytes[at..<end]
        bytes.insert(contentsOf: slice, at: Int.random(in: 0...bytes.count, using: &generator))
      }
    }
    return bytes
  }

  static func split(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [[UInt8]] {
    var pieces: [[UInt8]] = []
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Int.random(in: 1...9, using: &generator))
      pieces.append(Array(bytes[start..<end]))
      start = end
    }
    return pieces
  }

  @Test(arguments: 0..<8 as Range<UInt64>) func acceptedMessagesAreReadLikeLLHTTPInAnySplit(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<1500 {
      let bytes = Self.mutated(&generator)
      let ours = readOurs([bytes])
      let pieces = readOurs(Self.split(bytes, &generator))
      #expect(
        ours.messages.map(\.body) == pieces.messages.map(\.body) && ours.fault == pieces.fault,
        "\(String(decoding: bytes, as: UTF8.self).debugDescription)")
      #expect(ours.messages == pieces.messages)
      compare(ours, bytes)
    }
  }

  private func compare(_ ours: Understanding, _ bytes: [UInt8]) {
    // llhttp has a fixed list of methods and stops at an upgrade, so it gives no comparison there.
    var judged = ours.messages.prefix {
      Self.known.contains($0.method) && !$0.fields.contains { $0.lowercased().hasPrefix("upgrade:") }
    }
    // The authority of an absolute target is compared with the Host after decoding.
    judged = judged.prefix {
      $0.target.hasPrefix("/") || $0.fields.contains("Host: x") && $0.target.hasPrefix("http://x/")
    }
    // llhttp stops after `close`. For an incomplete message, compare only the head.
    if let closing = judged.firstIndex(where: {
      $0.fields.contains { $0.lowercased().hasPrefix("connection:") } || $0.minorVersion == 0
    }) {
      judged = judged[...closing]
    }
    guard !judged.isEmpty else { return }
    let theirs = readTheirs(bytes)
    for (index, message) in judged.enumerated() {
      guard index < theirs.messages.count else {
        // llhttp does not accept a tab after a length, which the grammar allows.
        if "\(String(describing: theirs.fault))".contains("character in content-length") { return }
        if message.isComplete {
          Issue.record(
            "llhttp refuses what we accept: \(String(decoding: bytes, as: UTF8.self).debugDescription) \(String(describing: theirs.fault))"
          )
        }
        return
      }
      var other = theirs.messages[index]
      // llhttp does not remove whitespace after a value.
      other.fields = other.fields.map { field in
        let text = String(field.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
        return text.firstIndex(of: ":") == text.indices.last ? text + " " : text
      }
      if !message.isComplete { other.isComplete = false; other.body = message.body }
      #expect(message == other, "\(String(decoding: bytes, as: UTF8.self).debugDescription)")
    }
  }
}
