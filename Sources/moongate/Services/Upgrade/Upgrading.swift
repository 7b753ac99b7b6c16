import Foundation
import Logging
import MoongateCore
import MoongateDelivery
import MoongateHTTP
import MoongateProgram
import MoongateProxy
import MoongateSDK

/// Replaces this process with a new one without failed requests (`moongate upgrade` or SIGUSR2).
///
/// Both processes use the same store until the older one has finished its connections. Therefore, state that exists in
/// the memory of one process only is given up before the newer one accepts connections: flows are stored, and both
/// processes stop trusting cached sessions.
actor Upgrading {
  /// The parts of the gateway that an upgrade changes.
  struct Parts: Sendable {
    let listeners: (listen: ListenerHandle, admin: ListenerHandle)
    let engine: FlowEngine
    let proxy: Proxy
    let outbox: Outbox
    let audit: AuditTrail
    let clock: any GatewayClock
    let random: any RandomSource
    let notifier: ServiceNotifier
    let logger: Logger
    /// Whether several gateways can use the store at any time and notify each other within a second.
    let isStoreShared: Bool
  }

  private enum State {
    case serving
    case upgrading
    /// Another process serves. This one finishes its connections.
    case replaced
    /// The gateway shuts down for another reason.
    case ending
  }

  /// The maximum number of earlier processes that still finish connections. Each uses the memory of a gateway.
  static let maxPredecessors = 8
  /// The time limit for the new process to serve after `go`.
  private static let turn: Duration = .seconds(10)
  /// Idle HTTP/1.1 connections are closed after this time once another process serves.
  private static let idle: Duration = .seconds(30)
  private static let look: Duration = .milliseconds(250)

  private let parts: Parts
  private let predecessor: Predecessor?
  private let program: ProgramCall
  private var state = State.serving
  /// Whether earlier processes may still serve.
  private var overlaps: Bool
  private var settling: Task<Void, Never>?
  /// The new process while it gets ready.
  private var candidate: SuccessorCalls?
  private let replacement = AsyncStream<Never>.makeStream()
  /// Kept open: its control socket shows the other process that this one is alive.
  private var successor: Successor?

  init(_ parts: Parts, predecessor: Predecessor?, program: ProgramCall = .own) {
    self.parts = parts
    self.predecessor = predecessor
    self.program = program
    overlaps = predecessor != nil
  }

  // MARK: after a previous process

  /// Prepares to accept connections beside the previous process: caches are not trusted, and flows are stored at once.
  func prepare() async throws(StoreFault) {
    guard predecessor != nil, !parts.isStoreShared else { return }
    await parts.proxy.trustCaches(false)
    try await parts.engine.shareFlows()
  }

  /// Waits until all earlier processes have exited, then uses memory again. Runs until the task is cancelled.
  func followPredecessors() async {
    while let predecessor, !predecessor.living.isEmpty { do { try await Task.sleep(for: Self.look) } catch { return } }
    // By then, `SessionWatch` has reported the last changes of these processes.
    do { try await Task.sleep(for: SessionWatch.freshFor) } catch { return }
    overlaps = false
    settle()
    while !Task.isCancelled { try? await Task.sleep(for: .seconds(3_600)) }
  }

  /// Uses caches and in-memory flows again if this is the only process.
  private func settle() {
    guard case .serving = state, !overlaps || parts.isStoreShared, settling == nil else { return }
    settling = Task {
      parts.engine.keepFlows()
      await parts.proxy.trustCaches(true)
      settling = nil
    }
  }

  // MARK: the upgrade

  /// Starts the new process and waits until it serves or has failed.
  /// - Parameter limit: the time limit for loading its configuration and opening the store.
  func upgrade(within limit: Duration) async -> UpgradeOutcome {
    switch state {
    case .serving: break
    case .upgrading: return .kept("An upgrade is already in progress.")
    case .replaced: return .kept("This process is already replaced and finishes its connections.")
    case .ending: return .kept("This gateway is shutting down.")
    }
    state = .upgrading
    await settling?.value
    let outcome = await run(within: limit)
    switch outcome {
    case .replaced(let process, let generation):
      state = .replaced
      parts.logger.notice(
        "upgrade: process \(process) serves; this one finishes its connections",
        metadata: ["generation": "\(generation.prefix(8))"])
      record(["process": "\(process)", "generation": generation])
      leave(to: process, generation: generation)
    case .kept(let why):
      if case .upgrading = state { state = .serving }
      settle()
      parts.logger.error("\(Self.keptLine(why))")
      // The Debian package waits for this text (Packaging/debian/postinst).
      parts.notifier.status("Not upgraded: \(why)")
      record(["why": why])
    }
    return outcome
  }

  /// The log line of an upgrade that failed.
  /// - Parameter why: the reason, which ends without a full stop if its last part is a configuration problem.
  static func keptLine(_ why: String) -> String {
    "upgrade: \(why)\(why.hasSuffix(".") ? "" : ".") This process continues."
  }

  private func record(_ detail: [String: String]) {
    parts.audit.record(
      AuditEvent(id: DecisionID(from: parts.random), at: parts.clock.now(), kind: .upgradeEnded, detail: detail))
  }

  private func run(within limit: Duration) async -> UpgradeOutcome {
    guard getpid() != 1 else {
      return .kept(
        "This gateway is process 1 of its container, which would end with it. Start a new container, then stop this one."
      )
    }
    let earlier = predecessor?.living ?? []
    guard earlier.count < Self.maxPredecessors else {
      return .kept(
        "\(earlier.count) earlier processes still finish their connections. Wait for them, or shorten `drain` in gateway.lua."
      )
    }
    parts.logger.notice("upgrade: starting \(program.path)")
    parts.notifier.status("Upgrading: \(program.path) starts")
    let started: Successor
    do throws(StartProblem) { started = try start(earlier) } catch { return .kept(error.sentence) }
    let turn = SuccessorCalls(started)
    candidate = turn
    defer { candidate = nil }
    guard case .said(.prepared) = await turn.next(within: limit, doing: "get ready") else {
      return .kept(await turn.refuse())
    }
    guard case .upgrading = state else { return .kept(await turn.refuse("This gateway is shutting down.")) }
    do throws(StoreFault) {
      try await hold()
    } catch {
      await resume()
      return .kept(await turn.refuse("The store does not answer (\(error))."))
    }
    await turn.send(TransferredState(outbox: parts.outbox))
    guard case .said(.serving(let generation)) = await turn.next(within: min(Self.turn, limit), doing: "serve") else {
      let why = await turn.refuse()
      await resume()
      return .kept(why)
    }
    successor = started
    return .replaced(process: started.process, generation: generation)
  }

  private func start(_ earlier: [CInt]) throws(StartProblem) -> Successor {
    guard let listen = parts.listeners.listen.socket, let admin = parts.listeners.admin.socket else {
      throw StartProblem("This gateway is not ready yet.")
    }
    var copies: [CInt] = []
    defer { for copy in copies { close(copy) } }
    do {
      copies = [try listen.duplicate(), try admin.duplicate()]
    } catch {
      throw StartProblem("The listening sockets cannot be duplicated: \(String(cString: strerror(error.code))).")
    }
    return try Successor(
      program, handing: copies + earlier,
      note: Predecessor.note(listen: listen.address, admin: admin.address, earlier: earlier.count))
  }

  /// Gives up in-memory state and stops accepting. New connections wait in the socket backlog.
  private func hold() async throws(StoreFault) {
    await parts.proxy.trustCaches(false)
    try await parts.engine.shareFlows()
    await parts.listeners.listen.gate.shut()
    await parts.listeners.admin.gate.shut()
    await parts.proxy.flushActivity()
    try await parts.audit.flush()
  }

  /// Accepts connections again after the new process has failed.
  private func resume() async {
    await parts.listeners.listen.gate.open()
    await parts.listeners.admin.gate.open()
  }

  private func leave(to process: pid_t, generation: String) {
    parts.notifier.hand(over: process, ServiceNotifier.serving(generation))
    parts.proxy.idleWhileDraining = Self.idle
    parts.listeners.listen.gate.giveUp()
    parts.listeners.admin.gate.giveUp()
    replacement.continuation.finish()
  }

  // MARK: as a service

  /// Returns when another process serves, or when the task is cancelled by a shutdown. In that case, the new process is
  /// stopped.
  func awaitReplacement() async {
    for await _ in replacement.stream {}
    if case .replaced = state { return }
    state = .ending
    candidate?.stop()
  }
}

