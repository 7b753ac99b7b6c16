import EmailCode
import GoogleOAuth
import LDAP
import MoongateCore
import MoongatePolicy
import MoongateSDK
import PIN
import Passkey
import Password
import PhoneOTP
import TOTP

/// The providers of the program. The shipped configuration has all but the directory.
enum ShippedProviders {
  static let all: [any Provider] = [
    PhoneOTP(), EmailCode(), PIN(), Password(), GoogleOAuth(), LDAP(), TOTP(), Passkey(),
  ]

  /// The shipped configuration.
  static func generation() throws -> any PolicyGeneration {
    try ConfigurationLoader(providers: all, environment: [:]).load(folder: TestFolder.root + "/config").get()
  }
}
