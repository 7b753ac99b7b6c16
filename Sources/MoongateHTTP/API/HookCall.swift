import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `POST /auth/hook/{provider}`: receives webhooks of a vendor. Cookies are neither read nor set, and the Origin is not
/// checked: the provider verifies the request.
struct HookCall: Sendable {
  /// The maximum size of all headers in bytes, and their maximum number.
  private static let longestHeaders = 16_384
  private static let maxHeaders = 100

  let driver: FlowDriver
  let clock: any GatewayClock
  private let admission = WebhookAdmission()

  init(driver: FlowDriver, clock: any GatewayClock) {
    self.driver = driver
    self.clock = clock
  }

  var endpoints: [Endpoint] {
    [Endpoint(.inbound, .post, "/auth/hook/{}") { exchange throws(Refusal) in try await take(exchange) }]
  }

  private func take(_ exchange: Exchange) async throws(Refusal) -> Response {
    guard let name = ProviderName(rawValue: exchange.parameters[0]),
      driver.engine.receivesWebhooks(name, in: exchange.generation)
    else {
      throw exchange.refusal(.notFound)
    }
    let caller = WebhookCaller(provider: name, address: exchange.client.address.countingKey)
    if let wait = admission.wait(caller, at: clock.now()) { throw exchange.refusal(.rateLimited, retryAfter: wait) }
    let headers = try headers(exchange)
    let body = try await exchange.reader.read(exchange)
    let webhook = WebhookRequest(headers: headers, body: body, remote: exchange.client.address.description)
    let client = try await driver.caller(exchange)
    guard let permit = admission.begin(caller, at: clock.now()) else {
      throw exchange.refusal(.rateLimited, retryAfter: .seconds(1))
    }
    let result = await driver.engine.receive(webhook, for: name, client: client)
    let isAccepted = if case .success(.accepted) = result { true } else { false }
    admission.end(permit, isAccepted: isAccepted, at: clock.now())
    switch try result.get() {
    case .accepted(nil): return .nothing
    case .accepted(let text?): return .plain(.ok, type: "text/plain; charset=utf-8", Array(text.utf8))
    case .refused(.unauthenticated):
      throw exchange.refusal(.unauthenticated, detail: "The request's signature is missing or wrong.")
    case .refused(.malformed): throw exchange.refusal(.badRequest)
    case .refused(.tooLarge): throw exchange.refusal(.tooLarge)
    }
  }

  /// The headers that the provider receives. Cookies are removed, because a user's browser may have been made to post
  /// here; reserved headers, because a provider may believe that the gateway has set them.
  private func headers(_ exchange: Exchange) throws(Refusal) -> [(name: String, value: String)] {
    let all = exchange.request.headers.map { (name: $0.name.canonicalName, value: $0.value) }
    guard all.count <= Self.maxHeaders,
      all.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count }) <= Self.longestHeaders
    else {
      throw exchange.refusal(.headersTooLarge)
    }
    return all.filter { $0.name != "cookie" && !ReservedHeaders.contains($0.name) }
  }
}
