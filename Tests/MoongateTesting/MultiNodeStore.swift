import MoongateCore
import MoongateSDK
import MoongateStore
import Synchronization
import Testing

/// Several gateways' stores of one database, used alternately for each call, as a load balancer would do.
package final class MultiNodeStore: ForwardingStore {
  private let stores: [any Store]
  private let calls = Atomic<Int>(0)
  private let reads = Atomic<Int>(0)
  private let readsOfHolders = Atomic<Int>(0)
  private let readsOfFlows = Atomic<Int>(0)
  private let names = Mutex<[String]>([])
  private let afterFlow: @Sendable () async -> Void
  private let afterRefusal: @Sendable () async -> Void
  private let remembered: FlowRecord?

  /// - Parameters:
  ///   - stores: at least one.
  ///   - remembered: a state of a flow that this gateway remembers, although another one may have changed it since.
  ///   - afterFlow: called after a flow was read and before it is returned.
  ///   - afterRefusal: called after a limit has refused an attempt.
  package init(
    _ stores: [any Store], remembering remembered: FlowRecord? = nil,
    afterFlow: @escaping @Sendable () async -> Void = {},
    afterRefusal: @escaping @Sendable () async -> Void = {}
  ) {
    self.stores = stores
    self.remembered = remembered
    self.afterFlow = afterFlow
    self.afterRefusal = afterRefusal
  }

  /// How often a flow was read.
  package var flowReads: Int { readsOfFlows.load(ordering: .relaxed) }

  /// How often an account was read by its ID, alone or with a charge.
  package var accountReads: Int { reads.load(ordering: .relaxed) }

  /// How often an account was read by an identifier that it has verified, without a flow.
  package var holderReads: Int { readsOfHolders.load(ordering: .relaxed) }

  /// The names of the operations, in the order of the calls.
  package var operations: [String] { names.withLock { $0 } }

  package func store(for call: String) -> any Store {
    names.withLock { $0.append(call) }
    return stores[calls.wrappingAdd(1, ordering: .relaxed).newValue % stores.count]
  }

  private func next(_ call: String = #function) -> any Store { store(for: call) }

  package func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    if request.account != nil { reads.add(1, ordering: .relaxed) }
    let result = try await next().reserve(request)
    if case .refused = result { await afterRefusal() }
    return result
  }
  package func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord? {
    readsOfFlows.add(1, ordering: .relaxed)
    let found = try await next().flow(id)
    await afterFlow()
    return found
  }
  package func recentFlow(_ id: TokenHash) -> FlowRecord? {
    remembered?.id == id ? remembered : next().recentFlow(id)
  }
  package func flow(_ id: TokenHash, withHolderOf identifier: Identifier) async throws(StoreFault) -> (
    flow: FlowRecord?, holder: Account?
  ) {
    let found = try await next().flow(id, withHolderOf: identifier)
    await afterFlow()
    return found
  }
  package func account(_ id: String) async throws(StoreFault) -> Account? {
    reads.add(1, ordering: .relaxed)
    return try await next().account(id)
  }
  package func account(holding identifier: Identifier) async throws(StoreFault) -> Account? {
    readsOfHolders.add(1, ordering: .relaxed)
    return try await next().account(holding: identifier)
  }
}

/// The kind of store that a test runs on.
package enum TestedStore: Sendable, CaseIterable, CustomTestStringConvertible {
  /// A file that one process uses.
  case sqlite
  /// A PostgreSQL database that three gateways' stores use.
  case postgres

  /// The kinds that are available on this machine.
  package static var here: [TestedStore] { PostgresServer.isInstalled ? allCases : [.sqlite] }

  package var testDescription: String { "\(self)" }

  /// Opens a store as the gateways of such a test do.
  /// - Parameter address: the path of a file, or a connection string.
  package static func open(_ address: String) throws -> any Store {
    guard address.hasPrefix("postgres:") else { return try SQLiteStore(path: address, keyFingerprint: [1]) }
    return MultiNodeStore(
      try (0..<3).map { _ in try PostgresStore(url: address, keyFingerprint: [1], purpose: .working) })
  }

  /// Creates a new store and returns its address.
  package func address(in folder: ScratchFolder) throws -> String {
    switch self {
    case .sqlite: return folder.path("moongate.db")
    case .postgres:
      guard let server = PostgresServer.shared else { throw PostgresServer.Problem(description: PostgresServer.need) }
      return server.url(try server.makeStoreDatabase())
    }
  }
}
