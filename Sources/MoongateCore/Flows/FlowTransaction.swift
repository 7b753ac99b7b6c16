import MoongateSDK
import Synchronization

/// The work of one request on one flow, from loading the flow to storing it.
///
/// It is a value: a function changes a copy, and only a copy that is passed on is stored. A refused request therefore
/// leaves the flow as it was loaded, unless the part stores it on purpose. Copies share the request with its trace, and
/// the accounts that were read.
struct FlowTransaction: Sendable {
  let id: FlowID
  let request: RequestContext
  /// The flow's rules and its record.
  var machine: FlowMachine
  /// The changes that are stored in one transaction with the flow, in this order.
  var changes: [Change] = []
  /// The attempts that were right. They are refunded if the flow cannot be stored.
  var attempts: [Charged] = []
  /// The accounts that this request has read.
  let accounts: LoadedAccounts
  /// Set if the flow was taken from memory instead of the store.
  var recent: RecentFlow?

  init(_ id: FlowID, _ machine: FlowMachine, _ request: RequestContext, _ accounts: LoadedAccounts = LoadedAccounts()) {
    self.id = id
    self.machine = machine
    self.request = request
    self.accounts = accounts
  }

  var record: FlowRecord { machine.record }

  /// Records how the request was decided, for `moongate policy explain`.
  var trace: DecisionTrace { request.trace }

  /// A copy with the machine changed by the body.
  func changing(_ body: (inout FlowMachine) -> Void) -> FlowTransaction {
    var copy = self
    body(&copy.machine)
    return copy
  }

  /// A copy with the user's choice to stay signed in; nil: the request said nothing. It is stored with what the request
  /// changes, so that a refused request changes nothing.
  func remembering(_ choice: Bool?) -> FlowTransaction {
    choice == nil ? self : changing { $0.remember(choice) }
  }
}

/// A flow that was taken from memory. The transaction that charges the attempt checks that the store has this version:
/// another process may have changed the flow. Until then, nothing may follow from it.
final class RecentFlow: Sendable {
  let version: FlowVersion
  private let state = Mutex(false)

  init(_ record: FlowRecord) { version = FlowVersion(record) }

  /// Whether the store had this version when it was asked last.
  var isConfirmed: Bool {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

/// The accounts that a request has read, so that each is read once by its ID.
///
/// Attack: while a request waits for its turn or for a provider, another request locks the account, or adds a factor to
/// it. The accounts are therefore read again after such a wait (`forget`).
final class LoadedAccounts: Sendable {
  private struct State {
    var accounts: [String: Account] = [:]
    /// The account that was read with the flow because it has verified the identifier; nil: none has.
    var holder: (of: Identifier, account: Account?)?
  }

  private let state = Mutex(State())

  subscript(id: String) -> Account? { state.withLock { $0.accounts[id] } }

  func keep(_ account: Account?) { if let account { state.withLock { $0.accounts[account.id] = account } } }

  /// Keeps the result of a lookup for the first lookup of this identifier.
  func keep(_ holder: Account?, of identifier: Identifier) {
    keep(holder)
    state.withLock { $0.holder = (identifier, holder) }
  }

  /// The result of a lookup that was made with the flow; nil if it must be looked up. Later lookups see later states.
  func takeHolder(of identifier: Identifier) -> Account?? {
    state.withLock { state in
      guard let holder = state.holder, holder.of == identifier else { return nil }
      state.holder = nil
      return .some(holder.account)
    }
  }

  /// Call after the request has waited for others.
  func forget() { state.withLock { $0 = State() } }
}
