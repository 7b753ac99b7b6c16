import EmailCode
import GoogleOAuth
import MoongateSDK
import PhoneOTP

/// The providers that the shipped configuration names.
enum ShippedProviders {
  static let all: [any Provider] = [PhoneOTP(), EmailCode(), GoogleOAuth()]
}
