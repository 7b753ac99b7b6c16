/// The words of `access_token` of an app.
enum AppAccessTokenWord: String, CaseIterable { case opaque, jwt }

/// The words of `pkce` of an app.
enum AppPKCE: String, CaseIterable { case required, optional }

/// The words of `subject` of an app.
enum AppSubject: String, CaseIterable { case `public`, pairwise }
