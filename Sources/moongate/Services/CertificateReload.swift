import MoongateProxy
import ServiceLifecycle

/// Reloads when certificate or key change: those who renew them write files and tell nobody.
struct CertificateReload: Service {
  private static let interval: Duration = .seconds(1)

  let reload: ConfigurationReload

  func run() async throws {
    await cancelWhenGracefulShutdown {
      var isChanging = false
      while !Task.isCancelled {
        // Certificate and key are written one after the other: they are read when a second has passed without another
        // change.
        if isChanging { await reload.reloadCertificate() }
        isChanging = await reload.certificateHasChanged
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }
}
