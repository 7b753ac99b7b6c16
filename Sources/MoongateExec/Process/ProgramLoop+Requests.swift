// Requests of the program to the gateway during a call.

extension ProgramLoop {
  /// Handles a request of the program. It runs outside this thread, which later sends the answer.
  func receiveRequest(_ id: RequestID, _ name: String, _ line: [UInt8], at now: ContinuousClock.Instant) {
    // Attack: a program sends endless requests, each of which uses the database or the hashing threads.
    guard requests.allows(at: now) else { return terminate("floods the gateway with requests", at: now) }
    guard let method = ProgramMethod(rawValue: name) else {
      let known = ProgramMethod.allCases.map(\.rawValue).joined(separator: ", ")
      let name = log.secrets.redacted(name).prefix(40)
      log.complain("request", "it sent a request `\(name)`, which is not a method of the gateway", at: now)
      return refuse(id, .noSuchMethod, "there is no method `\(name)`: \(known)")
    }
    let parameters: ProgramRequest.Parameters
    do {
      parameters = try JSONLine.decode(ProgramRequest.self, line).params
    } catch {
      return refuse(id, .invalidParameters, JSONLine.problem(error))
    }
    guard case .ready = phase, let tools = calls.tools(of: parameters.call) else {
      let which = parameters.call.map { "call \($0) is not open" } ?? "no call of the gateway is open"
      return refuse(id, .notGranted, "\(which): the gateway grants services only during a call")
    }
    guard requestsUnderWay < limits.requests else {
      return refuse(id, .unavailable, "\(limits.requests) requests are already in progress")
    }
    requestsUnderWay += 1
    let grants = ProgramGrants(tools: tools) { [secrets = log.secrets] in secrets.add($0, at: .now) }
    Task { [inbox = parts.inbox, start = starts, longest = limits.line] in
      var line = await grants.answer(id, method, parameters)
      // A short value can be long when encoded, for example control characters. Without an answer, the program would
      // wait until the end of its call.
      if line.count > longest {
        line = ProgramGrants.refusal(id, ProgramRefusal(.unavailable, "the answer is longer than \(longest) bytes"))
      }
      inbox.put(.reply(line, start: start))
    }
  }

  /// Sends the answer to a request.
  /// - Parameter start: the number of the start that sent the request.
  func reply(_ line: [UInt8], start: Int) {
    // The process that sent the request is gone. Its successor must not receive the answer.
    guard start == starts else { return }
    requestsUnderWay -= 1
    guard !line.isEmpty else { return }
    send(line)
  }

  private func refuse(_ id: RequestID, _ code: ProgramRefusal.Code, _ message: String) {
    send(ProgramGrants.refusal(id, ProgramRefusal(code, message)))
  }
}
