import CArgon2
import MoongateSDK

/// The work of one comparison with a stored hash: its function with all parameters that the time depends on. It does
/// not depend on the secret, except on its length for SHA-crypt.
package enum HashWork: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// - Parameter rounds: the binary logarithm of the number of rounds.
  case bcrypt(rounds: Int)
  case argon2(Argon2Hash.Kind, version: UInt32, HashCost)
  case foreign(ForeignWork)

  /// The maximum size of one hash, 0.5 to 0.9 seconds of an idle core: bcrypt with 2^13 rounds. A bound by size, not
  /// by time: every gateway of a store and every run of an import decide the same, however busy the machine is.
  ///
  /// Attack: wrong passwords for an account with an expensive hash keep a hashing thread busy for seconds each.
  package static let largest = HashWork.bcrypt(rounds: 13).size
  /// The maximum size of all hashes that a refused attempt computes (`BalancingHasher`), 1 to 1.8 seconds.
  package static let largestTogether = 2 * largest

  /// The size in the unit of Argon2: KiB of memory, written once. A round of bcrypt takes about as long as 96 of them.
  package var size: Int {
    switch self {
    case .bcrypt(let rounds): 96 << rounds
    case .argon2(_, _, let cost): Int(cost.memory) * Int(cost.passes)
    case .foreign(let work): work.size
    }
  }

  /// The stored form: `bcrypt 12`, `argon2id 19 65536 3 4` (version, memory, passes, lanes), or that of `ForeignWork`.
  package var description: String {
    switch self {
    case .bcrypt(let rounds): "bcrypt \(rounds)"
    case .argon2(let kind, let version, let cost):
      "\(kind.rawValue) \(version) \(cost.memory) \(cost.passes) \(cost.lanes)"
    case .foreign(let work): work.description
    }
  }

  /// - Returns: nil unless the text is a `description`.
  package init?(_ text: String) {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    let numbers = parts.dropFirst().compactMap { UInt32($0) }
    if parts.first == "bcrypt", parts.count == 2, numbers.count == 1, (4...31).contains(numbers[0]) {
      self = .bcrypt(rounds: Int(numbers[0]))
    } else if let kind = parts.first.flatMap({ Argon2Hash.Kind(rawValue: String($0)) }), numbers.count == 4,
      parts.count == 5
    {
      self = .argon2(
        kind, version: numbers[0], HashCost(memory: numbers[1], passes: numbers[2], lanes: numbers[3]))
    } else {
      guard let work = ForeignWork(text) else { return nil }
      self = .foreign(work)
    }
  }

  /// Orders by size.
  package static func < (left: Self, right: Self) -> Bool {
    (left.size, left.description) < (right.size, right.description)
  }

  /// The kind that the store remembers for an account with this one: iterations of PBKDF2 are rounded up to two
  /// significant digits. A wrong secret is topped up to the most iterations of all kinds (`missing`), so rounding up
  /// changes nothing else.
  ///
  /// Attack: each account of a file has another number of iterations. Every refused attempt reads all kinds.
  package var remembered: HashWork {
    guard case .foreign(.pbkdf2(let digest, let iterations)) = self else { return self }
    var unit = 1
    while iterations > 99 * unit { unit *= 10 }
    return .foreign(.pbkdf2(digest, iterations: (iterations + unit - 1) / unit * unit))
  }

  /// What is left of these kinds after the work that was done, cheapest first. PBKDF2 works in iterations, so its most
  /// expensive kind stands for the others of the same function, and cheaper ones are topped up: accounts of one program
  /// often have ten different numbers of iterations.
  package static func missing(_ kinds: Set<HashWork>, after done: [HashWork]) -> [HashWork] {
    var iterations: [ForeignDigest: Int] = [:]
    for case .foreign(.pbkdf2(let digest, let count)) in kinds {
      iterations[digest] = max(iterations[digest] ?? 0, count)
    }
    for case .foreign(.pbkdf2(let digest, let count)) in done { iterations[digest]? -= count }
    let others = kinds.filter { if case .foreign(.pbkdf2) = $0 { false } else { !done.contains($0) } }
    return
      (others + iterations.filter { $0.value > 0 }.map { HashWork.foreign(.pbkdf2($0.key, iterations: $0.value)) })
      .sorted()
  }

  /// Computes a hash that is not used.
  /// - Parameter secret: what a SHA-crypt hash is computed of, because its time depends on the length.
  package func perform(of secret: [UInt8] = []) throws(HashingFault) {
    switch self {
    case .bcrypt(let rounds):
      var output = [CChar](repeating: 0, count: Int(CARGON2_CRYPT_SIZE))
      let setting = "$2b$\(rounds < 10 ? "0" : "")\(rounds)$" + String(repeating: ".", count: 53)
      guard cargon2_crypt("", setting, &output) == 0 else { throw .unreadable(.illFormed) }
    case .argon2(let kind, let version, let cost):
      _ = try Argon2Hash(
        [0], kind: kind, version: version, cost: cost, pepper: nil, salt: [UInt8](repeating: 0, count: 16))
    case .foreign(let work): try work.perform(of: secret)
    }
  }
}

/// A hasher that can hide from the response time which hash a secret was compared with.
package protocol BalancingHasher: SecretHasher {
  /// Computes what the comparisons with this hasher have left out: for each compared secret one hash of each kind, and
  /// one of the gateway's own. The results are not used, and a failure changes nothing.
  ///
  /// Attack: imported hashes cost more than those of the gateway, so the response time of a wrong password tells which
  /// addresses have an account. After a refusal, every attempt has computed the same.
  func balance(_ kinds: Set<HashWork>) async
}
