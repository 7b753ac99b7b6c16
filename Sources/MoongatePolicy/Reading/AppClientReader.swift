import MoongateCore
import MoongateSDK

/// Reads how an app authenticates: by `secret`, by `keys`, or not at all (`public`).
struct AppClientReader {
  let secrets: SecretReader
  /// `public_url`; nil if gateway.lua could not be read.
  let own: PublicURL?
  let problems: Problems

  /// Shorter secrets cause a warning. One that `moongate app secret` writes has 43 characters.
  private static let shortest = 32

  func read(_ reader: TableReader, id: String) -> AppAuthentication? {
    let ways = ["secret", "keys", "public"].filter { reader.explicitValue($0) != nil }
    guard let way = ways.first, let node = reader.explicitValue(way) else {
      problems.add(
        reader.location, reader.path,
        "says no way to authenticate: write secret = file \"secrets/\(id)\", keys = \"https://…\" or public = true")
      return nil
    }
    if let second = ways.dropFirst().first {
      problems.add(
        reader.explicitValue(second)?.location ?? reader.location, reader.path(second),
        "is a second way to authenticate beside `\(way)`: remove one of the two")
      return nil
    }
    switch way {
    case "secret": return readSecret(node, reader.path(way), id: id).map { .secret($0) }
    case "keys": return AppAddressReader(own: own, problems: problems).read(reader, way).map { .keys($0) }
    default:
      guard let isPublic = reader.flag(way) else { return nil }
      if isPublic { return AppAuthentication.none }
      problems.add(node.location, reader.path(way), "must be true: an app with a secret or keys omits `public`")
      return nil
    }
  }

  private func readSecret(_ node: LuaNode, _ path: String, id: String) -> SecretText? {
    let advice = "write a new secret into it with `moongate app secret \(id)`"
    guard let secret = secrets.read(node, path, problems, ifAbsent: advice) else { return nil }
    // Attack: a secret that can be guessed without asking us, from one request of the app that was seen.
    if secret.reveal().utf8.count < Self.shortest {
      problems.warn(
        node.location, path,
        "the secret is shorter than \(Self.shortest) characters: `moongate app secret \(id)` writes one of 43")
    }
    return secret
  }
}
