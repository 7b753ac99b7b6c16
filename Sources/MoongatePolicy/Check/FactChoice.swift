import MoongateCore
import MoongateSDK

/// What a function's facts are varied by in a sweep.
enum FactDimension: Hashable, Comparable {
  /// Which flow it is called in.
  case flow
  /// `f.identifier` and what it is of.
  case identifier
  case accountExists, accountPIN, accountEmail, accountEmailVerified, accountPhoneVerified, accountAge
  case factor(String)
  /// `f.flow.passed.NAME`, or `f.session.passed.NAME`.
  case passed(String)
  case now, address, userAgent, newDevice, networkChanged, clockSuspect
  case method, path, query
  case sessionEmail, sessionPhone, sessionAge, sessionAAL
  case group(String)
  /// A fact that a provider declares, by its path.
  case declared(String)
  /// The counters of the policy's limits.
  case limits
}

/// One combination: which of its values each fact has. A fact that is not named has its first.
struct FactChoice: Hashable {
  private var values: [FactDimension: Int] = [:]

  subscript(dimension: FactDimension) -> Int { values[dimension] ?? 0 }

  func setting(_ dimension: FactDimension, to value: Int) -> Self {
    var choice = self
    choice.values[dimension] = value == 0 ? nil : value
    return choice
  }
}

/// The texts and numbers of a file, which are what its functions compare facts with.
struct FileLiterals {
  private(set) var texts: [String] = []
  private(set) var numbers: [Int64] = []
  /// How many of each are tried.
  private static let most = 16

  init(_ source: [UInt8]) {
    var tokens = LuaTokens(source)
    while let token = tokens.next() {
      switch token.kind {
      case .string(let text) where text.utf8.count <= 40 && !texts.contains(text) && texts.count < Self.most:
        texts.append(text)
      // `{ IN = true }`.
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
