import MoongateAppAPI
import MoongateHTTP

/// The calls of both listeners.
extension Reference {
  static let api = page(
    file: "api.md", title: "API",
    introduction: """
      The calls of the public listener. `/api/auth/openapi.json` describes them for programs, with the schema of each \
      body. Every refusal is `application/problem+json` (RFC 9457) with one of the [error codes](codes.md). \
      The calls for apps and `clientEvents` need `app_api = true` in [gateway.lua](gateway.md).
      """, calls: APICall.api + AppAPI.calls, prefix: "api.")

  static let adminAPI = page(
    file: "admin-api.md", title: "Admin API",
    introduction: """
      The calls of the admin listener. Its `/openapi.json` describes them for programs, with the schema of each body. \
      [Admin access](../guides/admin-access.md) explains its tokens and their roles.
      """, calls: APICall.admin, prefix: "admin.")

  private static func page(
    file: String, title: String, introduction: String, calls: [APICall], prefix: String
  ) -> ReferencePage {
    let sections = calls.reduce(into: [String]()) { if !$0.contains($1.section) { $0.append($1.section) } }
    return ReferencePage(
      file: file, title: title, introduction: introduction,
      sections: sections.map { section in
        ReferenceSection(
          title: section, summary: "", subject: "Operation",
          entries: calls.filter { $0.section == section }.map {
            ReferenceEntry(
              name: prefix + $0.id,
              properties: [
                "call": $0.address, "fields": $0.fields.joined(separator: ", "), "status": String($0.status),
                "codes": $0.codes.joined(separator: ", "),
              ], help: $0.summary + ".")
          }, prefix: prefix)
      })
  }
}
