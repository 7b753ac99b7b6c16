/// Why a request got no response from its upstream. A closed set, because it labels a metric.
enum UpstreamFailureCause: String, CaseIterable, Sendable {
  case unreachable, timeout, closed, unreadable
  /// The service closed the connection before the response was complete.
  case cut
  /// The service sent nothing more for the route's `timeout`, and the response was not complete.
  case silent

  /// The cause in a log line.
  var words: String {
    switch self {
    case .unreachable: "it cannot be reached"
    case .timeout: "it does not respond in time"
    case .closed: "it closed the connection"
    case .unreadable: "its response is malformed"
    case .cut: "it closed the connection within the response"
    case .silent: "it was silent within the response for longer than the route's timeout"
    }
  }
}
