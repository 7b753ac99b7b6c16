import Foundation
import MoongateCore

/// A simulation as an SVG chart: guesses and messages over time, with the owner's locks as bands in the background.
package struct SimulationPicture: Sendable {
  private let report: SimulationReport
  private let timeline: SimulationTimeline

  private static let width = 960.0
  private static let left = 70.0
  private static let right = 930.0
  /// The top and bottom edges of the two plots.
  private static let guesses = (top: 60.0, bottom: 250.0)
  private static let messages = (top: 310.0, bottom: 500.0)
  private static let height = 560.0

  package init(_ report: SimulationReport, _ timeline: SimulationTimeline) {
    self.report = report
    self.timeline = timeline
  }

  /// SVG 1.1, without scripts and external resources.
  package var svg: String {
    let title = "\(report.attacker) against \(report.provider)"
    let size = "\(Self.number(Self.width)) \(Self.number(Self.height))"
    var parts = [
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(size)\" font-family=\"sans-serif\" font-size=\"13\">",
      "<title>\(title)</title>",
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
      text(title, at: (Self.left, 28), "font-size=\"18\" fill=\"#111\""),
    ]
    parts += plot(Self.guesses, "guesses", "#b3261e", bound: report.bound) { $0.guesses }
    parts += plot(Self.messages, "messages", "#0d7377", bound: nil) { $0.messages }
    parts += days
    parts.append(
      text("bands: owner locked out", at: (Self.right, 28), "text-anchor=\"end\" fill=\"#8a6d00\""))
    return parts.joined(separator: "\n") + "\n</svg>\n"
  }

  private func plot(
    _ edges: (top: Double, bottom: Double), _ name: String, _ colour: String, bound: Int?,
    _ value: (SimulationTimeline.Point) -> Int
  ) -> [String] {
    let most = max(1, timeline.points.map(value).max() ?? 0, bound ?? 0)
    let y = { (count: Int) in edges.bottom - Double(count) / Double(most) * (edges.bottom - edges.top) }
    var parts = timeline.locks.map { lock in
      let (from, to) = (x(lock.from), x(lock.to))
      return
        "<rect class=\"lock\" x=\"\(Self.number(from))\" y=\"\(Self.number(edges.top))\" width=\"\(Self.number(max(0.5, to - from)))\" "
        + "height=\"\(Self.number(edges.bottom - edges.top))\" fill=\"#ffe9a8\"/>"
    }
    parts.append(
      "<path d=\"M\(Self.number(Self.left)) \(Self.number(edges.top))V\(Self.number(edges.bottom))H\(Self.number(Self.right))\" fill=\"none\" stroke=\"#777\"/>"
    )
    if let bound {
      parts.append(
        "<path class=\"bound\" d=\"M\(Self.number(Self.left)) \(Self.number(y(bound)))H\(Self.number(Self.right))\" stroke=\"#777\" "
          + "stroke-dasharray=\"4 4\" fill=\"none\"/>")
      parts.append(text("check allows \(bound)", at: (Self.right, y(bound) - 5), "text-anchor=\"end\" fill=\"#555\""))
    }
    // Draws steps: a count stays the same until the next event.
    var path = ""
    for point in timeline.points {
      let (px, py) = (Self.number(x(point.seconds)), Self.number(y(value(point))))
      path += path.isEmpty ? "M\(px) \(py)" : "H\(px)V\(py)"
    }
    parts.append("<path class=\"\(name)\" d=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2\"/>")
    parts.append(text(name, at: (Self.left, edges.top - 10), "fill=\"\(colour)\""))
    parts.append(text(String(most), at: (Self.left - 6, edges.top + 5), "text-anchor=\"end\" fill=\"#555\""))
    parts.append(text("0", at: (Self.left - 6, edges.bottom), "text-anchor=\"end\" fill=\"#555\""))
    return parts
  }

  /// The time scale below both plots.
  private var days: [String] {
    let (unit, name) = timeline.span > 2 * 86_400 ? (86_400.0, "day") : (3_600.0, "hour")
    let count = timeline.span / unit
    let step = max(1, (count / 10).rounded(.up))
    return stride(from: 0, through: count, by: step).map { number in
      let text = number == 0 ? "start" : "\(name) \(Int(number))"
      return self.text(text, at: (x(number * unit), Self.messages.bottom + 22), "text-anchor=\"middle\" fill=\"#555\"")
    }
  }

  private func x(_ seconds: Double) -> Double {
    Self.left + (timeline.span > 0 ? min(1, seconds / timeline.span) : 0) * (Self.right - Self.left)
  }

  private func text(_ text: String, at place: (x: Double, y: Double), _ more: String) -> String {
    let safe = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    return "<text x=\"\(Self.number(place.x))\" y=\"\(Self.number(place.y))\" \(more)>\(safe)</text>"
  }

  private static func number(_ number: Double) -> String {
    let text = String(format: "%.1f", number)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
