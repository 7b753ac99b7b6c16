import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateDelivery

/// The destinations of the audit trail.
@Suite struct AuditSinkTests {
  private static let now = Timestamp(milliseconds: 1_795_000_000_250)

  private func lines(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }

  private func file(_ folder: ScratchFolder, rotate: Int = 1 << 20, keep: Int = 2) -> AuditFile {
    AuditFile(AuditFileSettings(path: folder.path("audit.log"), rotate: rotate, keep: keep))
  }

  private func content(_ folder: ScratchFolder, _ name: String = "audit.log") -> String? {
    FileManager.default.contents(atPath: folder.path(name)).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test func fileSinkWritesALineForEachEventAndIsPrivate() async throws {
    let folder = try ScratchFolder()
    try await file(folder).take(lines("{\"a\":1}", "{\"a\":2}"), at: Self.now)
    try await file(folder).take(lines("{\"a\":3}"), at: Self.now)
    #expect(content(folder) == "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n")
    let mode = try FileManager.default.attributesOfItem(atPath: folder.path("audit.log"))[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  /// The gateway was killed within a line. The event is sent again, and the partial line is removed.
  @Test(arguments: ["{\"a\":1}\n{\"b", "{\"b", ""]) func partialLineIsRemoved(_ before: String) async throws {
    let folder = try ScratchFolder()
    try Data(before.utf8).write(to: URL(fileURLWithPath: folder.path("audit.log")))
    try await file(folder).take(lines("{\"c\":3}"), at: Self.now)
    let whole = before.contains("\n") ? "{\"a\":1}\n" : ""
    #expect(content(folder) == whole + "{\"c\":3}\n")
  }

  @Test func fullFileIsRotatedAndTheOldestDeleted() async throws {
    let folder = try ScratchFolder()
    let sink = file(folder, rotate: 4, keep: 2)
    for number in 1...4 { try await sink.take(lines("line \(number)"), at: Self.now) }
    #expect(content(folder) == "line 4\n")
    #expect(content(folder, "audit.log.1") == "line 3\n")
    #expect(content(folder, "audit.log.2") == "line 2\n")
    #expect(content(folder, "audit.log.3") == nil)
  }

  @Test func fullDiskIsReportedAndLeavesNoPartialLine() async throws {
    let sink = AuditFile(AuditFileSettings(path: "/dev/full", rotate: 1 << 20, keep: 1))
    await #expect(throws: AuditSinkFault("/dev/full cannot be written: No space left on device")) {
      try await sink.take(lines("{}"), at: Self.now)
    }
    let missing = AuditFile(AuditFileSettings(path: "/nowhere/audit.log", rotate: 1 << 20, keep: 1))
    await #expect(throws: AuditSinkFault("/nowhere/audit.log cannot be opened: No such file or directory")) {
      try await missing.take(lines("{}"), at: Self.now)
    }
  }

  /// A site that records requests and answers as configured.
  private final class Site: WebClient {
    let requests = Mutex<[WebRequest]>([])
    let status: Int

    init(status: Int) { self.status = status }

    func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
      requests.withLock { $0.append(request) }
      return WebAnswer(status: status, headers: [], body: [])
    }
  }

  @Test func webhookReceivesSignedLines() async throws {
    let site = Site(status: 204)
    let settings = AuditWebhookSettings(url: "https://siem.example.com/in?token=x", secret: SecretText("key"))
    try await AuditWebhook(settings, web: site).take(lines("{\"a\":1}", "{\"a\":2}"), at: Self.now)
    let request = try #require(site.requests.withLock { $0.first })
    #expect(request.method == "POST" && String(decoding: request.body, as: UTF8.self) == "{\"a\":1}\n{\"a\":2}\n")
    // printf '1795000000.{"a":1}\n{"a":2}\n' | openssl dgst -sha256 -hmac key
    let header = request.headers.first { $0.name == "Moongate-Signature" }?.value
    #expect(header == "t=1795000000,v1=0443eff269c8b9afec8d116bd541d794069fa6e0ef281c3497842284839950dd")
    #expect(!AuditSinkSettings.webhook(settings).name.contains("token"), "a query may contain secrets")
  }

  @Test(arguments: [301, 400, 500]) func webhookAnswerOtherThan2xxIsAFault(_ status: Int) async throws {
    let settings = AuditWebhookSettings(url: "https://siem.example.com/in", secret: SecretText("key"))
    await #expect(throws: AuditSinkFault.self) {
      try await AuditWebhook(settings, web: Site(status: status)).take(lines("{}"), at: Self.now)
    }
  }

  @Test func localSyslogReceivesADatagramPerEvent() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("log")
    let server = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(server) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(server, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    #expect(isBound)
    let sink = SyslogServer(SyslogSettings(address: .local(path: path), facility: .authpriv))
    try await sink.take(lines("{\"a\":1}", "{\"a\":2}"), at: Self.now)
    for number in 1...2 {
      var buffer = [UInt8](repeating: 0, count: 512)
      let count = recv(server, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      let text = String(decoding: buffer[..<max(0, count)], as: UTF8.self)
      #expect(
        text.wholeMatch(of: /<85>[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d moongate\[\d+\]: \{"a":(\d)\}/)?.1
          == "\(number)", "\(text)")
    }
    let nobody = SyslogServer(SyslogSettings(address: .local(path: folder.path("none")), facility: .auth))
    await #expect(throws: AuditSinkFault.self) { try await nobody.take(lines("{}"), at: Self.now) }
  }
}
