import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore

/// The store of a configuration, opened beside the gateway that may be running on it: what is changed here is seen there within a second.
struct OperatorStore {
  let desk: AccountDesk
  let gateway: GatewaySettings
  let keys: KeyRing
  let store: any SQLStore

  private let clock: any GatewayClock

  /// - Parameters:
  ///   - makes: whether a store and a key that are not there yet are made.
  ///   - ring: whose store it must be; nil: that of gateway.lua.
  /// - Throws: a sentence, with exit status 2, where there is nothing to open.
  init(_ configuration: ConfigurationOption, makes: Bool = false, answeringTo ring: KeyRing? = nil) async throws {
    gateway = try configuration.generation().gateway
    if !makes {
      guard OpenedStore.isThere(gateway.store) else {
        throw StartProblem("There is no store at \(gateway.store.place): a gateway that has run makes it.", status: .couldNotRun)
      }
      if case .file(let key) = gateway.key, !FileManager.default.fileExists(atPath: key) {
        throw StartProblem("The key file \(key) is not there, and the store answers to no other.", status: .couldNotRun)
      }
    }
    let key = try MasterKey(gateway.key)
    let opened: OpenedStore
    do {
      opened = try await OpenedStore(gateway.store, ring ?? key.keys)
    } catch {
      key.undo()
      throw StartProblem(error is StoreFault ? "The store cannot be read: \(error)" : "\(error)", status: .couldNotRun)
    }
    store = opened.store
    keys = key.keys
    clock = opened.clock
    desk = AccountDesk(store: store, providers: try Providers.registry(), keys: keys, clock: opened.clock, random: SystemRandom())
  }

  var now: Timestamp { clock.now() }

  func close() { try? store.close() }

  /// Works on the store and closes it.
  /// - Throws: what the body throws; a sentence, with exit status 2, where the store does not answer.
  static func with<Value>(
    _ configuration: ConfigurationOption, makes: Bool = false, _ body: (OperatorStore) async throws -> Value
  ) async throws -> Value {
    let opened = try await OperatorStore(configuration, makes: makes)
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
      throw StartProblem("\(name) names \(found.count) accounts; say which by its id: \(found.map(\.id).joined(separator: ", ")).")
    }
    return account
  }
}

extension StoreLocation {
  /// Where it is, for people; nothing of a connection string, which may hold a password.
  var place: String {
    switch self {
    case .sqlite(let path): path
    case .postgres: "the address that `store` names"
    }
  }
}
