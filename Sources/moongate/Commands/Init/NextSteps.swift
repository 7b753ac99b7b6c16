import Foundation
import MoongateCore
import MoongateProgram
import MoongateSDK

/// The closing output of `moongate init`: the next steps, and the configuration of a proxy.
struct NextSteps {
  let folder: String
  let answers: SetupAnswers
  let state: String
  /// The system user that owns the secret files; nil for the user who ran the command.
  let user: String?
  let tools: Tools
  /// Whether an option sets the region of phone numbers.
  var isRegionGiven = false

  /// What the system has for running a service.
  struct Tools {
    /// Whether systemd has moongate.service.
    let hasUnit: Bool
    let hasSudo: Bool

    static var found: Tools {
      Tools(
        hasUnit: ServiceUnit.text() != nil,
        hasSudo: ["/usr/bin/sudo", "/bin/sudo", "/usr/local/bin/sudo"].contains {
          FileManager.default.fileExists(atPath: $0)
        })
    }
  }

  var text: String {
    var lines = notes
    lines += ["", "Next:"]
    lines += steps.enumerated().flatMap { index, step in
      step.split(separator: "\n").enumerated().map { $0 == 0 ? "  \(index + 1). \($1)" : "       \($1)" }
    }
    if answers.publicURL.isSecure {
      lines +=
        ["", "Run a TLS proxy in front of the gateway. Caddy:", ""] + indented(caddy) + ["", "or nginx:", ""]
        + indented(nginx)
    }
    return lines.joined(separator: "\n")
  }

  /// The settings that follow from the answers and differ from the usual ones.
  private var notes: [String] {
    var notes: [String] = []
    for (name, port, usual) in listeners where port != usual {
      notes.append("The service has port \(usual), so `\(name)` in gateway.lua is 127.0.0.1:\(port).")
    }
    if !answers.hasPasskeys {
      notes.append("Passkeys are left out: browsers refuse them for an IP address. To offer them, use a host name.")
    }
    if !isRegionGiven, let region = answers.defaultRegion {
      notes.append(
        "Phone numbers without + count as numbers of \(region). To change this, edit `region` in gateway.lua.")
    }
    return notes
  }

  /// The names of the listeners in gateway.lua, and their ports: those that are written, and those of the sockets.
  private var listeners: [(name: String, port: Int, usual: Int)] {
    [("listen", answers.listenPort, 8080), ("admin", answers.adminPort, 9901)]
  }

  private var steps: [String] {
    let place = Self.shellQuoted(folder)
    let config = folder == "config" ? "" : " --config \(place)"
    // The doctor must not run as root either: root may write everything, so the check of permissions would pass.
    let command = user.map { "\(tools.hasSudo ? "sudo -u \($0)" : "runuser -u \($0) --") moongate" } ?? "moongate"
    let recipient = answers.messages.provider == Providers.mailCodes ? "you@example.com" : "+15550100"
    // The unit runs as the service user, who can read only what root has written for that user.
    let start =
      user != nil && tools.hasUnit
      ? service : ["\(command) serve\(config)     (as a service: see the manual, Documentation/guides/install.md)"]
    return ["Review \(place)/gateway.lua and \(place)/routes.lua.", "moongate check\(config)"] + start + [
      "\(command) doctor\(config) --to \(recipient)",
      "After the first start, back up the new master key, apart from the store.",
    ]
  }

  /// How root starts the unit with this configuration.
  private var service: [String] {
    let folder = Self.absolute(folder)
    var steps: [String] = []
    if folder != "/etc/moongate" {
      let line = "MOONGATE_CONFIG=\(Self.unitQuoted(folder))"
      steps.append("As root: echo \(Self.shellQuoted(line)) >> /etc/default/moongate")
    }
    let state = Self.absolute(state, in: folder)
    if state != "/var/lib/moongate", !state.hasPrefix("/var/lib/moongate/") {
      steps.append(
        edit("moongate", "because the unit can write only /var/lib/moongate")
          + "\n[Service]\nReadWritePaths=\(Self.unitQuoted(state.replacing("%", with: "%%")))")
    }
    for (name, port, usual) in listeners where port != usual {
      let unit = name == "listen" ? "moongate.socket" : "moongate-\(name).socket"
      steps.append(
        edit(unit, "because the service has port \(usual)")
          + "\n[Socket]\nListenStream=\nListenStream=127.0.0.1:\(port)")
    }
    return steps + ["As root: systemctl enable --now moongate"]
  }

  private func edit(_ unit: String, _ reason: String) -> String {
    "As root: systemctl edit \(unit), and add these lines, \(reason):"
  }

  private func indented(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { "  " + $0 }
  }

  private static func absolute(_ path: String, in folder: String = FileManager.default.currentDirectoryPath) -> String {
    path.hasPrefix("/") ? path : "\(folder)/\(path)"
  }

  /// A word of a POSIX shell.
  static func shellQuoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-".utf8.contains(byte)
    }
    return isPlain && !text.isEmpty ? text : "'\(text.replacing("'", with: "'\\''"))'"
  }

  /// A value in a unit or an environment file of systemd.
  static func unitQuoted(_ text: String) -> String {
    guard text.contains(where: { " \t'\"\\$`;#".contains($0) }) else { return text }
    return "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
  }

  // MARK: proxies

  /// Caddy sets the X-Forwarded fields itself and removes those of clients.
  private var caddy: String {
    """
    \(answers.publicURL.authority) {
      reverse_proxy 127.0.0.1:\(answers.listenPort)
    }
    """
  }

  /// The gateway bounds bodies and waiting itself. By default, nginx refuses bodies above 1 MB, holds events back, ends
  /// a WebSocket that is silent for a minute, and answers 502 to a head above 4 KiB.
  ///
  /// Attack: `GET http://closed.example/` with `Host: open.example`. nginx chooses the server by the target, and the
  /// gateway would judge the Host.
  private var nginx: String {
    #"""
    # Only a WebSocket may leave HTTP/1.1.
    map $http_upgrade $moongate_upgrade { "~*^websocket$" websocket; default ""; }
    map $moongate_upgrade $moongate_connection { websocket upgrade; default ""; }
    # Empty unless the target of a request and its Host name the same host.
    map "$host $http_host" $moongate_host {
      default "";
      "~*^([^ ]+) \1\.?(?<moongate_port>(:[0-9]*)?)$" $host$moongate_port;
      "~^[^ ]+ $" $host;
    }
    server {
      listen \#(answers.publicURL.port) ssl;
      server_name \#(answers.publicURL.host);
      ssl_certificate     /etc/ssl/\#(answers.publicURL.host).pem;
      ssl_certificate_key /etc/ssl/private/\#(answers.publicURL.host).key;
      if ($moongate_host = "") { return 400; }
      client_max_body_size 0;
      large_client_header_buffers 4 32k;
      proxy_buffer_size 32k;
      proxy_buffers 4 32k;
      location / {
        proxy_pass http://127.0.0.1:\#(answers.listenPort);
        proxy_http_version 1.1;
        proxy_set_header Upgrade $moongate_upgrade;
        proxy_set_header Connection $moongate_connection;
        proxy_set_header Host $moongate_host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $moongate_host;
        proxy_buffering off;
        proxy_request_buffering off;
        proxy_read_timeout 1d;
        proxy_send_timeout 1d;
      }
    }
    """#
  }
}
