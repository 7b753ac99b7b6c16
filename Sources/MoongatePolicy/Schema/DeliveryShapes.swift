import MoongateCore

/// The tables of `outbox`, `smtp`, `webhook` and `twilio`.
extension TableShape {
  static let outbox = TableShape(
    name: "Outbox", summary: "Shows messages on the admin listener instead of sending them.",
    entries: [
      .optional(
        "allow_public", "boolean", "whether it may be used if public_url is not on the loopback interface", .flag(false)
      )
    ])

  static let smtp = TableShape(
    name: "SMTP", summary: "An SMTP server.",
    entries: [
      .required("url", "string", "\"smtps://mail.example.com\", or \"smtp://mail.example.com:587\" for STARTTLS"),
      .required("from", "string", "the sender, such as \"Moongate <no-reply@example.com>\""),
      .optional("user", "string|moongate.Secret", "the user name for authentication"),
      .optional("password", "moongate.Secret", "the password for authentication: env \"NAME\" or file \"path\""),
      .optional(
        "starttls", "boolean",
        "whether smtp:// requires STARTTLS; true unless the server is on the loopback interface"),
      .optional("ca", "string", "a PEM file of trusted certificate authorities, instead of the system's"),
      .optional(
        "helo", "string", "the name of the gateway in EHLO, such as \"auth.example.com\"; the host of public_url"),
    ])

  static let webhook = TableShape(
    name: "Webhook", summary: "A URL that receives messages as JSON: {\"to\",\"text\"}.",
    entries: [
      .required("url", "string", "the URL, such as \"https://sms.example.com/send\""),
      .optional(
        "headers", "table<string, string|moongate.Secret>",
        "additional request headers, as in { [\"Authorization\"] = env \"SMS_TOKEN\" }"),
    ])

  static let twilio = TableShape(
    name: "Twilio", summary: "Twilio's Messages API.",
    entries: [
      .required("account_sid", "string|moongate.Secret", "the account SID: AC and 32 characters"),
      .required("auth_token", "moongate.Secret", "the auth token: env \"NAME\" or file \"path\""),
      .required("from", "string", "the sender: a number such as \"+15550100\", a name, or a messaging service (MG…)"),
      .optional("url", "string", "the URL of a compatible API", .text(TwilioSettings.usualURL)),
    ])
}
