import Foundation
import MoongateSDK
import Synchronization
import Testing

@testable import Password

/// A service with the range API. It answers as the test says, and records what it was asked.
private final class RangeService: WebClient {
  let asked = Mutex<[WebRequest]>([])
  private let answer: @Sendable () async throws(WebFault) -> WebAnswer

  init(_ answer: @escaping @Sendable () async throws(WebFault) -> WebAnswer) { self.answer = answer }

  convenience init(_ body: String, status: Int = 200) {
    self.init { () throws(WebFault) in WebAnswer(status: status, body: Array(body.utf8)) }
  }

  var count: Int { asked.withLock { $0.count } }

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    asked.withLock { $0.append(request) }
    return try await answer()
  }
}

/// A time that the test sets, and the lines of the log.
private final class Surroundings: Sendable {
  let now = Mutex<Int64>(1_000_000)
  let lines = Mutex<[String]>([])
  let isUp = Mutex(false)

  func tools(_ web: any WebClient, _ source: SettingValue = "https://leaks.example/api", refuse: Bool? = nil)
    -> StepTools
  {
    var values: [String: SettingValue] = ["breached": source]
    values["breached.refuse"] = refuse.map { .flag($0) }
    return StepTools(
      randomBytes: { [UInt8](repeating: 0, count: $0) }, settings: StepSettings(values: values), web: web,
      log: StepLog { [self] level, sentence, values in lines.withLock { $0.append("\(level) \(sentence) \(values)") } },
      clock: StepClock { [self] in now.withLock { $0 } })
  }
}

extension Password {
  /// Looks up a new password, or one that was accepted.
  fileprivate func lookUp(_ password: String, isNew: Bool = true, _ tools: StepTools) async -> SecretExposure {
    let step = StepContext(
      flow: "any", purpose: isNew ? .set : .prove, account: nil, identifier: nil, state: [], now: 0, callback: nil,
      tools: tools)
    return await exposure(step, .fields(["password": password]))
  }
}

private let problem = InputProblem(
  field: "password", reason: .weakPassword, detail: "This password is known from a data breach. Choose another.")
/// The SHA-1 of `password`.
private let key = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8"

@Suite("Leaked passwords at a service") struct LeakServiceTests {
  private let around = Surroundings()

  @Test("the service gets five digits of the hash, and asks for padding") func prefix() async throws {
    let service = RangeService("1E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365\r\n0018A45C4D1DEF81644B54AB7F969B88D65:1")
    for address in ["https://leaks.example/api", "https://leaks.example/api/"] {
      let found = await Password().lookUp("password", around.tools(service, .text(address)))
      #expect(found == .found(problem, demandsChange: false))
    }
    let asked = service.asked.withLock { $0 }
    for request in asked {
      #expect(request.method == "GET" && request.url == "https://leaks.example/api/range/5BAA6" && request.body.isEmpty)
      #expect(request.headers.contains { $0.name == "Add-Padding" && $0.value == "true" })
    }
    // Attack: the log, or the trail, connects digits of the hash with an account.
    #expect(around.lines.withLock { $0 } == [])
  }

  @Test(
    "a line counts in either case, with LF or CRLF, and padding does not",
    arguments: [
      ("1E4C9B93F3F0682250B6CF8331B7EE68FD8:3", true), ("1e4c9b93f3f0682250b6cf8331b7ee68fd8:3\n", true),
      ("0018A45C4D1DEF81644B54AB7F969B88D65:1\n1E4C9B93F3F0682250B6CF8331B7EE68FD8:2\r\n", true),
      ("1E4C9B93F3F0682250B6CF8331B7EE68FD8:0\r\n", false), ("1E4C9B93F3F0682250B6CF8331B7EE68FD9:7", false),
    ]) func lines(_ body: String, _ isFound: Bool) async
  {
    let found = await Password().lookUp("password", around.tools(RangeService(body), refuse: true))
    #expect(found == (isFound ? .found(problem, demandsChange: true) : .notFound))
  }

  /// Attack: half an answer, or the page of a proxy, is taken for a list without the password.
  @Test(
    "anything else than a list is no answer",
    arguments: [
      ("", 200), ("Sign in to this network", 200), ("1E4C9B93F3F0682250B6CF8331B7EE68FD8", 200),
      ("1E4C9B93F3F0682250B6CF8331B7EE68FD8:3", 503), ("1E4C9B93F3F0682250B6CF8331B7EE68FD8:3", 302),
      ("0018A45C4D1DEF81644B54AB7F969B88D65:1\n1E4C9B93", 200), ("ZE4C9B93F3F0682250B6CF8331B7EE68FD8:3", 200),
    ]) func broken(_ body: String, _ status: Int) async
  {
    let found = await Password().lookUp("password", around.tools(RangeService(body, status: status)))
    guard case .unknown(let reason) = found else {
      Issue.record("\(found)")
      return
    }
    #expect(!reason.contains("5BAA6") && !reason.contains("1E4C9"))
  }

