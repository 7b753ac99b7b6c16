import MoongateSDK

/// Handles a program's requests to the gateway with the tools of the related call.
struct ProgramGrants: Sendable {
  /// The maximum length of a secret to hash or compare, in bytes: that of a form field.
  private static let longestSecret = 4_096

  let tools: StepTools
  /// Registers strings that must not be logged from now on.
  let conceal: @Sendable ([String]) -> Void

  /// The answer to the request, as a line.
  func answer(_ id: RequestID, _ method: ProgramMethod, _ parameters: ProgramRequest.Parameters) async -> [UInt8] {
    do throws(ProgramRefusal) {
      return Self.line(Reply(id: id, result: try await perform(method, parameters), error: nil), id)
    } catch {
      return Self.refusal(id, error)
    }
  }

  static func refusal(_ id: RequestID, _ refusal: ProgramRefusal) -> [UInt8] {
    line(Reply<ProgramReply>(id: id, result: nil, error: refusal), id)
  }

  private static func line(_ reply: Reply<ProgramReply>, _ id: RequestID) -> [UInt8] {
    (try? JSONLine.encode(reply)) ?? []
  }

  private func perform(_ method: ProgramMethod, _ said: ProgramRequest.Parameters) async throws(ProgramRefusal)
    -> ProgramReply
  {
    switch method {
    case .get, .take, .remove, .set: return try await store(method, said)
    case .hash:
      let secret = try secret(said.secret, "secret")
      return .hash(try await hashing { hasher in try await hasher.hash(Array(secret.utf8)) })
    case .verify:
      let secret = try secret(said.secret, "secret")
      let verdict = try await hashing { [hash = said.hash] hasher in
        try await hasher.verify(Array(secret.utf8), against: hash)
      }
      switch verdict {
      case .wrong: return .match(false, upgrade: nil)
      case .right(let rehashed): return .match(true, upgrade: rehashed)
      }
    case .compare: return .match(constantTimeEquals(try secret(said.a, "a"), try secret(said.b, "b")), upgrade: nil)
    }
  }

  private func store(_ method: ProgramMethod, _ said: ProgramRequest.Parameters) async throws(ProgramRefusal)
    -> ProgramReply
  {
    guard let key = said.key else { throw ProgramRefusal(.invalidParameters, "`params.key` is missing") }
    switch method {
    case .set:
      guard let value = said.value else {
        throw ProgramRefusal(.invalidParameters, "`params.value` is missing: a string")
      }
      guard let seconds = said.expiresIn, seconds.magnitude < 1e12 else {
        throw ProgramRefusal(
          .invalidParameters, "`params.expires_in` is missing: the lifetime of the entry in seconds")
      }
      conceal([value])
      let (bytes, lifetime) = (Array(value.utf8), Duration.milliseconds(Int64((seconds * 1000).rounded())))
      guard said.once ?? false else {
        try await asking { () async throws(KeyValueFault) in
          try await tools.store.set(bytes, for: key, expiresIn: lifetime)
        }
        return .stored(true)
      }
      return .stored(
        try await asking { () async throws(KeyValueFault) in
          try await tools.store.setOnce(bytes, for: key, expiresIn: lifetime)
        })
    case .take:
      return .value(try text(await asking { () async throws(KeyValueFault) in try await tools.store.take(key) }))
    case .remove:
      try await asking { () async throws(KeyValueFault) in try await tools.store.remove(key) }
      return .removed
    default:
      return .value(try text(await asking { () async throws(KeyValueFault) in try await tools.store.value(for: key) }))
    }
  }

  private func asking<Answer>(_ body: () async throws(KeyValueFault) -> Answer) async throws(ProgramRefusal) -> Answer {
    do {
      return try await body()
    } catch {
      switch error {
      case .unavailable, .full, .leaseLost: throw ProgramRefusal(.unavailable, "\(error)")
      case .invalidKey, .valueTooLong, .invalidLifetime: throw ProgramRefusal(.invalidParameters, "\(error)")
      }
    }
  }

  private func hashing<Answer: Sendable>(_ body: (any SecretHasher) async throws -> Answer) async throws(ProgramRefusal)
    -> Answer
  {
    guard let hasher = tools.hasher else {
      throw ProgramRefusal(
        .notGranted, "secrets can be hashed and verified only during `submit`, because no attempt is charged before it")
    }
    do { return try await body(hasher) } catch {
      throw ProgramRefusal(.unavailable, "the secret could not be hashed: \(error)")
    }
  }

  private func secret(_ text: String?, _ name: String) throws(ProgramRefusal) -> String {
    guard let text else { throw ProgramRefusal(.invalidParameters, "`params.\(name)` is missing") }
    guard text.utf8.count <= Self.longestSecret else {
      throw ProgramRefusal(.invalidParameters, "`params.\(name)` is longer than \(Self.longestSecret) bytes")
    }
    conceal([text])
    return text
  }

  private func text(_ bytes: [UInt8]?) throws(ProgramRefusal) -> String? {
    guard let bytes else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ProgramRefusal(.unavailable, "the value is not a string: another provider of this name stored it")
    }
    conceal([text])
    return text
  }
}
