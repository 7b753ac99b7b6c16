import MoongateSDK

/// A cache of discovery documents and keys. Each is fetched at most once an hour, and concurrent requests share a
/// fetch.
///
/// Attack: many sign-ins, or ID tokens with invented `kid`s, would flood the issuer with requests.
actor IssuerDirectory {
  /// How long a document is fresh, in milliseconds.
  static let freshness: Int64 = 3_600_000
  /// How long an old document is used while the issuer does not answer, in milliseconds.
  static let patience: Int64 = 86_400_000
  /// The maximum number of fetches because of unknown keys within `refetchWindow` milliseconds.
  static let maxRefetches = 3
  static let refetchWindow: Int64 = 60_000
  /// The maximum number of issuers in the cache: those of all instances, and of changed settings.
  private static let maxIssuers = 64

  private struct CachedDocument<Value: Sendable>: Sendable {
    let value: Value
    let at: Int64

    func isGood(at now: Int64, for length: Int64) -> Bool { at <= now && now - at < length }
  }

  private struct Entry {
    var metadata: CachedDocument<IssuerMetadata>?
    var keys: CachedDocument<KeySet>?
    var refetches: [Int64] = []
    /// Running fetches. Further callers wait for them.
    var fetchingMetadata: Fetch<IssuerMetadata>?
    var fetchingKeys: Fetch<KeySet>?
  }

  /// A fetch shared by all callers that wait for it. A cancelled caller stops waiting; the last one cancels the fetch.
  /// Confined to the actor.
  private final class Fetch<Value: Sendable> {
    let task: Task<Value, any Error>
    var waiting = 0

    init(_ body: @escaping @Sendable () async throws -> Value) { task = Task { try await body() } }
  }

  private var entries: [Issuer: Entry] = [:]

  /// - Parameter now: the time of the core's clock.
  /// - Throws: `OAuthFault` if the document is not available.
  func metadata(of issuer: Issuer, by web: any WebClient, at now: Int64) async throws -> IssuerMetadata {
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

  /// The key that signed a token; nil if the issuer does not publish it.
  /// - Throws: `OAuthFault` if the keys are not available.
  func key(_ token: IDToken, of issuer: Issuer, by web: any WebClient, at now: Int64) async throws -> KeySet.Key? {
    let known = try await keys(of: issuer, by: web, at: now, refetch: false)
    if let key = known.key(for: token) { return key }
    // The issuer may have rotated its keys, so fetch them again, but not for every forged token.
    let recent = entry(issuer).refetches.filter { $0 <= now && now - $0 < Self.refetchWindow }
    guard recent.count < Self.maxRefetches else { return nil }
    entries[issuer]?.refetches = recent + [now]
    return try await keys(of: issuer, by: web, at: now, refetch: true).key(for: token)
  }

  func keys(of issuer: Issuer, by web: any WebClient, at now: Int64, refetch: Bool = false) async throws -> KeySet {
    let kept = entry(issuer).keys
    if !refetch, let kept, kept.isGood(at: now, for: Self.freshness) { return kept.value }
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

  /// Waits for a fetch until the caller's task is cancelled.
  private func wait<Value: Sendable>(
    for fetch: Fetch<Value>, at place: WritableKeyPath<Entry, Fetch<Value>?>, of issuer: Issuer
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
      // The fetch has finished, or no caller is waiting any more.
      if fetch.waiting == 0 || !Task.isCancelled, entries[issuer]?[keyPath: place] === fetch {
        entries[issuer]?[keyPath: place] = nil
      }
      if fetch.waiting == 0 { task.cancel() }
    }
    for try await value in answers { return value }
    // Only a cancelled wait ends without a result.
    throw CancellationError()
  }

  private func entry(_ issuer: Issuer) -> Entry {
    if let known = entries[issuer] { return known }
    if entries.count >= Self.maxIssuers { entries.removeAll() }
    entries[issuer] = Entry()
    return Entry()
  }

  private static func fetch(_ address: String, by web: any WebClient) async throws(OAuthFault) -> [UInt8] {
    let answer: WebAnswer
    do throws(WebFault) {
      answer = try await web.send(WebRequest(url: address, headers: [(name: "Accept", value: "application/json")]))
    } catch {
      throw .site("\(address): \(error.reason)")
    }
    guard answer.status == 200 else { throw .site("\(address) answers \(answer.status)") }
    return answer.body
  }
}
