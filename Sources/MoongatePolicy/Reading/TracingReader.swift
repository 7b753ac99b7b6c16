import MoongateCore

/// Reads `tracing = otlp { … }`.
struct TracingReader {
  /// The configuration folder, the base of relative paths of secrets.
  let folder: String
  let secrets: SecretReader
  let problems: Problems

  func read(_ node: LuaNode, _ path: String) -> TracingSettings? {
    guard case .tagged("otlp", let arguments) = node.value, let body = arguments.first else {
      problems.add(
        node.location, path,
        "must be a collector, as in otlp { url = \"http://127.0.0.1:4318\" }, not \(node.value.described)")
      return nil
    }
    guard let reader = TableReader(body, .otlp, path: path, problems: problems) else { return nil }
    let delivery = DeliveryReader(folder: folder, secrets: secrets, publicURL: nil, problems: problems)
    let url = reader.take("url").flatMap { delivery.site($0, reader.path("url"), carrying: "spans") }
    let sample = reader.take("sample").flatMap { Field.number($0, reader.path("sample"), problems, in: 0...1) }
    let headers = delivery.headers(of: reader)
    guard let url, let sample else { return nil }
    return TracingSettings(url: url, sample: sample, headers: headers)
  }
}
