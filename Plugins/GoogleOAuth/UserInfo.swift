import MoongateSDK

/// Requests claims from the userinfo endpoint (OpenID Connect Core 1.0 section 5.3).
struct UserInfo {
  let address: String
  let web: any WebClient

  /// The claims about the subject.
  ///
  /// Attack: an access token that was issued for another user. The answer must be about the subject of the ID token
  /// (section 5.3.2).
  /// - Throws: `OAuthFault` if the provider does not answer. With `userinfo = "always"` that fails the sign-in, which
  ///   could lack a group by which a service refuses. `AnswerRefusal` if the answer belongs to another subject.
  func claims(of subject: String, with accessToken: String) async throws -> ProfileClaims {
    guard accessToken.utf8.count <= IDToken.longest, accessToken.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw OAuthFault.provider("the access token for \(address) cannot be sent in a header")
    }
    let answer: WebAnswer
    do throws(WebFault) {
      answer = try await web.send(
        WebRequest(
          url: address,
          headers: [
            (name: "Accept", value: "application/json"), (name: "Authorization", value: "Bearer \(accessToken)"),
          ]))
    } catch {
      throw OAuthFault.provider("\(address): \(error.reason)")
    }
    guard answer.status == 200 else { throw OAuthFault.provider("\(address) answers \(answer.status)") }
    let members: [String: JSONValue]
    do throws(JSONParser.Problem) { members = try JSONParser.members(answer.body) } catch {
      switch error {
      case .malformed: throw OAuthFault.provider("\(address) does not answer with a JSON object")
      case .duplicate(let name): throw AnswerRefusal(.duplicate, name)
      }
    }
    guard members["sub"]?.text == subject else { throw AnswerRefusal(.userinfo) }
    return ProfileClaims(members)
  }
}
