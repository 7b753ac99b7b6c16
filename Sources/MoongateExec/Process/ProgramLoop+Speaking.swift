import Foundation
import Logging

// What is said to a program, and what is made of what it says.

extension ProgramLoop {
  /// The gateway's own part of the handshake.
  func sayHello(at now: ContinuousClock.Instant) {
    let id = parts.inbox.number()
    phase = .greeting(id: id, until: now + limits.handshake)
    say(Outgoing(id: id, method: .hello, params: Hello(name: parts.specification.name)), id: id)
  }

  func sendSettings(at now: ContinuousClock.Instant) {
    guard let settings else { return }
    let id = parts.inbox.number()
    phase = .configuring(id: id, until: now + limits.handshake)
    guard let line = try? settings.line(id), line.count <= limits.line else {
      doom("cannot be configured: its settings are longer than a line may be", at: now)
      return
    }
    queue(line, of: id)
    if let child { send(to: child) }
  }

  private func say(_ message: some Encodable, id: Int?) {
    guard let line = try? JSONLine.encode(message) else { return }
    // Attack: a program that asks and asks, and never reads that it gets no answer.
    guard sending.bytes + line.count <= limits.unread else {
      doom("does not read what it is told", at: .now)
      return
    }
    queue(line, of: id)
    if let child { send(to: child) }
  }

  /// Puts a line behind those that wait to be written.
  func queue(_ line: [UInt8], of id: Int?) {
    log.overhear(message: line, isOut: true)
    sending.add(line, of: id)
  }

  /// Writes what the program takes now.
  func send(to child: ChildProcess) {
    sending.flush(to: child) { [calls] id in
      // What nobody waits for any more need not be asked. (The handshake is no call.)
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

  /// Nobody waits for the answer any more.
  func giveUp(_ call: ProgramInbox.Call, _ fault: ProgramFault) {
    call.answer.resume(throwing: fault)
    calls.remember(call.id)
    guard case .ready = phase, !sending.drop(call.id) else { return }
    say(Outgoing(id: nil, method: .cancel, params: Cancellation(id: call.id)), id: nil)
  }

  /// Takes one line of the program's.
  func hear(_ line: [UInt8], at now: ContinuousClock.Instant) {
    log.overhear(message: line, isOut: false)
    let message: Incoming
    do {
      message = try JSONLine.decode(Incoming.self, line)
    } catch {
      log.overhear(String(decoding: line, as: UTF8.self))
      isUnasked(
        "rubbish", "wrote a line that is no message of JSON-RPC: \(log.excerpt(line)) (\(JSONLine.problem(error)))",
        at: now)
      return
    }
    // Attack: a request that looks like an answer, for a gateway that reads it once as the one and once as the other.
    if mayAsk, message.isAmbiguous {
      isUnasked("rubbish", "wrote a line that is a request and an answer at once", at: now)
      return
    }
    switch message.kind {
    case .answer(let id): hearAnswer(id, line, nil, at: now)
    case .failure(let id, let problem): hearAnswer(id, line, problem, at: now)
    case .notification("log"):
      guard isUnasked(nil, "", at: now) else { return }
      do {
        let said = try JSONLine.decode(LogLine.self, line).params
        log.says(said.message, level: said.loggerLevel, values: said.values?.mapValues(\.text) ?? [:], at: now)
      } catch {
        log.complain("log", "its `log` cannot be read: \(JSONLine.problem(error))", at: now)
      }
    case .notification(let method):
      isUnasked(
        "notification", "wrote a notification that there is not: `\(log.secrets.redacted(method).prefix(40))`", at: now)
    case .request(let id, let method) where mayAsk: hearRequest(id, method, line, at: now)
    case .request(let id, let method):
      guard
        isUnasked(
          "request", "asked something: `\(log.secrets.redacted(method).prefix(40))`; the gateway answers no requests",
          at: now)
      else {
        return
      }
      say(Refusal(id: id), id: nil)
    }
  }

  private func hearAnswer(_ id: Int, _ line: [UInt8], _ problem: Incoming.Problem?, at now: ContinuousClock.Instant) {
    switch phase {
    case .greeting(id, _): hearIntroduction(line, problem, at: now)
    case .configuring(id, _): hearConfigured(problem, at: now)
    default:
      guard let call = calls.removeSent(id) else {
        if calls.forget(id) {
          // Slow is not hanging; and as many calls as were asked may be answered late.
          lateInRow = 0
          lastHeard = now
          log.complain("too late", "it answered a call after its time, or after it was cancelled (id \(id))", at: now)
        } else {
          isUnasked("stray", "answered what nobody asked, or a second time (id \(id))", at: now)
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

  /// What a program says of a failure. First without secrets, then cut: half of one is none that is looked for.
  private func shown(_ problem: Incoming.Problem) -> String {
    log.overhear(problem.message)
    return String(log.secrets.redacted(problem.message).prefix(500))
  }

  /// Counts what answers nothing; a program that writes too much of it is ended.
  /// - Parameter kind: nil: nothing is wrong with it.
  /// - Returns: false where it was too much.
  @discardableResult private func isUnasked(
    _ kind: String?, _ sentence: @autoclosure () -> String, at now: ContinuousClock.Instant
  ) -> Bool {
    if let kind { log.complain(kind, "it \(sentence())", at: now) }
    if unasked.lets(at: now) { return true }
    doom("floods the gateway with lines that answer nothing", at: now)
    return false
  }

  // MARK: the handshake

  private func hearIntroduction(_ line: [UInt8], _ problem: Incoming.Problem?, at now: ContinuousClock.Instant) {
    if let problem {
      doom("refused `hello`: \(shown(problem))", at: now)
      return
    }
    let said: Introduction
    do {
      // Its protocol first: another one may say everything else in another way.
      let version = try JSONLine.decode(Answer<IntroducedVersion>.self, line).result.protocol
      guard Introduction.versions.contains(version) else {
        let which = version > Introduction.versions.upperBound ? "a newer gateway" : "an older gateway"
        doom(
          "speaks version \(version) of the protocol, which is for \(which); this one speaks \(Introduction.versions.lowerBound) and \(Introduction.versions.upperBound)",
          at: now)
        return
      }
      said = try JSONLine.decode(Answer<Introduction>.self, line).result
    } catch {
      doom("answered `hello` with what cannot be read: \(JSONLine.problem(error))", at: now)
      return
    }
    if let introduction {
      // Attack: a program that passes all checks, ends, and comes back as another.
      guard said == introduction else {
        parts.inbox.isAnother()
        doom("says something else of itself than when it was loaded; reload the configuration", at: now)
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

  private func hearConfigured(_ problem: Incoming.Problem?, at now: ContinuousClock.Instant) {
    if let problem {
      doom("refused its settings: \(shown(problem))", at: now)
      return
    }
    phase = .ready(since: now)
    configured?.give(.success(()))
    configured = nil
    for call in calls.markAllSent() { queue(call.line, of: call.id) }
    if let child { send(to: child) }
  }
}

/// Enough of an introduction to know whether the rest can be read.
struct IntroducedVersion: Decodable {
  let `protocol`: Int
}
