// The tokens that people make for programs of their own.
import MoongateCore

extension Operation {
  static let tokens = Operation(
    id: "tokens", summary: "The tokens that you have made for programs", tag: .account, status: 200,
    content: .json(Schema.list(of: Schema.named("PersonalToken"))), needsSession: true)
  static let createToken = Operation(
    id: "createToken",
    summary:
      "Make a token for a program of yours; needs a recent proof of something that the account holds. The answer alone has the token itself",
    tag: .account,
    body: Schema.body(["name": Schema.tokenName], perhaps: ["expires": Schema.nullable(Schema.tokenLifetime)]),
    status: 201,
    content: .json(Schema.named("MadeToken")), needsSession: true,
    refusals: [.denied, .disabled, .stepUpRequired, .identifierTooNew, .flowExpired])
  static let revokeToken = Operation(
    id: "revokeToken", summary: "End a token that you have made", tag: .account, path: ["token"], status: 204,
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
