-- The gateway itself: where it listens, where its state lies, how messages leave. A change of `listen`, `admin`,
-- `store` or `key` takes effect at the next start; everything else within two seconds. Relative paths begin at this
-- folder. Documentation/guides/production.md lists all settings.
return gateway {
  -- The public listener. The proxy in front, which speaks TLS, passes requests on to it.
  listen = "127.0.0.1:@LISTEN@",

  -- Health, metrics, reload, locks, accounts. Anyone who can connect to it has full control: keep it on loopback.
  admin = "127.0.0.1:@ADMIN@",

  -- How people reach the gateway.
  public_url = @PUBLIC_URL@,

  -- Who may send X-Forwarded-For, -Proto and -Host: only your own proxies.
  trusted_proxies = { "127.0.0.1/32", "::1/128" },

  -- Accounts, sessions, counters and locks.
  store = @STORE@,

  -- The master key, which seals what the store holds. The first start makes the file: keep a copy of it apart from the
  -- store. Under systemd it can be a credential instead: credential "master.key".
  key = file @KEY@,

@REGION@  -- What messages and pages call the site.
  service = @SERVICE@,
  brand = { name = @SERVICE@ },

  -- The chance of guessing a code that you accept, per identifier. `moongate check` refuses policies above it.
  risk_budget = "0.1% per 30d",

  -- Connections at a time. Each takes a file; a request that is passed on takes another one.
  limits = { connections = 10000 },

  -- The steps that flows may use, and what each needs.
  providers = {
@MESSAGES@
@PASSKEY@    -- An authenticator app: `issuer` is what the app lists the account under.
    totp = { issuer = @SERVICE@ },
  },
}
