import EmailCode
import LDAP
import MoongateCore
import MoongatePolicy
import MoongateSDK
import OpenID
import PIN
import Passkey
import Password
import PhoneOTP
import TOTP

/// The providers of the program. The shipped configuration has all but the directory.
enum ShippedProviders {
  static let all: [any Provider] = [PhoneOTP(), EmailCode(), PIN(), Password(), OpenID(), LDAP(), TOTP(), Passkey()]

  /// The kinds of sites, of which gateway.lua makes instances.
  static let kinds: [any Provider] = [OpenID.Entry.openID, .oauth].map { OpenID($0) }

  /// The shipped configuration.
  static func generation() throws -> any PolicyGeneration {
    try ConfigurationLoader(providers: all, environment: [:]).load(folder: TestFolder.root + "/config").get()
  }
}
