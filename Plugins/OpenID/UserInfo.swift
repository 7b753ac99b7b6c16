import MoongateSDK

/// Requests claims about the user of an access token.
struct UserInfo {
  let web: any WebClient
  /// A secret.
  let token: String

  /// In bytes, for one answer.
  private static let largest = 65_536

  /// The claims of the userinfo endpoint about the subject (OpenID Connect Core 1.0 section 5.3).
  ///
  /// Attack: an access token that was issued for another user. The answer must be about the subject of the ID token
  /// (section 5.3.2).
  /// - Throws: `OAuthFault` if the site does not answer. With `userinfo = "always"` that fails the sign-in, which could
  ///   lack a group by which a service refuses. `AnswerRefusal` if the answer belongs to another subject.
  func claims(at address: String, of subject: String) async throws -> [String: JSONClaim] {
    let members = try Self.members(try await answer(of: address), of: address)
    guard members["sub"]?.text == subject else { throw AnswerRefusal(.userinfo) }
    return members
  }

  /// The claims of a site without ID tokens: the members of all answers without a name, and each answer with a name
  /// under that name. Of two answers with the same member, the first counts.
  ///
  /// Attack: a second address, such as one for the groups, answers with another `id`, or verifies the address of the
  /// first answer.
  /// - Parameters:
  ///   - addresses: by name; those without a name by their place.
  ///   - own: members that only the first answer can have.
  /// - Returns: all claims, and those of the first answer.
  func claims(at addresses: [String: String], onlyInFirst own: Set<String>) async throws
    -> (all: [String: JSONClaim], first: [String: JSONClaim])
  {
    var first: [String: JSONClaim]?
    var members: [String: JSONClaim] = [:]
    for place in addresses.keys.compactMap({ Int($0) }).sorted() {
      guard let address = addresses["\(place)"] else { continue }
      let found = try Self.members(try await answer(of: address), of: address)
      members.merge(first == nil ? found : found.filter { !own.contains($0.key) }) { first, _ in first }
      if first == nil { first = found }
    }
    for (name, address) in addresses.sorted(by: { $0.key < $1.key }) where Int(name) == nil {
      members[name] = try await answer(of: address)
    }
    return (members, first ?? [:])
  }

  private static func members(_ answer: JSONClaim, of address: String) throws(OAuthFault) -> [String: JSONClaim] {
    guard let members = answer.members else { throw .site("\(address) does not answer with a JSON object") }
    return members
  }

  private func answer(of address: String) async throws -> JSONClaim {
    guard token.utf8.count <= IDToken.longest, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw OAuthFault.site("the access token for \(address) cannot be sent in a header")
    }
    let answer: WebAnswer
    do throws(WebFault) {
      answer = try await web.send(
        WebRequest(
          url: address,
          headers: [
            (name: "Accept", value: "application/json"), (name: "Authorization", value: "Bearer \(token)"),
          ]))
    } catch {
      throw OAuthFault.site("\(address): \(error.reason)")
    }
    guard answer.status == 200 else { throw OAuthFault.site("\(address) answers \(answer.status)") }
    guard answer.body.count <= Self.largest else {
      throw OAuthFault.site("\(address) answers with more than \(Self.largest) bytes")
    }
    do throws(JSONClaim.Problem) { return try JSONClaim(parsing: answer.body) } catch {
      switch error {
      case .malformed: throw OAuthFault.site("\(address) does not answer with JSON")
      case .duplicate(let name): throw AnswerRefusal(.duplicate, name)
      }
    }
  }
}
