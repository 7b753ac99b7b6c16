import Foundation
import Logging
import MoongateSDK

/// A program that is another provider: started, supervised, asked. It lives as long as somebody holds this; then it is
/// told to end.
///
/// One thread of its own starts it, speaks with it, counts its time and takes its end: the kernel kills a program whose
/// starting thread is gone, so none outlives the gateway, however that ends.
final class Program: Sendable {
  let specification: ProgramSpecification
  let limits: ProgramLimits
  let log: ProgramLog
  private let inbox: ProgramInbox
  private let introduction = OneAnswer<Result<Introduction, ProgramFault>>()
  private let over = OneAnswer<Bool>()

  /// Starts it, and says hello.
  /// - Parameter threads: gives its thread, and so the program, their priority.
  init(
    _ specification: ProgramSpecification, limits: ProgramLimits, threads: ThreadStarter, logger: Logger,
    listener: (@Sendable (ReceivedNotification) -> Void)? = nil,
    jitter: @escaping @Sendable () -> Double
  ) {
    self.specification = specification
    self.limits = limits
    log = ProgramLog(
      logger, name: specification.name, limits: limits, secrets: SecretTexts(specification.environment.values),
      listener: listener)
    inbox = ProgramInbox(most: limits.outstanding)
    let loop = ProgramLoopParts(
      specification: specification, limits: limits, log: log, inbox: inbox, introduction: introduction, over: over,
      jitter: jitter)
    // A message may be nested deeply; the decoder allows 512 levels.
    threads.start("exec \(specification.name)", stackSize: 4 << 20) { ProgramLoop(loop).run() }
  }

  deinit { inbox.put(.stop) }

  /// What it says of itself. Blocks for as long as a handshake may take.
  func introduced() -> Result<Introduction, ProgramFault> {
    introduction.wait(atMost: limits.handshake + .seconds(1))
      ?? .failure(.notStarted("did not answer `hello` within \(limits.handshake.shortText)"))
  }

  /// Gives it its settings, once; every later start gets the same. Blocks for as long as a handshake may take.
  func configure(_ settings: ProgramInbox.Settings, secrets: [String]) -> Result<Void, ProgramFault> {
    log.secrets.add(lasting: secrets)
    let answer = OneAnswer<Result<Void, ProgramFault>>()
    guard inbox.put(.configure(settings, answer)) else { return .failure(inbox.fault) }
    return answer.wait(atMost: limits.handshake + .seconds(1))
      ?? .failure(.notStarted("did not answer `configure` within \(limits.handshake.shortText)"))
  }

  /// Asks it.
  /// - Parameters:
  ///   - secrets: texts of the call that must not stand in a log.
  ///   - time: how long it may take; nil: as long as gateway.lua says.
  ///   - tools: what the program may ask the gateway for while the call is open.
  func call<Result: Decodable>(
    _ method: Method, _ parameters: some Encodable, secrets: [String], granting tools: StepTools?,
    within time: Duration? = nil, as _: Result.Type
  ) async throws(ProgramFault) -> Result {
    try inbox.enter()
    defer { inbox.left() }
    log.secrets.add(secrets, at: .now)
    let id = inbox.number()
    let line: [UInt8]
    do { line = try JSONLine.encode(Outgoing(id: id, method: method, params: parameters)) } catch {
      throw .broken("the call cannot be written")
    }
    guard line.count <= limits.line else { throw .tooLong }
    let timeout = time ?? specification.timeout
    let answer: [UInt8]
    do {
      answer = try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          let call = ProgramInbox.Call(
            id: id, line: line, deadline: .now + timeout, timeout: timeout, tools: tools,
            answer: continuation)
          if !inbox.put(.call(call)) { continuation.resume(throwing: inbox.fault) }
        }
      } onCancel: {
        inbox.put(.cancel(id))
      }
    } catch {
      throw error as? ProgramFault ?? .cancelled
    }
    do {
      return try JSONLine.decode(Answer<Result>.self, answer).result
    } catch {
      let problem = JSONLine.problem(error)
      log.complain("unreadable", "its answer to `\(method.rawValue)` cannot be read: \(problem)")
      throw .broken("its answer to `\(method.rawValue)` cannot be read: \(problem)")
    }
  }

  /// Lets it end when those who use it still are done.
  func retire() { inbox.put(.retire) }

  /// Ends it; blocks until it has ended, at most as long as two farewells take.
  func end() {
    inbox.put(.stop)
    _ = over.wait(atMost: limits.farewell * 2 + .seconds(1))
  }

  /// Whether it has ended for good, or came back as another than it was loaded as: a later generation needs a new one.
  var isSpent: Bool { inbox.isSpent }

  /// How many calls are under way.
  var outstanding: Int { inbox.outstanding }
}

extension Program {
  /// How long maintenance may take: as long as the gateway lets that of any provider.
  private static let maintenanceTime: Duration = .seconds(60)

  /// Has it do what is to be done now and then.
  func maintain(with tools: StepTools) async throws(ProgramFault) {
    _ = try await call(
      .maintain, MaintenanceCall(now: tools.clock.now), secrets: [], granting: tools, within: Self.maintenanceTime,
      as: Done.self)
  }
}
