import CSpawn
import Foundation
import Logging

/// The dependencies of a loop.
struct ProgramLoopParts: Sendable {
  let specification: ProgramSpecification
  let limits: ProgramLimits
  let log: ProgramLog
  let inbox: ProgramInbox
  let introduction: OneAnswer<Result<Introduction, ProgramFault>>
  let over: OneAnswer<Bool>
  let jitter: @Sendable () -> Double
}

/// The thread of one program: it starts the program, exchanges messages, enforces time limits, reaps it and restarts
/// it. All state is confined to that thread.
///
/// `ProgramLoop+Speaking.swift` contains the messages.
final class ProgramLoop {
  enum Phase {
    /// No process is running.
    case down(until: ContinuousClock.Instant, how: String)
    case greeting(id: Int, until: ContinuousClock.Instant)
    /// The introduction has arrived, and the settings are expected. Only at the first start.
    case introduced
    case configuring(id: Int, until: ContinuousClock.Instant)
    case ready(since: ContinuousClock.Instant)
    /// The program violated a limit or hangs. It has been killed, and its exit is awaited.
    case terminating(how: String, ran: Duration?)
    /// The program was told to exit.
    case leaving(until: ContinuousClock.Instant, isTerminated: Bool)
    case over
  }

  /// The maximum sleep if the kernel cannot signal an exit.
  private static let blindSleep: Duration = .milliseconds(100)

  /// The time that a program may take to exit after it has closed its output.
  private static let endPause: Duration = .milliseconds(500)

  let parts: ProgramLoopParts
  var phase: Phase = .over
  var child: ChildProcess?
  var output: LineBuffer
  var errors: LineBuffer
  var sending = SendQueue()
  /// Calls that were sent or wait until the program is ready.
  var calls = CallTable()
  var unrequestedLines: RateGate
  var requests: RateGate
  /// The number of unanswered requests of the program.
  var requestsUnderWay = 0
  /// The number of starts.
  private(set) var starts = 0
  var introduction: Introduction?
  var settings: ProgramInbox.Settings?
  var configured: OneAnswer<Result<Void, ProgramFault>>?
  /// The number of calls since the last answer that were not answered in time.
  var lateInRow = 0
  var lastHeard = ContinuousClock.now
  private var delays: RestartDelays
  private var errorBytesLeft: Int
  private var errorWindow = ContinuousClock.now
  /// Why the program ended before it was ready.
  private var neverServed: ProgramFault?
  private var retiredAt: ContinuousClock.Instant?
  /// When the program closed its output. It usually exits then, and its exit status is a better reason.
  private var outputEndedAt: ContinuousClock.Instant?
  /// The last line of standard error since the start; empty if none exists.
  private var lastErrorLine = ""

  init(_ parts: ProgramLoopParts) {
    self.parts = parts
    output = LineBuffer(longest: parts.limits.line)
    errors = LineBuffer(longest: 1_024)
    unrequestedLines = RateGate(parts.limits.unrequestedLines)
    requests = RateGate(parts.limits.requestRate)
    delays = RestartDelays(parts.limits)
    errorBytesLeft = parts.limits.errorBytes
  }

  var limits: ProgramLimits { parts.limits }
  var log: ProgramLog { parts.log }

  /// Runs until the program is told to exit or its first start fails.
  func run() {
    cspawn_ignore_broken_pipes()
    start(at: .now)
    loop: while true {
      for item in parts.inbox.take() { take(item, at: .now) }
      act(at: .now)
      if case .over = phase { break loop }
      wait(at: .now)
    }
    calls.failAll(.stopped)
    let fault = neverServed ?? .stopped
    for item in parts.inbox.shut(fault) {
      switch item {
      case .call(let call): call.answer.resume(throwing: fault)
      case .configure(_, let answer): answer.give(.failure(fault))
      case .cancel, .reply, .retire, .stop: break
      }
    }
    parts.introduction.give(.failure(.stopped))
    configured?.give(.failure(.stopped))
    parts.over.give(true)
  }

  // MARK: commands

  private func take(_ item: ProgramInbox.Item, at now: ContinuousClock.Instant) {
    switch item {
    case .call(let call):
      if case .down(let until, let how) = phase, until >= call.deadline {
        call.answer.resume(throwing: ProgramFault.down(how))
        return
      }
      guard sending.bytes + call.line.count <= limits.unread else {
        call.answer.resume(throwing: ProgramFault.busy)
        return
      }
      if retiredAt != nil { retiredAt = now }
      if case .ready = phase {
        calls.add(call, isSent: true)
        queue(call.line, of: call.id)
        if let child { send(to: child) }
      } else {
        calls.add(call, isSent: false)
      }
    case .cancel(let id):
      if let call = calls.remove(id) { abandon(call, .cancelled) }
    case .configure(let settings, let answer):
      self.settings = settings
      configured = answer
      if case .introduced = phase { sendSettings(at: now) }
    case .reply(let line, let start): reply(line, start: start)
    case .retire: retiredAt = now
    case .stop: leave(at: now)
    }
  }

