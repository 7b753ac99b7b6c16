-- What the provider allows. An empty table takes the provider's defaults.
-- `moongate policy show totp` prints all of them.
return policy "totp" {
}
