import MoongateSDK

/// The rules of a code provider: how it reads an identifier and how it delivers. The codes themselves are the core's.
struct CodeRules: Sendable {
  let stage: Stage
  let provider: any CodeProvider

  private static let code = "805213"
  private static let otherCode = "117746"
  private static let message = CodeMessage(
    code: code, text: "\(code) is your Moongate verification code", domainBoundLine: "@auth.example.com #\(code)", service: "Moongate")

  func run() async {
    let core = "the core makes, keeps and compares the codes"
    stage.passesOver(
      .proof, .rounds, .expiry, .concurrency, .refusals, .counted, .wholeAnswer, .once, .hashing, .upgrade, .outcomes, .unknown, .timing,
      because: core)
    let identifier = await IdentifierRules(stage: stage) { [provider] input throws(InputProblem) in try provider.readIdentifier(input) }.run()
    guard let identifier else {
      stage.passesOver(.delivery, .beginTwice, .faults, .secrets, .cancellation, .cleanup, because: "no identifier could be read to deliver to")
      return
    }
    if stage.wants(.delivery, .beginTwice) { await judgeDelivery(to: identifier) }
    if stage.wants(.faults) { await judgeFaults(to: identifier) }
    await judgeCancellation(to: identifier)
  }

  private func deliver(
    _ message: CodeMessage = message, to identifier: Identifier, _ loan: Loan, hasMessenger: Bool = true
  ) async -> Called<Void> {
    let tools = stage.tools(loan, hasMessenger: hasMessenger)
    stage.trace.hide(message.text, as: "text")
    stage.trace.hide(message.code, as: "code")
    if stage.watched == nil { stage.trace.note("→ deliver(code: \"\(message.code)\", text: \"\(message.text)\", to: \(identifier.value))") }
    let called = await stage.call(loan) { [provider] () async throws in try await provider.deliver(message, to: identifier, with: tools) }
    if case .threw(let thrown) = called { stage.judgeText(thrown.delivery?.reason ?? thrown.text, "a fault", typed: [message.code]) }
    if stage.watched == nil {
      for sent in loan.use.messages { stage.trace.note("  tools.send(to: \(sent.to), text: \"\(sent.text)\")") }
      for request in loan.use.requests { stage.trace.note("  tools.web.send(\(request.method) \(request.url))") }
      if case .threw(let thrown) = called { stage.trace.note("← throws \(thrown.text)") } else { stage.trace.note("← returns") }
    }
    return called
  }

  /// Once, to whom it is for, with the words of the policy; and a second one as well.
  private func judgeDelivery(to identifier: Identifier) async {
    await stage.subject.reset()
    let first = Loan()
    stage.typedEver.add([Self.code, Self.otherCode])
    let unseen = stage.watched?.isUnseen
    if let unseen { stage.passesOver(.delivery, .beginTwice, .faults, .cancellation, because: unseen) } else { stage.judges(.delivery) }
    guard case .answered = await deliver(to: identifier, first) else {
      stage.finds(
        .delivery, "A code could not be delivered, though everything that was lent worked.",
        "Send it by `tools.send`, or let the subject say what your site answers.")
      return
    }
    let use = first.use
    if unseen == nil, use.messages.isEmpty, use.requests.isEmpty {
      stage.finds(
        .delivery, "Nothing was sent before `deliver` returned.",
        "Return after the message is handed over. A failure after that is reported to no one.")
    }
    if use.messages.count > 1 {
      stage.finds(.delivery, "One code was sent \(use.messages.count) times.", "Send one message: each costs, and limits count one.")
    }
    if use.messages.isEmpty, !use.requests.isEmpty { judge(use.requests, to: identifier) }
    for message in use.messages {
      if message.to != identifier.value {
        stage.finds(.delivery, "A code was sent to somebody else than it is for.", "Send it to `identifier.value`.")
      }
      if !message.text.contains(Self.message.text) {
        stage.finds(.delivery, "The message does not say what the policy words.", "Send `code.text`: operators change it in the policy.")
      }
      if message.code != Self.code {
        stage.finds(.delivery, "The message does not name its code.", "Give `code: code.code`: the demo's outbox and the log's redaction go by it.")
      }
      if let subject = message.subject { stage.judgeText(subject, "the subject of a mail, which shows on locked screens", typed: [Self.code]) }
    }
    stage.judge(first, typed: [Self.code])

    // Another step for the same person, with its own code.
    let other = CodeMessage(
      code: Self.otherCode, text: "\(Self.otherCode) is your code", domainBoundLine: "@auth.example.com #\(Self.otherCode)", service: "Moongate")
    let second = Loan()
    if unseen == nil { stage.judges(.beginTwice) }
    let called = await deliver(other, to: identifier, second)
    let sent = second.use
    let isSame =
      use.messages.isEmpty && !use.requests.isEmpty
      ? sent.messages.isEmpty && sent.requests.count { $0.carries(other.code) } == use.requests.count { $0.carries(Self.code) }
      : sent.messages.count == use.messages.count && sent.requests.count == use.requests.count
    if case .answered = called, isSame, sent.messages.allSatisfy({ $0.text.contains(other.code) }) {
      // As it should be.
    } else {
      stage.finds(
        .beginTwice, "A second code for the same person was not delivered as the first was.",
        "Keep nothing of a delivery: how often somebody may ask is the policy's to say.")
    }
    stage.judge(second, typed: [Self.code, other.code])
    stage.judge(first, typed: [Self.code])
  }

