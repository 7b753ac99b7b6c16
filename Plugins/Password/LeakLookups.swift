import Dispatch
import MoongateSDK
import Synchronization

/// Looks passwords up with bounds on time and number. A source that is slow delays nobody for long, and one that is
/// down is not asked for a while.
final class LeakLookups: Sendable {
  /// The maximum number of lookups at the same time: of new passwords, and again of existing ones.
  static let most = 32
  /// The number of failures in a row after which the source is not asked.
  static let mostFailures = 3
  /// How long it is not asked, in milliseconds. After that, one lookup tries.
  static let pause: Int64 = 10_000
  /// The maximum number of sources that are remembered, for changed settings.
  private static let mostSources = 8

  private struct Health {
    var failures = 0
    /// Milliseconds since the Unix epoch.
    var asksAgainAt: Int64 = 0
  }

  private struct State {
    var running = 0
    var sources: [LeakSource.Place: Health] = [:]
  }

  /// What lookups of new passwords share, or those of existing ones.
  ///
  /// Attack: somebody proposes new passwords without end, so that no lookup is free when a leaked password is used at a
  /// sign-in, or so that a slow disk or service counts as one that is down. Neither kind waits for the other.
  private final class Lane: Sendable {
    let state = Mutex(State())
    /// Reads files, one at a time.
    let disk = DispatchQueue(label: "leaked passwords")
  }

  private let timeLimit: Duration
  private let new = Lane()
  private let existing = Lane()

  init(timeLimit: Duration = .milliseconds(1_500)) { self.timeLimit = timeLimit }

  /// Whether the source has the password.
  /// - Parameter isNew: whether somebody proposes it, rather than having signed in with it.
  func contains(_ key: LeakKey, in place: LeakSource.Place, isNew: Bool, _ tools: StepTools)
    async throws(LeakFault) -> Bool
  {
    let lane = isNew ? new : existing
    try enter(place, lane, at: tools.clock.now)
    let found = await within(timeLimit) { [self] () async -> Result<Bool, LeakFault> in
      defer { lane.state.withLock { $0.running -= 1 } }
      switch place {
      case .site(let address): return await LeakService(address: address).contains(key, by: tools.web)
      case .file(let path): return await read(path, key, lane)
      }
    }
    if let found {
      settle(place, lane, found, tools)
    } else if !Task.isCancelled {
      settle(place, lane, .failure(LeakFault("no answer within \(timeLimit)")), tools)
    }
    return try (found ?? .failure(LeakFault("no answer within \(timeLimit)"))).get()
  }

  private func read(_ path: String, _ key: LeakKey, _ lane: Lane) async -> Result<Bool, LeakFault> {
    await withCheckedContinuation { continuation in
      lane.disk.async {
        continuation.resume(returning: Result { () throws(LeakFault) in try LeakFile(path).contains(key.digits) })
      }
    }
  }

  // MARK: - Bounds

  private func enter(_ place: LeakSource.Place, _ lane: Lane, at now: Int64) throws(LeakFault) {
    let fault = lane.state.withLock { state -> LeakFault? in
      var health = state.sources[place] ?? Health()
      if health.failures >= Self.mostFailures {
        guard now >= health.asksAgainAt else { return LeakFault("the source has failed before and is not asked yet") }
        health.asksAgainAt = now + Self.pause
      }
      guard state.running < Self.most else {
        return LeakFault("\(Self.most) lookups are running already")
      }
      if state.sources[place] == nil, state.sources.count >= Self.mostSources { state.sources = [:] }
      state.sources[place] = health
      state.running += 1
      return nil
    }
    if let fault { throw fault }
  }

  private func settle(_ place: LeakSource.Place, _ lane: Lane, _ found: Result<Bool, LeakFault>, _ tools: StepTools) {
    let now = tools.clock.now
    let (before, after) = lane.state.withLock { state -> (Int, Int) in
      var health = state.sources[place] ?? Health()
      let before = health.failures
      if case .failure = found {
        health.failures = min(before + 1, Self.mostFailures)
        health.asksAgainAt = now + Self.pause
      } else {
        health.failures = 0
      }
      state.sources[place] = health
      return (before, health.failures)
    }
    switch found {
    case .failure(let fault) where before < Self.mostFailures && after == Self.mostFailures:
      tools.log.error("leaked passwords cannot be looked up, so passwords are accepted", ["fault": fault.reason])
    case .success where before == Self.mostFailures: tools.log.notice("leaked passwords can be looked up again")
    default: break
    }
  }

  /// Runs the body for at most this long.
  /// - Returns: nil if it takes longer, or if the caller is cancelled. The body is then cancelled and not waited for.
  private func within<Value: Sendable>(_ limit: Duration, _ body: @escaping @Sendable () async -> Value) async -> Value?
  {
    let (values, sink) = AsyncStream<Value?>.makeStream(bufferingPolicy: .bufferingOldest(1))
    let work = Task { sink.yield(await body()) }
    let timer = Task {
      if (try? await Task.sleep(for: limit)) != nil { sink.yield(nil) }
    }
    defer {
      work.cancel()
      timer.cancel()
    }
    for await value in values { return value }
    return nil
  }
}

/// A service with the range API of Have I Been Pwned: it gets the first five digits of a hash and answers with all
/// known hashes that begin with them, so it learns neither the password nor its hash (k-anonymity).
struct LeakService {
  let address: String

  func contains(_ key: LeakKey, by web: any WebClient) async -> Result<Bool, LeakFault> {
    let site = address.hasSuffix("/") ? String(address.dropLast()) : address
    // Attack: the size of the answer tells an observer on the network which digits were asked for. With padding, all
    // answers have about the same size.
    let request = WebRequest(
      url: "\(site)/range/\(key.prefix)",
      headers: [(name: "Accept", value: "text/plain"), (name: "Add-Padding", value: "true")])
    do throws(WebFault) {
      let answer = try await web.send(request)
      guard answer.status == 200 else { return .failure(LeakFault("\(address) answers \(answer.status)")) }
      return contains(key.rest, in: answer.body)
    } catch {
      return .failure(LeakFault(error.reason))
    }
  }

  /// Attack: a page of a proxy, or half an answer, is taken for a list without the password. An answer with a line of
  /// another form, or without any line, counts as none.
  private func contains(_ rest: ArraySlice<UInt8>, in body: [UInt8]) -> Result<Bool, LeakFault> {
    var isLeaked = false
    let lines = body.split(separator: 0x0A).filter { $0 != [0x0D] }
    for text in lines {
      guard let line = LeakLine(text, digits: rest.count) else {
        return .failure(LeakFault("\(address) answers with something else than a list of hashes"))
      }
      if line.isLeaked, line.digits.elementsEqual(rest) { isLeaked = true }
    }
    return lines.isEmpty ? .failure(LeakFault("\(address) answers with an empty list")) : .success(isLeaked)
  }
}
