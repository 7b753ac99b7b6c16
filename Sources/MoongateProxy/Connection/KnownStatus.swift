import HTTPTypes

extension HTTPResponse.Status {
  /// The statuses of the gateway's own answers.
  private static let known: [HTTPResponse.Status] = [
    .ok, .noContent, .found, .seeOther, .badRequest, .unauthorized, .forbidden, .notFound, .methodNotAllowed,
    .requestTimeout,
    .conflict, .gone, .contentTooLarge, .unsupportedMediaType, .unprocessableContent, .tooManyRequests,
    .requestHeaderFieldsTooLarge, .badGateway, .serviceUnavailable, .gatewayTimeout, .httpVersionNotSupported,
  ]

  /// The status with this code and its reason phrase (RFC 9110, section 15). A code that no answer of the gateway has
  /// gets an empty phrase.
  /// - Parameter code: 0 to 999.
  package init(known code: Int) {
    self = Self.known.first { $0.code == code } ?? HTTPResponse.Status(code: code)
  }
}
