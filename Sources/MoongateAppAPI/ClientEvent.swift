import MoongateCore
import MoongateHTTP
import MoongateSDK

/// An event that a hosted page reports. The list of events is closed and every value has a fixed form, so that nothing
/// that a user types can get into the audit trail.
struct ClientEvent: Sendable, Equatable {
  enum Name: String, Sendable, CaseIterable {
    case screenView = "screen_view"
    case digitEntered = "otp_digit_entered"
    case autoVerify = "otp_auto_verify_triggered"
    case verified = "otp_verification_success"
    case notVerified = "otp_verification_failed"
    case resend = "otp_resend_requested"
    case editPhone = "edit_phone_tapped"
    case back = "otp_screen_back"
    case phoneStarted = "login_phone_started"
    case otpRequested = "login_otp_requested"
    case otpSent = "login_otp_success"
    case otpNotSent = "login_otp_failed"
    case createAccount = "login_create_account_tapped"
  }

  /// The names of all events.
  static func names(sites: [String]) -> [String] {
    Name.allCases.map(\.rawValue) + sites.flatMap { site in SiteEvent.allCases.map { $0.name(at: site) } }
  }

  /// The form of a parameter.
  private enum Form: Sendable {
    case whole(ClosedRange<Int>)
    case flag
    case word([String])
    /// An error code of the gateway, or the name of a browser error.
    case error
    /// Such as `+91`.
    case callingCode
  }

  let name: String
  let parameters: [String: String]

  /// The detail of the event in the audit trail.
  var detail: [String: String] { parameters.merging(["name": name]) { first, _ in first } }

  /// - Parameter sites: the names of other sites that sign users in (`SiteEvent.sites`).
  /// - Returns: nil for an unknown event, or for an invalid value of a parameter. Unknown parameters are dropped.
  init?(_ value: JSONValue, sites: some Sequence<String>) {
    guard case .text(let text)? = value["name"],
      let forms = Name(rawValue: text).map(Self.forms) ?? Self.forms(ofSiteEvent: text, sites)
    else {
      return nil
    }
    name = text
    var parameters: [String: String] = [:]
    for (parameter, form) in forms {
      guard let given = value[parameter], given != .null else { continue }
      guard let written = Self.read(given, as: form) else { return nil }
      parameters[parameter] = written
    }
    self.parameters = parameters
  }

  private static func forms(of name: Name) -> KeyValuePairs<String, Form> {
    switch name {
    case .screenView: ["screen_name": .word(["otp_verification", "login", "register", "email", "pin", "account"])]
    case .digitEntered: ["digit_position": .whole(0...9), "total_entered": .whole(0...10)]
    case .verified: ["duration_ms": .whole(0...3_600_000), "attempts": .whole(0...1000)]
    case .notVerified: ["error": .error, "attempt_number": .whole(0...1000)]
    case .resend: ["time_remaining": .whole(0...86_400), "resend_count": .whole(0...1000)]
    case .back: ["confirmed": .flag]
    case .otpRequested: ["phone_country_code": .callingCode]
    case .otpNotSent: ["error": .error]
    case .autoVerify, .editPhone, .phoneStarted, .otpSent, .createAccount: [:]
    }
  }

  private static func forms(ofSiteEvent text: String, _ sites: some Sequence<String>) -> KeyValuePairs<String, Form>? {
    for site in sites {
      guard let event = SiteEvent.allCases.first(where: { $0.name(at: site) == text }) else { continue }
      return event == .success ? ["is_new_user": .flag] : [:]
    }
    return nil
  }

  private static func read(_ value: JSONValue, as form: Form) -> String? {
    switch (form, value) {
    case (.whole(let range), .number(let text)): Int(text).flatMap { range.contains($0) ? text : nil }
    case (.flag, .flag(let flag)): String(flag)
    case (.word(let words), .text(let text)): words.contains(text) ? text : nil
    case (.error, .text(let text)):
      RefusalCode.reserved.contains(text) || ["expired", "network_error"].contains(text) ? text : nil
    case (.callingCode, .text(let text)): text.wholeMatch(of: /\+[1-9][0-9]{0,2}/) != nil ? text : nil
    default: nil
    }
  }
}
