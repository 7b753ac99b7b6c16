import EmailCode
import GoogleOAuth
import MoongateSDK
import PIN
import Password
import PhoneOTP

/// The providers that the shipped configuration names.
enum ShippedProviders {
  static let all: [any Provider] = [PhoneOTP(), EmailCode(), PIN(), Password(), GoogleOAuth()]
}
