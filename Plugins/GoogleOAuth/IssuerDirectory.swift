import MoongateSDK

/// What was fetched from providers: asked for once an hour, and not by everybody at once.
///
/// Attack: sign-ins without end, or ID tokens with made-up `kid`s, that turn us into a flood of the provider.
actor IssuerDirectory {
  /// Milliseconds for which a document is good.
  static let freshness: Int64 = 3_600_000
  /// Milliseconds for which an old one will do while the provider does not answer.
  static let patience: Int64 = 86_400_000
  /// An unknown key may have the set fetched again so often in `refetchWindow` milliseconds.
  static let mostRefetches = 3
  static let refetchWindow: Int64 = 60_000
  /// An operator changes issuers now and then: so many are remembered.
  private static let mostIssuers = 4

  private struct CachedDocument<Value: Sendable>: Sendable {
    let value: Value
    let at: Int64

    func isGood(at now: Int64, for length: Int64) -> Bool { at <= now && now - at < length }
  }

  private struct Entry {
    var metadata: CachedDocument<IssuerMetadata>?
    var keys: CachedDocument<KeySet>?
    var refetches: [Int64] = []
    /// Fetches at work: who comes meanwhile waits for them.
    var fetchingMetadata: Fetch<IssuerMetadata>?
    var fetchingKeys: Fetch<KeySet>?
  }

  /// A fetch for all who wait for it. Whoever is cancelled waits no longer; when nobody does, it ends. The directory's
  /// alone.
  private final class Fetch<Value: Sendable> {
    let task: Task<Value, any Error>
    var waiting = 0

    init(_ body: @escaping @Sendable () async throws -> Value) { task = Task { try await body() } }
  }

  private var entries: [String: Entry] = [:]

  /// - Parameter now: by the core's clock.
  /// - Throws: `OAuthFault` where it cannot be had.
  func metadata(of issuer: String, by web: any WebClient, at now: Int64) async throws -> IssuerMetadata {
    let kept = entry(issuer).metadata
    if let kept, kept.isGood(at: now, for: Self.freshness) { return kept.value }
    let fetch =
      entry(issuer).fetchingMetadata
      ?? Fetch { try IssuerMetadata(try await Self.fetch(IssuerMetadata.address(of: issuer), by: web), of: issuer) }
    if entries[issuer]?.fetchingMetadata == nil { entries[issuer]?.fetchingMetadata = fetch }
    do {
      let fetched = try await wait(for: fetch, at: \.fetchingMetadata, of: issuer)
      entries[issuer]?.metadata = CachedDocument(value: fetched, at: now)
      return fetched
    } catch {
      if !Task.isCancelled, let kept, kept.isGood(at: now, for: Self.patience) { return kept.value }
      throw error
    }
  }

  /// The key that a token was signed with; nil where the provider publishes none such.
  /// - Throws: `OAuthFault` where its keys cannot be had.
  func key(_ token: IDToken, of issuer: String, by web: any WebClient, at now: Int64) async throws -> KeySet.Key? {
    let known = try await keys(of: issuer, by: web, at: now, anew: false)
    if let key = known.key(for: token) { return key }
    // The provider may have changed its keys since: one more look, but not one for each forger.
    let recent = entry(issuer).refetches.filter { $0 <= now && now - $0 < Self.refetchWindow }
    guard recent.count < Self.mostRefetches else { return nil }
    entries[issuer]?.refetches = recent + [now]
    return try await keys(of: issuer, by: web, at: now, anew: true).key(for: token)
  }

  private func keys(of issuer: String, by web: any WebClient, at now: Int64, anew: Bool) async throws -> KeySet {
    let kept = entry(issuer).keys
    if !anew, let kept, kept.isGood(at: now, for: Self.freshness) { return kept.value }
    let address = try await metadata(of: issuer, by: web, at: now).keys
    let fetch = entry(issuer).fetchingKeys ?? Fetch { try KeySet(try await Self.fetch(address, by: web), of: issuer) }
    if entries[issuer]?.fetchingKeys == nil { entries[issuer]?.fetchingKeys = fetch }
    do {
      let fetched = try await wait(for: fetch, at: \.fetchingKeys, of: issuer)
      entries[issuer]?.keys = CachedDocument(value: fetched, at: now)
      return fetched
    } catch {
      if !Task.isCancelled, let kept, kept.isGood(at: now, for: Self.patience) { return kept.value }
      throw error
    }
  }

  /// Waits for a fetch, and no longer than its own task lives.
  private func wait<Value: Sendable>(
    for fetch: Fetch<Value>, at place: WritableKeyPath<Entry, Fetch<Value>?>, of issuer: String
  ) async throws -> Value {
    fetch.waiting += 1
    let task = fetch.task
    let (answers, answer) = AsyncThrowingStream<Value, any Error>.makeStream()
    let relay = Task {
      do {
        answer.yield(try await task.value)
        answer.finish()
      } catch {
        answer.finish(throwing: error)
      }
    }
    defer {
      relay.cancel()
      fetch.waiting -= 1
      // It has answered, or nobody is there any more to hear it.
      if fetch.waiting == 0 || !Task.isCancelled, entries[issuer]?[keyPath: place] === fetch {
        entries[issuer]?[keyPath: place] = nil
      }
      if fetch.waiting == 0 { task.cancel() }
    }
    for try await value in answers { return value }
    // Only a cancelled wait ends without an answer.
    throw CancellationError()
  }

  private func entry(_ issuer: String) -> Entry {
    if let known = entries[issuer] { return known }
    if entries.count >= Self.mostIssuers { entries.removeAll() }
    entries[issuer] = Entry()
    return Entry()
  }

  private static func fetch(_ address: String, by web: any WebClient) async throws(OAuthFault) -> [UInt8] {
    let answer: WebAnswer
    do throws(WebFault) {
      answer = try await web.send(WebRequest(url: address, headers: [(name: "Accept", value: "application/json")]))
    } catch {
      throw .provider("\(address): \(error.reason)")
    }
    guard answer.status == 200 else { throw .provider("\(address) answers \(answer.status)") }
    return answer.body
  }
}
