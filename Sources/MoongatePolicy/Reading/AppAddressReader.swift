import MoongateCore
import MoongateSDK

/// Reads the addresses of an app.
struct AppAddressReader {
  /// `public_url`; nil if gateway.lua could not be read.
  let own: PublicURL?
  let problems: Problems

  /// `redirect_uris`, of which there must be one.
  func readRedirects(_ reader: TableReader) -> [RedirectURI] {
    let path = reader.path("redirect_uris")
    guard let node = reader.require("redirect_uris"), let texts = Field.texts(node, path, problems) else { return [] }
    if texts.isEmpty {
      problems.add(node.location, path, "must list at least one address, such as \"https://app.example.com/in\"")
    }
    return read(texts, path)
  }

  /// `sign_out_uris`.
  func readSignOut(_ reader: TableReader) -> [RedirectURI] {
    let path = reader.path("sign_out_uris")
    guard let node = reader.explicitValue("sign_out_uris"), let texts = Field.texts(node, path, problems) else {
      return []
    }
    return read(texts, path)
  }

  /// An address that the gateway itself calls: https, or http to this machine.
  func read(_ reader: TableReader, _ field: String) -> String? {
    let path = reader.path(field)
    guard let node = reader.explicitValue(field), let text = Field.text(node, path, problems),
      let address = read(text, at: node.location, path)
    else { return nil }
    guard address.origin != nil else {
      problems.add(node.location, path, "\"\(text)\" is not an https address, such as \"https://app.example.com/…\"")
      return nil
    }
    return text
  }

  private func read(_ texts: [(text: String, node: LuaNode)], _ path: String) -> [RedirectURI] {
    texts.enumerated().compactMap { index, item in read(item.text, at: item.node.location, "\(path)[\(index + 1)]") }
  }

  private func read(_ text: String, at location: SourceLocation, _ path: String) -> RedirectURI? {
    do throws(RedirectURIProblem) {
      let uri = try RedirectURI(text)
      // Attack: the gateway's own pages and the services on its origin are no app. Their request lines are seen by
      // others.
      guard own == nil || uri.origin != own else {
        problems.add(
          location, path,
          "\"\(text)\" is on `public_url`, the gateway's own origin: write an address of the app")
        return nil
      }
      return uri
    } catch {
      problems.add(location, path, "\"\(text)\" \(error.message)")
      return nil
    }
  }

  /// The same text for all addresses of which one matches the other: a loopback address has none of its port.
  static func key(of uri: RedirectURI) -> String {
    guard let address = WebAddress(uri.text), !address.origin.isSecure else { return uri.text }
    return "http://\(address.origin.host)\(address.tail)"
  }
}
