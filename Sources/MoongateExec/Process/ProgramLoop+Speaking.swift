import Foundation
import Logging

// Messages to and from a program.

extension ProgramLoop {
  /// Sends the first message of the handshake.
  func sendHello(at now: ContinuousClock.Instant) {
    let id = parts.inbox.number()
    phase = .greeting(id: id, until: now + limits.handshake)
    send(Outgoing(id: id, method: .hello, params: Hello(name: parts.specification.name)), id: id)
  }

  func sendSettings(at now: ContinuousClock.Instant) {
    guard let settings else { return }
    let id = parts.inbox.number()
    phase = .configuring(id: id, until: now + limits.handshake)
    guard let line = try? settings.line(id), line.count <= limits.line else {
      terminate("cannot be configured: its settings are longer than a line may be", at: now)
      return
    }
    queue(line, of: id)
    if let child { send(to: child) }
  }

  private func send(_ message: some Encodable, id: Int?) {
    if let line = try? JSONLine.encode(message) { send(line, of: id) }
  }

  /// Sends a line at once.
  func send(_ line: [UInt8], of id: Int? = nil) {
    // Attack: a program sends requests and never reads the answers.
    guard sending.bytes + line.count <= limits.unread else { return terminate("does not read its input", at: .now) }
    queue(line, of: id)
    if let child { send(to: child) }
  }

  /// Adds a line to the output queue.
  func queue(_ line: [UInt8], of id: Int?) {
    log.notifyListener(message: line, isOut: true)
    sending.add(line, of: id)
  }

  /// Writes as much as the program's pipe accepts now.
  func send(to child: ChildProcess) {
    sending.flush(to: child) { [calls] id in
      // Skip abandoned calls. (The handshake is not a call.)
      guard let id else { return true }
      return calls.contains(id) || self.isHandshake(id)
    }
  }

  private func isHandshake(_ id: Int) -> Bool {
    switch phase {
    case .greeting(let own, _), .configuring(let own, _): own == id
    default: false
    }
  }

  /// Abandons a call.
  func abandon(_ call: ProgramInbox.Call, _ fault: ProgramFault) {
    call.answer.resume(throwing: fault)
    calls.remember(call.id)
    guard case .ready = phase, !sending.drop(call.id) else { return }
    send(Outgoing(id: nil, method: .cancel, params: Cancellation(id: call.id)), id: nil)
  }

  /// Handles one line from the program.
  func receive(_ line: [UInt8], at now: ContinuousClock.Instant) {
    log.notifyListener(message: line, isOut: false)
    let message: Incoming
    do {
      message = try JSONLine.decode(Incoming.self, line)
    } catch {
      log.notifyListener(String(decoding: line, as: UTF8.self))
      countUnrequestedLine(
        "rubbish", "wrote a line that is not a JSON-RPC message: \(log.excerpt(line)) (\(JSONLine.problem(error)))",
        at: now)
      return
    }
    // Attack: a message is both a request and an answer, and the gateway interprets it in both ways.
    if message.isAmbiguous {
      countUnrequestedLine("rubbish", "wrote a line that is both a request and an answer", at: now)
      return
    }
    switch message.kind {
    case .answer(let id): receiveAnswer(id, line, nil, at: now)
    case .failure(let id, let problem): receiveAnswer(id, line, problem, at: now)
    case .notification("log"):
      guard countUnrequestedLine(nil, "", at: now) else { return }
      do {
        let said = try JSONLine.decode(LogLine.self, line).params
        log.logMessage(said.message, level: said.loggerLevel, values: said.values?.mapValues(\.text) ?? [:], at: now)
      } catch {
        log.complain("log", "its `log` cannot be read: \(JSONLine.problem(error))", at: now)
      }
    case .notification(let method):
      countUnrequestedLine(
        "notification", "wrote an unknown notification: `\(log.secrets.redacted(method).prefix(40))`", at: now)
    case .request(let id, let method): receiveRequest(id, method, line, at: now)
    }
  }

  private func receiveAnswer(_ id: Int, _ line: [UInt8], _ problem: Incoming.Problem?, at now: ContinuousClock.Instant)
  {
    switch phase {
    case .greeting(id, _): receiveIntroduction(line, problem, at: now)
    case .configuring(id, _): receiveConfigured(problem, at: now)
    default:
      guard let call = calls.removeSent(id) else {
        if calls.forget(id) {
          // A slow program is not hanging, and every call may be answered late once.
          lateInRow = 0
          lastHeard = now
          log.complain("too late", "it answered a call after its time, or after it was cancelled (id \(id))", at: now)
        } else {
          countUnrequestedLine("stray", "sent an unexpected or repeated answer (id \(id))", at: now)
        }
        return
      }
      lateInRow = 0
      lastHeard = now
      if let problem {
        call.answer.resume(throwing: ProgramFault.failed(shown(problem)))
      } else {
        call.answer.resume(returning: line)
      }
    }
  }

  /// The message of a failure for the log. Redact before truncating: a part of a secret would not be recognized.
  private func shown(_ problem: Incoming.Problem) -> String {
    log.notifyListener(problem.message)
    return String(log.secrets.redacted(problem.message).prefix(500))
  }

  /// Counts a line that is not an answer, and complains about it. Kills the program if it writes too many.
  /// - Parameter kind: the kind of complaint; nil if the line is allowed.
  /// - Returns: false if the limit is exceeded.
  @discardableResult private func countUnrequestedLine(
    _ kind: String?, _ sentence: @autoclosure () -> String, at now: ContinuousClock.Instant
  ) -> Bool {
    if let kind { log.complain(kind, "it \(sentence())", at: now) }
    if unrequestedLines.allows(at: now) { return true }
    terminate("floods the gateway with lines that are not answers", at: now)
    return false
  }

  // MARK: the handshake

  private func receiveIntroduction(_ line: [UInt8], _ problem: Incoming.Problem?, at now: ContinuousClock.Instant) {
    if let problem {
      terminate("refused `hello`: \(shown(problem))", at: now)
      return
    }
    let said: Introduction
    do {
      // Check the version first, because another version may define all other fields differently.
      let version = try JSONLine.decode(Answer<IntroducedVersion>.self, line).result.protocol
      guard Introduction.versions.contains(version) else {
        terminate(Introduction.unsupported(version), at: now)
        return
      }
      said = try JSONLine.decode(Answer<Introduction>.self, line).result
    } catch {
      terminate("sent an invalid answer to `hello`: \(JSONLine.problem(error))", at: now)
      return
    }
    if let introduction {
      // Attack: a program passes all checks, exits, and returns with another introduction.
      guard said == introduction else {
        parts.inbox.markIntroductionChanged()
        terminate("changed its introduction after it was loaded; reload the configuration", at: now)
        return
      }
      sendSettings(at: now)
    } else {
      introduction = said
      phase = .introduced
      parts.introduction.give(.success(said))
      if settings != nil { sendSettings(at: now) }
    }
  }

  private func receiveConfigured(_ problem: Incoming.Problem?, at now: ContinuousClock.Instant) {
    if let problem {
      terminate("refused its settings: \(shown(problem))", at: now)
      return
    }
    phase = .ready(since: now)
    configured?.give(.success(()))
    configured = nil
    for call in calls.markAllSent() { queue(call.line, of: call.id) }
    if let child { send(to: child) }
  }
}

/// The part of an introduction that tells whether the rest can be decoded.
struct IntroducedVersion: Decodable {
  let `protocol`: Int
}
