/// What fields are for, where their `help` says only what belongs there. Editors, the reference and `moongate help` show both.
extension TableShape {
  /// By table and field.
  static let descriptions: [String: String] = [
    "Gateway.listen": "where the public listener accepts connections",
    "Gateway.admin": "where the admin listener accepts connections",
    "Gateway.tls": "the certificate of the public listener; without it the listener speaks HTTP",
    "Gateway.region": "the country of phone numbers that are typed without a country code",
    "Gateway.trusted_proxies": "the proxies in front whose X-Forwarded headers are believed",
    "Gateway.redirect_hosts": "further hosts that a sign-in may return to",
    "Gateway.cookie_domain": "the domain of cookies, so that its subdomains share a sign-in",
    "Gateway.cors_origins": "the origins whose scripts may call the API",
    "Gateway.providers": "the providers that this gateway uses, with their settings",
    "Admin.address": "where the admin listener accepts connections",
    "AdminToken.name": "the name by which the audit trail knows the caller",
    "AdminToken.role": "what the token allows: read only, or read and change",
    "AdminToken.token": "what calls carry as Authorization: Bearer",
    "AuditSyslog.address": "where the syslog server listens",
    "AuditSyslog.facility": "the facility that messages carry",
    "TLS.cert": "the certificate with its chain", "TLS.key": "the private key of the certificate",
    "Brand.name": "the name that pages show", "Brand.logo": "the picture that pages show",
    "Brand.primary": "the colour of buttons and links", "Brand.support": "where pages send people who need help",
    "ConnectionLimits.connections": "how many connections of clients may be open at once",
    "AddressLimits.connections": "how many connections one client address may have open at once",
    "AddressLimits.requests": "how many requests one client address may make",
    "FlowLimits.count": "how many such flows may be open at once", "FlowLimits.bytes": "how much memory such flows may take",
    "Policy.timers": "waits between messages", "Policy.limits": "limits by names of your own choice",
    "Policy.unknown_account": "whether answers reveal that no account has the identifier",
    "Policy.message": "what the message with the code says",
    "Policy.send": "decides whether a code is sent", "Policy.verify": "decides whether an answer is compared",
    "Code.length": "how long a code is", "Code.alphabet": "which characters a code is made of", "Code.ttl": "how long a code can be used",
    "Limit.on": "which action is counted", "Limit.per": "what has a counter of its own", "Limit.max": "how many events are allowed",
    "Limit.window": "the time in which events are counted", "Limit.counts": "which events are counted",
    "Limit.lock": "how long requests are refused when the limit is full of failures; a list grows with each lock",
    "Limit.disable": "whether reaching the limit disables the credential until an operator re-enables it",
    "Flow.identifier": "which kind of identifier the flow adds, changes or removes",
    "Flow.lifetime": "how long a person has to complete the flow",
    "Flow.steps": "what has to be passed, in order",
    "Step.skippable": "whether a person may skip the step", "Step.when": "decides whether the step is needed",
    "Session.lifetime": "how long a session lives at most", "Session.idle": "how long a session lives without a request",
    "Next.new": "where a new account goes", "Next.returning": "where an existing account goes",
    "Route.host": "the host that requests are for; every host where it is left out",
    "Route.path": "the paths that the route matches", "Route.methods": "the methods that the route matches; all where it is left out",
    "Route.to": "where requests go", "Route.allow": "whether requests need no session", "Route.flow": "the flow that people without a session begin",
    "Route.decide": "decides about each request", "Route.timeout": "how long an upstream may be silent",
    "Route.websocket": "whether requests may become WebSockets", "Route.body": "the largest body of a request",
    "Requirement.group": "the group that the account must be in", "Requirement.passed": "the provider that the session must have passed",
    "Requirement.within": "how long ago the provider was passed at most",
    "Requirement.email_verified": "whether the account must have a verified email address",
    "SignInRequirement.when": "decides whether the provider is required", "Offer.when": "decides whether the offer is made",
    "GuaranteeAccount.exists": "whether the account exists when the flow begins", "GuaranteeAccount.has_pin": "whether the account has a PIN",
    "GuaranteeAccount.has_email": "whether the account has an email address",
    "GuaranteeAccount.email_verified": "whether its email address is verified",
    "GuaranteeAccount.phone_verified": "whether its phone number is verified",
    "GuaranteeClient.new_device": "whether the device is new to the account",
    "GuaranteeClient.network_changed": "whether the device is in another network than last time",
    "CaseAccount.age": "how long ago the account was created", "CaseAccount.idle": "how long ago the account was last used",
    "CaseAccount.phone_verified": "whether its phone number is verified", "CaseAccount.email_verified": "whether its email address is verified",
    "CaseAccount.has_pin": "whether it has a PIN", "CaseClient.ip": "the address that requests come from",
    "CaseExpect.retry_after": "how long the answer says to wait",
  ]
}

extension TableShape.Entry {
  /// What the field is for and what belongs there.
  func text(in shape: TableShape) -> String {
    TableShape.descriptions["\(shape.name).\(name)"].map { "\($0): \(help)" } ?? help
  }
}
