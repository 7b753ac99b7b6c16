// What a program asks of the gateway while a call of the gateway is open (version 2 of the protocol).

extension ProgramLoop {
  /// Whether the program speaks a version in which it may ask.
  var mayAsk: Bool { introduction.map { $0.protocol >= 2 } ?? false }

  /// Takes one request of the program's. It is carried out beside this thread, which sends the answer when that is
  /// there.
  func hearRequest(_ id: RequestID, _ name: String, _ line: [UInt8], at now: ContinuousClock.Instant) {
    // Attack: a program that asks without end, each time for work of the database or of the hashing threads.
    guard requests.lets(at: now) else { return doom("floods the gateway with requests", at: now) }
    guard let method = ProgramMethod(rawValue: name) else {
      let known = ProgramMethod.allCases.map(\.rawValue).joined(separator: ", ")
      return refuse(id, .noSuchMethod, "there is no method `\(log.secrets.redacted(name).prefix(40))`: \(known)")
    }
    let parameters: ProgramRequest.Parameters
    do {
      parameters = try JSONLine.decode(ProgramRequest.self, line).params
    } catch {
      return refuse(id, .invalidParameters, JSONLine.problem(error))
    }
    guard case .ready = phase, let tools = calls.tools(of: parameters.call) else {
      let which = parameters.call.map { "call \($0) is not open" } ?? "no call of the gateway is open"
      return refuse(id, .notGranted, "\(which): what the gateway grants belongs to a call")
    }
    guard requestsUnderWay < limits.requests else {
      return refuse(id, .unavailable, "\(limits.requests) requests are under way already")
    }
    requestsUnderWay += 1
    let grants = ProgramGrants(tools: tools) { [secrets = log.secrets] in secrets.add($0, at: .now) }
    Task { [inbox = parts.inbox, start = starts, longest = limits.line] in
      var line = await grants.answer(id, method, parameters)
      // A value of few bytes may be long on a line, such as one of control characters. Without an answer the program
      // would wait for its call's end.
      if line.count > longest {
        line = ProgramGrants.refusal(id, ProgramRefusal(.unavailable, "the answer is longer than \(longest) bytes"))
      }
      inbox.put(.reply(line, start: start))
    }
  }

  /// Sends an answer that is there now.
  /// - Parameter start: of which start of the program it is.
  func reply(_ line: [UInt8], start: Int) {
    // The one that asked is gone: its successor must not take the answer for one of its own.
    guard start == starts else { return }
    requestsUnderWay -= 1
    guard !line.isEmpty else { return }
    send(line)
  }

  private func refuse(_ id: RequestID, _ code: ProgramRefusal.Code, _ message: String) {
    send(ProgramGrants.refusal(id, ProgramRefusal(code, message)))
  }

  private func send(_ line: [UInt8]) {
    // Attack: a program that asks and asks, and never reads the answers.
    guard sending.bytes + line.count <= limits.unread else { return doom("does not read what it is told", at: .now) }
    queue(line, of: nil)
    if let child { send(to: child) }
  }
}
