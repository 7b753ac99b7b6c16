import MoongateCore
import MoongateSDK

/// The closing output of `moongate init`: the next steps, and the configuration of a proxy.
struct NextSteps {
  let folder: String
  let answers: SetupAnswers
  let state: String
  /// The system user that owns the secret files; nil for the user who ran the command.
  let user: String?

  var text: String {
    let config = folder == "config" ? "" : " --config \(folder)"
    // The doctor must not run as root either: root may write everything, so the check of permissions would pass.
    let command = user.map { "sudo -u \($0) moongate" } ?? "moongate"
    var lines = [
      "", "Next:",
      "  1. Review \(folder)/gateway.lua and \(folder)/routes.lua.",
      "  2. moongate check\(config)",
      "  3. \(command) serve\(config)     (as a service: see the manual, Documentation/guides/install.md)",
      "  4. \(command) doctor\(config) --to \(answers.messages.provider == Providers.mailCodes ? "you@example.com" : "+15550100")",
      "  5. After the first start, back up the new master key, apart from the store.",
    ]
    if answers.publicURL.isSecure {
      lines +=
        ["", "Run a TLS proxy in front of the gateway. Caddy:", ""] + indented(caddy) + ["", "or nginx:", ""]
        + indented(nginx)
    }
    return lines.joined(separator: "\n")
  }

  private func indented(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { "  " + $0 }
  }

  /// Caddy sets the X-Forwarded fields itself and removes those of clients.
  private var caddy: String {
    """
    \(answers.publicURL.authority) {
      reverse_proxy 127.0.0.1:8080
    }
    """
  }

  private var nginx: String {
    """
    map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
    server {
      listen \(answers.publicURL.port) ssl;
      server_name \(answers.publicURL.host);
      ssl_certificate     /etc/ssl/\(answers.publicURL.host).pem;
      ssl_certificate_key /etc/ssl/private/\(answers.publicURL.host).key;
      location / {
        proxy_pass http://127.0.0.1:8080;
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $connection_upgrade;
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $http_host;
        proxy_request_buffering off;
      }
    }
    """
  }
}
