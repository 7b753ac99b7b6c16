import Foundation
import Logging
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import MoongateStore

/// The store of a configuration, opened by a command. A gateway that runs on the same store sees changes within a
/// second.
struct OperatorStore {
  let administration: AccountAdministration
  let generation: any PolicyGeneration
  /// The providers of this program and of the configuration.
  let registry: ProviderRegistry
  let keys: KeyRing
  let store: any SQLStore

  /// The key that the store belongs to if it is not the oldest key of the ring, because retiring the oldest was
  /// interrupted; otherwise nil.
  let interruptedRetirementKey: String?

  let clock: any GatewayClock
  var gateway: GatewaySettings { generation.gateway }

  /// Opens the store. Creates neither a store nor a key: a command with a wrong address must not create them.
  /// - Parameter finishesRetirement: whether the store may belong to a later key of the ring.
  /// - Throws: an error with exit status 2 if the store or key does not exist.
  init(_ configuration: ConfigurationOption, finishesRetirement: Bool = false) async throws {
    generation = try configuration.generation()
    registry = try generation.registry ?? Providers.registry()
    let opened: OpenedStore
    do {
      (opened, keys, interruptedRetirementKey) = try await Self.open(generation.gateway, finishesRetirement)
    } catch let problem as StartProblem {
      throw problem
    } catch {
      throw StartProblem(error is StoreFault ? "The store cannot be read: \(error)" : "\(error)", status: .couldNotRun)
    }
    store = opened.store
    // Log the operator's changes in the terminal too.
    let log = SecurityLog(logger: Logger(label: "security") { LineLog(label: $0, level: .notice) })
    store.memory.recorded.subscribe { log.note($0) }
    clock = opened.clock
    administration = AccountAdministration(
      store: store, providers: registry, keys: keys, clock: opened.clock, random: SystemRandom())
  }

  private static func open(_ gateway: GatewaySettings, _ finishesRetirement: Bool) async throws -> (
    OpenedStore, KeyRing, interruptedRetirementKey: String?
  ) {
    if case .sqlite(let path) = gateway.store, !FileManager.default.fileExists(atPath: path) {
      throw StoreRefusal.nothingThere(path: path)
    }
    let keys = KeyRing(try KeySource(gateway.key).read())
    do {
      return (try await OpenedStore(gateway.store, keys), keys, nil)
    } catch StoreRefusal.retirementInterrupted(_, _, let interruptedRetirementKey) where finishesRetirement {
      return (
        try await OpenedStore(gateway.store, keys, interruptedRetirementKey: interruptedRetirementKey), keys,
        interruptedRetirementKey
      )
    }
  }

  var now: Timestamp { clock.now() }

  func close() { try? store.close() }

  /// Runs the body with the store, then closes it.
  /// - Throws: the error of the body; an error with exit status 2 if the store does not answer.
  static func with<Value>(
    _ configuration: ConfigurationOption, finishesRetirement: Bool = false,
    _ body: (OperatorStore) async throws -> Value
  ) async throws -> Value {
    let opened = try await OperatorStore(configuration, finishesRetirement: finishesRetirement)
    defer { opened.close() }
    do {
      return try await body(opened)
    } catch let fault as StoreFault {
      throw StartProblem("The store failed: \(fault)", status: .couldNotRun)
    }
  }

  /// The account with this id, phone number or email address.
  /// - Throws: an error with exit status 1 if no account or several accounts match.
  func account(named name: String) async throws -> Account {
    let found = try await administration.accounts(named: name, region: gateway.region)
    guard let account = found.first else { throw StartProblem("There is no account \(name).") }
    guard found.count == 1 else {
      throw StartProblem(
        "\(name) matches \(found.count) accounts. Use an id:  \(found.map(\.id).joined(separator: ", ")).")
    }
    return account
  }
}
