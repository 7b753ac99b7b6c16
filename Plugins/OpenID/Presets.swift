extension Preset {
  /// The issuers of OpenID Connect. A site without `issuer` is installed under an address of its own.
  static let openID: [Preset] = [
    Preset(name: "google", title: "Google", issuer: Client.google, offline: .google),
    // It sends no email_verified, and addresses that a tenant's administrator typed.
    Preset(
      name: "microsoft", title: "Microsoft", issuer: "https://login.microsoftonline.com/{tenant}/v2.0",
      namesTenant: true, needs: ["tenant"],
      claims: ClaimRules(
        groups: [["groups"], ["roles"]], data: ["tenant": ["tid"], "object": ["oid"]],
        overage: ["_claim_names", "groups"])),
    // The name comes beside the code, once. Addresses of the private relay are verified like others.
    Preset(
      name: "apple", title: "Apple", issuer: "https://appleid.apple.com", needs: ["team", "key_id", "private_key"],
      scopes: ["openid", "name", "email"], responseMode: .formPost, clientAuth: .signedSecret, userInfo: .never,
      cancellations: ["access_denied", "user_cancelled_authorize"],
      claims: ClaimRules(takesTextTrue: true), offline: .granted),
    Preset(
      name: "gitlab", title: "GitLab", issuer: "https://gitlab.com",
      claims: ClaimRules(groups: [["groups"], ["groups_direct"]]), offline: .granted),
    // Its address for signing out demands the ID token.
    Preset(name: "okta", needs: ["issuer"], signsOutByClient: false),
    Preset(name: "auth0", needs: ["issuer"]),
    Preset(
      name: "keycloak", needs: ["issuer"], claims: ClaimRules(groups: [["groups"], ["realm_access", "roles"]])),
    // Its tokens also name the projects of the client: `audiences`.
    Preset(
      name: "zitadel", needs: ["issuer"], claims: ClaimRules(groupNames: ["urn:zitadel:iam:org:project:roles"])),
    Preset(name: "authentik", needs: ["issuer"]),
    // Its ID tokens have no claims about the user.
    Preset(
      name: "authelia", needs: ["issuer"], scopes: ["openid", "profile", "email", "groups"], userInfo: .always),
    // email_verified is a text at its userinfo endpoint.
    Preset(
      name: "cognito", needs: ["issuer"], claims: ClaimRules(groups: [["cognito:groups"]], takesTextTrue: true),
      offline: .granted),
    // It refuses a PKCE verifier, and its ID tokens have no nonce.
    Preset(
      name: "linkedin", title: "LinkedIn", issuer: "https://www.linkedin.com/oauth", clientAuth: .post,
      takesPKCE: false, cancellations: ["access_denied", "user_cancelled_login", "user_cancelled_authorize"],
      sendsNonce: false, claims: ClaimRules(takesTextTrue: true), offline: .none),
    Preset(
      name: "slack", title: "Slack", issuer: "https://slack.com",
      claims: ClaimRules(data: ["team": ["https://slack.com/team_id"]]),
      offline: .granted),
    // It sends only the claims that are named.
    Preset(
      name: "twitch", title: "Twitch", issuer: "https://id.twitch.tv/oauth2", scopes: ["openid", "user:read:email"],
      parameters: [
        "claims": #"{"id_token":{"email":null,"email_verified":null,"preferred_username":null}}"#
      ], clientAuth: .post, userInfo: .never, claims: ClaimRules(name: ["preferred_username"]),
      offline: .granted),
  ]

  /// The sites without ID tokens.
  static let oauth: [Preset] = [
    Preset(
      name: "github", title: "GitHub", scopes: ["read:user", "user:email"],
      claims: ClaimRules(
        groups: [], data: ["login": ["login"]],
        addresses: ClaimRules.AddressList(path: ["emails"], primary: "primary", verified: "verified")),
      offline: .granted, authorize: "https://github.com/login/oauth/authorize",
      token: "https://github.com/login/oauth/access_token",
      profiles: ["1": "https://api.github.com/user", "emails": "https://api.github.com/user/emails"], subject: ["id"]),
    Preset(
      name: "discord", title: "Discord", scopes: ["identify", "email"],
      claims: ClaimRules(
        emailVerified: ["verified"], name: ["global_name"], groups: [], data: ["username": ["username"]]),
      offline: .granted, authorize: "https://discord.com/oauth2/authorize",
      token: "https://discord.com/api/oauth2/token",
      profiles: ["1": "https://discord.com/api/users/@me"], subject: ["id"]),
    // It does not say whether an address is verified.
    Preset(
      name: "facebook", title: "Facebook", scopes: ["public_profile", "email"], clientAuth: .post,
      claims: ClaimRules(firstName: ["first_name"], lastName: ["last_name"], groups: []),
      offline: .none, authorize: "https://www.facebook.com/v23.0/dialog/oauth",
      token: "https://graph.facebook.com/v23.0/oauth/access_token",
      profiles: ["1": "https://graph.facebook.com/v23.0/me?fields=id,first_name,last_name,email"], subject: ["id"]),
    // Of an unknown code, it says that the client is not authorized.
    Preset(
      name: "gitea", needs: ["server"], scopes: ["openid", "profile", "email", "groups"],
      codeErrors: ["unauthorized_client"],
      claims: ClaimRules(data: ["login": ["preferred_username"]]),
      offline: .granted, authorize: "{server}/login/oauth/authorize", token: "{server}/login/oauth/access_token",
      profiles: ["1": "{server}/login/oauth/userinfo"], subject: ["sub"]),
    Preset(
      name: "bitbucket", title: "Bitbucket", scopes: ["account", "email"],
      claims: ClaimRules(
        name: ["display_name"], groups: [],
        addresses: ClaimRules.AddressList(
          path: ["emails", "values"], primary: "is_primary", verified: "is_confirmed")),
      offline: .granted, authorize: "https://bitbucket.org/site/oauth2/authorize",
      token: "https://bitbucket.org/site/oauth2/access_token",
      profiles: ["1": "https://api.bitbucket.org/2.0/user", "emails": "https://api.bitbucket.org/2.0/user/emails"],
      subject: ["uuid"]),
  ]
}
