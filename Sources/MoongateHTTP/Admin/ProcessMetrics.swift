import Foundation
import MoongateCore

/// Metrics of the process, with the names that Prometheus clients use.
enum ProcessMetrics {
  static var families: [MetricFamily] {
    // The processor time of all threads in user and system mode. On Linux, a second has a million ticks (POSIX).
    let ticks = clock()
    let page = Double(sysconf(Int32(_SC_PAGESIZE)))
    // The sizes in /proc/self/statm are in pages: total mapped memory, then resident memory.
    let sizes =
      (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ").prefix(2).compactMap {
        Double($0)
      } ?? []
    var families = [
      MetricFamily(.processCpuSecondsTotal, [MetricFamily.Sample([], Double(ticks) / 1e6)])
    ]
    if sizes.count == 2 {
      families.append(
        MetricFamily(.processResidentMemoryBytes, [MetricFamily.Sample([], sizes[1] * page)]))
    }
    if let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
      families.append(MetricFamily(.processOpenFds, open))
    }
    if let start {
      families.append(
        MetricFamily(.processStartTimeSeconds, [MetricFamily.Sample([], start)]))
    }
    return families
  }

  /// The 22nd field of /proc/self/stat, in ticks since boot. The process name, in brackets, may contain spaces.
  private static let start: Double? = {
    guard let stat = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
      let name = stat.lastIndex(of: ")"),
      let machine = try? String(contentsOfFile: "/proc/stat", encoding: .utf8)
    else { return nil }
    let fields = stat[stat.index(after: name)...].split(separator: " ")
    let boot = machine.split(separator: "\n").first { $0.hasPrefix("btime ") }?.split(separator: " ").last.flatMap {
      Double($0)
    }
    guard let boot, fields.count > 19, let ticks = Double(fields[19]) else { return nil }
    return boot + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }()
}
