import MoongateCore
import MoongateSDK

extension AuditSinkSettings {
  /// The sink for these settings.
  /// - Parameter web: the HTTP client.
  package func sink(web: any WebClient) -> any AuditSink {
    switch self {
    case .file(let settings): AuditFile(settings)
    case .syslog(let settings): SyslogServer(settings)
    case .webhook(let settings): AuditWebhook(settings, web: web)
    }
  }
}
