import HTTPTypes
import Hummingbird

/// The routes of the service.
enum DemoRoutes {
  static func router() -> Router<BasicRequestContext> {
    let router = Router(options: .autoGenerateHeadEndpoints)
    for path in ["/", "/home"] as [RouterPath] {
      router.get(path) { request, _ in page(HomePage.html(Visitor(request))) }
    }
    router.get("/profile-setup") { request, _ in
      page(ProfileSetupPage.html(Visitor(request), returnTo: request.uri.queryParameters.get("return_to")))
    }
    router.get("/assets/demo.css") { _, _ in
      Response(
        status: .ok, headers: [.contentType: "text/css; charset=utf-8"],
        body: .init(byteBuffer: .init(string: Stylesheet.text)))
    }
    router.get("/healthz") { _, _ in
      Response(status: .ok, headers: [.contentType: "text/plain"], body: .init(byteBuffer: .init(string: "ok\n")))
    }
    // All methods and paths below `/echo`, so that tests can check the received requests.
    for method in [.get, .post, .put, .patch, .delete, .options] as [HTTPRequest.Method] {
      for path in ["/echo", "/echo/**"] as [RouterPath] {
        router.on(path, method: method) { request, context in try await echo(request, context) }
      }
    }
    return router
  }

  private static func page(_ html: String) -> Response {
    Response(
      status: .ok,
      headers: [
        .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
        .contentSecurityPolicy: "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'",
      ], body: .init(byteBuffer: .init(string: html)))
  }

  /// The received request as JSON. Headers are a list, because names can be repeated.
  private struct Echo: ResponseEncodable {
    struct Header: Encodable {
      let name: String
      let value: String
    }

    let method: String
    let path: String
    let host: String?
    let headers: [Header]
    let body: String
  }

  /// The maximum number of echoed body bytes.
  private static let maxBytes = 1 << 20

  private static func echo(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let body = try await request.body.collect(upTo: maxBytes)
    let echo = Echo(
      method: request.method.rawValue, path: request.head.path ?? "", host: request.head.authority,
      headers: request.headers.map { Echo.Header(name: $0.name.rawName, value: $0.value) }, body: String(buffer: body))
    return try echo.response(from: request, context: context)
  }
}
