import Foundation
import MoongateCore

/// What the system says of this process, by the names that Prometheus's own clients use.
enum ProcessMetrics {
  static var families: [MetricFamily] {
    // Of all threads, in user and system mode. On Linux a second is a million ticks (POSIX).
    let ticks = clock()
    let page = Double(sysconf(Int32(_SC_PAGESIZE)))
    // The sizes in /proc/self/statm are in pages: all that is mapped, then what is in memory.
    let sizes = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ").prefix(2).compactMap { Double($0) } ?? []
    var families = [
      MetricFamily(
        "process_cpu_seconds_total", .counter, "CPU time of this process.",
        [MetricFamily.Sample([], Double(ticks) / 1e6)])
    ]
    if sizes.count == 2 {
      families.append(
        MetricFamily(
          "process_resident_memory_bytes", .gauge, "Memory of this process that is not swapped out.", [MetricFamily.Sample([], sizes[1] * page)]))
    }
    if let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
      families.append(MetricFamily("process_open_fds", .gauge, "Files and sockets that are open.", open))
    }
    return families
  }
}
