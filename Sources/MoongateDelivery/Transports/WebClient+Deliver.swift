import MoongateSDK

extension WebClient {
  /// Sends a request whose response body is ignored.
  /// - Throws: an error if the status is not 2xx. 400 and 422 concern the message; other statuses concern the site or
  ///   its settings.
  func deliver(_ request: WebRequest, describing describe: (WebAnswer) -> String = { _ in "" })
    async throws(TransportError)
  {
    let answer: WebAnswer
    do throws(WebFault) { answer = try await send(request) } catch {
      throw TransportError(SiteClient.withoutSite(error.reason, of: request.url))
    }
    guard (200..<300).contains(answer.status) else {
      throw TransportError(
        "answered \(answer.status)\(describe(answer))", isOfMessage: [400, 422].contains(answer.status))
    }
  }
}
