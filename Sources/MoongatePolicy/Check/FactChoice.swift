import MoongateCore
import MoongateSDK

/// A fact or group of facts that `FunctionFuzzer` varies.
enum FactDimension: Hashable, Comparable {
  /// The flow in which the function is called.
  case flow
  /// `f.identifier` and the facts of its kind.
  case identifier
  case accountExists, accountPIN, accountEmail, accountEmailVerified, accountPhoneVerified, accountAge
  case factor(String)
  /// `f.flow.passed.NAME`, or `f.session.passed.NAME`.
  case passed(String)
  case now, address, country, asn, userAgent, newDevice, networkChanged, clockSuspect
  case method, path, query
  case sessionEmail, sessionPhone, sessionAge, sessionAAL
  case group(String)
  /// A declared fact, by its path.
  case declared(String)
  /// The counters of the policy's limits.
  case limits
}

/// A combination of facts: the index of the value of each dimension. Dimensions that are not set have their first
/// value.
struct FactChoice: Hashable {
  private var values: [FactDimension: Int] = [:]

  subscript(dimension: FactDimension) -> Int { values[dimension] ?? 0 }

  func setting(_ dimension: FactDimension, to value: Int) -> Self {
    var choice = self
    choice.values[dimension] = value == 0 ? nil : value
    return choice
  }
}

/// The texts and numbers in a file. Its functions compare facts with them.
struct FileLiterals {
  private(set) var texts: [String] = []
  private(set) var numbers: [Int64] = []
  /// The maximum number of texts, and of numbers, to try.
  private static let most = 16

  init(_ source: [UInt8]) {
    var tokens = LuaTokens(source)
    while let token = tokens.next() {
      switch token.kind {
      case .string(let text) where text.utf8.count <= 40 && !texts.contains(text) && texts.count < Self.most:
        texts.append(text)
      // A key such as `IN` in `{ IN = true }`.
      case .name(let name)
      where name.utf8.count == 2 && name == name.uppercased() && !texts.contains(name) && texts.count < Self.most:
        texts.append(name)
      case .number(let number?) where !numbers.contains(number) && numbers.count < Self.most: numbers.append(number)
      default: break
      }
    }
  }

  init() {}
}
