import MoongateCore

/// A countdown: its initial text, and the remaining milliseconds for scripts. Remaining time instead of a time of day,
/// because the user's clock may be wrong.
struct Countdown: Decodable {
  let text: String
  let milliseconds: Int64

  init(_ duration: Duration) {
    text = duration.clockText
    milliseconds = max(0, duration.wholeMilliseconds)
  }
}

extension Duration {
  /// `mm:ss`, or `h:mm:ss` from one hour on; rounded up.
  var clockText: String {
    let seconds = max(0, Int((wholeMilliseconds + 999) / 1000))
    let two = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
    let tail = "\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    return seconds < 3600 ? tail : "\(seconds / 3600):\(tail)"
  }
}
