/// The stylesheet, for light and dark mode.
enum Stylesheet {
  static let text = """
    :root {
      --ink: #14232b; --soft: #51646d; --line: #d8e2e4; --paper: #f4f8f8; --card: #ffffff; --accent: #0d7377; --on-accent: #ffffff;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --ink: #e8f0f0; --soft: #a3b5ba; --line: #2b3b42; --paper: #0e171b; --card: #162228; --accent: #4fc3c0; --on-accent: #06201f;
      }
    }
    * { box-sizing: border-box; }
    body {
      margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 24px 16px; color: var(--ink);
      font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
      background: radial-gradient(circle at 50% -10%, color-mix(in srgb, var(--accent) 22%, transparent), transparent 60%) var(--paper);
    }
    main {
      width: 100%; max-width: 640px; background: var(--card); border: 1px solid var(--line); border-radius: 20px; padding: 32px;
      box-shadow: 0 12px 40px rgb(0 0 0 / 8%);
    }
    h1 { margin: 4px 0 8px; font-size: 32px; line-height: 1.15; letter-spacing: -0.02em; }
    .eyebrow { margin: 0; color: var(--accent); font-weight: 600; font-size: 14px; }
    .lead { margin: 0 0 24px; color: var(--soft); }
    .lead strong { color: var(--ink); }
    .banner { margin: 16px 0; padding: 8px 16px; border: 1px solid var(--accent); border-radius: 12px; }
    .banner a { display: inline-flex; align-items: center; min-height: 44px; color: var(--accent); font-weight: 600; }
    dl { margin: 0 0 24px; border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
    dl div { display: flex; gap: 16px; padding: 10px 16px; border-top: 1px solid var(--line); }
    dl div:first-child { border-top: 0; }
    dt { flex: 0 0 112px; color: var(--soft); }
    dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
    .button {
      display: inline-flex; align-items: center; min-height: 52px; padding: 0 28px; border-radius: 12px; background: var(--accent);
      color: var(--on-accent); font-weight: 600; text-decoration: none;
    }
    .button:hover { filter: brightness(1.08); }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
    details { margin-top: 24px; border-top: 1px solid var(--line); padding-top: 12px; }
    summary { cursor: pointer; color: var(--soft); min-height: 44px; display: flex; align-items: center; }
    summary::before { content: "▸"; margin-right: 8px; }
    details[open] summary::before { content: "▾"; }
    table { width: 100%; border-collapse: collapse; font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
    th, td { text-align: left; vertical-align: top; padding: 6px 8px; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
    th { color: var(--soft); font-weight: 500; width: 36%; }
    @media (max-width: 420px) { main { padding: 24px 18px; } dl div { flex-direction: column; gap: 0; } dt { flex: none; } }

    """
}
