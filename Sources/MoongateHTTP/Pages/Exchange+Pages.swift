import HTTPTypes
import Hummingbird
import MoongateCore

extension Exchange {
  /// Whether one of our own scripts sent the form. It is told where to go on to as JSON, and shows it before it goes
  /// there.
  var isScripted: Bool { pageAbilities.contains("script") }

  /// Whether the script that sent the form has found the browser's credential API.
  var canRunCeremonies: Bool { pageAbilities.contains("ceremony") }

  /// What our own script says of itself. A page of another site cannot set the header without asking us first (CORS).
  private var pageAbilities: [Substring] {
    guard let name = HTTPField.Name("Moongate-Page"), let said = request.headers[name] else { return [] }
    return said.split { $0 == "," || $0 == " " }
  }

  /// Whether a form was sent to be shown in another language, with what was typed in it, and for nothing else.
  var isSwitch: Bool {
    get throws(Refusal) { request.method == .post ? try query()["language"] != nil : false }
  }

  /// On to another page, by 303 or as a script understands it.
  func leadOn(to address: String, _ cookies: [String] = []) -> Response {
    var response = isScripted ? Response.json(.members(["next": .text(address)])) : .seeOther(address)
    response.setCookies(cookies)
    return response
  }
}

extension Duration {
  /// `mm:ss`, from an hour on `h:mm:ss`; rounded up.
  var clockText: String {
    let seconds = max(0, Int((wholeMilliseconds + 999) / 1000))
    let two = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
    let tail = "\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    return seconds < 3600 ? tail : "\(seconds / 3600):\(tail)"
  }
}

/// A time that a page counts down: what it shows at first, and from how many milliseconds a script goes on. Remaining
/// time, not a moment: the reader's clock may be wrong.
struct Countdown: Decodable {
  let text: String
  let milliseconds: Int64

  init(_ duration: Duration) {
    text = duration.clockText
    milliseconds = max(0, duration.wholeMilliseconds)
  }
}

extension Request {
  /// Whether a browser says that it opens a page (Fetch Metadata, `Sec-Fetch-Mode`).
  var isNavigation: Bool { HTTPField.Name("Sec-Fetch-Mode").map { headers[$0] } == "navigate" }
}