  @Test("without the setting, nothing is asked") func off() async {
    let tools = StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, web: RangeService(""))
    #expect(!Password().checksExposure(tools.settings))
    #expect(await Password().lookUp("password", tools) == .notFound)
  }

  @Test("a slow service is not waited for") func slow() async {
    let service = RangeService { () async throws(WebFault) in
      try? await Task.sleep(for: .seconds(600))
      return WebAnswer(status: 200, body: [])
    }
    let password = Password(LeakLookups(timeLimit: .milliseconds(20)))
    guard case .unknown = await password.lookUp("password", around.tools(service)) else {
      Issue.record("waited")
      return
    }
  }

  @Test("a service that is down is not asked for a while, then by one") func breaker() async {
    let service = RangeService { [around] () throws(WebFault) in
      guard around.isUp.withLock({ $0 }) else { throw WebFault(reason: "https://leaks.example: Connection refused") }
      return WebAnswer(status: 200, body: Array("0018A45C4D1DEF81644B54AB7F969B88D65:1".utf8))
    }
    let password = Password()
    for _ in 1...10 { _ = await password.lookUp("password", isNew: false, around.tools(service)) }
    #expect(service.count == LeakLookups.mostFailures)
    #expect(around.lines.withLock { $0.count { $0.hasPrefix("error") } } == 1)
    around.now.withLock { $0 += LeakLookups.pause }
    for _ in 1...5 { _ = await password.lookUp("password", isNew: false, around.tools(service)) }
    #expect(service.count == LeakLookups.mostFailures + 1)
    around.isUp.withLock { $0 = true }
    around.now.withLock { $0 += LeakLookups.pause }
    for _ in 1...5 { #expect(await password.lookUp("password", isNew: false, around.tools(service)) == .notFound) }
    #expect(around.lines.withLock { $0.last?.hasPrefix("notice") } == true)
  }

  /// Attack: somebody proposes so many new passwords at the same moment that their lookups fail, and a leaked one is
  /// then used at a sign-in.
  @Test("failures of new passwords do not stop lookups of sign-ins") func lanes() async {
    let service = RangeService { [around] () throws(WebFault) in
      guard around.isUp.withLock({ $0 }) else { throw WebFault(reason: "slow") }
      return WebAnswer(status: 200, body: Array("1E4C9B93F3F0682250B6CF8331B7EE68FD8:3".utf8))
    }
    let password = Password()
    for _ in 1...10 { _ = await password.lookUp("password", around.tools(service)) }
    #expect(service.count == LeakLookups.mostFailures)
    around.isUp.withLock { $0 = true }
    let found = await password.lookUp("password", isNew: false, around.tools(service))
    #expect(found == .found(problem, demandsChange: false))
  }

  /// Attack: somebody proposes new passwords without end, so that no lookup is free when a leaked one is used at a
  /// sign-in.
  @Test("new passwords leave room for sign-ins") func concurrency() async {
    let (opened, open) = AsyncStream<Void>.makeStream()
    let gate = Task { for await _ in opened {} }
    let service = RangeService { () async throws(WebFault) in
      _ = await gate.value
      return WebAnswer(status: 200, body: Array("1E4C9B93F3F0682250B6CF8331B7EE68FD8:3".utf8))
    }
    let password = Password(LeakLookups(timeLimit: .seconds(600)))
    let tools = around.tools(service)
    await withTaskGroup(of: Void.self) { group in
      defer { open.finish() }
      for _ in 0..<LeakLookups.most { group.addTask { _ = await password.lookUp("password", tools) } }
      while service.count < LeakLookups.most { await Task.yield() }
      guard case .unknown = await password.lookUp("password", tools) else {
        Issue.record("one too many")
        return
      }
      #expect(service.count == LeakLookups.most)
      group.addTask {
        #expect(await password.lookUp("password", isNew: false, tools) == .found(problem, demandsChange: false))
      }
      while service.count <= LeakLookups.most { await Task.yield() }
    }
  }
}

