import Logging
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// The App API (v1): the calls that existing apps use, and the events that hosted pages report.
///
/// The gateway has it if gateway.lua says `app_api = true`.
package struct AppAPI: AddedCalls {
  /// The calls, as the reference describes them.
  package static let calls = Operation.appAPI.map(APICall.init)
  /// Where hosted pages report events.
  package let events = Operation.clientEvents.path

  private let remembered: RememberedFlows
  private let clock: any GatewayClock
  private let audit: AuditTrail
  private let providers: ProviderRegistry

  /// More than five parameters: one for each service.
  package init(
    store: any Store, keys: KeyRing, clock: any GatewayClock, audit: AuditTrail, providers: ProviderRegistry,
    logger: Logger
  ) {
    let values = ProviderKeyValues(
      of: ProviderKeyValues.appAPI, in: store, keys: keys, clock: clock, logger: logger, most: RememberedFlows.most)
    remembered = RememberedFlows(values: values, clock: clock)
    self.clock = clock
    self.audit = audit
    self.providers = providers
  }

  package func endpoints(_ driver: FlowDriver, _ sessions: SessionCalls, _ pages: PageRenderer) -> [Endpoint] {
    AppAPICalls(driver: driver, sessions: sessions, clock: clock, remembered: remembered).endpoints
      + ClientEventCall(driver: driver, clock: clock, audit: audit).endpoints
  }

  package var schemas: [(key: String, value: JSONValue)] {
    [
      (
        "User",
        Schema.answer(
          Components.account, and: ["account_type": Schema.oneOf(["free"])], perhaps: ["name": Schema.text])
      ),
      ("ClientEventName", Schema.oneOf(ClientEvent.names(sites: SiteEvent.sites(of: providers)))),
    ]
  }
}
