import EmailCode
import GoogleOAuth
import MoongateCore
import MoongateSDK
import PIN
import Passkey
import Password
import PhoneOTP
import TOTP

/// The providers that are compiled in, in the order in which they are offered. To add one: depend on its target in
/// Package.swift, and name it here. Nothing else in the program names one.
enum Providers {
  static let shipped: [any Provider] = [
    PhoneOTP(),
    EmailCode(),
    PIN(),
    Password(),
    GoogleOAuth(),
    TOTP(),
    Passkey(),
  ]

  /// Those of this program: the shipped ones, unless its main says otherwise.
  @TaskLocal static var all: [any Provider] = shipped

  /// Those that `moongate init` writes into a new configuration: codes by mail or by SMS, and second factors.
  static let mailCodes: ProviderName = "email_code"
  static let smsCodes: ProviderName = "phone_otp"
  static let secondFactors: [ProviderName] = ["passkey", "totp"]

  /// How the gateway itself reads each kind of identifier, for programs that ask whom a step is for.
  static var readers: [IdentifierKind: any CodeProvider] {
    let readers = all.compactMap { provider in
      provider.descriptor.identifierKinds.first.flatMap { kind in (provider as? any CodeProvider).map { (kind, $0) } }
    }
    return Dictionary(readers) { first, _ in first }
  }

  /// - Throws: a sentence where one of them declares what cannot be, or two have one name.
  static func registry() throws(StartProblem) -> ProviderRegistry {
    do { return try ProviderRegistry(all) } catch { throw StartProblem(error.description) }
  }
}
