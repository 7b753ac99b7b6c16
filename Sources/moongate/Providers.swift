import EmailCode
import GoogleOAuth
import MoongateCore
import MoongateSDK
import PIN
import Password
import PhoneOTP
import TOTP

/// The providers that are compiled in, in the order in which they are offered. To add one: depend on its target in
/// Package.swift, and name it here.
enum Providers {
  static let all: [any Provider] = [
    PhoneOTP(), EmailCode(), PIN(), Password(), GoogleOAuth(), TOTP(),
  ]

  /// - Throws: a sentence where one of them declares what cannot be, or two have one name.
  static func registry() throws(StartProblem) -> ProviderRegistry {
    do { return try ProviderRegistry(all) } catch { throw StartProblem(error.description) }
  }
}
