import Foundation
import MoongateSDK

/// The settings of the provider's entry in gateway.lua, and what is wrong with them.
extension Client {
  static let settings: [SettingField] = [
    SettingField(
      name: "issuer", kind: .text, isRequired: false,
      help: "The issuer of the OpenID provider, exactly as in its discovery document. Default: Google."),
    SettingField(
      name: "client_id", kind: .text, isRequired: true, help: "The client id from the registration at the provider."),
    SettingField(
      name: "client_secret", kind: .secret, isRequired: true,
      help: "The client secret: env \"NAME\" or file \"path\"."),
    SettingField(
      name: "apps", kind: .text, isRequired: false,
      help: "The client ids of your own apps, separated by spaces: ID tokens issued to them are accepted too."),
    SettingField(
      name: "audiences", kind: .list, isRequired: false,
      help: "Other audiences that an ID token may name beside the client id. Default: none."),
    SettingField(
      name: "trusted_domains", kind: .list, isRequired: false,
      help:
        "The domains for whose email addresses the issuer is authoritative. Default: for Google gmail.com and the token's hd, otherwise none."
    ),
    SettingField(
      name: "email_verified", kind: .choice(EmailRule.allCases.map(\.rawValue)), isRequired: false,
      help: "Whether an address counts as verified only by the claim, or always.",
      standard: .text(EmailRule.claim.rawValue)),
    SettingField(
      name: "userinfo", kind: .choice(UserInfoUse.allCases.map(\.rawValue)), isRequired: false,
      help: "When the userinfo endpoint is asked: if the ID token lacks the address or name, always, or never.",
      standard: .text(UserInfoUse.missing.rawValue)),
    SettingField(
      name: "algorithms", kind: .list, isRequired: false,
      help:
        "The signature algorithms of ID tokens that are accepted. Default: all of RS256, PS256, ES256, ES384, EdDSA."
    ),
  ]

  /// The mail providers at which anyone can get an address. A sample: an issuer that is trusted for one of them is
  /// nearly always a mistake.
  private static let publicMailDomains: Set<String> = [
    "gmail.com", "googlemail.com", "outlook.com", "hotmail.com", "live.com", "msn.com", "yahoo.com", "ymail.com",
    "rocketmail.com", "yahoo.co.in", "yahoo.in", "yahoo.co.uk", "yahoo.co.jp", "yahoo.de", "yahoo.fr", "icloud.com",
    "me.com", "mac.com", "aol.com", "proton.me", "protonmail.com", "pm.me", "gmx.com", "gmx.net", "gmx.de", "gmx.at",
    "gmx.ch", "web.de", "t-online.de", "freenet.de", "mail.com", "mail.ru", "inbox.ru", "list.ru", "bk.ru",
    "yandex.ru", "yandex.com", "ya.ru", "rambler.ru", "qq.com", "foxmail.com", "163.com", "126.com", "yeah.net",
    "sina.com", "sohu.com", "naver.com", "daum.net", "hanmail.net", "rediffmail.com", "zoho.com", "zohomail.in",
    "fastmail.com", "fastmail.fm", "hey.com", "tutanota.com", "tuta.com", "tuta.io", "hushmail.com", "mailbox.org",
    "posteo.de", "orange.fr", "wanadoo.fr", "free.fr", "laposte.net", "sfr.fr", "libero.it", "virgilio.it",
    "tiscali.it",
    "hotmail.co.uk", "hotmail.fr", "hotmail.de", "outlook.de", "outlook.fr", "live.co.uk", "btinternet.com", "sky.com",
    "comcast.net", "verizon.net", "att.net", "sbcglobal.net", "bellsouth.net", "cox.net", "charter.net", "uol.com.br",
    "bol.com.br", "terra.com.br", "wp.pl", "o2.pl", "onet.pl", "interia.pl", "seznam.cz", "abv.bg", "ukr.net",
    "mailinator.com", "guerrillamail.com", "duck.com",
  ]

  /// What is wrong with the settings.
  static func findings(in settings: StepSettings) -> [SettingFinding] {
    let issuer = settings.text("issuer") ?? google
    let isLocal = URLComponents(string: issuer)?.host.map { Loopback.contains($0.lowercased()) } ?? false
    var found: [SettingFinding] = []
    if isLocal {
      found.append(
        SettingFinding(
          "issuer",
          "an issuer on this machine is for demos: mock Google lets anyone sign in as anyone. To use Google itself, remove `issuer`",
          .localOnly))
    } else if !issuer.hasPrefix("https://") {
      found.append(
        SettingFinding(
          "issuer",
          "\"\(issuer)\" is not an issuer: it must begin with https://, for example \"https://login.example.com\""))
    }
    for domain in settings.list("trusted_domains") {
      let name = domain.lowercased()
      if EmailAddress("x@\(domain)")?.domain != name {
        found.append(
          SettingFinding(
            "trusted_domains",
            "\"\(domain)\" is not the domain of an email address: write one such as \"example.com\", without @ and *"))
      } else if publicMailDomains.contains(name), !isLocal,
        !(issuer == google && ["gmail.com", "googlemail.com"].contains(name))
      {
        // Attack: an issuer that does not verify addresses, or a user of it who can choose one, gets into the account
        // of anyone with an address at a public mail provider.
        found.append(
          SettingFinding(
            "trusted_domains",
            "\(name) is a public mail provider, for whose addresses \(issuer) is not authoritative: remove it. People with such an address confirm it by a code"
          ))
      }
    }
    if settings.text("email_verified") == EmailRule.always.rawValue {
      found.append(
        SettingFinding(
          "email_verified",
          "\"always\" is for directories whose addresses only an administrator sets: if people can choose their address at \(issuer), they can choose someone else's",
          .warning))
    }
    for algorithm in settings.list("algorithms") where !knownAlgorithms.contains(algorithm) {
      found.append(
        SettingFinding(
          "algorithms",
          "\"\(algorithm)\" cannot be verified here: write some of \(knownAlgorithms.joined(separator: ", "))"))
    }
    if settings.isSet("algorithms"), settings.list("algorithms").isEmpty {
      found.append(SettingFinding("algorithms", "is empty, so no ID token would be accepted: name one, or remove it"))
    }
    return found
  }
}
