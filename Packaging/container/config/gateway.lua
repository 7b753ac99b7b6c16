-- The gateway itself: where it listens, where its state lies, how messages leave. A change of `listen`, `admin`,
-- `store` or `key` takes effect at the next start; everything else within two seconds. Relative paths begin at this
-- folder. Documentation/guides/production.md lists all settings.
return gateway {
  -- The public listener. A container has an address of its own, so this one is reached by the port that compose.yaml
  -- opens.
  listen = "0.0.0.0:8080",

  -- Health, metrics, reload, locks, accounts. Anyone who can connect to it has full control: keep it on loopback.
  admin = "127.0.0.1:9901",

  -- How people reach the gateway.
  public_url = "http://localhost:8080",

  -- Who may send X-Forwarded-For, -Proto and -Host: only your own proxies.
  trusted_proxies = { "127.0.0.1/32", "::1/128" },

  -- Accounts, sessions, counters and locks.
  store = env "MOONGATE_STORE",

  -- The master key, which seals what the store holds. The first start makes the file: keep a copy of it apart from the
  -- store. Under systemd it can be a credential instead: credential "master.key".
  key = file "/var/lib/moongate/master.key",

  -- The country (two letters, ISO 3166-1) of phone numbers that are typed without +.
  region = "IN",

  -- What messages and pages call the site.
  service = "Moongate",
  brand = { name = "Moongate" },

  -- The chance of guessing a code that you accept, per identifier. `moongate check` refuses policies above it.
  risk_budget = "0.1% per 30d",

  -- Connections at a time. Each takes a file; a request that is passed on takes another one.
  limits = { connections = 10000 },

  -- The steps that flows may use, and what each needs.
  providers = {
    -- Codes by mail.
    email_code = { mail = smtp { url = "smtp://mail:1025", from = "login@example.com" } },
    -- Passkeys: the fingerprint, face or PIN of a device. `rp_name` is what devices call the site.
    passkey = { rp_name = "Moongate" },
    -- An authenticator app: `issuer` is what the app lists the account under.
    totp = { issuer = "Moongate" },
  },
}
