import MoongateCore
import NIOCore
import NIOPosix

#if canImport(Glibc)
  import Glibc
#endif

/// Why no connection to an upstream could be opened.
struct ConnectFailure {
  let cause: UpstreamFailureCause
  /// In words for a log line, which do not name the upstream.
  let reason: String

  init(_ error: any Error) {
    if case .connectTimeout? = error as? ChannelError {
      cause = .timeout
      reason = cause.words
    } else {
      cause = .unreachable
      reason = Self.words(for: error).map { "\(UpstreamFailureCause.unreachable.words): \($0)" } ?? cause.words
    }
  }

  private static func words(for error: any Error) -> String? {
    switch error {
    case let error as NIOConnectionError:
      // A name can have several addresses. The last one tells as much as all of them.
      if let last = error.connectionErrors.last { return words(for: last.error) }
      return error.dnsAError == nil && error.dnsAAAAError == nil ? nil : "its name is not known to the DNS"
    case let error as IOError: return String(cString: strerror(error.errnoCode))
    case let error as FrameFault: return error.reason
    case is ChannelError: return "it closed the connection at once"
    default: return UpstreamTLS.words(for: error)
    }
  }
}
