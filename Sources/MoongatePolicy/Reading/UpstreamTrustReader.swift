import MoongateCore
import MoongateSDK
import NIOSSL

/// Reads `upstream_tls = { ca = "tls/ca.pem", cert = "tls/client.pem", key = file "tls/client.key", name = "wiki" }`.
struct UpstreamTrustReader {
  let secrets: SecretReader
  let problems: Problems

  /// - Returns: the contents of the files; nil if the node is not such a table.
  func read(_ node: LuaNode, _ path: String) -> UpstreamTrust? {
    guard let table = TableReader(node, .upstreamTLS, path: path, problems: problems) else { return nil }
    if table.names.isEmpty {
      problems.add(node.location, path, "sets nothing: name `ca`, `cert` with `key`, or `name`, or leave it out")
    }
    var trust = UpstreamTrust()
    trust.authorities = certificates(table, "ca")?.bytes
    trust.name = name(table)
    let chain = certificates(table, "cert")
    let key = key(table)
    for (said, other) in [("cert", "key"), ("key", "cert")] {
      if let node = table.explicitValue(said), table.explicitValue(other) == nil {
        problems.add(node.location, table.path(said), "requires `\(other)`, which is missing")
      }
    }
    if let chain, let key, !Self.matches(chain.certificates, key.key), let node = table.explicitValue("key") {
      problems.add(node.location, table.path("key"), "does not belong to the first certificate in `cert`")
    }
    trust.certificate = chain?.bytes
    trust.key = key?.bytes
    return trust
  }

  private func certificates(_ table: TableReader, _ field: String)
    -> (bytes: [UInt8], certificates: [NIOSSLCertificate])?
  {
    guard let node = table.take(field), let name = Field.text(node, table.path(field), problems) else { return nil }
    let file = name.hasPrefix("/") ? name : "\(secrets.folder)/\(name)"
    switch secrets.files.read(file, named: name) {
    case .success(let bytes):
      if let found = try? NIOSSLCertificate.fromPEMBytes(bytes), !found.isEmpty { return (bytes, found) }
      problems.add(
        node.location, table.path(field), "\(name) holds no certificate in PEM format, or one that is damaged")
    case .failure(let failure): problems.add(node.location, table.path(field), "\(name): \(failure.sentence)")
    }
    return nil
  }

  private func key(_ table: TableReader) -> (bytes: [UInt8], key: NIOSSLPrivateKey)? {
    let path = table.path("key")
    guard let node = table.take("key"), let secret = secrets.read(node, path, problems) else { return nil }
    let bytes = Array(secret.reveal().utf8)
    if let key = try? NIOSSLPrivateKey(bytes: bytes, format: .pem) { return (bytes, key) }
    problems.add(node.location, path, "is not a private key in PEM format without a password")
    return nil
  }

  /// Whether the library accepts the key for the chain.
  private static func matches(_ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey) -> Bool {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.trustRoots = .certificates([])
    configuration.certificateChain = chain.map { .certificate($0) }
    configuration.privateKey = .privateKey(key)
    return (try? NIOSSLContext(configuration: configuration)) != nil
  }

  private func name(_ table: TableReader) -> String? {
    guard let node = table.take("name"), let text = Field.text(node, table.path("name"), problems) else { return nil }
    // SNI and the comparison of names know no addresses (RFC 6066 section 3).
    if let host = HostName(text), host.port == nil, host.name == text, !text.hasPrefix("["),
      IPAddressBytes.parseV4(text.utf8) == nil
    {
      return text
    }
    problems.add(
      node.location, table.path("name"),
      "\"\(text)\" is not a host name in lower case, without a port, such as \"wiki.internal\"")
    return nil
  }
}
