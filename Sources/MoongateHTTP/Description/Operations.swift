// The operations of the API.
import HTTPTypes
import MoongateCore

extension Operation {
  private static let flow = Content.json(Schema.named("Flow"))
  /// The input fields of providers. A step lists the ones that it needs in its `fields`. `provider` is only for
  /// `begin`. `remember` is the user's choice to stay signed in.
  private static let inputs: KeyValuePairs<String, JSONValue> = [
    "provider": Schema.optionalInput, "phone": Schema.input, "region": Schema.input, "email": Schema.input,
    "code": Schema.input, "pin": Schema.input,
    "new_pin": Schema.input, "password": Schema.password, "first_name": Schema.optionalInput,
    "last_name": Schema.optionalInput,
    "id_token": Schema.input, "code_verifier": Schema.input, "account": Schema.input,
    "remember": Schema.nullable(Schema.flag),
  ]

  static let createFlow = Operation(
    id: "createFlow", method: .post, path: "/api/auth/flows", summary: "Begin a flow, such as a sign-in", tag: .flows,
    body: Schema.body(
      ["flow": Schema.input],
      perhaps: [
        "return_to": Schema.optionalInput, "code_challenge": Schema.nullable(Schema.challenge),
        "redirect_to": Schema.optionalInput, "remember": Schema.nullable(Schema.flag),
        "invitation": Schema.optionalInput,
      ]),
    status: 201, content: flow,
    refusals: .registering + [
      .denied, .unauthenticated, .stepUpRequired, .identifierTooNew, .policyError, .disabled,
    ])
  static let viewFlow = Operation(
    id: "viewFlow", method: .get, path: "/api/auth/flows/{flow}",
    summary: "The current state of the flow, without tokens", tag: .flows, status: 200,
    content: flow,
    refusals: [.flowNotFound, .flowExpired, .unauthenticated, .policyError])
  static let beginStep = Operation(
    id: "beginStep", method: .post, path: "/api/auth/flows/{flow}/begin",
    summary: "Begin a step: send a code, ask for a PIN, or redirect to another site", tag: .flows,
    body: Schema.body([:], perhaps: inputs), status: 200, content: flow, refusals: .sending + .judging)
  static let submitStep = Operation(
    id: "submitStep", method: .post, path: "/api/auth/flows/{flow}/submit",
    summary: "Submit the fields of the step; for a field of the kind choice, the value of one of its choices",
    tag: .flows,
    body: Schema.body([:], perhaps: inputs), status: 200,
    content: flow, refusals: .judging)
  static let resendCode = Operation(
    id: "resendCode", method: .post, path: "/api/auth/flows/{flow}/resend",
    summary: "Send another code; the previous one becomes invalid", tag: .flows, body: Schema.body([:]), status: 200,
    content: flow, refusals: .sending)
  static let skipStep = Operation(
    id: "skipStep", method: .post, path: "/api/auth/flows/{flow}/skip", summary: "Skip the step, if it is skippable",
    tag: .flows, body: Schema.body([:]),
    status: 200, content: flow,
    refusals: .steps + .registering)
  static let deleteFlow = Operation(
    id: "deleteFlow", method: .delete, path: "/api/auth/flows/{flow}", summary: "End the flow", tag: .flows,
    status: 204, content: .nothing,
    refusals: [.flowNotFound, .flowExpired, .stepNotOpen, .unauthenticated, .originRefused])

  static let session = Operation(
    id: "session", method: .get, path: "/api/auth/session", summary: "The current session", tag: .sessions, status: 200,
    content: .json(Schema.answer(["account": Schema.named("Account"), "session": Schema.named("Session")])),
    needsSession: true)
  static let signOut = Operation(
    id: "signOut", method: .delete, path: "/api/auth/session", summary: "Sign out", tag: .sessions, status: 204,
    content: .nothing, needsSession: true,
    refusals: [.originRefused])
  static let sessions = Operation(
    id: "sessions", method: .get, path: "/api/auth/sessions", summary: "The sessions of the account", tag: .sessions,
    status: 200,
    content: .json(Schema.list(of: Schema.named("SessionEntry"))), needsSession: true)
  static let endSession = Operation(
    id: "endSession", method: .delete, path: "/api/auth/sessions/{session}", summary: "End a session", tag: .sessions,
    status: 204, content: .nothing,
    needsSession: true,
    refusals: [.notFound, .originRefused])

  static let phoneFormat = Operation(
    id: "phoneFormat", method: .get, path: "/api/auth/phone/format", summary: "Format a phone number while it is typed",
    tag: .more,
    query: [
      Query(name: "input", help: "The input so far", isRequired: true, schema: Schema.queryText),
      Query(
        name: "region", help: "The country code, for a number without +", isRequired: false,
        schema: Schema.orEmpty(Schema.named("Region"))),
    ], status: 200,
    content: .json(
      Schema.answer([
        "formatted": Schema.text, "e164": Schema.optionalText, "valid": Schema.flag, "problem": Schema.optionalText,
      ])),
    refusals: [.notFound])
  static let openAPI = Operation(
    id: "openAPI", method: .get, path: "/api/auth/openapi.json", summary: "This document", tag: .more, status: 200,
    content: .json(Schema.body(["openapi": Schema.text])))
}
