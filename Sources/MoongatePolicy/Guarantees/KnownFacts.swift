import MoongateCore
import MoongateSDK

/// A fact about a person that is either true or false, and that policy functions and steps depend on.
package enum BooleanFact: Sendable, Hashable {
  /// `f.account.exists`.
  case exists
  /// The account has an identifier of the kind, verified or only claimed.
  case holds(IdentifierKind)
  /// The account has a verified identifier of the kind.
  case verified(IdentifierKind)
  /// The provider keeps a record of the account, such as its PIN: `f.account.factors.NAME`.
  case keeps(ProviderName)
  /// `f.client.new_device`.
  case newDevice
  /// `f.client.network_changed`, at every request after the flow was created.
  case networkChanged

  /// Whether it is about the account.
  var isOfAccount: Bool { self != .newDevice && self != .networkChanged }

  /// As a policy function reads it.
  package var path: String {
    switch self {
    case .exists: "f.account.exists"
    case .holds(.email): "f.account.has_email"
    case .verified(.email): "f.account.email_verified"
    case .holds(.phone), .verified(.phone): "f.account.phone_verified"
    case .holds(.federated), .verified(.federated): "a federated identity"
    case .keeps(let provider): "f.account.factors.\(provider)"
    case .newDevice: "f.client.new_device"
    case .networkChanged: "f.client.network_changed"
    }
  }

  /// The order in which sentences name facts.
  private var rank: Int {
    switch self {
    case .exists: 0
    case .verified(.phone), .holds(.phone): 1
    case .holds(.email): 2
    case .verified(.email): 3
    case .verified(.federated), .holds(.federated): 4
    case .keeps: 5
    case .newDevice: 6
    case .networkChanged: 7
    }
  }

  static func isBefore(_ left: Self, _ right: Self) -> Bool { (left.rank, left.path) < (right.rank, right.path) }
}

/// Facts that are decided, the others being open. Facts that imply each other agree.
package struct KnownFacts: Sendable, Hashable {
  private var values: [BooleanFact: Bool] = [:]

  package init() {}

  /// - Returns: nil where two of them contradict each other.
  package init?(_ facts: [BooleanFact: Bool]) {
    for (fact, value) in facts.sorted(by: { BooleanFact.isBefore($0.key, $1.key) }) {
      guard assume(fact, value) else { return nil }
    }
  }

  /// The fact's value; nil while it is open.
  package subscript(fact: BooleanFact) -> Bool? { values[Self.canonical(fact)] }

  /// Decides a fact and what follows from it.
  /// - Returns: false where the fact is decided otherwise already.
  package mutating func assume(_ fact: BooleanFact, _ value: Bool) -> Bool {
    let fact = Self.canonical(fact)
    if let known = values[fact] { return known == value }
    values[fact] = value
    switch (fact, value) {
    case (.verified(.email), true): guard assume(.holds(.email), true) else { return false }
    case (.holds(.email), false): guard assume(.verified(.email), false) else { return false }
    case (.exists, false):
      // Nobody has anything, and no device knows them.
      guard values.allSatisfy({ !$0.key.isOfAccount || !$0.value }), assume(.newDevice, true) else { return false }
    default: break
    }
    switch fact {
    case .holds, .verified, .keeps: if value { return assume(.exists, true) }
    case .newDevice: if !value { return assume(.exists, true) }
    case .exists, .networkChanged: break
    }
    return true
  }

  /// Decided facts in the order of sentences. What others imply is left out.
  package var listed: [(fact: BooleanFact, value: Bool)] {
    values.filter { fact, value in
      switch fact {
      case .holds(.email): value ? values[.verified(.email)] != true : true
      case .verified(.email): value || values[.holds(.email)] != false
      case .newDevice: values[.exists] != false
      default: true
      }
    }.sorted { BooleanFact.isBefore($0.key, $1.key) }.map { ($0.key, $0.value) }
  }

  /// Every decided fact.
  package var all: [BooleanFact: Bool] { values }

  /// How many facts are decided.
  var count: Int { values.count }

  /// Opens every fact that `reopens` names again.
  func reopening(_ reopens: (BooleanFact) -> Bool) -> Self {
    var open = self
    open.values = values.filter { !reopens($0.key) }
    return open
  }

  /// Numbers and federated identities are never claimed without being verified.
  private static func canonical(_ fact: BooleanFact) -> BooleanFact {
    switch fact {
    case .holds(.phone): .verified(.phone)
    case .holds(.federated): .verified(.federated)
    default: fact
    }
  }
}
