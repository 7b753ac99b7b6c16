import HTTPTypes
import Hummingbird
import MoongateCore

// Pages of a sign-in that an app has begun.
extension PageRenderer {
  /// A question about an app. The form leads to the gateway's own pages, and back to the app if one is named.
  /// - Parameters:
  ///   - app: the app to which the form's answer leads.
  ///   - address: the address of the page in another language.
  package func question(
    _ model: AppModel, app: ReceivingApp? = nil, refusal: Refusal? = nil, at address: String, _ exchange: Exchange
  ) -> Response {
    exchange.shown.show(app)
    return page(model, title: model.heading, refusal: refusal, at: address, exchange)
  }

  /// Sends the answer to the app in a form (OAuth 2.0 Form Post Response Mode). Without scripts, the user presses the
  /// button.
  /// - Parameter address: as for `question`; nil: that of the request.
  package func formPost(
    to redirect: String, _ fields: [(name: String, value: String)], app: ReceivingApp, at address: String? = nil,
    _ exchange: Exchange
  ) -> Response {
    exchange.shown.show(app)
    let words = words(exchange)
    let heading = words.text("leave_title", ["site": app.name])
    return page(
      PostModel(
        heading: heading, subtitle: words.text("leave_subtitle", ["site": app.name]), action: redirect,
        fields: fields.map { AppModel.Field($0.name, $0.value) }),
      title: heading, at: address, exchange)
  }

  /// Says what has happened. The page leads nowhere: the user continues elsewhere.
  package func message(_ heading: String, _ sentence: String, at address: String, _ exchange: Exchange) -> Response {
    page(MessageModel(heading: heading, sentence: sentence, links: []), title: heading, at: address, exchange)
  }

  /// Says why an app does not receive the result of a sign-in, with a link that takes the error there.
  /// - Parameters:
  ///   - back: the address that sends the error to the app.
  ///   - address: the address of the page in another language.
  package func refusedApp(
    _ refusal: Refusal, app: ReceivingApp, back: String, at address: String, _ exchange: Exchange
  ) -> Response {
    exchange.shown.show(app)
    let words = words(exchange)
    exchange.log(refusal)
    let title = words.translated(refusal.code.title)
    return page(
      MessageModel(
        heading: title, sentence: words.sentence(of: refusal),
        links: [MessageModel.Link(address: back, label: words.text("back_to", ["service": app.name]))],
        reference: words.text("reference", ["id": refusal.decision.text]), stressesSupport: true),
      title: title, refusal: refusal, at: address, exchange)
  }

  /// The tags of the languages of the pages.
  package func languages(_ exchange: Exchange) -> [String] { set(of: exchange.generation).languages.map(\.tag) }

  /// The first of the wanted languages that the pages have; nil if they have none, or if the user has chosen one.
  /// - Parameter wanted: tags of BCP 47, by descending preference.
  package func language(_ wanted: [String], _ exchange: Exchange) -> String? {
    guard exchange.request.headers.cookies(GatewayCookies.selectedLanguage).isEmpty else { return nil }
    let tags = languages(exchange)
    let primary = { (tag: String) in tag.lowercased().prefix { $0 != "-" } }
    return wanted.lazy.compactMap { tag in
      tags.first { $0.lowercased() == tag.lowercased() } ?? tags.first { primary($0) == primary(tag) }
    }.first
  }
}
