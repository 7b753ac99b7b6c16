import Foundation
import MoongateSDK

/// Redeems a code at the token endpoint (OpenID Connect Core 1.0 section 3.1.3).
struct TokenExchange {
  let client: Client
  let metadata: IssuerMetadata
  let web: any WebClient

  private struct Answer: Decodable {
    let idToken: String?
    let accessToken: String?
  }

  /// What the token endpoint issues. Both are secrets.
  struct Issued {
    let idToken: String
    /// For the userinfo endpoint; nil if the response has none.
    let accessToken: String?
  }

  private struct Problem: Decodable {
    let error: String?
  }

  /// - Throws: `OAuthFault` if the provider does not answer or refuses the client, `AnswerRefusal` if it does not
  /// accept the code.
  func redeem(_ code: String, _ attempt: Attempt) async throws -> Issued {
    var fields = [
      ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", attempt.redirect),
      ("code_verifier", attempt.verifier),
    ]
    var headers = [
      (name: "Accept", value: "application/json"), (name: "Content-Type", value: "application/x-www-form-urlencoded"),
    ]
    if metadata.takesBasic {
      // Both are form-encoded first (RFC 6749 section 2.3.1).
      let pair = PercentEncoding.encode(client.id) + ":" + PercentEncoding.encode(client.secret)
      headers.append((name: "Authorization", value: "Basic " + Data(pair.utf8).base64EncodedString()))
    } else {
      fields += [("client_id", client.id), ("client_secret", client.secret)]
    }
    let answer: WebAnswer
    do throws(WebFault) {
      answer = try await web.send(
        WebRequest(
          method: "POST", url: metadata.token, headers: headers, body: Array(PercentEncoding.form(fields).utf8)))
    } catch {
      throw OAuthFault.provider("\(metadata.token): \(error.reason)")
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    if answer.status == 200 {
      guard let said = try? decoder.decode(Answer.self, from: Data(answer.body)), let token = said.idToken else {
        throw OAuthFault.provider("\(metadata.token) answers without an ID token")
      }
      return Issued(idToken: token, accessToken: said.accessToken)
    }
    let error = (try? decoder.decode(Problem.self, from: Data(answer.body)))?.error
    if answer.status == 400, error == "invalid_grant" { throw AnswerRefusal(.code, "invalid_grant") }
    // Only error codes of RFC 6749 section 5.2 are logged, no other text of the provider.
    let known: [String] = [
      "invalid_client", "invalid_request", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
    ]
    let told = error.map { known.contains($0) ? " \($0)" : "" } ?? ""
    throw OAuthFault.provider("\(metadata.token) answers \(answer.status)\(told)")
  }
}