  // MARK: starting and ending

  private func start(at now: ContinuousClock.Instant) {
    do throws(ProgramFault) {
      child = try ChildProcess(parts.specification)
    } catch {
      hasEnded("\(error)", ran: nil, at: now)
      return
    }
    output = LineBuffer(longest: limits.line)
    errors = LineBuffer(longest: 1_024)
    sending = SendQueue()
    starts += 1
    requestsUnderWay = 0
    lateInRow = 0
    lastHeard = now
    outputEndedAt = nil
    lastErrorLine = ""
    sendHello(at: now)
  }

  /// Handles an exit or a failed start.
  private func hasEnded(_ how: String, ran: Duration?, at now: ContinuousClock.Instant) {
    child = nil
    if case .leaving = phase {
      phase = .over
      return
    }
    guard settings != nil, introduction != nil, configured == nil else {
      // The program was never ready. Report the failure to the waiting callers, who decide what to do.
      let how = lastErrorLine.isEmpty ? how : "\(how), after it wrote \(lastErrorLine)"
      neverServed = .notStarted(how)
      parts.introduction.give(.failure(.notStarted(how)))
      configured?.give(.failure(.notStarted(how)))
      phase = .over
      return
    }
    calls.failSent(.ended(how))
    let delay = delays.next(afterRunning: ran, jitter: parts.jitter())
    phase = .down(until: now + delay, how: how)
    calls.failThose(before: now + delay, .down(how))
    log.complain(ran == nil ? "start" : "ended", "it \(how); it is started again in \(delay.shortText)", at: now)
  }

  /// Kills a program that violates a limit.
  func terminate(_ how: String, at now: ContinuousClock.Instant) {
    guard let child else { return }
    let ran: Duration? = if case .ready(let since) = phase { now - since } else { nil }
    if case .leaving = phase {
    } else {
      phase = .terminating(how: how, ran: ran)
      calls.failSent(.ended(how))
    }
    child.closeOutput()
    child.signal(SIGKILL)
  }

  /// Stops the program: first by a message, then by closing its input, then by signals.
  private func leave(at now: ContinuousClock.Instant) {
    if case .leaving = phase { return }
    calls.failAll(.stopped)
    guard let child else {
      phase = .over
      return
    }
    if let line = try? JSONLine.encode(Outgoing<NoParameters>(id: nil, method: .shutdown, params: nil)) {
      queue(line, of: nil)
    }
    sending.flush(to: child) { _ in true }
    child.closeInput()
    phase = .leaving(until: now + limits.farewell, isTerminated: false)
  }

  // MARK: time

  private func act(at now: ContinuousClock.Instant) {
    for call in calls.takeExpired(at: now) {
      lateInRow += 1
      log.complain("late", "no answer within \(call.timeout.shortText)", at: now)
      abandon(call, .late(call.timeout))
    }
    switch phase {
    case .down where retiredAt != nil && calls.isEmpty: phase = .over
    case .down(let until, _) where now >= until: start(at: now)
    case .greeting(_, let until) where now >= until:
      terminate("did not answer `hello` within \(limits.handshake.shortText)", at: now)
    case .configuring(_, let until) where now >= until:
      terminate("did not answer `configure` within \(limits.handshake.shortText)", at: now)
    case .ready where lateInRow >= 3 && now - lastHeard >= parts.specification.timeout * 3: terminate("hangs", at: now)
    case .ready:
      if let retiredAt, calls.isEmpty, now - retiredAt >= limits.linger { leave(at: now) }
    case .leaving(let until, let isTerminated) where now >= until:
      if !isTerminated {
        log.complain(
          "farewell", "did not exit within \(limits.farewell.shortText) of `shutdown`; sending SIGTERM", at: now)
      }
      child?.signal(isTerminated ? SIGKILL : SIGTERM)
      phase = .leaving(until: now + limits.farewell, isTerminated: true)
    default: break
    }
    if let child, child.ended < 0, child.hasEnded { handleExit(of: child, at: now) }
    if let outputEndedAt, child != nil, now - outputEndedAt >= Self.endPause {
      self.outputEndedAt = nil
      terminate("closed its standard output", at: now)
    }
    if now - errorWindow >= .seconds(1) {
      errorWindow = now
      errorBytesLeft = limits.errorBytes
    }
  }

