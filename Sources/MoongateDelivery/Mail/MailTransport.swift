import CCurl
import MoongateCore
import MoongateSDK

/// `smtp { … }`: sends mail to a server through libcurl (RFC 5321), on dedicated threads.
struct MailTransport: MessageTransport {
  private static let connecting = 4_000
  private static let whole = 8_000

  private let settings: SMTPSettings
  private let clock: any GatewayClock
  private let random: any RandomSource
  private let sessions = MailSessions()
  /// A server that does not answer would otherwise hold threads on which all tasks of the gateway run.
  private let calls: BlockingCalls

  let site: String
  /// The number of threads, each of which waits for the server.
  let most = 4

  init(_ settings: SMTPSettings, clock: any GatewayClock, random: any RandomSource) {
    self.settings = settings
    self.clock = clock
    self.random = random
    site = "\(settings.encryption == .implicit ? "smtps" : "smtp")://\(settings.host):\(settings.port)"
    calls = BlockingCalls(threads: most, waiting: .max)
  }

  func send(_ message: Message) async throws(TransportError) {
    let document = try MailDocument(message, from: settings.from, at: clock.now(), random: random)
    let fault: TransportError?
    do { fault = try await calls.run(at: site) { send(document.bytes, of: message) } } catch {
      throw TransportError("\(error)")
    }
    if let fault { throw fault }
  }

  /// Sends a mail. Blocks its thread.
  private func send(_ bytes: [UInt8], of message: Message) -> TransportError? {
    guard let session = sessions.take() else { return TransportError("out of memory for another connection") }
    defer { sessions.giveBack(session) }
    let texts = [
      "\(site)/\(PercentEncoding.encode(settings.helo))", "<\(settings.from.address)>", "<\(message.to)>",
      settings.user?.reveal(), settings.password?.reveal(), settings.authority,
    ]
    let outcome = Self.withCStrings(texts) { texts in
      bytes.withUnsafeBytes { bytes in
        var mail = ccurl_mail()
        mail.url = texts[0]
        mail.from = texts[1]
        mail.to = texts[2]
        mail.user = texts[3]
        mail.password = texts[4]
        mail.authority = texts[5]
        mail.must_encrypt = settings.encryption == .required
        mail.connect_milliseconds = Self.connecting
        mail.total_milliseconds = Self.whole
        mail.bytes = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        mail.count = bytes.count
        return ccurl_send_mail(session.pointer, &mail)
      }
    }
    guard outcome.error != 0 else { return nil }
    // 421: the server closes the connection regardless of the command (RFC 5321 section 3.8).
    return TransportError(
      Self.reason(outcome, of: message), isOfMessage: outcome.of_this_mail && outcome.reply != 421)
  }

  /// The reason in the words of libcurl and, if the server refused, of the server.
  private static func reason(_ outcome: ccurl_outcome, of message: Message) -> String {
    let reason = withUnsafeBytes(of: outcome.reason) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let line = withUnsafeBytes(of: outcome.line) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    guard outcome.reply >= 400, !line.isEmpty else { return reason }
    return "\(reason) (\(ServerLine(line, about: message).text))"
  }

  /// Passes all strings to C at once.
  private static func withCStrings<Result>(_ texts: [String?], _ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
    func collect(_ rest: ArraySlice<String?>, _ pointers: [UnsafePointer<CChar>?]) -> Result {
      guard let first = rest.first else { return body(pointers) }
      guard let first else { return collect(rest.dropFirst(), pointers + [nil]) }
      return first.withCString { collect(rest.dropFirst(), pointers + [$0]) }
    }
    return collect(texts[...], [])
  }
}
