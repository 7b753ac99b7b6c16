import Foundation
import Logging
import MoongateCore
import MoongateDelivery
import MoongateHTTP
import MoongateProxy
import MoongateSDK

/// Starts the program again in this process's place, without a failed request: `moongate upgrade`, or SIGUSR2.
///
/// Both processes serve from one store for a while, the older one to the end of its connections. What only one
/// process's memory would know is therefore given up before the newer one accepts its first connection: flows are
/// stored, and what is remembered of sessions is not believed, in both.
actor Upgrading {
  /// What an upgrade works on.
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
    /// Whether several gateways may serve from the store at any time: they hear of each other within a second.
    let isStoreShared: Bool
  }

  private enum State {
    case serving
    case upgrading
    /// Another process serves. This one finishes its connections.
    case replaced
    /// The gateway ends for another reason.
    case ending
  }

  /// So many earlier processes may still finish connections. Each takes the memory of a gateway.
  static let mostPredecessors = 8
  /// Until the program serves, after it was told to.
  private static let turn: Duration = .seconds(10)
  /// Connections of HTTP/1.1 that are idle for so long are closed once another process serves.
  private static let idle: Duration = .seconds(30)
  private static let look: Duration = .milliseconds(250)

  private let parts: Parts
  private let predecessor: Predecessor?
  private let program: ProgramCall
  private var state = State.serving
  /// Whether processes that came before may still serve.
  private var overlaps: Bool
  private var settling: Task<Void, Never>?
  /// The program that is getting ready.
  private var candidate: SuccessorTurn?
  private let replacement = AsyncStream<Never>.makeStream()
  /// Kept: its end of the control socket tells the other process that this one lives.
  private var successor: Successor?

  init(_ parts: Parts, predecessor: Predecessor?, program: ProgramCall = .own) {
    self.parts = parts
    self.predecessor = predecessor
    self.program = program
    overlaps = predecessor != nil
  }

  // MARK: after the process before

  /// What comes before this process accepts connections: caches are not believed, flows are stored at once.
  func prepare() async throws(StoreFault) {
    guard predecessor != nil, !parts.isStoreShared else { return }
    await parts.proxy.trustCaches(false)
    try await parts.engine.shareFlows()
  }

  /// Waits until no process from before serves, and returns to memory then. Goes on until the task is cancelled.
  func followPredecessors() async {
    while let predecessor, !predecessor.living.isEmpty { do { try await Task.sleep(for: Self.look) } catch { return } }
    // What the last of them did in its last moment, `SessionWatch` tells by then.
    do { try await Task.sleep(for: SessionWatch.trust) } catch { return }
    overlaps = false
    settle()
    while !Task.isCancelled { try? await Task.sleep(for: .seconds(3_600)) }
  }

  /// Returns to memory, where this process alone serves.
  private func settle() {
    guard case .serving = state, !overlaps || parts.isStoreShared, settling == nil else { return }
    settling = Task {
      parts.engine.keepFlows()
      await parts.proxy.trustCaches(true)
      settling = nil
    }
  }

  // MARK: the upgrade

  /// Starts the program, and waits until it serves or has failed.
  /// - Parameter limit: how long it may take to load its configuration and to open the store.
  func upgrade(within limit: Duration) async -> UpgradeOutcome {
    switch state {
    case .serving: break
    case .upgrading: return .kept("An upgrade is under way already.")
    case .replaced: return .kept("This process was replaced already, and finishes its connections.")
    case .ending: return .kept("This gateway ends.")
    }
    guard getpid() != 1 else {
      return .kept(
        "This gateway is process 1 of its container, which ends with it. Start a new container, and stop this one then."
      )
    }
    let earlier = predecessor?.living ?? []
    guard earlier.count < Self.mostPredecessors else {
      return .kept(
        "\(earlier.count) earlier processes still finish their connections. Wait for them, or make `drain` in gateway.lua shorter."
      )
    }
    state = .upgrading
    await settling?.value
    parts.logger.notice("upgrade: starting \(program.path)")
    let outcome = await run(earlier, within: limit)
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
      parts.logger.error("upgrade: \(why) This process goes on.")
      record(["why": why])
    }
    return outcome
  }

  private func record(_ detail: [String: String]) {
    parts.audit.record(
      AuditEvent(id: DecisionID(from: parts.random), at: parts.clock.now(), kind: .upgradeEnded, detail: detail))
  }

  private func run(_ earlier: [CInt], within limit: Duration) async -> UpgradeOutcome {
    let started: Successor
    do throws(StartProblem) { started = try start(earlier) } catch { return .kept(error.sentence) }
    let turn = SuccessorTurn(started)
    candidate = turn
    defer { candidate = nil }
    guard case .said(.prepared) = await turn.next(within: limit, doing: "get ready") else {
      return .kept(await turn.refuse())
    }
    guard case .upgrading = state else { return .kept(await turn.refuse("This gateway ends.")) }
    do throws(StoreFault) {
      try await hold()
    } catch {
      await resume()
      return .kept(await turn.refuse("The store does not answer (\(error))."))
    }
    await turn.say(HandedState(outbox: parts.outbox))
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
      throw StartProblem("This gateway does not serve yet.")
    }
    var copies: [CInt] = []
    defer { for copy in copies { close(copy) } }
    do {
      copies = [try listen.duplicate(), try admin.duplicate()]
    } catch {
      throw StartProblem("No more files can be opened: \(String(cString: strerror(error.code))).")
    }
    return try Successor(
      program, handing: copies + earlier,
      note: Predecessor.note(listen: listen.address, admin: admin.address, earlier: earlier.count))
  }

  /// Gives up what only this process's memory knows, and stops accepting. New connections wait in the sockets.
  private func hold() async throws(StoreFault) {
    await parts.proxy.trustCaches(false)
    try await parts.engine.shareFlows()
    await parts.listeners.listen.gate.shut()
    await parts.listeners.admin.gate.shut()
    await parts.proxy.flushActivity()
    try await parts.audit.flush()
  }

  /// Serves as before: the other program has ended.
  private func resume() async {
    await parts.listeners.listen.gate.open()
    await parts.listeners.admin.gate.open()
  }

  private func leave(to process: pid_t, generation: String) {
    parts.notifier.hand(over: process, Readiness.status(generation))
    parts.proxy.idleWhileDraining = Self.idle
    parts.listeners.listen.gate.giveUp()
    parts.listeners.admin.gate.giveUp()
    replacement.continuation.finish()
  }

  // MARK: as a service

  /// Returns once another process serves, or when the task is cancelled because the gateway ends: no program is left
  /// behind then.
  func awaitReplacement() async {
    for await _ in replacement.stream {}
    if case .replaced = state { return }
    state = .ending
    candidate?.stop()
  }
}

