import EmailCode
import LDAP
import MoongateCore
import MoongateSDK
import OpenID
import PIN
import Passkey
import Password
import PhoneOTP
import TOTP

/// The compiled-in providers, in the order in which pages offer them. To add one, depend on its target in Package.swift
/// and add it here. No other code names a provider.
package enum Providers {
  package static let shipped: [any Provider] = [
    PhoneOTP(),
    EmailCode(),
    PIN(),
    Password(),
    OpenID(),
    OpenID(.openID),
    OpenID(.oauth),
    LDAP(),
    TOTP(),
    Passkey(),
  ]

  /// The providers of this program: the included ones, unless the entry point sets others.
  @TaskLocal package static var all: [any Provider] = shipped

  /// The providers that `moongate init` configures: codes by email or SMS, and second factors.
  package static let mailCodes: ProviderName = "email_code"
  package static let smsCodes: ProviderName = "phone_otp"
  package static let passkeys: ProviderName = "passkey"
  package static let secondFactors: [ProviderName] = [passkeys, "totp"]

  /// The parsers for each kind of identifier, for programs that ask for an identifier.
  package static var readers: [IdentifierKind: any CodeProvider] {
    let readers = all.compactMap { provider in
      provider.descriptor.identifierKinds.first.flatMap { kind in (provider as? any CodeProvider).map { (kind, $0) } }
    }
    return Dictionary(readers) { first, _ in first }
  }

  /// - Throws: an error if a descriptor is invalid or two providers have the same name.
  package static func registry() throws(StartProblem) -> ProviderRegistry {
    do { return try ProviderRegistry(all) } catch { throw StartProblem(error.description) }
  }
}
