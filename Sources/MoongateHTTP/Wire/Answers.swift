import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateProxy
import NIOCore

extension Response {
  /// An answer of the API: JSON that must not be cached.
  package static func json(_ value: JSONValue, status: HTTPResponse.Status = .ok) -> Response {
    plain(status, type: "application/json", value.bytes + [UInt8(ascii: "\n")])
  }

  /// An answer of the API with any status.
  package static func json(_ value: JSONValue, code: Int) -> Response {
    json(value, status: HTTPResponse.Status(known: code))
  }

  /// 204 No Content.
  package static var nothing: Response { Response(status: .noContent, headers: careful) }

  /// A refusal as problem+json (RFC 9457), with its headers.
  /// - Parameter more: additional members of the document.
  package static func problem(_ refusal: Refusal, _ more: KeyValuePairs<String, String> = [:]) -> Response {
    var response = plain(refusal.code.httpStatus, type: Refusal.mediaType, refusal.document(with: more))
    response.addRefusalHeaders(refusal)
    return response
  }

  /// - Parameter type: the Content-Type.
  package static func plain(_ status: HTTPResponse.Status, type: String, _ bytes: [UInt8]) -> Response {
    var headers = careful
    headers[.contentType] = type
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  /// 303 See Other: the client continues with GET (RFC 9110, section 15.4.4).
  package static func seeOther(_ target: String) -> Response {
    var headers = careful
    headers[.location] = target
    return Response(status: .seeOther, headers: headers)
  }

  /// Adds `Retry-After`, the challenge of a 401, and `Connection: close` if the request body was not read.
  mutating func addRefusalHeaders(_ refusal: Refusal) {
    if let seconds = refusal.retryAfterSeconds { headers[.retryAfter] = String(seconds) }
    switch refusal.code {
    case .unauthenticated: headers[.wwwAuthenticate] = "Bearer"
    case .tooLarge, .timeout: headers[.connection] = "close"
    default: break
    }
  }

  /// Adds the page's policy, and which sites may show it in a frame.
  /// - Parameters:
  ///   - policy: all other directives of the Content-Security-Policy.
  ///   - frames: the origins of these sites; empty for none.
  mutating func restrictPage(_ policy: String, in frames: [String]) {
    let ancestors = frames.isEmpty ? "'none'" : frames.joined(separator: " ")
    headers.set("Content-Security-Policy", to: "\(policy); frame-ancestors \(ancestors)")
    if frames.isEmpty { headers.set("X-Frame-Options", to: "DENY") }
  }

  /// Adds `Set-Cookie` headers.
  package mutating func setCookies(_ lines: [String]) {
    for line in lines { headers.append(HTTPField(name: .setCookie, value: line)) }
  }

  /// Headers against caching, content sniffing and referrers.
  private static var careful: HTTPFields {
    var headers: HTTPFields = [.cacheControl: "no-store", .xContentTypeOptions: "nosniff"]
    headers.set("Referrer-Policy", to: "no-referrer")
    return headers
  }
}

extension RefusalCode {
  /// The status with its reason phrase.
  var httpStatus: HTTPResponse.Status { HTTPResponse.Status(known: status) }
}

extension HTTPFields {
  /// Sets a field that HTTPTypes has no constant for. An invalid name sets nothing.
  package mutating func set(_ name: String, to value: String) {
    if let name = HTTPField.Name(name) { self[name] = value }
  }
}
