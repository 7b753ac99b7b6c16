import MoongateCore

/// One event of a page, by the names and parameters of the seeds. The list is closed and every value is of a closed form,
/// so that nothing a person typed can reach the audit trail by it.
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
    case googleStarted = "login_google_started"
    case googleDone = "login_google_success"
    case googleCancelled = "login_google_cancelled"
    case createAccount = "login_create_account_tapped"
  }

  /// What a parameter may be.
  private enum Form: Sendable {
    case whole(ClosedRange<Int>)
    case flag
    case word([String])
    /// A refusal's code, or what a browser calls its own failures.
    case error
    /// `+91`.
    case callingCode
  }

  let name: Name
  let parameters: [String: String]

  /// For `/events`.
  var detail: [String: String] { parameters.merging(["name": name.rawValue]) { first, _ in first } }

  /// - Returns: nil for a name that is not in the list, and for a value that its parameter cannot have. Others are left out.
  init?(_ value: JSONValue) {
    guard case .text(let text)? = value["name"], let name = Name(rawValue: text) else { return nil }
    self.name = name
    var parameters: [String: String] = [:]
    for (parameter, form) in Self.forms(of: name) {
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
    case .googleDone: ["is_new_user": .flag]
    case .autoVerify, .editPhone, .phoneStarted, .otpSent, .googleStarted, .googleCancelled, .createAccount: [:]
    }
  }

  private static func read(_ value: JSONValue, as form: Form) -> String? {
    switch (form, value) {
    case (.whole(let range), .number(let text)): Int(text).flatMap { range.contains($0) ? text : nil }
    case (.flag, .flag(let flag)): String(flag)
    case (.word(let words), .text(let text)): words.contains(text) ? text : nil
    case (.error, .text(let text)): RefusalCode.reserved.contains(text) || ["expired", "network_error"].contains(text) ? text : nil
    case (.callingCode, .text(let text)): text.wholeMatch(of: /\+[1-9][0-9]{0,2}/) != nil ? text : nil
    default: nil
    }
  }
}
