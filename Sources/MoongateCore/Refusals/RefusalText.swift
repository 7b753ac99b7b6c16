import MoongateSDK

/// The sentence that users see for each refusal. Tests assert the exact texts.
extension RefusalCode {
  /// A short title, the same for every occurrence (RFC 9457 section 3.1.3).
  package var title: String {
    switch self {
    case .invalidCode: "Invalid code"
    case .invalidPIN: "Incorrect passcode"
    case .invalidPassword: "Incorrect email or password"
    case .oauthFailed: "Sign-in failed"
    case .oauthCancelled: "Sign-in cancelled"
    case .codeExpired: "Code expired"
    case .flowExpired: "Sign-in expired"
    case .tooManyAttempts: "Too many attempts"
    case .resendTooSoon: "Too soon for another code"
    case .sendLimit: "Too many codes sent"
    case .rateLimited: "Too many requests"
    case .accountNotFound: "No account found"
    case .registrationClosed: "Registration closed"
    case .invitationRequired: "Invitation required"
    case .invitationInvalid: "Invitation not valid"
    case .flowNotFound: "Sign-in not found"
    case .alreadyRegistered: "Already registered"
    case .stepNotOpen: "Not the next step"
    case .alreadySet: "Already set"
    case .noPIN: "No passcode set"
    case .invalidPhone: "Invalid phone number"
    case .invalidEmail: "Invalid email address"
    case .invalidInput: "Invalid input"
    case .weakPIN: "Passcode too easy to guess"
    case .pinMismatch: "Passcodes differ"
    case .weakPassword: "Password too easy to guess"
    case .denied, .policyReason: "Not allowed"
    case .forbidden: "No access"
    case .originRefused: "Request from another site"
    case .disabled: "Turned off"
    case .emailNotVerified: "Email not verified"
    case .stepUpRequired: "Another step is needed"
    case .identifierTooNew: "Added too recently"
    case .handoffFailed: "Not signed in on this site"
    case .unauthenticated: "Not signed in"
    case .badRequest: "Bad request"
    case .notFound: "Not found"
    case .noRoute: "Page not found"
    case .methodNotAllowed: "Method not allowed"
    case .versionNotSupported: "HTTP version not supported"
    case .timeout: "Request timed out"
    case .tooLarge: "Request too large"
    case .notJSON: "Not JSON"
    case .headersTooLarge: "Headers too large"
    case .deliveryFailed: "Code could not be sent"
    case .policyError: "Policy error"
    case .busy: "Busy"
    case .storeUnavailable: "Not available"
    case .upstreamUnavailable: "Service not available"
    case .upstreamTimeout: "Service timed out"
    case .provider: "Not accepted"
    }
  }

  /// The sentence for the user, unless the refusal has a more specific one.
  package var sentence: String {
    switch self {
    case .invalidCode: "Invalid code. Please try again."
    case .invalidPIN: "Incorrect passcode"
    case .invalidPassword: "Incorrect email or password."
    case .oauthFailed: "The sign-in failed. Try again."
    case .oauthCancelled: "Sign-in cancelled"
    case .codeExpired: "This code has expired. Please request a new one."
    case .flowExpired: "This sign-in has expired. Please start again."
    case .tooManyAttempts: "Too many attempts. Please try again later."
    case .resendTooSoon: "Please wait before you ask for another code."
    case .sendLimit: "Too many codes were sent. Please try again later."
    case .rateLimited: "Too many requests. Please try again later."
    case .accountNotFound: "No account found."
    case .registrationClosed: "New accounts cannot be created here."
    case .invitationRequired: "You need an invitation to create an account here."
    case .invitationInvalid:
      "This invitation cannot be used. Check that the link is complete, or ask for another one."
    case .flowNotFound: "This sign-in does not exist. Please start again."
    case .alreadyRegistered: "An account with these details already exists. Sign in instead."
    case .stepNotOpen: "This step is not available now."
    case .alreadySet: "This is already set. Change it instead."
    case .noPIN: "No passcode is set."
    case .invalidPhone: "Please enter a valid mobile number"
    case .invalidEmail: "Please enter a valid email address."
    case .invalidInput: "The request cannot be read."
    case .weakPIN: "This passcode is too easy to guess. Choose another."
    case .pinMismatch: "Passcodes don't match. Try again."
    case .weakPassword: "This password is too easy to guess. Choose another."
    case .denied, .policyReason: "This is not allowed here."
    case .forbidden: "Your account does not have access to this page."
    case .originRefused: "This request came from another site and was refused."
    case .disabled: "This has been turned off. Please contact support."
    case .emailNotVerified: "Please verify your email address first."
    case .stepUpRequired: "Please confirm that it's you."
    case .identifierTooNew:
      "This was added to your account or reset too recently to be used here. Please try again later."
    case .handoffFailed: "You could not be signed in on this site. Please open the page again."
    case .unauthenticated: "Please sign in."
    case .badRequest: "The request is not well formed."
    case .notFound: "There is nothing at this address."
    case .noRoute: "There is nothing at this address."
    case .methodNotAllowed: "This cannot be done here."
    case .versionNotSupported: "Only HTTP/1.0 and HTTP/1.1 are supported here."
    case .timeout: "The request took too long to arrive."
    case .tooLarge: "The request is too large."
    case .notJSON: "The request's Content-Type must be application/json."
    case .headersTooLarge:
      "The request's headers are too large. In a browser, delete the cookies of this site and try again."
    case .deliveryFailed: "The code could not be sent. Please try again."
    case .policyError: "Something went wrong on our side. Please try again later."
    case .busy: "We are busy at the moment. Please try again."
    case .storeUnavailable: "Sign-in is not available at the moment. Please try again."
    case .upstreamUnavailable: "The service does not answer at the moment. Please try again."
    case .upstreamTimeout: "The service took too long to answer. Please try again."
    case .provider(let outcome): outcome.sentence
    }
  }
}

extension Refusal {
  /// The sentence for the user: the refusal's own if it has one, otherwise the code's sentence, with the waiting time.
  package var sentence: String {
    if let detail { return detail }
    if let deliveryReason { return deliveryReason.sentence }
    if let invitationProblem { return invitationProblem.sentence }
    guard let retryAfter else { return code.sentence }
    let wait = retryAfter.spokenLength
    return switch code {
    case .tooManyAttempts: "Too many attempts. Please try again in \(wait)."
    case .sendLimit: "Too many attempts. Try again in \(wait)."
    case .resendTooSoon: "Please wait \(wait) before you ask for another code."
    case .rateLimited: "Too many requests. Please try again in \(wait)."
    case .identifierTooNew:
      "This was added to your account or reset too recently to be used here. Please try again in \(wait)."
    default: code.sentence
    }
  }
}

extension Duration {
  /// The duration for display, rounded up: `45 seconds`, `15 minutes`, `6 hours`.
  package var spokenLength: String {
    let seconds = retryAfterSeconds
    let (count, unit) =
      switch seconds {
      case ..<60: (seconds, "second")
      case ..<3600: ((seconds + 59) / 60, "minute")
      default: ((seconds + 3599) / 3600, "hour")
      }
    return "\(count) \(unit)\(count == 1 ? "" : "s")"
  }
}
