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
  let accounts = LoadedAccounts()

  init(_ id: FlowID, _ machine: FlowMachine, _ request: RequestContext) {
    self.id = id
    self.machine = machine
    self.request = request
  }

  var record: FlowRecord { machine.record }

  /// Records how the request was decided, for `moongate policy explain`.
  var trace: DecisionTrace { request.notes }

  /// A copy with the machine changed by the body.
  func changing(_ body: (inout FlowMachine) -> Void) -> FlowTransaction {
    var copy = self
    body(&copy.machine)
    return copy
  }
}

/// The accounts that a request has read, so that each is read once by its ID.
///
/// Attack: while a request waits for its turn or for a provider, another request locks the account, or adds a factor to
/// it. The accounts are therefore read again after such a wait (`forget`).
final class LoadedAccounts: Sendable {
  private let accounts = Mutex<[String: Account]>([:])

  subscript(id: String) -> Account? { accounts.withLock { $0[id] } }

  func keep(_ account: Account?) { if let account { accounts.withLock { $0[account.id] = account } } }

  /// Call after the request has waited for others.
  func forget() { accounts.withLock { $0 = [:] } }
}
