import Foundation
import MoongateCore

/// What the system says of this process, by the names that Prometheus's own clients use.
enum ProcessMetrics {
  static var families: [MetricFamily] {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let seconds = { (time: timeval) in Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    let page = Double(sysconf(Int32(_SC_PAGESIZE)))
    // The sizes in /proc/self/statm are in pages: all that is mapped, then what is in memory.
    let sizes = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ").prefix(2).compactMap { Double($0) } ?? []
    var families = [
      MetricFamily(
        "process_cpu_seconds_total", .counter, "CPU time of this process.",
        [MetricFamily.Sample([], seconds(usage.ru_utime) + seconds(usage.ru_stime))])
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