@Suite("Leaked passwords in a file") struct LeakFileTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("leaks-\(UUID().uuidString)")

  private func file(_ text: String) throws -> String {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("list.txt")
    try Data(text.utf8).write(to: file)
    return file.path
  }

  private func remove() { try? FileManager.default.removeItem(at: folder) }

  /// Hashes in their order, such as 00000A…
  private static func hashes(_ count: Int) -> [String] {
    (0..<count).map { number in
      let head = String(number * 37 + 10, radix: 16, uppercase: true)
      return String(repeating: "0", count: 8 - head.count) + head + String(repeating: "A", count: 32)
    }
  }

  @Test(
    "every line is found, and nothing between them",
    arguments: [1, 2, 3, 90, 5_000], ["\n", "\r\n"])
  func search(_ count: Int, _ end: String) throws {
    defer { remove() }
    let hashes = Self.hashes(count)
    for isLower in [false, true] {
      // Lines of different lengths; the last one has no line feed.
      let lines = hashes.enumerated().map { "\(isLower ? $1.lowercased() : $1):\($0 % 13 == 0 ? 1 : 1_234_567 * $0)" }
      let leaks = try LeakFile(try file(lines.joined(separator: end)))
      try leaks.examine()
      for hash in hashes {
        #expect(try leaks.contains(Array(hash.utf8)))
        #expect(try !leaks.contains(Array((hash.dropLast() + "B").utf8)))
        #expect(try !leaks.contains(Array((hash.dropLast() + "9").utf8)))
      }
      for hash in ["0000000000000000000000000000000000000000", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"] {
        #expect(try !leaks.contains(Array(hash.utf8)))
      }
    }
  }

  @Test("the provider finds a password in the file, and a count of 0 is none") func provider() async throws {
    defer { remove() }
    let around = Surroundings()
    for (count, isFound) in [("12", true), ("0", false)] {
      let path = try file("\(key):\(count)\n")
      let found = await Password().lookUp("password", around.tools(RangeService(""), .text(path)))
      #expect(found == (isFound ? .found(problem, demandsChange: false) : .notFound))
      #expect(await Password().lookUp("passwore", around.tools(RangeService(""), .text(path))) == .notFound)
    }
  }

  @Test("a file that is removed or becomes a folder keeps nobody out") func gone() async throws {
    let around = Surroundings()
    let path = try file("\(key):1\n")
    remove()
    guard case .unknown(let reason) = await Password().lookUp("password", around.tools(RangeService(""), .text(path)))
    else {
      Issue.record("known")
      return
    }
    #expect(reason.hasPrefix("list.txt cannot be read: "))
    guard case .unknown = await Password().lookUp("password", around.tools(RangeService(""), .text("/"))) else {
      Issue.record("a folder is a file")
      return
    }
  }

  /// A problem is reported with its line when the configuration is loaded.
  @Test("a wrong form or order is refused with its line") func examined() throws {
    defer { remove() }
    let many = Self.hashes(3_000).map { "\($0):5" }
    var unsorted = many
    unsorted.swapAt(500, 501)
    var late = many
    late.replaceSubrange(1_500..., with: many[..<1_500])
    var long = many
    long[2_999] += String(repeating: "1", count: 100)
    let cases: [([String], String)] = [
      ([], "list.txt is empty: it must have lines SHA1:COUNT"),
      (["\(key)"], "list.txt:1: is not a line SHA1:COUNT, with 40 hexadecimal digits and a number"),
      ([many[0], "", many[1]], "list.txt:2: is not a line SHA1:COUNT, with 40 hexadecimal digits and a number"),
      ([many[0], "password:5"], "list.txt:2: is not a line SHA1:COUNT, with 40 hexadecimal digits and a number"),
      ([many[0] + "x"], "list.txt:1: is not a line SHA1:COUNT, with 40 hexadecimal digits and a number"),
      (unsorted, "list.txt:502: is out of order: sort the file by its hashes"),
      (long, "list.txt:3000: is not a line SHA1:COUNT, with 40 hexadecimal digits and a number"),
    ]
    for (lines, sentence) in cases {
      let settings = StepSettings(values: ["breached": .text(try file(lines.joined(separator: "\n")))])
      #expect(Password().findings(in: settings) == [SettingFinding("breached", sentence)])
    }
    let settings = StepSettings(values: ["breached": .text(try file(late.joined(separator: "\n")))])
    #expect(Password().findings(in: settings).first?.message.contains("is out of order") == true)
    #expect(Password().findings(in: StepSettings(values: ["breached": "https://leaks.example"])) == [])
  }

  @Test("a line that a lookup meets out of order is no answer") func metUnsorted() throws {
    defer { remove() }
    var lines = Self.hashes(4_000).map { "\($0):5" }
    lines.replaceSubrange(1_000..<3_000, with: lines[1_000..<3_000].reversed())
    let leaks = try LeakFile(try file(lines.joined(separator: "\n")))
    #expect(throws: LeakFault.self) {
      for line in lines.prefix(3_000) { _ = try leaks.contains(Array(line.prefix(40).utf8)) }
    }
  }

  @Test("SHA-1 is taken of the form in which a password is stored") func spelling() throws {
    let typed = try TypedPassword("password", field: "password")
    #expect(String(decoding: LeakKey(typed).digits, as: UTF8.self) == key && LeakKey(typed).prefix == "5BAA6")
    let (composed, decomposed) = ("Jürgen-café-77", "Ju\u{308}rgen-cafe\u{301}-77")
    #expect(
      LeakKey(try TypedPassword(composed, field: "password"))
        == LeakKey(try TypedPassword(decomposed, field: "password")))
  }
}