/// The new process, called on a dedicated thread.
private final class SuccessorCalls: @unchecked Sendable {
  private let successor: Successor
  /// How the process ended, if it did. Only one thread at a time uses this object.
  private var end: String?

  init(_ successor: Successor) { self.successor = successor }

  func next(within limit: Duration, doing: String) async -> Successor.Event {
    await DedicatedThread.run(at: nil) {
      let event = successor.next(within: limit, doing: doing)
      if case .ended(let why) = event { end = why }
      return event
    }
  }

  /// Makes `next` stop the process and return. Can be called from any thread.
  func stop() { successor.stop() }

  func send(_ state: TransferredState) async { await DedicatedThread.run(at: nil) { successor.send(state) } }

  /// Stops the process if it still runs.
  /// - Returns: how it ended, or the given reason.
  func refuse(_ reason: String = "The new process did not follow the protocol.") async -> String {
    await DedicatedThread.run(at: nil) { successor.kill() }
    return end ?? reason
  }
}

extension TransferredState {
  /// The messages of an outbox.
  init(outbox: Outbox) {
    self.init(
      outbox: outbox.entries.prefix(Self.most).reversed().map {
        OutboxMessage(
          at: $0.at.milliseconds, channel: $0.message.channel.rawValue, to: $0.message.to, subject: $0.message.subject,
          text: $0.message.text,
          code: $0.message.code)
      })
  }

  var messages: [(at: Timestamp, message: Message)] {
    outbox.compactMap { message in
      MessageChannel(rawValue: message.channel).map {
        (
          Timestamp(milliseconds: message.at),
          Message(channel: $0, to: message.to, subject: message.subject, text: message.text, code: message.code)
        )
      }
    }
  }
}
