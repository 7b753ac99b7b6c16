import MoongateSDK

/// `recheck`: asks the site of an identity about it again.
struct RecheckCall: Encodable {
  let identity: WireIdentifier
  let state: String
  let now: Int64
}

/// The answer to `recheck`, with exactly one of `confirmed`, `ended` and `failed`.
struct RecheckReply: Decodable {
  enum Kind {
    case confirmed(WireIdentifier)
    case ended(String)
    /// The site did not answer.
    case failed(String)
  }

  /// Read by itself: a token that the site has replaced is kept even if the rest cannot be read.
  let kind: Result<Kind, any Error>
  /// Replaces the state, whatever the answer is.
  let state: String?

  private enum Keys: String, CodingKey { case confirmed, ended, failed, state }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    state = try container.decodeIfPresent(String.self, forKey: .state)
    kind = Result { try Self.kind(container) }
  }

  private static func kind(_ container: KeyedDecodingContainer<Keys>) throws -> Kind {
    let answers = container.allKeys.filter { $0 != .state }
    switch (answers.count, answers.first) {
    case (1, .confirmed?): return .confirmed(try container.decode(WireIdentifier.self, forKey: .confirmed))
    case (1, .ended?): return .ended(try container.decode(String.self, forKey: .ended))
    case (1, .failed?): return .failed(try container.decode(String.self, forKey: .failed))
    default:
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: container.codingPath, debugDescription: "exactly one of confirmed, ended and failed"))
    }
  }
}

extension ExecFullProvider: Rechecking {
  func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    let state = try StepCall.text(known.state, "state")
    let now = tools.clock.now
    let call = RecheckCall(identity: WireIdentifier(known.identity), state: state, now: now)
    let secrets = [state, known.identity.value, known.identity.display].filter { !$0.isEmpty }
    let reply = try await program.call(.recheck, call, secrets: secrets, granting: tools, as: RecheckReply.self)
    if let new = reply.state, new != state {
      program.log.secrets.add([new], at: .now)
      try await known.keep(Array(new.utf8))
    }
    let kind: RecheckReply.Kind
    do { kind = try reply.kind.get() } catch {
      throw ProgramFault.broken("its answer to `recheck` cannot be read: \(JSONLine.problem(error))")
    }
    switch kind {
    case .confirmed(let said):
      // The answer is judged like that of a step about this identity.
      let step = StepContext(
        flow: "", purpose: .prove, account: nil, identifier: known.identity, state: [], now: now, callback: nil,
        tools: tools)
      let rules = ReplyRules(
        descriptor: descriptor, read: reader?.descriptor.facts ?? [], step: step, method: .recheck)
      return .confirmed(try rules.own(said.identifier))
    case .ended(let because): return .ended(because: because)
    case .failed(let because): throw ProgramFault.failed(because)
    }
  }
}
