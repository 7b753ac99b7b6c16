import AsyncHTTPClient
import Foundation
import MoongateCore
import MoongateSDK
import NIOCore
import NIOHTTP1
import NIOPosix

/// The HTTP client for other sites, such as identity providers and webhooks. The program has one.
///
/// Responses are not trusted: time and size are limited, redirects are not followed (they could lead into the internal
/// network), and certificates must verify.
package final class SiteClient: WebClient {
  private let client: HTTPClient
  private let timeLimit: Duration
  private let largest: Int

  /// - Parameters:
  ///   - timeLimit: the time limit for the whole exchange, including the connection.
  ///   - largest: the maximum size of a response body, in bytes.
  package init(timeLimit: Duration = .seconds(5), largest: Int = 1 << 20) {
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow, decompression: .disabled)
    configuration.timeout.connect = .milliseconds(timeLimit.wholeMilliseconds)
    // Do not retry a failed connection: the user gets an error at once and can try again.
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
    // The library's own spans would contain whole URLs with their secrets.
    configuration.tracing.tracer = nil
    client = HTTPClient(configuration: configuration)
    self.timeLimit = timeLimit
    self.largest = largest
  }

  deinit { client.shutdown { _ in } }

  /// Closes all connections. Requests in progress fail.
  package func end() async { try? await client.shutdown() }

  package func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    let site = Self.site(of: request.url)
    let result = await withTaskGroup(of: Result<WebAnswer, WebFault>?.self) { group in
      group.addTask { await self.exchange(request, with: site) }
      // The library's deadline ends with the response head. Attack: a site that sends one byte per second.
      group.addTask { [timeLimit] in
        (try? await Task.sleep(for: timeLimit)) == nil
          ? nil : .failure(WebFault(reason: "\(site): no answer within \(timeLimit)"))
      }
      defer { group.cancelAll() }
      for await result in group { if let result { return result } }
      return .failure(WebFault(reason: "\(site): not called, because the gateway is shutting down"))
    }
    return try result.get()
  }

  private func exchange(_ request: WebRequest, with site: String) async -> Result<WebAnswer, WebFault> {
    guard request.url.hasPrefix("https://") || request.url.hasPrefix("http://") else {
      return .failure(WebFault(reason: "only URLs that begin with https:// or http:// are supported"))
    }
    var outgoing = HTTPClientRequest(url: request.url)
    outgoing.method = HTTPMethod(rawValue: request.method)
    for header in request.headers { outgoing.headers.add(name: header.name, value: header.value) }
    if !outgoing.headers.contains(name: "User-Agent") { outgoing.headers.add(name: "User-Agent", value: "Moongate") }
    if !request.body.isEmpty { outgoing.body = .bytes(ByteBuffer(bytes: request.body)) }
    do {
      let answer = try await client.execute(outgoing, deadline: .now() + .milliseconds(timeLimit.wholeMilliseconds))
      let body = try await answer.body.collect(upTo: largest)
      return .success(
        WebAnswer(
          status: Int(answer.status.code),
          headers: answer.headers.map { (name: $0.name.lowercased(), value: $0.value) },
          body: Array(body.readableBytesView)))
    } catch is NIOTooManyBytesError {
      return .failure(WebFault(reason: "\(site): the answer is larger than \(largest) bytes"))
    } catch let error as HTTPClientError {
      return .failure(WebFault(reason: "\(site): \(error.shortDescription)"))
    } catch {
      return .failure(WebFault(reason: "\(site): \(Self.reason(for: error))"))
    }
  }

  /// The reason of a failed connection in a few words, such as "Connection refused".
  package static func reason(for error: any Error) -> String {
    var cause = error
    if let error = error as? NIOConnectionError {
      guard let failure = error.connectionErrors.first else { return "the host name has no address" }
      cause = failure.error
    }
    if let cause = cause as? IOError { return String(cString: strerror(cause.errnoCode)) }
    let text = "\(cause)"
    // BoringSSL describes an error with the path of its own source file.
    if let tls = text.firstMatch(of: /SSL routines:OPENSSL_internal:([A-Z0-9_]+)/) {
      return "the TLS handshake failed (\(tls.1))"
    }
    return String(text.prefix(300))
  }

  /// Removes the site from the beginning of a reason, for callers that name the site themselves.
  package static func withoutSite(_ reason: String, of url: String) -> String {
    let prefix = "\(site(of: url)): "
    return reason.hasPrefix(prefix) ? String(reason.dropFirst(prefix.count)) : reason
  }

  /// Scheme, host and port: the part of a URL that may be logged.
  static func site(of url: String) -> String {
    let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].hasSuffix(":"), parts[1].isEmpty else { return "the site" }
    let authority = parts[2].prefix { !"/?#\\".contains($0) }
    return "\(parts[0])//\(authority.split(separator: "@", omittingEmptySubsequences: false).last ?? "")"
  }
}
