import MoongateCore
import MoongateSDK

/// A boolean fact about an account or device that policy functions and steps depend on.
package enum BooleanFact: Sendable, Hashable {
  /// `f.account.exists`.
  case exists
  /// The account has an identifier of the kind, verified or only claimed.
  case holds(IdentifierKind)
  /// The account has a verified identifier of the kind.
  case verified(IdentifierKind)
  /// The provider stores a record of the account, such as its PIN: `f.account.factors.NAME`.
  case keeps(ProviderName)
  /// The account is in a group whose members are listed: `f.account.groups[NAME]`.
  case group(GroupName)
  /// `f.client.new_device`.
  case newDevice
  /// `f.client.network_changed`, at every request after the creation of the flow.
  case networkChanged

  /// Whether the fact is about the account.
  var isOfAccount: Bool { self != .newDevice && self != .networkChanged }

  /// The path in policy functions.
  package var path: String {
    switch self {
    case .exists: "f.account.exists"
    case .holds(.email): "f.account.has_email"
    case .verified(.email): "f.account.email_verified"
    case .holds(.phone), .verified(.phone): "f.account.phone_verified"
    case .holds(.federated), .verified(.federated): "a federated identity"
    case .holds(.name), .verified(.name): "a user name"
    case .keeps(let provider): "f.account.factors.\(provider)"
    case .group(let name): "f.account.groups[\"\(name)\"]"
    case .newDevice: "f.client.new_device"
    case .networkChanged: "f.client.network_changed"
    }
  }

  /// The order of facts in sentences.
  private var rank: Int {
    switch self {
    case .exists: 0
    case .verified(.phone), .holds(.phone): 1
    case .holds(.email): 2
    case .verified(.email): 3
    case .verified(.federated), .holds(.federated): 4
    case .holds(.name), .verified(.name): 5
    case .keeps: 6
    case .group: 7
    case .newDevice: 8
    case .networkChanged: 9
    }
  }

  static func isBefore(_ left: Self, _ right: Self) -> Bool { (left.rank, left.path) < (right.rank, right.path) }
}

/// The decided facts; all others are undecided. Consistent: facts that imply each other agree.
package struct KnownFacts: Sendable, Hashable {
  private var values: [BooleanFact: Bool] = [:]

  package init() {}

  /// - Returns: nil if two of the facts contradict each other.
  package init?(_ facts: [BooleanFact: Bool]) {
    for (fact, value) in facts.sorted(by: { BooleanFact.isBefore($0.key, $1.key) }) {
      guard assume(fact, value) else { return nil }
    }
  }

  /// The value of the fact; nil if it is undecided.
  package subscript(fact: BooleanFact) -> Bool? { Self.isImpossible(fact) ? false : values[Self.canonical(fact)] }

  /// Decides a fact and everything that follows from it.
  /// - Returns: false if it contradicts a decided fact.
  package mutating func assume(_ fact: BooleanFact, _ value: Bool) -> Bool {
    let fact = Self.canonical(fact)
    // A name is never verified.
    if Self.isImpossible(fact) { return !value }
    if let known = values[fact] { return known == value }
    values[fact] = value
    switch (fact, value) {
    case (.verified(.email), true): guard assume(.holds(.email), true) else { return false }
    case (.holds(.email), false): guard assume(.verified(.email), false) else { return false }
    case (.exists, false):
      // An account that does not exist has no factors and no known devices.
      guard values.allSatisfy({ !$0.key.isOfAccount || !$0.value }), assume(.newDevice, true) else { return false }
    default: break
    }
    switch fact {
    case .holds, .verified, .keeps, .group: if value { return assume(.exists, true) }
    case .newDevice: if !value { return assume(.exists, true) }
    case .exists, .networkChanged: break
    }
    return true
  }

  /// The decided facts in the order of sentences, without those that others imply.
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

  /// All decided facts.
  package var all: [BooleanFact: Bool] { values }

  /// The number of decided facts.
  var count: Int { values.count }

  /// The facts without those that `reopens` selects, which become undecided.
  func reopening(_ reopens: (BooleanFact) -> Bool) -> Self {
    var open = self
    open.values = values.filter { !reopens($0.key) }
    return open
  }

  /// Whether the fact is false of every account.
  private static func isImpossible(_ fact: BooleanFact) -> Bool {
    if case .verified(let kind) = fact { !kind.canBeVerified } else { false }
  }

  /// Phone numbers and federated identities are always verified.
  private static func canonical(_ fact: BooleanFact) -> BooleanFact {
    switch fact {
    case .holds(.phone): .verified(.phone)
    case .holds(.federated): .verified(.federated)
    default: fact
    }
  }
}
