import Foundation
import Logging
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore

/// The store of a configuration, opened beside the gateway that may be running on it: what is changed here is seen
/// there within a second.
struct OperatorStore {
  let desk: AccountAdministration
  let generation: any PolicyGeneration
  /// The providers of this program and of the configuration.
  let registry: ProviderRegistry
  let keys: KeyRing
  let store: any SQLStore

  /// The key of the ring to which the store answers where that is not the oldest one: taking that one out was
  /// interrupted.
  let heir: String?

  let clock: any GatewayClock
  var gateway: GatewaySettings { generation.gateway }

  /// Makes neither a store nor a key: a command that was given the wrong address must not leave one there.
  /// - Parameter finishesRetirement: whether the store may be that of a later key of the ring.
  /// - Throws: a sentence, with exit status 2, where there is nothing to open.
  init(_ configuration: ConfigurationOption, finishesRetirement: Bool = false) async throws {
    generation = try configuration.generation()
    registry = try generation.registry ?? Providers.registry()
    let opened: OpenedStore
    do {
      (opened, keys, heir) = try await Self.open(generation.gateway, finishesRetirement)
    } catch let problem as StartProblem {
      throw problem
    } catch {
      throw StartProblem(error is StoreFault ? "The store cannot be read: \(error)" : "\(error)", status: .couldNotRun)
    }
    store = opened.store
    // What an operator does is seen where the command was given, too.
    let log = SecurityLog(logger: Logger(label: "security") { LineLog(label: $0, level: .notice) })
    store.memory.recorded.subscribe { log.note($0) }
    clock = opened.clock
    desk = AccountAdministration(
      store: store, providers: registry, keys: keys, clock: opened.clock, random: SystemRandom())
  }

  private static func open(_ gateway: GatewaySettings, _ finishesRetirement: Bool) async throws -> (
    OpenedStore, KeyRing, heir: String?
  ) {
    if case .sqlite(let path) = gateway.store, !FileManager.default.fileExists(atPath: path) {
      throw StoreRefusal.nothingThere(path: path)
    }
    let keys = KeyRing(try KeySource(gateway.key).read())
    do {
      return (try await OpenedStore(gateway.store, keys), keys, nil)
    } catch StoreRefusal.retirementInterrupted(_, _, let heir) where finishesRetirement {
      return (try await OpenedStore(gateway.store, keys, heir: heir), keys, heir)
    }
  }

  var now: Timestamp { clock.now() }

  func close() { try? store.close() }

  /// Works on the store and closes it.
  /// - Throws: what the body throws; a sentence, with exit status 2, where the store does not answer.
  static func with<Value>(
    _ configuration: ConfigurationOption, finishesRetirement: Bool = false,
    _ body: (OperatorStore) async throws -> Value
  ) async throws -> Value {
    let opened = try await OperatorStore(configuration, finishesRetirement: finishesRetirement)
    defer { opened.close() }
    do {
      return try await body(opened)
    } catch let fault as StoreFault {
      throw StartProblem("The store could not do it: \(fault)", status: .couldNotRun)
    }
  }

  /// The one account of the name.
  /// - Throws: a sentence, with exit status 1, where there is none, or more than one.
  func account(named name: String) async throws -> Account {
    let found = try await desk.accounts(named: name, region: gateway.region)
    guard let account = found.first else { throw StartProblem("There is no account \(name).") }
    guard found.count == 1 else {
      throw StartProblem(
        "\(name) names \(found.count) accounts; say which by its id: \(found.map(\.id).joined(separator: ", ")).")
    }
    return account
  }
}
