// The operations of the App API (v1).
import HTTPTypes
import MoongateCore
import MoongateHTTP

extension Operation.Tag {
  fileprivate static let apps = Operation.Tag("Calls for apps")
}

extension Operation {
  /// Every call of the App API. A test compares the list with the endpoints.
  static let appAPI: [Operation] = [
    .sendOTP, .verifyOTP, .register, .login, .verifyEmail, .resendVerification, .setPasscode, .changePasscode,
    .verifyPasscode, .requestPasscodeReset, .resetPasscode, .disablePasscode, .logout, .clientEvents,
  ]

  private static let signedIn = Schema.answer(["user": Schema.named("User"), "token": Schema.text])
  /// `token` is present if the call has replaced it.
  private static let done = Content.json(Schema.answer(["message": Schema.text], perhaps: ["token": Schema.text]))

  static let sendOTP = Operation(
    id: "sendOTP", method: .post, path: "/api/auth/send-otp", summary: "Send a code to a phone", tag: .apps,
    body: Schema.body(
      ["phone_number": Schema.input],
      perhaps: [
        "region": Schema.nullable(Schema.named("Region")),
        "flow": Schema.nullable(Schema.oneOf(["login", "register", "enter"])),
        "invitation": Schema.optionalInput,
      ]),
    status: 200,
    content: .json(
      Schema.answer([
        "verification_id": Schema.text, "expires_in": Schema.nullable(Schema.count),
        "resend_in": Schema.nullable(Schema.count),
      ])),
    refusals: .sending + [.invitationInvalid])
  static let verifyOTP = Operation(
    id: "verifyOTP", method: .post, path: "/api/auth/verify-otp", summary: "Verify the code and sign in", tag: .apps,
    body: Schema.body(["verification_id": Schema.input, "code": Schema.input]), status: 200, content: .json(signedIn),
    refusals: .judging)
  static let register = Operation(
    id: "register", method: .post, path: "/api/auth/register",
    summary: "Create an account with an email address and a password; a code is mailed to the address",
    tag: .apps,
    body: Schema.body(
      ["email": Schema.email, "password": Schema.newPassword, "first_name": Schema.name, "last_name": Schema.name],
      perhaps: ["invitation": Schema.optionalInput]),
    status: 201,
    content: .json(signedIn), refusals: .sending + .judging)
  static let login = Operation(
    id: "login", method: .post, path: "/api/auth/login", summary: "Sign in with an email address and a password",
    tag: .apps,
    body: Schema.body(["email": Schema.email, "password": Schema.password]),
    status: 200, content: .json(signedIn), refusals: .judging + [.invalidEmail])
  static let verifyEmail = Operation(
    id: "verifyEmail", method: .post, path: "/api/auth/verify-email",
    summary: "Verify the account's email address with the code that was mailed to it", tag: .apps,
    body: Schema.body(["code": Schema.input]),
    status: 200,
    content: .json(
      Schema.answer(["message": Schema.text, "user": Schema.named("User")], perhaps: ["token": Schema.text])),
    needsSession: true,
    refusals: .judging)
  static let resendVerification = Operation(
    id: "resendVerification", method: .post, path: "/api/auth/resend-verification",
    summary: "Mail another code; the answer does not reveal whether the address is known",
    tag: .apps,
    body: Schema.body(["email": Schema.email]), status: 200, content: .json(Schema.answer(["message": Schema.text])),
    refusals: .sending)
  static let setPasscode = Operation(
    id: "setPasscode", method: .post, path: "/api/auth/set-passcode", summary: "Set a passcode for the first time",
    tag: .apps,
    body: Schema.body(["passcode": Schema.passcode]), status: 200,
    content: done, needsSession: true, refusals: .judging)
  static let changePasscode = Operation(
    id: "changePasscode", method: .post, path: "/api/auth/change-passcode", summary: "Replace the passcode", tag: .apps,
    body: Schema.body(["current_passcode": Schema.passcode, "new_passcode": Schema.passcode]), status: 200,
    content: done, needsSession: true,
    refusals: .judging)
  static let verifyPasscode = Operation(
    id: "verifyPasscode", method: .post, path: "/api/auth/verify-passcode", summary: "Verify the passcode", tag: .apps,
    body: Schema.body(["passcode": Schema.passcode]),
    status: 200,
    content: .json(Schema.answer(["unlocked": Schema.flag], perhaps: ["token": Schema.text])), needsSession: true,
    refusals: .judging)
  static let requestPasscodeReset = Operation(
    id: "requestPasscodeReset", method: .post, path: "/api/auth/request-passcode-reset",
    summary: "Mail a code that resets the passcode (to the phone, without a verified address)", tag: .apps,
    body: Schema.body([:]), status: 200, content: .json(Schema.answer(["message": Schema.text])), needsSession: true,
    refusals: .sending)
  static let resetPasscode = Operation(
    id: "resetPasscode", method: .post, path: "/api/auth/reset-passcode", summary: "Set a new passcode with that code",
    tag: .apps,
    body: Schema.body(["code": Schema.input, "new_passcode": Schema.passcode]), status: 200, content: done,
    needsSession: true, refusals: .judging)
  static let disablePasscode = Operation(
    id: "disablePasscode", method: .post, path: "/api/auth/disable-passcode", summary: "Disable the passcode",
    tag: .apps,
    body: Schema.body(["passcode": Schema.passcode]), status: 200, content: done,
    needsSession: true, refusals: .judging)
  static let logout = Operation(
    id: "logout", method: .post, path: "/api/auth/logout", summary: "Sign out", tag: .apps, body: Schema.body([:]),
    status: 204, content: .nothing,
    needsSession: true)
  /// The maximum number of events in one request of `clientEvents`.
  static let mostEvents = 50
  static let clientEvents = Operation(
    id: "clientEvents", method: .post, path: "/api/auth/client-events",
    summary: "Report events that only the browser knows, from a closed list", tag: .more,
    body: Schema.body(
      ["events": Schema.list(of: Schema.body(["name": Schema.named("ClientEventName")]), atMost: mostEvents)],
      perhaps: ["flow": Schema.optionalInput]), status: 204, content: .nothing, refusals: [.rateLimited])
}
