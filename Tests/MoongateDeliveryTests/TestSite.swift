import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Synchronization
import Testing

/// A configurable HTTP server on its own port that records requests.
final class TestSite: Sendable {
  struct Question: Sendable {
    let method: String
    let path: String
    let headers: HTTPFields
    let body: String
  }

  private let asked = Mutex<[Question]>([])

  var questions: [Question] { asked.withLock { $0 } }

  /// - Parameter body: receives the site's URL without a trailing slash.
  func run(
    answering answer: @escaping @Sendable (Question) async throws -> Response,
    _ body: @escaping @Sendable (String) async throws -> Void
  ) async throws {
    let responder = CallbackResponder<BasicRequestContext> { [self] request, _ in
      var request = request
      let text = String(buffer: try await request.collectBody(upTo: 1 << 20))
      let question = Question(
        method: request.method.rawValue, path: request.head.path ?? "", headers: request.headers, body: text)
      asked.withLock { $0.append(question) }
      return try await answer(question)
    }
    let application = Application(
      responder: responder, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)))
    try await application.test(.live) { client in try await body("http://127.0.0.1:\(try #require(client.port))") }
  }
}
