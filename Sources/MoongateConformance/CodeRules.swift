import MoongateSDK

/// The rules for code providers: reading identifiers and delivering codes. The core handles the codes themselves.
struct CodeRules: Sendable {
  let harness: ConformanceHarness
  let provider: any CodeProvider

  private static let code = "805213"
  private static let otherCode = "117746"
  private static let message = CodeMessage(
    code: code, text: "\(code) is your Moongate verification code", domainBoundLine: "@auth.example.com #\(code)",
    service: "Moongate")

  func run() async {
    let core = "the core creates, stores and compares the codes"
    harness.markInapplicable(
      .proof, .rounds, .expiry, .concurrency, .refusals, .counted, .wholeAnswer, .once, .hashing, .upgrade, .outcomes,
      .unknown, .timing,
      because: core)
    let identifier = await IdentifierRules(harness: harness) { [provider] input throws(InputProblem) in
      try provider.readIdentifier(input)
    }.run()
    guard let identifier else {
      harness.markInapplicable(
        .delivery, .beginTwice, .faults, .secrets, .cancellation, .cleanup,
        because: "no identifier could be read to deliver to")
      return
    }
    if harness.needs(.delivery, .beginTwice) { await checkDelivery(to: identifier) }
    if harness.needs(.faults) { await checkFaults(to: identifier) }
    await checkCancellation(to: identifier)
  }

  private func deliver(
    _ message: CodeMessage = message, to identifier: Identifier, _ capabilities: RecordedCapabilities,
    hasMessenger: Bool = true
  ) async -> Called<Void> {
    let tools = harness.tools(capabilities, hasMessenger: hasMessenger)
    harness.trace.hide(message.text, as: "text")
    harness.trace.hide(message.code, as: "code")
    if harness.watched == nil {
      harness.trace.record("→ deliver(code: \"\(message.code)\", text: \"\(message.text)\", to: \(identifier.value))")
    }
    let called = await harness.call(capabilities) { [provider] () async throws in
      try await provider.deliver(message, to: identifier, with: tools)
    }
    if case .threw(let thrown) = called {
      harness.checkText(thrown.delivery?.reason ?? thrown.text, "a fault", typed: [message.code])
    }
    if harness.watched == nil {
      for sent in capabilities.use.messages {
        harness.trace.record("  tools.send(to: \(sent.to), text: \"\(sent.text)\")")
      }
      for request in capabilities.use.requests {
        harness.trace.record("  tools.web.send(\(request.method) \(request.url))")
      }
      if case .threw(let thrown) = called {
        harness.trace.record("← throws \(thrown.text)")
      } else {
        harness.trace.record("← returns")
      }
    }
    return called
  }

  /// A code is delivered once, to its recipient, with the text of the policy. So is a second one.
  private func checkDelivery(to identifier: Identifier) async {
    await harness.subject.reset()
    let first = RecordedCapabilities()
    harness.typedEver.add([Self.code, Self.otherCode])
    let unseen = harness.watched?.unobservableReason
    if let unseen {
      harness.markInapplicable(.delivery, .beginTwice, .faults, .cancellation, because: unseen)
    } else {
      harness.markChecked(.delivery)
    }
    guard case .answered = await deliver(to: identifier, first) else {
      harness.addFinding(
        .delivery, "A code could not be delivered, although all tools worked.",
        "Send it by `tools.send`, or set the answers of your site in the subject.")
      return
    }
    checkFirst(first.use, to: identifier, isSeen: unseen == nil)
    harness.check(first, typed: [Self.code])
    await checkSecond(to: identifier, after: first.use, isSeen: unseen == nil)
    harness.check(first, typed: [Self.code])
  }

  /// A code is sent once, to its recipient, with the text of the policy.
  private func checkFirst(_ use: RecordedCapabilities.Use, to identifier: Identifier, isSeen: Bool) {
    if isSeen, use.messages.isEmpty, use.requests.isEmpty {
      harness.addFinding(
        .delivery, "Nothing was sent before `deliver` returned.",
        "Return after the message is handed over. A failure after that is not reported.")
    }
    if use.messages.count > 1 {
      harness.addFinding(
        .delivery, "One code was sent \(use.messages.count) times.",
        "Send one message: each costs, and limits count one.")
    }
    if use.messages.isEmpty, !use.requests.isEmpty { check(use.requests, to: identifier) }
    for message in use.messages {
      if message.to != identifier.value {
        harness.addFinding(.delivery, "A code was sent to another recipient.", "Send it to `identifier.value`.")
      }
      if !message.text.contains(Self.message.text) {
        harness.addFinding(
          .delivery, "The message does not contain the text of the policy.",
          "Send `code.text`: operators change it in the policy.")
      }
      if message.code != Self.code {
        harness.addFinding(
          .delivery, "The message has no `code`.",
          "Give `code: code.code`: the demo's outbox and the redaction of logs use it.")
      }
      if let subject = message.subject {
        harness.checkText(subject, "the subject of a mail, which shows on locked screens", typed: [Self.code])
      }
    }
  }

