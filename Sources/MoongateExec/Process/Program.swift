import Foundation
import Logging
import MoongateSDK

/// A provider that is a separate program. It is started and supervised as long as this object exists, and then stopped.
///
/// One dedicated thread starts it, exchanges messages, enforces time limits and reaps it. The kernel kills a program
/// when the thread that started it ends, so that no program outlives the gateway.
final class Program: Sendable {
  let specification: ProgramSpecification
  let limits: ProgramLimits
  let log: ProgramLog
  private let inbox: ProgramInbox
  private let introduction = OneAnswer<Result<Introduction, ProgramFault>>()
  private let over = OneAnswer<Bool>()

  /// Starts the program and the handshake. More than five parameters: the program, its limits, and its services.
  /// - Parameter threads: starts the thread. The program inherits the priority of the thread.
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
    // A message may be deeply nested; the decoder allows 512 levels.
    threads.start("exec \(specification.name)", stackSize: 4 << 20) { ProgramLoop(loop).run() }
  }

  deinit { inbox.put(.stop) }

  /// The introduction of the program. Blocks until the handshake has finished.
  func introduced() -> Result<Introduction, ProgramFault> {
    introduction.wait(atMost: limits.handshake + .seconds(1))
      ?? .failure(.notStarted("did not answer `hello` within \(limits.handshake.shortText)"))
  }

  /// Sends the settings once; later starts send the same settings. Blocks until the program has answered.
  func configure(_ settings: ProgramInbox.Settings, secrets: [String]) -> Result<Void, ProgramFault> {
    log.secrets.add(lasting: secrets)
    let answer = OneAnswer<Result<Void, ProgramFault>>()
    guard inbox.put(.configure(settings, answer)) else { return .failure(inbox.fault) }
    return answer.wait(atMost: limits.handshake + .seconds(1))
      ?? .failure(.notStarted("did not answer `configure` within \(limits.handshake.shortText)"))
  }

  /// Sends a call and waits for the answer. More than five parameters: one JSON-RPC call, with its limits and grants.
  /// - Parameters:
  ///   - secrets: strings of the call that must not be logged.
  ///   - time: the time limit; nil for the timeout of gateway.lua.
  ///   - tools: the gateway services that the program can use during the call.
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
      throw .broken("the call cannot be encoded")
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

  /// Stops the program after its current calls have finished.
  func retire() { inbox.put(.retire) }

  /// Stops the program. Blocks until it has exited, for at most two farewell periods.
  func end() {
    inbox.put(.stop)
    _ = over.wait(atMost: limits.farewell * 2 + .seconds(1))
  }

  /// Whether the program has exited permanently or changed its introduction. A later generation needs a new one.
  var isSpent: Bool { inbox.isSpent }

  /// The number of open calls.
  var outstanding: Int { inbox.outstanding }
}

extension Program {
  /// The time limit of maintenance, the same as for other providers.
  private static let maintenanceTime: Duration = .seconds(60)

  /// Runs the program's periodic maintenance.
  func maintain(with tools: StepTools) async throws(ProgramFault) {
    _ = try await call(
      .maintain, MaintenanceCall(now: tools.clock.now), secrets: [], granting: tools, within: Self.maintenanceTime,
      as: Done.self)
  }
}
