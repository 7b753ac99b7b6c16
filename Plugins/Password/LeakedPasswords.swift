import Crypto
import MoongateSDK

// Passwords that are known from data breaches (`breached` in gateway.lua).

extension Password: ExposureChecking {
  public func checksExposure(_ settings: StepSettings) -> Bool { LeakSource(settings) != nil }

  public func exposure(_ step: StepContext, _ input: ProviderInput) async -> SecretExposure {
    guard let source = LeakSource(step.tools.settings), let text = try? input.text(Self.password.name),
      let typed = try? TypedPassword(text, field: Self.password.name)
    else { return .notFound }
    do throws(LeakFault) {
      guard try await leaks.contains(LeakKey(typed), in: source.place, isNew: step.purpose != .prove, step.tools)
      else { return .notFound }
      return .found(
        InputProblem(
          field: Self.password.name, reason: .weakPassword,
          detail: "This password is known from a data breach. Choose another."),
        demandsChange: source.demandsChange)
    } catch {
      return .unknown(reason: error.reason)
    }
  }
}

extension Password: SettingsChecking {
  public func findings(in settings: StepSettings) -> [SettingFinding] {
    guard case .file(let path)? = LeakSource(settings)?.place else { return [] }
    do throws(LeakFault) {
      try LeakFile(path).examine()
      return []
    } catch {
      return [SettingFinding(LeakSource.setting.name, error.reason)]
    }
  }
}

/// Where leaked passwords are looked up.
struct LeakSource: Equatable {
  enum Place: Hashable, Sendable {
    /// The address of a service with the range API of Have I Been Pwned, without `/range/`.
    case site(String)
    /// The absolute path of a file (`LeakFile`).
    case file(String)
  }

  static let setting = SettingField(
    name: "breached", kind: .source(flags: ["refuse"]), isRequired: false,
    help:
      "Where passwords are looked up that are known from data breaches: the address of a service, such as https://api.pwnedpasswords.com, or a file of sorted lines SHA1:COUNT. refuse = true demands another password at sign-in."
  )

  let place: Place
  /// Whether a sign-in with a known password must replace it.
  let demandsChange: Bool

  /// - Returns: nil if the operator has named none.
  init?(_ settings: StepSettings) {
    guard let text = settings.text(Self.setting.name) else { return nil }
    place = text.contains("://") ? .site(text) : .file(text)
    demandsChange = settings.flag("\(Self.setting.name).refuse") ?? false
  }
}

/// The key of a password in lists of leaked passwords: its SHA-1 in upper-case hexadecimal digits, as ASCII. The lists
/// use SHA-1 as a name of the password, not to protect it.
struct LeakKey: Sendable, Equatable {
  static let count = 40
  /// The number of digits that a service gets to know, which about a thousand known passwords share.
  static let prefixCount = 5

  let digits: [UInt8]

  init(_ password: TypedPassword) {
    digits = Insecure.SHA1.hash(data: password.bytes).flatMap { [$0 >> 4, $0 & 15].map(Self.digit) }
  }

  var prefix: String { String(decoding: digits.prefix(Self.prefixCount), as: UTF8.self) }
  var rest: ArraySlice<UInt8> { digits.dropFirst(Self.prefixCount) }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
}

/// A line `DIGITS:COUNT` of a list of leaked passwords.
struct LeakLine: Equatable {
  /// In upper case.
  let digits: [UInt8]
  let isLeaked: Bool

  /// - Parameters:
  ///   - line: without its line feed; a carriage return may be at its end.
  ///   - count: the number of hexadecimal digits.
  /// - Returns: nil if it has another form. A count of 0 is padding.
  init?(_ line: ArraySlice<UInt8>, digits count: Int) {
    let line = line.last == 0x0D ? line.dropLast() : line
    let number = line.dropFirst(count + 1)
    guard line.count > count, line[line.startIndex + count] == UInt8(ascii: ":"), (1...19).contains(number.count),
      number.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    var upper: [UInt8] = []
    upper.reserveCapacity(count)
    for byte in line.prefix(count) {
      switch byte {
      case 0x30...0x39, 0x41...0x46: upper.append(byte)
      case 0x61...0x66: upper.append(byte - 0x20)
      default: return nil
      }
    }
    digits = upper
    isLeaked = number.contains { $0 != 0x30 }
  }
}

/// Why a password could not be looked up, for the operator. Says nothing about the password.
struct LeakFault: Error, Equatable {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
