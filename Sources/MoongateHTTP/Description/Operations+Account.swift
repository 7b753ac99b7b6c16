// Operations on all sessions of an account, and on the whole account.
import HTTPTypes
import MoongateCore

extension Operation {
  static let endSessions = Operation(
    id: "endSessions", method: .delete, path: "/api/auth/sessions", summary: "Sign out everywhere else", tag: .sessions,
    query: [
      Query(
        name: "all", help: "true also ends this session", isRequired: false,
        schema: Schema.orEmpty(Schema.oneOf(["true", "false"])))
    ],
    status: 204,
    content: .nothing, needsSession: true,
    refusals: [.originRefused])
  static let devices = Operation(
    id: "devices", method: .get, path: "/api/auth/devices", summary: "The trusted devices of the account",
    tag: .sessions, status: 200, content: .json(Schema.list(of: Schema.named("DeviceEntry"))), needsSession: true)
  static let removeDevice = Operation(
    id: "removeDevice", method: .delete, path: "/api/auth/devices/{device}",
    summary: "No longer trust a device; its sessions continue; needs a recent proof of a factor of the account",
    tag: .sessions, status: 204, content: .nothing,
    needsSession: true, refusals: recentProof + [.notFound, .originRefused])
  static let connectedApps = Operation(
    id: "connectedApps", method: .get, path: "/api/auth/apps", summary: "The apps that you have signed in to",
    tag: .account, status: 200, content: .json(Schema.list(of: Schema.answer(Components.connectedApp))),
    needsSession: true)
  static let disconnectApp = Operation(
    id: "disconnectApp", method: .delete, path: "/api/auth/apps/{app}",
    summary: "Disconnect an app: its tokens end, and it must ask again", tag: .account, status: 204,
    content: .nothing, needsSession: true, refusals: [.notFound, .originRefused])
  static let exportAccount = Operation(
    id: "exportAccount", method: .get, path: "/api/auth/account/export",
    summary: "Export everything that is stored about you; needs a recent proof of a factor of the account",
    tag: .account,
    status: 200, content: .json(Schema.named("AccountExport")), needsSession: true, refusals: recentProof + [.busy])
  static let deleteAccount = Operation(
    id: "deleteAccount", method: .delete, path: "/api/auth/account",
    summary: "Delete your account; needs a recent proof of a factor of the account",
    tag: .account, status: 204,
    content: .nothing, needsSession: true, refusals: recentProof + [.originRefused])

  private static let recentProof: [RefusalCode] = [.stepUpRequired, .identifierTooNew]
}

extension Components {
  static let export: KeyValuePairs<String, JSONValue> = [
    "AccountExport": Schema.answer([
      "account": Schema.answer([
        "id": Schema.text, "first_name": Schema.optionalText, "last_name": Schema.optionalText,
        "created_at": Schema.moment,
        "last_seen_at": Schema.moment, "language": Schema.optionalText,
      ]),
      "identifiers": Schema.list(
        of: Schema.answer([
          "kind": Schema.oneOf(["phone", "email", "federated"]), "value": Schema.text,
          "verified_at": Schema.nullable(Schema.moment),
          "attributes": Schema.body([:]), "groups": Schema.list(of: Schema.text),
        ])),
      "factors": Schema.list(
        of: Schema.answer([
          "provider": Schema.text, "added_at": Schema.moment, "changed_at": Schema.moment,
        ])),
      "groups": Schema.list(of: Schema.answer(["group": Schema.text, "added_at": Schema.moment])),
      "sessions": Schema.list(of: Schema.answer(listedSession)), "devices": Schema.list(of: Schema.answer(device)),
      "tokens": Schema.list(of: Schema.named("PersonalToken")), "apps": Schema.list(of: Schema.answer(connectedApp)),
      "events": Schema.list(
        of: Schema.answer([
          "id": Schema.text, "at": Schema.moment, "kind": Schema.text, "flow": Schema.optionalText,
          "provider": Schema.optionalText,
          "address": Schema.optionalText, "code": Schema.optionalText, "session": Schema.optionalText,
          "limit": Schema.optionalText,
        ])),
    ]),
    "AccountOption": Schema.answer(["value": Schema.text, "created_at": Schema.moment, "last_used_at": Schema.moment]),
  ]
}
