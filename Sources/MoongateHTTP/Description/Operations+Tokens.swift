// Operations on the personal tokens of users.
import HTTPTypes
import MoongateCore

extension Operation {
  static let tokens = Operation(
    id: "tokens", method: .get, path: "/api/auth/tokens", summary: "Your personal tokens", tag: .account, status: 200,
    content: .json(Schema.list(of: Schema.named("PersonalToken"))), needsSession: true)
  static let createToken = Operation(
    id: "createToken", method: .post, path: "/api/auth/tokens",
    summary:
      "Create a personal token for a program; needs a recent proof of a factor of the account. Only this answer contains the token itself",
    tag: .account,
    body: Schema.body(["name": Schema.tokenName], perhaps: ["expires": Schema.nullable(Schema.tokenLifetime)]),
    status: 201,
    content: .json(Schema.named("MadeToken")), needsSession: true,
    refusals: [.denied, .disabled, .stepUpRequired, .identifierTooNew, .flowExpired])
  static let revokeToken = Operation(
    id: "revokeToken", method: .delete, path: "/api/auth/tokens/{token}", summary: "Revoke a personal token",
    tag: .account, status: 204,
    content: .nothing, needsSession: true,
    refusals: [.notFound, .originRefused])
}

extension Components {
  static let tokens: KeyValuePairs<String, JSONValue> = [
    "PersonalToken": Schema.answer([
      "id": Schema.text, "name": Schema.text, "created_at": Schema.moment, "expires_at": Schema.nullable(Schema.moment),
      "last_used_at": Schema.nullable(Schema.moment), "last_used_from": Schema.optionalText,
    ]),
    "MadeToken": Schema.answer([
      "id": Schema.text, "name": Schema.text, "created_at": Schema.moment, "expires_at": Schema.nullable(Schema.moment),
      "last_used_at": Schema.nullable(Schema.moment), "last_used_from": Schema.optionalText, "token": Schema.text,
    ]),
  ]
}