  /// A code that goes by a site: once, to whom it is for.
  private func judge(_ requests: [WebRequest], to identifier: Identifier) {
    switch requests.count(where: { $0.carries(Self.code) }) {
    case 0: stage.finds(.delivery, "Nothing that was sent carries the code.", "Send `code.text`, which the policy words.")
    case 1: break
    case let count: stage.finds(.delivery, "One code was sent \(count) times.", "Send one message: each costs, and limits count one.")
    }
    if !requests.contains(where: { $0.carries(identifier.value) }) {
      stage.finds(.delivery, "Nothing that was sent names whom the code is for.", "Send it to the identifier's value.")
    }
  }

  private func judgeFaults(to identifier: Identifier) async {
    if stage.watched?.isUnseen != nil { return }
    await stage.subject.reset()
    stage.judges(.faults)
    let failing = Loan(.fails)
    if case .answered = await deliver(to: identifier, failing) {
      stage.finds(
        .faults, "A message that could not be sent counts as delivered.",
        "Let the DeliveryFault through: the person is then not charged, and is told.")
    }
    stage.judge(failing, typed: [Self.code])
    guard stage.descriptor.settings.contains(where: { if case .messages = $0.kind { true } else { false } }) else { return }
    let nowhere = Loan()
    let called = await deliver(to: identifier, nowhere, hasMessenger: false)
    if case .answered = called, !nowhere.use.isAny {
      stage.finds(
        .faults, "Without a way for messages a code counts as delivered.", "Send by `tools.send`, which throws where gateway.lua names no way.")
    }
    stage.judge(nowhere, typed: [Self.code])
  }

  private func judgeCancellation(to identifier: Identifier) async {
    await stage.subject.reset()
    await stage.judgeCancellation("deliver") { [provider, stage] loan in
      try await provider.deliver(Self.message, to: identifier, with: stage.tools(loan))
    }
  }
}

extension Stage {
  /// Cancels a call while what it waits for never comes.
  func judgeCancellation(_ name: String, _ body: @escaping @Sendable (Loan) async throws -> Void) async {
    let loan = Loan(.hangs)
    if let watched {
      guard watched.isUnseen == nil, watched.canBeHeldUp else {
        passesOver(.cancellation, because: watched.isUnseen ?? "what it sends by cannot be made to wait")
        return
      }
      watched.meets(.hangs)
    } else {
      judges(.cancellation)
    }
    defer { watched?.meets(.works) }
    let ended = await Race.run(for: patience) { () async -> Bool in
      let work = Task { try? await body(loan) }
      // It is cancelled once it waits for a tool, or is over by itself.
      let over = Task {
        await work.value
        loan.end()
      }
      while !loan.use.isAny, !loan.use.hasEnded, !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(1))
        self.look(loan)
      }
      work.cancel()
      await over.value
      return true
    }
    guard ended != nil else {
      finds(
        .cancellation, "`\(name)` had not ended \(patience) after its task was cancelled.",
        "Do not catch and repeat what a cancelled wait throws; give up when `Task.isCancelled`.")
      return
    }
    guard watched != nil else { return }
    guard loan.use.isAny else {
      passesOver(.cancellation, because: "nothing of what it does can be made to wait")
      return
    }
    // Elsewhere a call ends whatever its provider does. What counts is whether it can be asked again.
    judges(.cancellation)
    let next = Loan()
    if case .threw(let thrown) = await call(next, { try await body(next) }) {
      finds(
        .cancellation, "After a `\(name)` that nobody waited for any more, the next one fails: \(thrown.text.prefix(120)).",
        "Give up what you wait for when `cancel` comes, or after a time of your own.")
    }
  }
}