  /// Another step for the same user, with another code, sends the same number of messages and requests.
  private func checkSecond(to identifier: Identifier, after use: RecordedCapabilities.Use, isSeen: Bool) async {
    let other = CodeMessage(
      code: Self.otherCode, text: "\(Self.otherCode) is your code",
      domainBoundLine: "@auth.example.com #\(Self.otherCode)", service: "Moongate")
    let second = RecordedCapabilities()
    if isSeen { harness.markChecked(.beginTwice) }
    let called = await deliver(other, to: identifier, second)
    let sent = second.use
    let isSame =
      use.messages.isEmpty && !use.requests.isEmpty
      ? sent.messages.isEmpty
        && sent.requests.count { $0.carries(other.code) } == use.requests.count { $0.carries(Self.code) }
      : sent.messages.count == use.messages.count && sent.requests.count == use.requests.count
    if case .answered = called, isSame, sent.messages.allSatisfy({ $0.text.contains(other.code) }) {
      // Expected.
    } else {
      harness.addFinding(
        .beginTwice, "A second code for the same person was not delivered like the first.",
        "Keep no state between deliveries: the policy limits how often a user can request a code.")
    }
    harness.check(second, typed: [Self.code, other.code])
  }

  /// A code that is sent through a site is delivered once, to its recipient.
  private func check(_ requests: [WebRequest], to identifier: Identifier) {
    switch requests.count(where: { $0.carries(Self.code) }) {
    case 0:
      harness.addFinding(.delivery, "No request contains the code.", "Send `code.text`, the text of the policy.")
    case 1: break
    case let count:
      harness.addFinding(
        .delivery, "One code was sent \(count) times.", "Send one message: each costs, and limits count one.")
    }
    if !requests.contains(where: { $0.carries(identifier.value) }) {
      harness.addFinding(
        .delivery, "No request contains the recipient.", "Send it to the identifier's value.")
    }
  }

  private func checkFaults(to identifier: Identifier) async {
    if harness.watched?.unobservableReason != nil { return }
    await harness.subject.reset()
    harness.markChecked(.faults)
    let failing = RecordedCapabilities(.fails)
    if case .answered = await deliver(to: identifier, failing) {
      harness.addFinding(
        .faults, "A message that could not be sent counts as delivered.",
        "Let the DeliveryFault through: the attempt is then not charged, and the user gets an error.")
    }
    harness.check(failing, typed: [Self.code])
    guard harness.descriptor.settings.contains(where: { if case .messages = $0.kind { true } else { false } }) else {
      return
    }
    let nowhere = RecordedCapabilities()
    let called = await deliver(to: identifier, nowhere, hasMessenger: false)
    if case .answered = called, !nowhere.use.isAny {
      harness.addFinding(
        .faults, "Without a message service, a code counts as delivered.",
        "Use `tools.send`, which throws if gateway.lua configures no message service.")
    }
    harness.check(nowhere, typed: [Self.code])
  }

  private func checkCancellation(to identifier: Identifier) async {
    await harness.subject.reset()
    await harness.checkCancellation("deliver") { [provider, harness] capabilities in
      try await provider.deliver(Self.message, to: identifier, with: harness.tools(capabilities))
    }
  }
}

extension ConformanceHarness {
  /// Cancels a call that waits for something that never happens.
  func checkCancellation(_ name: String, _ body: @escaping @Sendable (RecordedCapabilities) async throws -> Void) async
  {
    let capabilities = RecordedCapabilities(.hangs)
    if let watched {
      guard watched.unobservableReason == nil, watched.canDelayDelivery else {
        markInapplicable(
          .cancellation, because: watched.unobservableReason ?? "what it sends by cannot be made to wait")
        return
      }
      watched.setServiceBehavior(.hangs)
    } else {
      markChecked(.cancellation)
    }
    defer { watched?.setServiceBehavior(.works) }
    let ended = await Race.run(for: patience) { () async -> Bool in
      let work = Task { try? await body(capabilities) }
      // Cancel the call once it waits for a tool, unless it ends by itself.
      let over = Task {
        await work.value
        capabilities.end()
      }
      while !capabilities.use.isAny, !capabilities.use.hasEnded, !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(1))
        self.look(capabilities)
      }
      work.cancel()
      await over.value
      return true
    }
    guard ended != nil else {
      addFinding(
        .cancellation, "`\(name)` had not ended \(patience) after its task was cancelled.",
        "Do not catch and repeat what a cancelled wait throws; give up when `Task.isCancelled`.")
      return
    }
    guard watched != nil else { return }
    guard capabilities.use.isAny else {
      markInapplicable(.cancellation, because: "none of its actions can be delayed")
      return
    }
    // A separate process cannot be observed to end a call, so check that the next call works.
    markChecked(.cancellation)
    let next = RecordedCapabilities()
    if case .threw(let thrown) = await call(next, { try await body(next) }) {
      addFinding(
        .cancellation,
        "After a cancelled `\(name)`, the next one fails: \(thrown.text.prefix(120)).",
        "Stop waiting on `cancel`, or after your own time limit.")
    }
  }
}