  /// The time of the next timeout or poll; nil if none exists.
  private func nextMoment(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    var moments: [ContinuousClock.Instant] = []
    switch phase {
    case .down(let until, _), .greeting(_, let until), .configuring(_, let until), .leaving(let until, _):
      moments.append(until)
    case .ready:
      if lateInRow >= 3 { moments.append(max(lastHeard + parts.specification.timeout * 3, now + .milliseconds(10))) }
      if let retiredAt, calls.isEmpty { moments.append(retiredAt + limits.linger) }
    case .introduced, .terminating, .over: break
    }
    if let deadline = calls.nextDeadline { moments.append(deadline) }
    if let outputEndedAt, child != nil { moments.append(outputEndedAt + Self.endPause) }
    if child != nil, errorBytesLeft <= 0 { moments.append(errorWindow + .seconds(1)) }
    if parts.inbox.descriptor < 0 { moments.append(now + .milliseconds(10)) }
    if let child, child.ended < 0 { moments.append(now + Self.blindSleep) }
    return moments.min()
  }

  // MARK: descriptors

  private func wait(at now: ContinuousClock.Instant) {
    var polled: [pollfd] = [pollfd(fd: parts.inbox.descriptor, events: Int16(POLLIN), revents: 0)]
    if let child {
      polled.append(pollfd(fd: child.ended, events: Int16(POLLIN), revents: 0))
      polled.append(pollfd(fd: child.output, events: Int16(POLLIN), revents: 0))
      polled.append(pollfd(fd: errorBytesLeft > 0 ? child.errors : -1, events: Int16(POLLIN), revents: 0))
      polled.append(pollfd(fd: sending.isEmpty ? -1 : child.input, events: Int16(POLLOUT), revents: 0))
    }
    var milliseconds: Int32 = -1
    if let next = nextMoment(after: now) {
      milliseconds = Int32(min(60_000, max(0, ((next - now) / .milliseconds(1)).rounded(.up))))
    }
    guard poll(&polled, nfds_t(polled.count), milliseconds) > 0, let child, polled.count == 5 else { return }
    let now = ContinuousClock.now
    if polled[4].revents != 0 { send(to: child) }
    if polled[3].revents != 0 { readErrors(of: child, at: now) }
    if polled[2].revents != 0 { readOutput(of: child, at: now) }
    if polled[1].revents != 0, child.hasEnded { handleExit(of: child, at: now) }
  }

  private func readErrors(of child: ChildProcess, at now: ContinuousClock.Instant) {
    guard case .bytes(let bytes) = child.readErrors(atMost: min(16_384, errorBytesLeft)) else { return }
    errorBytesLeft -= bytes.count
    for line in errors.takeTruncating(bytes) { logStandardError(line, at: now) }
  }

  private func logStandardError(_ line: [UInt8], at now: ContinuousClock.Instant) {
    if line.isEmpty { return }
    lastErrorLine = log.excerpt(line.filter { $0 >= 0x20 && $0 != 0x7f })
    log.logMessage(String(decoding: line, as: UTF8.self), level: .notice, at: now)
  }

  /// - Returns: whether there may be more output.
  @discardableResult private func readOutput(of child: ChildProcess, at now: ContinuousClock.Instant) -> Bool {
    switch child.readOutput(atMost: 65_536) {
    case .empty: return false
    case .end:
      outputEndedAt = now
      return false
    case .bytes(let bytes):
      if case .terminating = phase { return false }
      let (lines, isTooLong) = output.take(bytes)
      for line in lines {
        receive(line, at: now)
        if case .terminating = phase { return false }
      }
      if isTooLong { terminate("wrote a line longer than \(limits.line) bytes", at: now) }
      return true
    }
  }

  /// Reaps the program after reading its remaining output.
  private func handleExit(of child: ChildProcess, at now: ContinuousClock.Instant) {
    // At most the capacity of a pipe.
    for _ in 0..<16 where child.isOutputOpen { if !readOutput(of: child, at: now) { break } }
    if child.isErrorsOpen, errorBytesLeft > 0 { readErrors(of: child, at: now) }
    if let rest = errors.flush() { logStandardError(rest, at: now) }
    let how = child.reap()
    switch phase {
    case .terminating(let why, let ran): hasEnded(why, ran: ran, at: now)
    case .ready(let since): hasEnded(how, ran: now - since, at: now)
    default: hasEnded(how, ran: nil, at: now)
    }
  }
}
