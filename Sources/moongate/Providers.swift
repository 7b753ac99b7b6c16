import EmailCode
import GoogleOAuth
import MoongateCore
import MoongateSDK
import PIN
import Password
import PhoneOTP

/// The providers that are compiled in, in the order in which they are offered. To add one: depend on its target in
/// Package.swift, and name it here.
enum Providers {
  static let all: [any Provider] = [
    PhoneOTP(), EmailCode(), PIN(), Password(), GoogleOAuth(),
  ]

  /// - Throws: a sentence where two have one name or a name is ill-formed: a mistake in this list.
  static func registry() throws(StartProblem) -> ProviderRegistry {
    for provider in all where ProviderName(rawValue: provider.descriptor.name.rawValue) == nil {
      throw StartProblem("The provider \(provider.descriptor.name) has an ill-formed name: lower-case letters, digits and underscores.")
    }
    do {
      return try ProviderRegistry(all)
    } catch {
      throw StartProblem("Two providers of this program are named \(error.name).")
    }
  }
}
