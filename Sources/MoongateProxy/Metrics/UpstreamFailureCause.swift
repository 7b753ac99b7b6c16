/// Why an attempt at an upstream brought no response. A closed set, because it labels metrics.
enum UpstreamFailureCause: String, CaseIterable, Sendable {
  case unreachable, timeout, closed, unreadable
  /// The service closed the connection before the response was complete.
  case cut
  /// The service sent nothing more for the route's `timeout`, and the response was not complete.
  case silent
  /// The service answered with a status that `retry` names, and the request was sent again.
  case status

  /// The cause in a log line.
  var words: String {
    switch self {
    case .unreachable: "it cannot be reached"
    case .timeout: "it does not respond in time"
    case .closed: "it closed the connection"
    case .unreadable: "its response is malformed"
    case .cut: "it closed the connection within the response"
    case .silent: "it was silent within the response for longer than the route's timeout"
    case .status: "it answered with a status of `retry`"
    }
  }
}
