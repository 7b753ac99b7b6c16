import Crypto
import HTTPTypes
import Hummingbird
import MoongateCore
import Mustache

/// Makes pages: templates that are part of the program, one layout, one stylesheet. No page has or needs a script.
package struct PageRenderer: Sendable {
  /// What every page has around its content.
  struct Frame {
    let title: String
    /// What we call ourselves.
    let service: String
    let stylesheet: String
    let icon: String
    /// Where "Contact us" leads; nil where the operator names nothing.
    let support: String?
  }

  private let library: MustacheLibrary
  private let stylesheet: Asset
  private let icon: Asset

  /// A file that pages name. Its own name changes with its content, so browsers may keep it for good.
  private struct Asset {
    let type: String
    let bytes: [UInt8]
    let path: String

    init(_ name: String, _ suffix: String, type: String, _ bytes: [UInt8]) {
      self.type = type
      self.bytes = bytes
      path = "/auth/assets/\(name)-\(Base64URL.encode(SHA256.hash(data: bytes).prefix(9))).\(suffix)"
    }
  }

  /// - Throws: where a template cannot be parsed, which a test would have shown.
  package init() throws {
    let templates: KeyValuePairs<String, [UInt8]> = [
      "layout": PackageResources.layout_mustache, "number": PackageResources.number_mustache, "verify": PackageResources.verify_mustache,
      "logout": PackageResources.logout_mustache, "account": PackageResources.account_mustache, "message": PackageResources.message_mustache,
      "outbox": PackageResources.outbox_mustache, "leave": PackageResources.leave_mustache,
    ]
    var library = MustacheLibrary()
    for (name, text) in templates { try library.register(String(decoding: text, as: UTF8.self), named: name) }
    self.library = library
    stylesheet = Asset("style", "css", type: "text/css; charset=utf-8", PackageResources.style_css)
    icon = Asset("icon", "svg", type: "image/svg+xml", PackageResources.icon_svg)
  }

  var endpoints: [Endpoint] {
    [stylesheet, icon].map { asset in
      Endpoint(.asset, .get, asset.path) { _ throws(Refusal) in
        var response = Response.plain(.ok, type: asset.type, asset.bytes)
        response.headers[.cacheControl] = "public, max-age=31536000, immutable"
        return response
      }
    }
  }

  func frame(_ title: String, _ gateway: GatewaySettings) -> Frame {
    Frame(title: title, service: gateway.brand.name ?? gateway.service, stylesheet: stylesheet.path, icon: icon.path, support: gateway.brand.support)
  }

  /// A page with the headers that it needs.
  /// - Parameter model: what the template's names are looked up in; text in it is escaped by the template.
  func page(_ template: String, _ model: some Any, status: HTTPResponse.Status = .ok, generation: any PolicyGeneration) -> Response {
    var response = Response.plain(status, type: "text/html; charset=utf-8", Array(html(template, model).utf8))
    for (name, value) in Self.headers(generation) { response.headers.set(name, to: value) }
    return response
  }

  func html(_ template: String, _ model: some Any) -> String { library.render(model, withTemplate: template) ?? "" }

  /// What keeps other sites and injected markup from doing anything with a page.
  ///
  /// `form-action` names the places that a completed sign-in may lead to besides us: browsers hold a form's redirects to it
  /// too (Content Security Policy Level 3, section 6.4.1).
  package static func headers(_ generation: any PolicyGeneration) -> [(name: String, value: String)] {
    let gateway = generation.gateway
    let targets = RedirectTargets(publicURL: gateway.publicURL, redirectHosts: gateway.redirectHosts, routes: generation.routes)
    let actions = (["'self'"] + targets.allowedOrigins).joined(separator: " ")
    return [
      (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action \(actions); base-uri 'none'; frame-ancestors 'none'"
      ),
      ("X-Frame-Options", "DENY"), ("Cross-Origin-Opener-Policy", "same-origin"), ("Vary", "Cookie, Accept"),
    ]
  }
}