/// What is asked of a successor, on a thread of its own.
private final class SuccessorTurn: @unchecked Sendable {
  private let successor: Successor
  /// How it ended, if it did. Only one thread at a time has anything to do with this value.
  private var end: String?

  init(_ successor: Successor) { self.successor = successor }

  func next(within limit: Duration, doing: String) async -> Successor.Event {
    await DedicatedThread.run(at: nil) {
      let event = successor.next(within: limit, doing: doing)
      if case .ended(let why) = event { end = why }
      return event
    }
  }

  /// Lets `next` end the program and return. May be called by any thread.
  func stop() { successor.stop() }

  func say(_ state: HandedState) async { await DedicatedThread.run(at: nil) { successor.say(state) } }

  /// Ends the program, where it has not ended.
  /// - Returns: how it ended, or the reason that is given.
  func refuse(_ reason: String = "The new program did not do what it should.") async -> String {
    await DedicatedThread.run(at: nil) { successor.kill() }
    return end ?? reason
  }
}

extension HandedState {
  /// The messages of an outbox.
  init(outbox: Outbox) {
    self.init(
      outbox: outbox.entries.prefix(Self.most).reversed().map {
        Kept(
          at: $0.at.milliseconds, channel: $0.message.channel.rawValue, to: $0.message.to, subject: $0.message.subject,
          text: $0.message.text,
          code: $0.message.code)
      })
  }

  var messages: [(at: Timestamp, message: Message)] {
    outbox.compactMap { kept in
      MessageChannel(rawValue: kept.channel).map {
        (
          Timestamp(milliseconds: kept.at),
          Message(channel: $0, to: kept.to, subject: kept.subject, text: kept.text, code: kept.code)
        )
      }
    }
  }
}
